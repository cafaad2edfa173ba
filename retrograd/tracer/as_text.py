"""Texts of traced values: of a Python int the number, since a name or a key may come of it; else the example."""

from __future__ import annotations

from ..errors import TracerConversionError
from .array import Tracer
from .table import METHODS


def text(x: Tracer) -> str:
    """``str(x)``, and ``print(x)``."""
    return str(int(x)) if _is_int(x) else repr(x)


def formatted(x: Tracer, how: str) -> str:
    """``format(x, how)``, as in ``f"layer{n}"``."""
    if x.const or _is_int(x):
        return format(x.shadow if x.const else int(x), how)
    if not how:
        return repr(x)
    raise TracerConversionError(
        f"a traced value is formatted by {how!r}, but it is known only when the compiled function runs",
        remedy="print the value itself, which shows its example, or return it",
    )


def _is_int(x: Tracer) -> bool:
    return type(x.shadow) is int and x.home.active and x.home.concrete


METHODS["__str__"] = text
METHODS["__format__"] = formatted
