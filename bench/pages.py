"""How long pages about large programs take to write and to draw: `python -m bench.pages`. It needs Chromium."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import retrograd as rg
from bench import table
from tests.support.browser import browser
from tests.support.long_program import long_program

LINES = {40: "operation", 430: ""}  # lines of a program, and the level of detail that is asked for
TRIES = 3


def main() -> None:
    """Print a table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder, "profile")) as tab:
        for n, level in LINES.items():
            f, x = rg.grad(long_program(n)), np.linspace(0.1, 1.0, 6)
            f(x)
            start = time.perf_counter()
            page = f.report(Path(folder, f"{n}.html"), x, check=False)
            written = time.perf_counter() - start
            took = []
            for _ in range(TRIES):
                tab.show(page)
                if level:
                    tab.run("delete document.documentElement.dataset.drawn")
                    tab.run(f"document.querySelector('#levels [value={level}]').click()")
                    tab.wait("document.documentElement.dataset.drawn !== undefined")
                took.append(float(tab.run("document.documentElement.dataset.took")))
            shapes = tab.run("document.documentElement.dataset.drawn")
            count = tab.run("document.getElementById('state').textContent").split()[3]
            size = page.stat().st_size / 1e6
            rows.append([count, shapes, f"{written:.1f} s", f"{size:.2f} MB", f"{min(took):.0f} ms"])
    print(table.render(["operations", "shapes", "written in", "size", "drawn in"], rows, markdown=True))


if __name__ == "__main__":
    main()
