"""Amounts in words, tables in text, and the user's lines."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.graph import Node
from ..reports.pictures import byte_unit
from ..where import Where

TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def in_seconds(seconds: float | None) -> str:
    """A time as a short text.

    >>> in_seconds(0.0012), in_seconds(3.0), in_seconds(0.0), in_seconds(None)
    ('1.2 ms', '3 s', '0 s', '')
    """
    if seconds is None:
        return ""
    scale, unit = next(((s, u) for s, u in TIMES if abs(seconds) >= s), TIMES[-1] if seconds else TIMES[0])
    return f"{seconds / scale:.3g} {unit}"


def in_bytes(count: float) -> str:
    """A number of bytes as a short text.

    >>> in_bytes(800), in_bytes(1.5e6)
    ('800 bytes', '1.5 MB')
    """
    scale, unit = byte_unit(count)
    return f"{count / scale:.3g} {unit}"


def in_short(count: float) -> str:
    """A number as a short text.

    >>> in_short(12), in_short(1_250_000)
    ('12', '1.25 M')
    """
    scale, unit = next(((s, u) for s, u in COUNTS if count >= s), (1.0, ""))
    return f"{count / scale:.3g} {unit}".rstrip()


def counted(things: Sequence[Any], word: str) -> str:
    """How many things there are.

    >>> counted([1.5], "number"), counted([], "number")
    ('1 number', '0 numbers')
    """
    return f"{len(things):,} {word}{'s' if len(things) != 1 else ''}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: frozenset[int] = frozenset({0})) -> list[str]:
    """Rows with aligned columns; those of ``left`` begin at the left, the others end at the right."""
    whole = [head, *rows]
    widths = [max(len(row[k]) for row in whole) for k in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = (f"{c:<{w}}" if k in left else f"{c:>{w}}" for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        return ("  " + "  ".join(cells)).rstrip()

    return [line(row) for row in whole]


def code_at(where: Where | None) -> str:
    """The text of a user's line, if it can be read; what cannot be printed is replaced."""
    return printable(linecache.getline(where.file, where.line).strip()) if where is not None else ""


def printable(text: str) -> str:
    """The text with a mark for each character that cannot be printed, such as terminal escapes."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cut(text: str, most: int = 60) -> str:
    """The text, shortened if it is long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def number_of(node: Node) -> str:
    """The number that a constant is; empty for other operations."""
    value = node.attrs.get("value")
    one = isinstance(value, (bool, int, float, complex, np.generic))
    return cut(str(value)) if node.prim.name == "const" and one else ""
