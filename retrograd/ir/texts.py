"""The code of a primitive: a dataclass for each target, and how its templates are filled in."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .graph import Graph, Node
from .types import Aval

Template = str | Callable[[Node], str]


@dataclass(frozen=True, eq=False, kw_only=True)
class NumPyText:
    """The source that the NumPy target writes, and the interpreter evaluates.

    ``code`` is a format string of Python source over operands ``{0}, {1}, ...`` (``{args}`` is all of them) and
    attributes by name, or makes such a string from the node. A primitive that writes has a ``statement`` instead.
    """

    code: Template = ""
    statement: Template = ""  # instead of code: it changes {0}, a fresh copy of operand `writes`
    helper: str = ""  # source of a function that the code calls; it stands once in a module
    names: str = ""  # of NumPy's functions and methods that the code has, where it is not a template that shows them
    op: Template = ""  # operator form of the code, where it rounds as the code does
    ufunc: str = ""  # the NumPy ufunc: it broadcasts, casts and takes out=
    takes_out: bool = False  # code with ", out=X" appended inside the last parenthesis is legal
    numbers: tuple[int, ...] = ()  # operands whose constants NumPy must get as numbers: it rounds otherwise with arrays
    loose: tuple[int, ...] = ()  # operands that NumPy broadcasts and casts by itself; a ufunc does so for all

    @property
    def broadcasts(self) -> bool:
        """Whether NumPy broadcasts and casts all operands by itself."""
        return bool(self.ufunc) and self.ufunc != "np.matmul"

    def render(self, node: Node, operands: Sequence[str], template: Template = "") -> str:
        """The code, filled in with names of operands and literals of attributes."""
        attrs, template = node.attrs, template or self.code
        if not attrs and isinstance(template, str) and "{args}" not in template:
            return template.format(*operands)
        fields = {name: literal(value) for name, value in attrs.items() if not isinstance(value, (Graph, Aval))}
        if "aval" in attrs:
            aval: Aval = attrs["aval"]
            fields |= {"shape": literal(aval.shape), "dtype": literal(aval.dtype), "size": str(aval.size)}
        if "index" in attrs:
            fields["index"] = subscript(attrs["index"], operands)
        text = template if isinstance(template, str) else template(node)
        return text.format(*operands, args=", ".join(operands), **fields)


# The dataclasses by target. A keyword of a declaration belongs to the dataclass that has a field of its name.
TEXTS: dict[str, type[Any]] = {"numpy": NumPyText}


PLAIN = frozenset({int, bool, str, type(None)})  # what Python writes as its source


def literal(value: Any) -> str:
    """Python source of an attribute; ``np`` is in scope there."""
    if type(value) in PLAIN:
        return repr(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    if isinstance(value, complex):
        return _complex_literal(value)
    if isinstance(value, tuple):
        items = ", ".join(map(literal, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, np.dtype):
        return _dtype_literal(value)
    return "..." if value is Ellipsis else repr(value)


@lru_cache(maxsize=64)
def _dtype_literal(dtype: np.dtype[Any]) -> str:
    return f"np.{'bool' if dtype == np.bool_ else dtype.name}"


def _complex_literal(value: complex) -> str:
    """Source that gives the same bits: ``1-2j`` adds to zeros, and ``-1j`` has the real part -0.0."""
    negative_zero = [part == 0 and math.copysign(1, part) < 0 for part in (value.real, value.imag)]
    if cmath.isfinite(value):
        if not any(negative_zero) and (value.real or value.imag >= 0):
            return repr(value)
        if negative_zero[0] and value.imag < 0:
            return f"-{-value!r}"
    return f"complex({literal(value.real)}, {literal(value.imag)})"


@dataclass(frozen=True, slots=True)
class Arg:
    """In an index: the operand at this position, an array of integers."""

    position: int


def subscript(index: tuple[Any, ...], operands: Sequence[str] = ()) -> str:
    """An index as it stands between square brackets: ``1:, 0, ::2``; operands as ``arg1`` or by name."""
    parts = []
    for item in index:
        if isinstance(item, Arg):
            parts.append(operands[item.position] if operands else f"arg{item.position}")
        elif isinstance(item, slice):
            start, stop = ("" if x is None else str(x) for x in (item.start, item.stop))
            parts.append(f"{start}:{stop}" + ("" if item.step is None else f":{item.step}"))
        else:
            parts.append(literal(item))
    return ", ".join(parts) or "()"
