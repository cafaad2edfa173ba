"""Every ``rg.x.y`` that pages, examples and docstrings speak of is reached through the face."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import retrograd as rg

pytestmark = pytest.mark.whole  # a case takes milliseconds

ROOT = Path(__file__).parents[2]
PLACES = ("README.md", "docs/**/*.md", "bench/**/*.md", "bench/**/*.py", "examples/**/*.py", "retrograd/**/*.md")
FILES = sorted(path for place in (*PLACES, "retrograd/**/*.py") for path in ROOT.glob(place))
NAME = re.compile(r"(?<![\w.])rg((?:\.[A-Za-z_]\w*)+)")


def unresolved(text: str) -> set[str]:
    return {found for found in NAME.findall(text) if not resolves(found[1:].split("."))}


def resolves(names: list[str]) -> bool:
    """Whether each name is shown by what is before it, as far as that is the face or a room of it."""
    thing: object = rg
    for name in names:
        if isinstance(thing, ModuleType) and thing in (rg, rg.eager, rg.functions) and name not in dir(thing):
            return False
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_is_on_the_face(path: Path) -> None:
    assert unresolved(path.read_text(encoding="utf-8")) == set()


def test_names_that_are_not_there_are_found() -> None:
    text = "rg.grad rg.eager.Tensor rg.Tensor rg.errors.ShapeError rg.config.speed rg.eager.nn.relu arg.nonsense rg.api"
    assert unresolved(text) == {".Tensor", ".config.speed", ".eager.nn.relu", ".api"}
