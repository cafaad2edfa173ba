"""The tables of rewrites, in three classes.

EXACT rules give the same bits, for -0.0, nan and inf too; they are always on. REASSOCIATE rules may change a
rounding, by a few units in the last place of the largest term, and the sign of a zero; they never overflow where the
program does not. They are on unless ``rg.config.exact``. FAST rules may change overflow and nan; they are off unless
``rg.config.fast``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.types import Aval
from ..ops.elementary import exp, log
from ..ops.elementwise import cast, div, literal_value, mul, neg, where
from ..ops.index import Index, additem, gather, getitem, scatter, scatter_add, setitem, shifted
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to, permute, reshape
from .patterns import NUMBER, Rule

PAST = 4  # how many writes elsewhere a read moves past


def _real(x: Symbol) -> Symbol | None:
    """x itself, but not for complex numbers: their product with 1 has the terms 0·inf and 0 - 0."""
    return None if x.dtype.kind == "c" else x


def _negated(x: Symbol) -> Symbol | None:
    return None if x.dtype.kind == "c" else neg(x)


def _composed(x: Symbol, p: tuple[int, ...], q: tuple[int, ...]) -> Any:
    return permute(x, axes=tuple(p[i] for i in q))


def _whole(x: Symbol, i: tuple[Any, ...]) -> Symbol | None:
    return x if all(s == slice(None) for s in i) else None


def _padded(x: Symbol, a: Aval, c: Aval) -> Symbol | None:
    """Broadcasting pads with leading axes of length 1 by itself."""
    pads = a.shape == (1,) * (a.ndim - x.ndim) + x.shape
    return broadcast(x, aval=c) if pads else None


def _keeping(x: Symbol, axis: tuple[int, ...], a: Aval) -> Symbol | None:
    """Absorb a reshape that puts axes of length 1 back into the sum, which can keep these axes."""
    kept = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    return sum_(x, axis=axis, keepdims=True) if a.shape == kept else None


def _written(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    """A read, at an index that is an operand, of the value that was written there."""
    return v if shifted(i, 1) == j else None


def _past(x: Symbol, v: Symbol, i: Index, j: Index) -> Symbol | None:
    """A read after a few writes: from before them if they wrote elsewhere, or of the value that one of them wrote."""
    if not _apart(i, j):
        return None
    for _ in range(PAST):
        before = x.builder.made.get(x.value)
        if before is None or before.prim is not setitem or len(before.inputs) != 2:
            return getitem(x, index=i)  # type: ignore[no-any-return]  # symbols are untyped under operators
        if before.attrs["index"] == i:
            return x.builder.symbol(before.inputs[1])
        if not _apart(i, before.attrs["index"]):
            return getitem(x, index=i)  # type: ignore[no-any-return]  # symbols are untyped under operators
        x = x.builder.symbol(before.inputs[0])
    return None  # no walk further back: for each read it would take quadratic time


def _apart(i: Index, j: Index) -> bool:
    """Whether two indices of ints and full slices name different elements."""
    if not all(type(a) is int or a == slice(None) for a in (*i, *j)):
        return False
    return any(type(a) is type(b) is int and a != b and (a >= 0) == (b >= 0) for a, b in zip(i, j, strict=False))


def _added(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return additem(x, v, t, index=j) if shifted(i, 1) == j else None


def _subtracted(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return additem(x, -v, t, index=j) if shifted(i, 1) == j else None


def _added_at_two(x: Symbol, v: Symbol, s: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return additem(x, v, s, t, index=j) if shifted(i, 1) == j else None


def _gathered(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return scatter_add(x, v, t, index=j, unique=True) if shifted(i, 1) == j else None


def _taken(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return scatter_add(x, -v, t, index=j, unique=True) if shifted(i, 1) == j else None


def _outer_product(x: Symbol, y: Symbol) -> Symbol | None:
    """A column times a row, where NumPy multiplies faster than BLAS; only the sign of zero differs."""
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != 1 or y.shape[-1] < 16:
        return None
    shape = (*x.shape[:-1], y.shape[-1])
    return broadcast_to(x, shape) * broadcast_to(y, shape)  # type: ignore[no-any-return]  # symbols are untyped


def _negated_constant(x: Symbol, y: Symbol) -> Symbol | None:
    n = literal_value(y)
    return x * -n if n is not None and x.dtype.kind == "f" else None


def _reciprocal(x: Symbol, y: Symbol) -> Symbol | None:
    """Division by a power of two is exactly multiplication by its reciprocal."""
    n = literal_value(y)
    if n is None or isinstance(n, complex) or x.dtype.kind != "f" or not 1e-4 < abs(n) < 1e4:
        return None
    return x * (1 / n) if math.frexp(n)[0] in (0.5, -0.5) else None


def _scaled(x: Symbol, y: Symbol, z: Symbol) -> Symbol | None:
    """(x · a) · b as x · (a b), for numbers a and b whose product neither overflows nor vanishes.

    It overflows or underflows where x a b does, and then the last step of the program would have done so, too.
    """
    a, b = literal_value(y), literal_value(z)
    if a is None or b is None or x.dtype.kind != "f":
        return None
    limits = np.finfo(x.dtype)
    return x * (a * b) if float(limits.tiny) <= abs(a * b) <= float(limits.max) else None


def _scaled_sum(x: Symbol, axis: tuple[int, ...], keepdims: bool, y: Symbol) -> Symbol | None:
    """The sum of multiples as the multiple of the sum: one multiplication instead of many, but the sum may overflow."""
    a = literal_value(y)
    return sum_(x, axis=axis, keepdims=keepdims) * a if a is not None and x.dtype.kind == "f" else None


EXACT = [
    Rule(lambda x: neg(neg(x)), lambda x: x),
    Rule(lambda x: x * 1, _real),
    Rule(lambda x: 1 * x, _real),
    Rule(lambda x: x / 1, _real),
    Rule(lambda x: x * -1, _negated),
    Rule(lambda x: -1 * x, _negated),
    Rule(lambda x: x + -0.0, _real),
    Rule(lambda x, y: neg(x) * y, lambda x, y: neg(x * y) if x.dtype.kind == "f" else None),
    Rule(lambda x, y: x * neg(y), lambda x, y: neg(x * y) if x.dtype.kind == "f" else None),
    Rule(lambda x, y: neg(x) / y, lambda x, y: neg(x / y) if x.dtype.kind == "f" else None),
    Rule(lambda x, a=NUMBER: neg(x * a), _negated_constant),
    Rule(lambda x, a=NUMBER: x / a, _reciprocal),
    Rule(lambda x, y: x + -y, lambda x, y: x - y),
    Rule(lambda x, y: -x + y, lambda x, y: y - x),
    Rule(lambda x, y: x - -y, lambda x, y: x + y),
    Rule(lambda c, x, y, z: where(c, where(c, x, y), z), lambda c, x, y, z: where(c, x, z)),
    Rule(lambda c, x, y, z: where(c, x, where(c, y, z)), lambda c, x, y, z: where(c, x, z)),
    Rule(lambda x, p, q: permute(permute(x, axes=p), axes=q), _composed),
    Rule(lambda x, p: permute(x, axes=p), lambda x, p: x if p == tuple(range(len(p))) else None),
    Rule(lambda x, a, c: reshape(reshape(x, aval=a), aval=c), lambda x, a, c: reshape(x, aval=c)),
    Rule(lambda x, i, a: reshape(sum_(x, axis=i, keepdims=False), aval=a), _keeping),
    Rule(lambda x, a: reshape(x, aval=a), lambda x, a: x if x.aval == a else None),
    Rule(lambda x, a, c: broadcast(broadcast(x, aval=a), aval=c), lambda x, a, c: broadcast(x, aval=c)),
    Rule(lambda x, a, c: broadcast(reshape(x, aval=a), aval=c), _padded),
    Rule(lambda x, a: cast(x, aval=a), lambda x, a: x if x.aval == a else None),
    Rule(lambda x, i: getitem(x, index=i), _whole),
    Rule(lambda x, v, i: getitem(setitem(x, v, index=i), index=i), lambda x, v, i: v),
    Rule(lambda x, v, i, j: getitem(setitem(x, v, index=j), index=i), _past),
    Rule(lambda x, v, i: setitem(x, getitem(x, index=i) + v, index=i), lambda x, v, i: additem(x, v, index=i)),
    Rule(lambda x, v, i: setitem(x, v + getitem(x, index=i), index=i), lambda x, v, i: additem(x, v, index=i)),
    Rule(lambda x, v, i: setitem(x, getitem(x, index=i) - v, index=i), lambda x, v, i: additem(x, -v, index=i)),
    Rule(lambda x, v, t, i, j: getitem(setitem(x, v, t, index=j), t, index=i), _written),
    Rule(lambda x, v, t, i, j: setitem(x, getitem(x, t, index=i) + v, t, index=j), _added),
    Rule(lambda x, v, t, i, j: setitem(x, v + getitem(x, t, index=i), t, index=j), _added),
    Rule(lambda x, v, t, i, j: setitem(x, getitem(x, t, index=i) - v, t, index=j), _subtracted),
    Rule(lambda x, v, s, t, i, j: setitem(x, getitem(x, s, t, index=i) + v, s, t, index=j), _added_at_two),
    Rule(lambda x, v, t, i, j: scatter(x, gather(x, t, index=i, unique=True) + v, t, index=j, unique=True), _gathered),
    Rule(lambda x, v, t, i, j: scatter(x, gather(x, t, index=i, unique=True) - v, t, index=j, unique=True), _taken),
]

REASSOCIATE = [
    Rule(lambda x, y: x @ y, _outer_product),
    Rule(lambda x, v, i: additem(setitem(x, 0, index=i), v, index=i), lambda x, v, i: setitem(x, v, index=i)),
    Rule(
        lambda x, v, t, i: additem(setitem(x, 0, t, index=i), v, t, index=i),
        lambda x, v, t, i: setitem(x, v, t, index=i),
    ),
    Rule(
        lambda x, v, t, i: scatter_add(scatter(x, 0, t, index=i, unique=True), v, t, index=i, unique=True),
        lambda x, v, t, i: scatter(x, v, t, index=i, unique=True),
    ),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(mul(x, a), b), _scaled),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(mul(a, x), b), _scaled),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(b, mul(x, a)), _scaled),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(b, mul(a, x)), _scaled),
    Rule(lambda x, i, k: sum_(neg(x), axis=i, keepdims=k), lambda x, i, k: neg(sum_(x, axis=i, keepdims=k))),
]

FAST = [
    Rule(lambda x, i, k, a=NUMBER: sum_(x * a, axis=i, keepdims=k), _scaled_sum),
    Rule(lambda x, i, k, a=NUMBER: sum_(a * x, axis=i, keepdims=k), _scaled_sum),
    Rule(lambda x: 0 * x, lambda x: x.builder.zeros(x.aval)),
    Rule(lambda x: x * 0, lambda x: x.builder.zeros(x.aval)),
    Rule(lambda x: div(x, x), lambda x: x.builder.constant(1, x.aval)),
    Rule(lambda x: log(exp(x)), lambda x: x),
]
