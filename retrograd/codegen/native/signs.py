"""Signs: what the operations behind a value say of all its elements. Each of them may also be nan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile

import numpy as np

from ...ir.graph import Node, Value

DEEPEST = 5  # operations that are looked through
SAME = frozenset({"broadcast", "cast", "copy", "getitem", "owned", "permute", "reshape", "stop_gradient", "sum"})
NEVER_NEGATIVE = frozenset({"abs", "cosh", "exp", "exp2", "expit", "root", "sqrt", "square"})
EXTREMA = {"max": -1, "maximum": -1, "min": 1, "minimum": 1}  # and the sign of an operand less its extremum


def has_sign(value: Value, sign: int, made: Mapping[Value, Node], deepest: int = DEEPEST) -> bool:
    """Whether no element is negative, or with a sign of -1 whether none is positive."""
    node = made.get(value)
    if node is None or deepest == 0 or value.aval.dtype.kind == "c":
        return False
    name = node.prim.name
    if name == "const":
        return bool(np.all(np.multiply(node.attrs["value"], sign) >= 0))
    if name in NEVER_NEGATIVE or (name == "mul" and node.inputs[0] is node.inputs[1]):
        return sign > 0

    def has(k: int, sign: int) -> bool:
        return has_sign(node.inputs[k], sign, made, deepest - 1)

    if name in SAME:
        return has(0, sign)
    if name == "neg":
        return has(0, -sign)
    if name in ("mul", "div"):
        return any(has(0, first) and has(1, first * sign) for first in (1, -1))
    if name == "add":
        return has(0, sign) and has(1, sign)
    if name == "sub":
        return (has(0, sign) and has(1, -sign)) or _from_extremum(node, made) == sign
    if name in ("maximum", "minimum"):
        return has(0, sign) or has(1, sign) if sign == -EXTREMA[name] else has(0, sign) and has(1, sign)
    return False


def _from_extremum(node: Node, made: Mapping[Value, Node]) -> int:
    """The sign of a difference if it is that of a value and its extremum, among elements or over axes."""
    value, other = node.inputs
    extremum = made.get(other)
    if extremum is not None and extremum.prim.name in ("maximum", "minimum"):
        return EXTREMA[extremum.prim.name] if value in extremum.inputs else 0
    spread = _behind(other, made, lambda node: node.prim.name in ("broadcast", "stop_gradient"))
    extremum = made.get(_behind(spread, made, _has_more_axes))
    if extremum is None or extremum.prim.name not in ("max", "min") or extremum.inputs[0] is not value:
        return 0
    kept = [1 if a in extremum.attrs["axis"] else n for a, n in enumerate(value.aval.shape)]
    along = spread.aval.size == 1 or _inner(spread.aval.shape) == _inner(kept)
    return EXTREMA[extremum.prim.name] if along else 0


def _behind(value: Value, made: Mapping[Value, Node], looks_through: Callable[[Node], bool]) -> Value:
    """The value of which a value is a view."""
    while value in made and looks_through(made[value]):
        value = made[value].inputs[0]
    return value


def _has_more_axes(node: Node) -> bool:
    """Whether a node gives its operand other axes, with the elements in their order."""
    whole = node.prim.name == "getitem" and all(i is None or i in (..., slice(None)) for i in node.attrs["index"])
    return whole or node.prim.name in ("reshape", "stop_gradient")


def _inner(shape: Sequence[int]) -> list[int]:
    """A shape without the axes in front that have one element."""
    return [*dropwhile(lambda n: n == 1, shape)]
