"""Solutions, inverses, determinants and powers of matrices: ``numpy.linalg`` without spectra and norms."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ops.linalg import determinants, factorizations, least_squares, solutions
from ..tracer.array import Tracer, apply, is_known, shadow_of
from ..tracer.creation import fresh
from ..tracer.operands import apply_all, lifted
from ..tracer.table import implements
from ..tracer.trace import owner, unsupported
from ..tracer.ufuncs import as_operand
from .contraction import common
from .shapes import broadcast_to, reshape


def checked(function: Callable[..., Any], *operands: Any, **options: Any) -> tuple[Any, list[Any]]:
    """NumPy's result on the example values, or its error; and the operands as LAPACK takes them.

    Where example values must not decide, as in a branch that may not be taken, an identity replaces a singular example.
    """
    operands = tuple(map(as_operand, operands))
    found = lifted(*operands)
    shadows = [shadow_of(x) for x in operands]
    try:
        like = function(*shadows, **options)
    except np.linalg.LinAlgError:
        if owner(found).runs:
            raise
        like = function(*map(_identity, shadows), **options)
    dtypes = (x.dtype if x.dtype.kind in "fc" else np.dtype(float) for x in found)  # small integers become wide too
    return like, common(*found, dtype=np.result_type(*dtypes))


def _identity(x: Any) -> Any:
    x = np.asarray(x)
    return np.zeros_like(x) + np.eye(*x.shape[-2:], dtype=x.dtype) if x.ndim > 1 else x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of each matrix."""
    turned = np.matrix_transpose(x)
    return np.conj(turned) if x.dtype.kind == "c" else turned


def known(name: str, value: Any) -> float:
    """An option that must be one plain number."""
    if isinstance(value, Tracer) and not is_known(value):
        raise unsupported(f"a traced {name}=", f"make {name} a plain number")
    number = np.asarray(shadow_of(value))
    if number.ndim:
        raise unsupported(f"an array as {name}=", f"make {name} one number, and call once for each")
    return float(number)


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    _, (a,) = checked(np.linalg.inv, a)
    return apply(solutions.inv, [a])


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    _, (a, b) = checked(np.linalg.solve, a, b)
    vector = b.ndim == 1
    if vector and a.ndim == 2:
        return apply(solutions.solve, [a, b])
    if vector:
        b = reshape(b, (*b.shape, 1))
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (x if x.shape[:-2] == lead else broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    out = apply(solutions.solve, [a, b])
    return reshape(out, out.shape[:-1]) if vector else out


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Any:
    like, (a, b) = checked(np.linalg.tensorsolve, a, b, axes=axes)
    if axes is not None:
        order = list(range(a.ndim))
        for k in axes:
            order.remove(k)
            order.insert(a.ndim, k)
        a = np.transpose(a, order)
    return reshape(solve(reshape(a, (like.size, like.size)), reshape(b, (-1,))), like.shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    like, (a,) = checked(np.linalg.tensorinv, a, ind=ind)
    return reshape(inv(reshape(a, (math.prod(a.shape[ind:]), -1))), like.shape)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    like, (x,) = checked(np.linalg.pinv, a)
    if not like.size:
        return np.zeros_like(x, shape=like.shape, dtype=like.dtype)
    if rcond is None and rtol is None:
        cut = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    else:
        cut = 1e-15 if rcond is None and rtol is np._NoValue else known("rcond", rtol if rcond is None else rcond)
    if hermitian:
        if x.shape[-1] != x.shape[-2]:
            raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
        low = np.tril(x, -1)
        diagonal = np.real(x) if x.dtype.kind == "c" else x
        x = low + adjoint(low) + np.tril(np.triu(diagonal))
    return apply(least_squares.pinv, [x], rcond=cut)


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The residuals keep the shape that they had when traced: none without full rank or with too few rows."""
    cut = None if rcond is None else known("rcond", rcond)
    like, (a, b) = checked(np.linalg.lstsq, a, b, rcond=cut)
    eps = float(np.finfo(a.dtype).eps)
    if cut is not None and not 0 < cut < 1:
        cut = eps / 2  # so does LAPACK
    x = apply(least_squares.lstsq, [a, b], rcond=cut)
    missed = fresh(like[1])
    if like[1].size:
        gap = np.abs(b - a @ x)
        missed = reshape(np.sum(np.square(gap), axis=0), like[1].shape)
    (s,) = apply_all(factorizations.svd, [a], full=False, vectors=False)
    cut = eps * max(a.shape) if cut is None else cut
    rank = np.sum(s > cut * np.max(s, initial=0)).astype(like[2].dtype)
    return x, missed, rank, s


@implements(np.linalg.det)
def det(a: Any) -> Any:
    _, (a,) = checked(np.linalg.det, a)
    return apply(determinants.det, [a])


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    like, (a,) = checked(np.linalg.slogdet, a)
    return type(like)(*apply_all(determinants.slogdet, [a]))


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    n = operator.index(n)
    like, _ = checked(np.linalg.matrix_power, a, n=n)
    (a,) = lifted(a)
    if n == 0:
        return np.zeros_like(a) + np.eye(a.shape[-1], dtype=like.dtype)
    square, power = inv(a) if n < 0 else a, None
    n = abs(n)
    if n == 3:
        return (square @ square) @ square
    while True:
        n, bit = divmod(n, 2)
        if bit:
            power = square if power is None else power @ square
        if not n:
            return power
        square = square @ square


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    _, (a,) = checked(np.linalg.cholesky, a, upper=upper)
    return adjoint(apply(factorizations.cholesky, [adjoint(a)])) if upper else apply(factorizations.cholesky, [a])


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    like, (a,) = checked(np.linalg.qr, a, mode=mode)
    if mode not in ("reduced", "complete", "r"):
        raise unsupported(f"np.linalg.qr with mode={mode!r}", 'use mode="reduced", "complete" or "r"')
    m, n = a.shape[-2:]
    if m >= n:
        found = apply_all(factorizations.qr, [a], mode="reduced" if m == n and mode != "r" else mode)
        return found[0] if mode == "r" else type(like)(*found)
    q, r = apply_all(factorizations.qr, [a[..., :m]], mode="reduced")  # Q depends on the first columns only
    joined = np.concatenate([r, adjoint(q) @ a[..., m:]], axis=-1)
    return joined if mode == "r" else type(like)(q, joined)
