"""Links between pages lead somewhere, and files that pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole  # a case takes milliseconds

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for place in ("*.md", "docs/**/*.md", "bench/*.md") for path in ROOT.glob(place))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./]+/[\w./]+\.py)`")
PLACES = (ROOT, ROOT / "retrograd")  # names of files begin here


def anchors(text: str) -> set[str]:
    """What headings are called in links."""
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def dead(page: Path, text: str) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    for name, anchor in LINK.findall(FENCED.sub("", text)):
        target = (page.parent / name).resolve() if name else page
        there = target.exists() and (not anchor or anchor in anchors(target.read_text(encoding="utf-8")))
        found += [] if there else [f"{name}#{anchor}"]
    return found


def missing(text: str) -> list[str]:
    """Files that a page names and that are not there."""
    return [name for name in FILE.findall(text) if not any((place / name).exists() for place in PLACES)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert dead(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_are_there(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_dead_links_and_missing_files_are_found() -> None:
    page = ROOT / "docs" / "limits.md"
    text = "# One\n[a](edges.md) [b](#one) [c](nowhere.md) [d](edges.md#nothing)\n`ir/graph.py` and `ir/grave.py`"
    assert dead(page, text) == ["#one", "nowhere.md#", "edges.md#nothing"]
    assert missing(text) == ["ir/grave.py"]
