"""Slices of two vectors whose length an operand says: their product, and adding a multiple of one to the other.

``dot_within`` is ``x[i:i + n] @ y[j:j + n]``, ``add_within`` is ``x`` after ``x[i:i + n] += c * y[j:j + n]``. The
operands are x, (c,) y, n, and those of i and j that ``starts`` says are not zero. NumPy gets the slices themselves, so
what lies outside of them has no part in values or derivatives, be it nan. Whoever records it sees to it that the slices
lie within the vectors. Batch elements are leading axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.graph import Node, Value
from ..ir.primitive import JvpMode, Primitive, primitive, pull
from ..ir.types import Aval
from .annihilation import annihilating_mul
from .batching import Flags, lanes
from .lane_loops import looped
from .shape import broadcast_to, reshape_to

INT = np.dtype(np.int64)
Starts = tuple[bool, bool]  # whether the slices of x and of y begin elsewhere than at 0


def _checked(x: Aval, y: Aval, numbers: Sequence[Aval], starts: Starts) -> None:
    if not (x.ndim and y.ndim) or x.shape[:-1] != y.shape[:-1] or x.dtype != y.dtype or x.dtype.char not in "fd":
        raise ValueError(f"{x} and {y} are not vectors of the same real numbers")
    if len(numbers) != 1 + sum(starts) or any(k.shape or k.dtype != INT for k in numbers):
        raise ValueError(f"{', '.join(map(str, numbers))} are not a length and {sum(starts)} starts")


def _dot_shape(x: Aval, y: Aval, *numbers: Aval, starts: Starts) -> Aval:
    _checked(x, y, numbers, starts)
    return Aval(x.shape[:-1], x.dtype, "array" if x.ndim > 1 else "scalar")


def _add_shape(x: Aval, c: Aval, y: Aval, *numbers: Aval, starts: Starts) -> Aval:
    _checked(x, y, numbers, starts)
    if c.shape != x.shape[:-1] or c.dtype != x.dtype:
        raise ValueError(f"{c} is not a factor for {y}")
    return Aval(x.shape, x.dtype)


def _slices(length: int, starts: Starts, stacked: bool) -> tuple[str, str]:
    """The source of both indices; ``length`` is the position of that operand."""
    places = iter(range(length + 1, length + 3))
    each = [f"{{{k}}}:{{{k}}} + {{{length}}}" if on and (k := next(places)) else f":{{{length}}}" for on in starts]
    x, y = (f"..., {part}" if stacked else part for part in each)
    return x, y


def _dot_code(node: Node) -> str:
    stacked = node.inputs[0].aval.ndim > 1
    x, y = _slices(2, node.attrs["starts"], stacked)
    return f"np.vecdot({{0}}[{x}], {{1}}[{y}])" if stacked else f"{{0}}[{x}] @ {{1}}[{y}]"


def _add_code(node: Node) -> str:
    stacked = node.inputs[0].aval.ndim > 1
    x, y = _slices(3, node.attrs["starts"], stacked)
    return f"{{0}}[{x}] += {{1}}{'[..., None]' if stacked else ''} * {{2}}[{y}]"


def _turned(numbers: Sequence[Symbol], starts: Starts) -> tuple[Symbol, ...]:
    """The length and the starts of the same slices, those of y first."""
    return (numbers[0], *(numbers[:0:-1] if all(starts) else numbers[1:]))


def _dot_pull_x(acc: Symbol, ct: Symbol, x: Any, y: Symbol, *numbers: Symbol, starts: Starts) -> Any:
    return add_within(acc, ct, y, *numbers, starts=starts)


def _dot_pull_y(acc: Symbol, ct: Symbol, x: Symbol, y: Any, *numbers: Symbol, starts: Starts) -> Any:
    return add_within(acc, ct, x, *_turned(numbers, starts), starts=starts[::-1])


def _add_jvp(
    b: Builder, node: Node, args: list[Symbol], tans: list[Symbol | None], mode: JvpMode
) -> tuple[Sequence[Symbol], Sequence[Symbol | None]]:
    x, c, y, *numbers = args
    out = b.copy_node(node, [s.value for s in args])
    dot = tans[0] if tans[0] is not None else b.zeros(x.aval)
    for factor, vector in ((tans[1], y), (c, tans[2])):
        if factor is not None and vector is not None:
            pair = _safe(b, factor, vector) if mode.nan_safe else (factor, vector)
            dot = add_within(dot, *pair, *numbers, **node.attrs)
    return out, [dot]


def _safe(b: Builder, factor: Symbol, vector: Symbol) -> tuple[Symbol, Symbol]:
    """A factor and a vector of the same product, in which a zero wins: one, and the products of all elements."""
    wide = broadcast_to(reshape_to(factor, (*factor.shape, 1)), vector.shape)
    return b.constant(1.0, Aval(factor.shape, factor.dtype)), annihilating_mul(wide, vector)


def _add_transpose(b: Builder, node: Node, operands: list[Any], cts: list[Symbol | None]) -> Sequence[Symbol | None]:
    """It is linear in x together with one of the others, which then is not known."""
    (ct,), (_, c, y, *numbers), starts = cts, operands, node.attrs["starts"]
    found: list[Symbol | None] = [None] * len(operands)
    if ct is not None:
        found[0] = ct
        if not isinstance(c, Symbol):
            found[1] = dot_within(ct, y, *numbers, starts=starts)
        elif not isinstance(y, Symbol):
            zeros = b.zeros(Aval(y.shape, y.dtype))
            found[2] = add_within(zeros, c, ct, *_turned(numbers, starts), starts=starts[::-1])
    return found


def _batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    values = 3 if prim is add_within else 2
    if any(flags[values:]):
        return looped(prim, size, args, flags, **attrs)
    wide = [lanes(size, x, flag) for x, flag in zip(args[:values], flags[:values], strict=True)]
    return prim(*wide, *args[values:], **attrs)


dot_within: Primitive = primitive(
    "dot_within",
    _dot_shape,
    _dot_code,
    batch=_batch,
    diff=(pull(_dot_pull_x, into=True), pull(_dot_pull_y, into=True), None),
)
add_within: Primitive = primitive(
    "add_within",
    _add_shape,
    statement=_add_code,
    writes=0,
    batch=_batch,
    jvp=_add_jvp,
    transpose=_add_transpose,
    scratch=lambda x, c, y, *numbers, starts: y.nbytes,
)


class SlicePair(NamedTuple):
    """The two vectors of such an operation, the length of their slices, and where these begin; None for 0."""

    vectors: tuple[Value, Value]
    length: Value
    starts: tuple[Value | None, Value | None]


def slices_of(node: Node) -> SlicePair:
    """The slices that an operation works on."""
    values = 3 if node.prim is add_within else 2
    length, *begins = node.inputs[values:]
    rest = iter(begins)
    x, y = (next(rest) if on else None for on in node.attrs["starts"])
    return SlicePair((node.inputs[0], node.inputs[values - 1]), length, (x, y))
