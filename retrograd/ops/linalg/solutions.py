"""Inverses and solutions of linear equations, also in the sense of least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.builder import Symbol
from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive, pull, push
from ...ir.types import Aval
from ..batching import Flags, elementwise, lanes
from ..shape import permute, reshape_to, swap
from .forms import adjoint, matrices, square

inv: Primitive = primitive(
    "inv", square, "np.linalg.inv({0})", batch=elementwise, diff=(push(lambda t, out, x: -(out @ t @ out)),)
)


def _solve_shape(a: Aval, b: Aval) -> Aval:
    """One vector for one matrix, or equal stacks of matrices."""
    n = square(a).shape[-1]
    fits = b.shape == (n,) if b.ndim == 1 else b.ndim == a.ndim and b.shape[:-1] == a.shape[:-1]
    if not fits or (b.ndim == 1 and a.ndim != 2) or a.dtype != b.dtype:
        raise ValueError(f"{a} and {b} are no equations")
    return Aval(b.shape, b.dtype)


def _lanes_as_columns(solved: Callable[[Symbol], Symbol], b: Symbol) -> Any:
    """Lanes of right sides as columns of one: the matrix is factorized once."""
    if b.ndim == 2:
        return swap(solved(swap(b)))
    size, n, k = b.shape
    out = solved(reshape_to(permute(b, axes=(1, 0, 2)), (n, size * k)))
    return permute(reshape_to(out, (out.shape[0], size, k)), axes=(1, 0, 2))


def _stacked_columns(size: int, args: Sequence[Symbol], flags: Flags) -> tuple[Symbol, Symbol, bool]:
    """Both operands as stacks of matrices, and whether the right sides were vectors."""
    a, b = (lanes(size, x, flag) for x, flag in zip(args, flags, strict=True))
    vector = b.ndim == 2
    return a, reshape_to(b, (*b.shape, 1)) if vector else b, vector


def _solve_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    if not flags[0] and args[0].ndim == 2:
        return _lanes_as_columns(lambda b: solve(args[0], b), args[1])
    a, b, vector = _stacked_columns(size, args, flags)
    out = solve(a, b)
    return reshape_to(out, out.shape[:-1]) if vector else out


solve: Primitive = primitive(
    "solve", _solve_shape, "np.linalg.solve({0}, {1})", batch=_solve_batch,
    diff=(push(lambda t, out, a, b: -solve(a, t @ out)), pull(lambda ct, a, b: solve(swap(a), ct))),
)  # fmt: skip


def _pinv_shape(x: Aval, rcond: float) -> Aval:
    rows, columns = matrices(x)
    return Aval((*x.shape[:-2], columns, rows), x.dtype)


def _pinv_push(t: Symbol, out: Symbol, x: Symbol, rcond: float) -> Any:
    """Golub and Pereyra (SIAM J. Numer. Anal. 10, 1973): valid while the rank does not change."""
    left = out @ adjoint(out) @ adjoint(t)
    right = adjoint(t) @ adjoint(out) @ out
    return left - left @ x @ out + (right - out @ x @ right) - out @ t @ out


pinv = primitive(
    "pinv", _pinv_shape, "np.linalg.pinv({0}, {rcond})", batch=elementwise, diff=(push(_pinv_push),)
)  # fmt: skip


def _lstsq_shape(a: Aval, b: Aval, rcond: float | None) -> Aval:
    rows, columns = matrices(a)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != rows or a.dtype != b.dtype:
        raise ValueError(f"{a} and {b} are no equations")
    return Aval((columns, *b.shape[1:]), b.dtype)


def _lstsq_push(t: Symbol, out: Symbol, a: Symbol, b: Symbol, rcond: float | None) -> Any:
    """The rule of the pseudo-inverse, with a solution in place of each product with it."""
    turned, t_turned = adjoint(a), adjoint(t)

    def solved(matrix: Symbol, right: Symbol) -> Any:
        return lstsq(matrix, right, rcond=rcond)

    missed = solved(a, solved(turned, t_turned @ (b - a @ out)))
    null = t_turned @ solved(turned, out)
    return missed + (null - solved(a, a @ null)) - solved(a, t @ out)


def _lstsq_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, rcond: float | None) -> Any:
    """NumPy solves for one matrix only: of several it takes the pseudo-inverses."""
    if not flags[0]:
        return _lanes_as_columns(lambda b: lstsq(args[0], b, rcond=rcond), args[1])
    a, b, vector = _stacked_columns(size, args, flags)
    cut = float(np.finfo(a.dtype).eps) * max(a.shape[-2:]) if rcond is None else rcond
    out = pinv(a, rcond=cut) @ b
    return reshape_to(out, out.shape[:-1]) if vector else out


def _lstsq_code(node: Node) -> str:
    option = "" if node.attrs["rcond"] is None else ", {rcond}"
    return f"np.linalg.lstsq({{0}}, {{1}}{option})[0]"


# the solution alone; of the other results of np.linalg.lstsq only the residuals depend smoothly on the operands
lstsq: Primitive = primitive(
    "lstsq", _lstsq_shape, _lstsq_code, batch=_lstsq_batch,
    diff=(push(_lstsq_push), pull(lambda ct, a, b, rcond: lstsq(swap(a), ct, rcond=rcond))),
)  # fmt: skip
