"""The rewrites that may change a rounding (REASSOCIATE), and those that may change overflow and nan (FAST)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.types import Aval
from ..ops.elementary import exp, log, reciprocal
from ..ops.elementwise import div, literal_value, mul, neg
from ..ops.gather import scatter, scatter_add
from ..ops.index import additem, setitem
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to
from .factor_rules import is_power_of_two
from .patterns import NUMBER, Rule
from .rules import FAST, NATIVE, REASSOCIATE


def _outer_product(x: Symbol, y: Symbol) -> Symbol | None:
    """A column times a row, of which ``matmul`` is slower than a product; only the sign of zero differs."""
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != 1 or y.shape[-1] < 16:
        return None
    shape = (*x.shape[:-1], y.shape[-1])
    return broadcast_to(x, shape) * broadcast_to(y, shape)  # type: ignore[no-any-return]  # symbols are untyped


def _smaller(x: Symbol, y: Symbol) -> Symbol | None:
    return x if x.aval.size < y.aval.size else None


def _scaled(x: Symbol, y: Symbol, z: Symbol) -> Symbol | None:
    """(x · a) · b as x · (a b), for numbers a and b that both enlarge or both shrink, and whose product is normal.

    x · a then overflows or underflows only where the program's result does, too. So it does if powers of two first
    shrink x a little and then enlarge it: they change no digit of normal numbers.
    """
    a, b = literal_value(y), literal_value(z)
    if a is None or b is None:
        return None
    if min(abs(a), abs(b)) < 1 < max(abs(a), abs(b)) and not (2**-20 <= abs(a) < 1 and _are_powers_of_two(a, b)):
        return None
    return _times(x, a, b)


def _half_of_twice(x: Symbol) -> Symbol | None:
    """x itself, as the symmetric part of a symmetric matrix is; x + x may overflow where x does not."""
    return x if x.dtype.kind == "f" else None


def _are_powers_of_two(*numbers: Any) -> bool:
    return all(isinstance(a, float | int) and is_power_of_two(a) for a in numbers)


def _scaled_across(x: Symbol, y: Symbol, z: Symbol) -> Symbol | None:
    """Like ``_scaled``, for any two numbers: where x · a overflows, x · (a b) may not."""
    a, b = literal_value(y), literal_value(z)
    return None if a is None or b is None else _times(x, a, b)


def _times(x: Symbol, a: Any, b: Any) -> Symbol | None:
    if x.dtype.kind != "f":
        return None
    limits = np.finfo(x.dtype)
    return x * (a * b) if float(limits.tiny) <= abs(a * b) <= float(limits.max) else None


def _scaled_sum(x: Symbol, axis: tuple[int, ...], keepdims: bool, y: Symbol) -> Symbol | None:
    """The sum of multiples as the multiple of the sum: one multiplication instead of many, but the sum may overflow."""
    a = literal_value(y)
    return sum_(x, axis=axis, keepdims=keepdims) * a if a is not None and x.dtype.kind == "f" else None


def _by_reciprocal(x: Symbol, y: Symbol, a: Aval) -> Symbol | None:
    """Division by few numbers that many share: C divides four times slower than it multiplies."""
    return x * broadcast_to(reciprocal(y), a.shape) if x.dtype.kind == "f" and 2 * y.aval.size <= a.size else None


def _by_constant(x: Symbol, y: Symbol) -> Symbol | None:
    """x / a as x · (1 / a), if the reciprocal is normal."""
    a = literal_value(y)
    return None if not a or isinstance(a, complex) else _times(x, 1 / a, 1.0)


REASSOCIATE += [
    Rule(lambda x, y: x @ y, _outer_product),
    Rule(lambda x, v, i: additem(setitem(x, 0, index=i), v, index=i), lambda x, v, i: setitem(x, v, index=i)),
    Rule(
        lambda x, v, t, i: additem(setitem(x, 0, t, index=i), v, t, index=i),
        lambda x, v, t, i: setitem(x, v, t, index=i),
    ),
    Rule(
        lambda x, v, s, t, i: additem(setitem(x, 0, s, t, index=i), v, s, t, index=i),
        lambda x, v, s, t, i: setitem(x, v, s, t, index=i),
    ),
    Rule(
        lambda x, v, t, i: scatter_add(scatter(x, 0, t, index=i, unique=True), v, t, index=i, unique=True),
        lambda x, v, t, i: scatter(x, v, t, index=i, unique=True),
    ),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(mul(x, a), b), _scaled),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(mul(a, x), b), _scaled),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(b, mul(x, a)), _scaled),
    Rule(lambda x, a=NUMBER, b=NUMBER: mul(b, mul(a, x)), _scaled),
    Rule(lambda x: (x + x) * 0.5, _half_of_twice),
    Rule(lambda x: 0.5 * (x + x), _half_of_twice),
    Rule(lambda x, i, k: sum_(neg(x), axis=i, keepdims=k), lambda x, i, k: neg(sum_(x, axis=i, keepdims=k))),
    Rule(lambda x, y: x @ neg(y), lambda x, y: _smaller(neg(x @ y), y)),
    Rule(lambda x, y: neg(x) @ y, lambda x, y: _smaller(neg(x @ y), x)),
]

NATIVE += [
    Rule(lambda x, y, a: div(x, broadcast(y, aval=a)), _by_reciprocal),
    Rule(lambda x, n=NUMBER: div(x, n), _by_constant),
]

FAST += [
    Rule(lambda x, n=NUMBER, m=NUMBER: mul(mul(x, n), m), _scaled_across),
    Rule(lambda x, n=NUMBER, m=NUMBER: mul(mul(n, x), m), _scaled_across),
    Rule(lambda x, n=NUMBER, m=NUMBER: mul(m, mul(x, n)), _scaled_across),
    Rule(lambda x, n=NUMBER, m=NUMBER: mul(m, mul(n, x)), _scaled_across),
    Rule(lambda x, i, k, a=NUMBER: sum_(x * a, axis=i, keepdims=k), _scaled_sum),
    Rule(lambda x, i, k, a=NUMBER: sum_(a * x, axis=i, keepdims=k), _scaled_sum),
    Rule(lambda x: 0 * x, lambda x: x.builder.zeros(x.aval)),
    Rule(lambda x: x * 0, lambda x: x.builder.zeros(x.aval)),
    Rule(lambda x: div(x, x), lambda x: x.builder.constant(1, x.aval)),
    Rule(lambda x: log(exp(x)), lambda x: x),
]
