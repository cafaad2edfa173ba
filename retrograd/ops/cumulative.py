"""Running sums, products and extrema, linear recurrences, and products whose derivatives are right at zeros."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, Pull, Push, primitive, pull, push
from ..ir.types import Aval
from .batching import shifted_axis
from .concatenate import concatenate
from .elementwise import cast, eq
from .index import getitem
from .reduce import reduction, sum_
from .shape import inverse, permute, reshape_to


def along(axis: int, part: slice) -> tuple[slice, ...]:
    """The index of a part of one axis."""
    return (*(slice(None),) * axis, part)


def _accumulated(x: Aval, axis: int, reverse: bool) -> Aval:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"{axis} is not an axis of {x}")
    return x


def accumulation(name: str, ufunc: str, diff: Pull | Push) -> Primitive:
    """A ufunc's ``accumulate`` along one axis; with ``reverse`` it starts from the end."""

    def code(node: Node) -> str:
        axis = node.attrs["axis"]
        flip = f"[{':, ' * axis}::-1]" if node.attrs["reverse"] else ""
        return f"{ufunc}.accumulate({{0}}{flip}, axis={axis}){flip}"

    return primitive(name, _accumulated, code, names="accumulate", diff=(diff,), batch=shifted_axis)


def runs_backwards(node: Node | None) -> bool:
    """Whether the result of a node lies in memory from its end on."""
    return node is not None and node.prim.numpy.names == "accumulate" and bool(node.attrs["reverse"])


def _recurrence_shape(a: Aval, b: Aval, axis: int, reverse: bool) -> Aval:
    fits = 0 <= axis < b.ndim and a.dtype == b.dtype
    shape = (*b.shape[:axis], max(b.shape[axis] - 1, 0), *b.shape[axis + 1 :]) if fits else None
    if a.shape != shape:
        raise ValueError(f"no recurrence along axis {axis} of {b} has the coefficients {a}")
    return Aval(b.shape, b.dtype)


def _recurrence_push(t: Symbol, out: Symbol, a: Symbol, b: Symbol, axis: int, reverse: bool) -> Symbol:
    if out.shape[axis] == 0:
        return t
    before = slice(1, None) if reverse else slice(None, -1)
    moved = _with_end(t * getitem(out, index=along(axis, before)), 0, axis, first=not reverse)
    tangent: Symbol = recurrence(a, moved, axis=axis, reverse=reverse)
    return tangent


def _with_end(x: Symbol, value: float, axis: int, *, first: bool) -> Symbol:
    """Add one entry, filled with a number, to ``x`` along an axis."""
    end = x.builder.constant(value, Aval((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype))
    joined: Symbol = concatenate(*((end, x) if first else (x, end)), axis=axis)
    return joined


RECURRENCE = '''
def linear_recurrence(a, b, axis, reverse):
    """y[k] = a[k - 1] * y[k - 1] + b[k] from y[0] = b[0], by halves while they are long and then step by step."""
    a, b = a.swapaxes(0, axis), b.swapaxes(0, axis)
    if reverse:
        a, b = a[::-1], b[::-1]
    halves = []
    while len(b) > 8 + b[:1].size:
        halves.append((a, b))
        a, b = a[2::2] * a[1:-1:2], a[::2] * b[:-1:2] + b[1::2]
    y = b.copy()
    for k in range(1, len(b)):
        y[k] += a[k - 1] * y[k - 1]
    for a, b in halves[::-1]:
        odd, y = y, b.copy()
        y[1::2] = odd
        y[2::2] += a[1::2] * odd[: len(b[2::2])]
    if reverse:
        y = y[::-1]
    return y.swapaxes(0, axis)
'''

recurrence: Primitive = primitive(
    "recurrence",
    _recurrence_shape,
    "linear_recurrence({0}, {1}, {axis}, {reverse})",
    helper=RECURRENCE,
    batch=shifted_axis,
    scratch=lambda a, b, **_: 3 * b.nbytes,
    diff=(
        push(_recurrence_push),
        pull(lambda ct, a, b, axis, reverse: recurrence(a, ct, axis=axis, reverse=not reverse)),
    ),
)


def _before(out: Symbol, axis: int, reverse: bool) -> Symbol:
    """The product of the elements before each element: ``out`` one step later, with 1 in front."""
    if out.shape[axis] == 0:
        return out
    kept = slice(1, None) if reverse else slice(None, -1)
    return _with_end(getitem(out, index=along(axis, kept)), 1, axis, first=not reverse)


def _cumprod_push(t: Symbol, out: Symbol, x: Symbol, axis: int, reverse: bool) -> Symbol:
    """The product rule as a recurrence, without a division by x, which may be zero."""
    later = getitem(x, index=along(axis, slice(None, -1) if reverse else slice(1, None)))
    tangent: Symbol = recurrence(later, t * _before(out, axis, reverse), axis=axis, reverse=reverse)
    return tangent


def _extremum_push(t: Symbol, out: Symbol, x: Symbol, axis: int, reverse: bool) -> Symbol:
    """The tangents at the extremum so far; ties share equally, as in ``max``."""
    later, earlier = (getitem(out, index=along(axis, part)) for part in (slice(1, None), slice(None, -1)))
    same = cast(eq(later, earlier), aval=later.aval)
    hit = cast(eq(x, out), aval=x.aval)
    total, count = (recurrence(same, part, axis=axis, reverse=reverse) for part in (hit * t, hit))
    tangent: Symbol = total / count
    return tangent


cumsum: Primitive = accumulation(
    "cumsum", "np.add", pull(lambda ct, x, axis, reverse: cumsum(ct, axis=axis, reverse=not reverse))
)
cumprod: Primitive = accumulation("cumprod", "np.multiply", push(_cumprod_push))
cummax = accumulation("cummax", "np.maximum", push(_extremum_push))
cummin = accumulation("cummin", "np.minimum", push(_extremum_push))


def _others(x: Symbol) -> Symbol:
    """The product of all other elements along the last axis, without a division."""
    axis, n = x.ndim - 1, x.shape[-1]
    if n == 1:
        return x.builder.constant(1, x.aval)
    if n == 2:
        swapped: Symbol = getitem(x, index=along(axis, slice(None, None, -1)))
        return swapped
    head, tail = (getitem(x, index=along(axis, part)) for part in (slice(None, -1), slice(1, None)))
    before = _with_end(cumprod(head, axis=axis, reverse=False), 1, axis, first=True)
    after = _with_end(cumprod(tail, axis=axis, reverse=True), 1, axis, first=False)
    product: Symbol = before * after
    return product


def _prod_push(t: Symbol, out: Symbol, x: Symbol, axis: tuple[int, ...], keepdims: bool) -> Symbol:
    if x.size and axis:
        t = t * _others_over(x, axis)
    tangent: Symbol = sum_(t, axis=axis, keepdims=keepdims)
    return tangent


def _others_over(x: Symbol, axis: Sequence[int]) -> Symbol:
    """``_others`` over several axes together."""
    order = (*(i for i in range(x.ndim) if i not in axis), *axis)
    moved = x if order == tuple(range(x.ndim)) else permute(x, axes=order)
    kept = moved.shape[: x.ndim - len(axis)]
    flat = _others(reshape_to(moved, (*kept, math.prod(x.shape[a] for a in axis))))
    back = reshape_to(flat, moved.shape)
    return back if moved is x else permute(back, axes=inverse(order))


prod = reduction("prod", "np.multiply", push(_prod_push))
