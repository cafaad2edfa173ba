"""The pages of docs/ are doctests."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", sorted(p.name for p in DOCS.glob("*.md")))
def test_what_a_page_shows_is_so(page: str) -> None:
    failures, _ = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=FLAGS)
    assert failures == 0
