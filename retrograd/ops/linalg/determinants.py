"""Determinants, their logarithms, and cofactors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ...ir.types import Aval
from ..axes import swap
from ..batching import elementwise
from ..complex import imag
from ..cumulative import prod
from ..diagonals import diagonal, set_diagonal
from ..elementwise import eq, to_dtype, where
from ..logic import logical_or
from ..reduce import sum_
from ..shape import broadcast_to, iota, reshape_to
from .factorizations import svd
from .forms import adjoint, conjugate, factorization, number, real_aval, real_part, square
from .solutions import inv


def _total(x: Symbol) -> Any:
    """The sum over each matrix."""
    return sum_(x, axis=(x.ndim - 2, x.ndim - 1), keepdims=False)


det: Primitive = primitive(
    "det",
    number,
    "np.linalg.det({0})",
    batch=elementwise,
    diff=(push(lambda t, out, x: _total(t * cofactors(x)) if x.size else None),),
)

COFACTORS = '''
def cofactors(a):
    """The derivative of det: det(a) times the transposed inverse, and where there is none by singular values."""
    d = np.linalg.det(a)[..., None, None]
    flat = d == 0
    c = d * np.linalg.inv(np.where(flat, np.eye(a.shape[-1], dtype=a.dtype), a)).swapaxes(-1, -2)
    if np.count_nonzero(flat):
        u, s, v = np.linalg.svd(a)
        others = np.multiply.reduce(np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]), axis=-1)
        d = (np.linalg.det(u) * np.linalg.det(v))[..., None, None]
        c = np.where(flat, d * ((u.conj() * others[..., None, :]) @ v.conj()), c)
    return c
'''


def _cofactors_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    """By the singular value decomposition, in which cofactors are products, so that nothing is divided by det(x)."""
    u, s, v = svd(x, full=False, vectors=True)
    m = adjoint(u) @ t @ adjoint(v)
    rest = to_dtype(_without_two(s), x.dtype)
    column = reshape_to(diagonal(m, offset=0), (*s.shape, 1))
    moved = -(rest * swap(m))
    moved = set_diagonal(moved, reshape_to(rest @ column, s.shape), 0)
    scale = det(u) * det(v)
    scale = broadcast_to(reshape_to(scale, (*scale.shape, 1, 1)), x.shape)
    return scale * (conjugate(u) @ moved @ conjugate(v))


def _without_two(s: Symbol) -> Any:
    """For each pair i, j the product of all other numbers; 0 for pairs of equals."""
    n, b = s.shape[-1], s.builder
    cube = (*s.shape[:-1], n, n, n)
    count = b.emit(iota, (), {"aval": Aval((n,), np.dtype(np.int64))})[0]
    i, j, k = (broadcast_to(reshape_to(count, shape), (n, n, n)) for shape in ((n, 1, 1), (1, n, 1), (1, 1, n)))
    left_out = broadcast_to(logical_or(eq(k, i), eq(k, j)), cube)
    factors = where(left_out, 1, broadcast_to(reshape_to(s, (*s.shape[:-1], 1, 1, n)), cube))
    product = prod(factors, axis=(len(cube) - 1,), keepdims=False)
    rows, columns = (broadcast_to(reshape_to(count, shape), (n, n)) for shape in ((n, 1), (1, n)))
    return where(broadcast_to(eq(rows, columns), product.shape), 0, product)


cofactors: Primitive = primitive(
    "cofactors", square, "cofactors({0})", helper=COFACTORS, batch=elementwise, diff=(push(_cofactors_push),)
)


def _slogdet_shape(x: Aval) -> tuple[Aval, Aval]:
    sign = number(x)
    size = real_aval(x, sign.shape)
    return sign, Aval(size.shape, size.dtype, sign.kind)


def _slogdet_jvp(t: Symbol, outs: list[Symbol], x: Symbol) -> list[Any]:
    change = _total(swap(inv(x)) * t)
    turn = to_dtype(imag(change), x.dtype) * (outs[0] * 1j) if x.dtype.kind == "c" else None
    return [turn, real_part(change)]


slogdet = factorization("slogdet", _slogdet_shape, "np.linalg.slogdet({0})", _slogdet_jvp)
