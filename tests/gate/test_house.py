"""``docs/architecture.md`` tells what `python -m bench.house` measures, and a goal that was reached stays reached.

The page may be off by a tenth, so that it need not change with every commit. ``pytest --accept`` writes it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import house
from retrograd.compiler.stages import PIPELINE, STAGES

PAGE = house.ROOT / "docs" / "architecture.md"
SECTION = "## Size and structure, measured\n"
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
OFF, FEW = 0.1, 3  # a figure may be off by this part of it, or by so many


def section(page: str) -> str:
    """The part of the page that holds the tables."""
    return page.partition(SECTION)[2].partition("\n## ")[0]


def rows(tables: str) -> dict[str, list[str]]:
    """The cells of each row by the first one, without headers."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables.splitlines() if line[:1] == "|"]
    heads = ("package", "measured")
    return {first: rest for first, *rest in found if not first.startswith("---") and first not in heads}


def measured() -> str:
    return f"{house.by_room()}\n\n{house.against_goals()}\n"


def stale(page: str, now: str) -> list[str]:
    """What a page says that is no longer so."""
    told, found = rows(section(page)), rows(now)
    changed = [name for name, cells in found.items() if name in told and not _alike(told[name], cells)]
    return [*sorted(set(told) ^ set(found)), *changed]


def _alike(told: list[str], found: list[str]) -> bool:
    return len(told) == len(found) and all(map(_near, told, found))


def _near(told: str, found: str) -> bool:
    if not (told.replace(",", "").isdigit() and found.replace(",", "").isdigit()):
        return told == found
    a, b = (int(cell.replace(",", "")) for cell in (told, found))
    return abs(a - b) <= max(FEW, OFF * b)


def accepted(page: str, now: str) -> str:
    """The page with its tables as they are measured."""
    old, new = section(page), iter(TABLE.findall(now))
    return page.replace(old, TABLE.sub(lambda _: next(new), old))


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--accept"):
        PAGE.write_text(accepted(PAGE.read_text(encoding="utf-8"), measured()), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    assert stale(page, measured()) == [], "run pytest --accept tests/gate/test_house.py"


def test_a_page_that_is_far_off_is_found() -> None:
    now = measured()
    page = f"{SECTION}\n{now}\n## More\n"
    assert stale(page, now) == []
    assert stale(page.replace("| 29 |", "| 28 |"), now) == []
    wrong = page.replace("`ops/`", "`opera/`")
    assert stale(wrong, now) == ["`opera/`", "`ops/`"]
    assert accepted(page.replace("8,285", "1,285"), now) == page


def test_rooms_are_all_there() -> None:
    folders = {path.parent.name for path in house.PACKAGE.glob("*/__init__.py")}
    assert set(house.ROOMS) == folders


def test_a_circle_is_found_and_what_comes_with_a_file() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str]()}
    assert house.circles(graph) == [["b", "c"]]
    assert house.closure("c", graph) == {"b", "c", "d"}


def test_imports_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    for name in ("room/__init__", "room/one", "room/two", "room/three", "low"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "room/one.py").write_text(
        "from ..low import x\nif TYPE_CHECKING:\n    from . import two\ndef f():\n    from .three import y\n"
    )
    assert house.imports(tmp_path)["room/one"] == {"low"}
    assert house.imports(tmp_path, late=True)["room/one"] == {"low", "room/three"}
    assert house.imports(tmp_path, late=True, types=True)["room/one"] == {"low", "room/two", "room/three"}


def test_every_field_of_a_primitive_is_in_a_group() -> None:
    found = house.fields()
    assert found["name"] == 1
    assert all(found.values())


def test_the_page_lists_the_stages() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## The pipeline\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `(\w+)` \| (pass|planner) \|", text, re.MULTILINE)
    assert told == [(name, "planner" if STAGES[name].plans else "pass") for name in PIPELINE]
