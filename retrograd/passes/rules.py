"""The tables of rewrites, in three classes.

EXACT rules give the same bits, for -0.0, nan and inf too; they are always on. REASSOCIATE rules may change a rounding,
by a few units in the last place of the largest term, and the sign of a zero; they overflow only where the program does,
but for products of matrices, large cotangents of a softmax and, in C, quotients by subnormal numbers. They are on
unless ``rg.config.exact``. FAST rules may change overflow and nan; they are off unless ``rg.config.fast``. Here are
exact rules of arithmetic and of moves.
"""

from __future__ import annotations

import math
from typing import Any

from ..ir.builder import Symbol
from ..ir.types import Aval
from ..ops.elementwise import cast, literal_value, neg, where
from ..ops.reduce import sum_
from ..ops.shape import broadcast, permute, reshape
from .patterns import NUMBER, Rule


def _real(x: Symbol) -> Symbol | None:
    """x itself, but not for complex numbers: their product with 1 has the terms 0·inf and 0 - 0."""
    return None if x.dtype.kind == "c" else x


def _negated(x: Symbol) -> Symbol | None:
    return None if x.dtype.kind == "c" else neg(x)


def _composed(x: Symbol, p: tuple[int, ...], q: tuple[int, ...]) -> Any:
    return permute(x, axes=tuple(p[i] for i in q))


def _padded(x: Symbol, a: Aval, c: Aval) -> Symbol | None:
    """Broadcasting pads with leading axes of length 1 by itself."""
    return broadcast(x, aval=c) if a.shape == (1,) * (a.ndim - x.ndim) + x.shape else None


def _keeping(x: Symbol, axis: tuple[int, ...], a: Aval) -> Symbol | None:
    """Absorb a reshape that puts axes of length 1 back into the sum, which can keep these axes."""
    kept = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    return sum_(x, axis=axis, keepdims=True) if a.shape == kept else None


def _negated_constant(x: Symbol, y: Symbol) -> Symbol | None:
    n = literal_value(y)
    return x * -n if n is not None and x.dtype.kind == "f" else None


def _reciprocal(x: Symbol, y: Symbol) -> Symbol | None:
    """Division by a power of two is exactly multiplication by its reciprocal."""
    n = literal_value(y)
    usual = n is not None and not isinstance(n, complex) and x.dtype.kind == "f" and 1e-4 < abs(n) < 1e4
    return x * (1 / n) if usual and math.frexp(n)[0] in (0.5, -0.5) else None


EXACT: list[Rule] = [
    Rule(lambda x: neg(neg(x)), lambda x: x),
    Rule(lambda x: x * 1, _real),
    Rule(lambda x: 1 * x, _real),
    Rule(lambda x: x / 1, _real),
    Rule(lambda x: x * -1, _negated),
    Rule(lambda x: -1 * x, _negated),
    Rule(lambda x: x + -0.0, _real),
    Rule(lambda x: x - 0, _real),
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
]
REASSOCIATE, FAST = list[Rule](), list[Rule]()
NATIVE, NUMPY, BEFORE = list[Rule](), list[Rule](), list[Rule]()  # of REASSOCIATE: for C, NumPy, and before `grad`
