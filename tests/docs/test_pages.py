"""The pages of docs/ are doctests, and each has its place in the site."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TOCTREE = re.compile(r"^```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Checker(doctest.OutputChecker):
    """Generated source names the user's file; on a page that is ``program.py``."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, re.sub(r"<doctest [^>]*>", "program.py", got), optionflags)


def failures(text: str, name: str) -> int:
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, Path(name).name, name, 0)
    return doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(test).failed


@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in (DOCS / page).read_text(encoding="utf-8")])
def test_what_a_page_shows_is_so(page: str) -> None:
    assert failures((DOCS / page).read_text(encoding="utf-8"), page) == 0


def test_what_is_not_so_is_found() -> None:
    assert failures(">>> 1 + 1\n3\n", "wrong.md") == 1
    assert failures(">>> print('<doctest a.md[3]>:7')\nprogram.py:7\n", "right.md") == 0


def test_each_page_has_one_place_in_the_site() -> None:
    listed = ["index"]
    for page in PAGES:
        for block in TOCTREE.findall((DOCS / page).read_text(encoding="utf-8")):
            listed += [str(Path(page).parent / name) for name in block.split()]
    assert sorted(f"{name}.md" for name in listed) == PAGES
