"""The gallery has every example, and its pictures are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
PARTS = {"digits_check.py", "digits_data.py"}  # of digits.py


def test_every_example_is_in_the_gallery() -> None:
    examples = {path.name for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".ipynb")}
    assert {name for name in examples - PARTS if f"examples/{name}" not in PAGE} == set()


def test_every_picture_is_there_and_is_shown() -> None:
    shown = set(re.findall(r"!\[[^\]]+\]\(_static/gallery/(\w+\.png)\)", PAGE))
    assert shown == {path.name for path in (ROOT / "docs" / "_static" / "gallery").iterdir()}
    assert len(shown) >= 7
