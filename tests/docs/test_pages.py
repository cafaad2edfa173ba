"""The pages of docs/ are doctests, and each has its place in the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.doctested import failures

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
TOCTREE = re.compile(r"^```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)^```", re.MULTILINE | re.DOTALL)


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
