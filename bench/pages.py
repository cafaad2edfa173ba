"""How long pages about large programs take to write and to draw: `python -m bench.pages`. It needs Chromium."""

from __future__ import annotations

import linecache
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from bench import table
from tests.support.browser import browser

LINES = {40: "operation", 430: ""}  # lines of a program, and the level of detail that is asked for
TRIES = 3


def program(n: int) -> Any:
    """A function of so many lines, each a little different, so that no loop is found."""
    lines = ["def long(x):"]
    lines += [f"    x = np.sin(x * 1.{k:04}) + np.cos(x) * 0.5" for k in range(1, n + 1)]
    source = "\n".join([*lines, "    return np.sum(x)", ""])
    scope: dict[str, Any] = {"np": np}
    file = f"long_{n}.py"
    exec(compile(source, file, "exec"), scope)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return scope["long"]


def main() -> None:
    """Print a table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder, "profile")) as tab:
        for n, level in LINES.items():
            f, x = rg.grad(program(n)), np.linspace(0.1, 1.0, 6)
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
