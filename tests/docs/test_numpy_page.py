"""``docs/numpy.md`` is what the table of NumPy says, and speaks of everything. ``pytest --accept`` writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.numpy_page import everything, page, spoken_of

PAGE = Path(__file__).parents[2] / "docs" / "numpy.md"


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--accept"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "run pytest --accept tests/docs/test_numpy_page.py"


def test_every_function_of_numpy_is_on_the_page() -> None:
    assert sorted(set(everything()) - spoken_of()) == []
