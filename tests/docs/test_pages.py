"""The pages of docs/ are doctests, and each has its place in the site."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doctested import failures

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
TOCTREE = re.compile(r"^```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.whole
@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in (DOCS / page).read_text(encoding="utf-8")])
def test_what_a_page_shows_is_so(page: str) -> None:
    assert failures((DOCS / page).read_text(encoding="utf-8"), page) == 0


WITHOUT_SCIPY = """
import sys
from pathlib import Path


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "scipy":
            raise ModuleNotFoundError("No module named 'scipy'", name=name)


sys.meta_path.insert(0, Absent())
from tests.support.doctested import failures

pages = [Path(name) for name in sys.argv[1:]]
wrong = [page.name for page in pages if failures(page.read_text(encoding="utf-8"), page.name)]
assert not wrong, wrong
assert "scipy" not in sys.modules
"""


def test_the_start_needs_python_and_numpy_only() -> None:
    pages = [str(DOCS / page) for page in PAGES if page.startswith("start/")]
    assert len(pages) > 6
    command = [sys.executable, "-c", WITHOUT_SCIPY, *pages]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=DOCS.parent)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_what_is_not_so_is_found() -> None:
    assert failures(">>> 1 + 1\n3\n", "wrong.md") == 1
    assert failures(">>> print('<doctest a.md[3]>:7')\nprogram.py:7\n", "right.md") == 0


def test_each_page_has_one_place_in_the_site() -> None:
    listed = ["index"]
    for page in PAGES:
        for block in TOCTREE.findall((DOCS / page).read_text(encoding="utf-8")):
            listed += [str(Path(page).parent / name) for name in block.split()]
    assert sorted(f"{name}.md" for name in listed) == PAGES
