"""Programs on pages: blocks of plain Python with what they print, and blocks at a prompt."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """The blocks of a page, each ``python``, ``prompt`` or ``text``."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [("prompt" if text.startswith(">>>") else kind, text) for kind, text in found]


def _followed(page: str, after: str) -> list[tuple[str, str]]:
    """The plain programs of a page that are followed by a block of some kind, each with that block."""
    return [(a, b) for (kind, a), (other, b) in pairwise(blocks(page)) if (kind, other) == ("python", after)]


def with_text(page: str) -> list[tuple[str, str]]:
    """Programs with the text that stands after them."""
    return _followed(page, "text")


def with_prompt(page: str) -> list[tuple[str, str]]:
    """Programs of others with what the block at a prompt after them, which is ours, prints."""
    parser = doctest.DocTestParser()
    return [(a, "".join(example.want for example in parser.get_examples(b))) for a, b in _followed(page, "prompt")]


def printed(program: str, scope: dict[str, Any]) -> str:
    """What a program prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(program, "<page>", "exec", dont_inherit=True), scope)
    return out.getvalue()
