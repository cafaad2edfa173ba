"""Pseudo-inverses, and solutions in the sense of least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.builder import Symbol
from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive, pull, push
from ...ir.types import Aval
from ..axes import swap
from ..batching import Flags, elementwise
from ..elementwise import gt, to_dtype, where
from ..further_reductions import max_
from ..logic import logical_and, logical_xor
from ..reduce import expand
from ..shape import reshape_to
from .factorizations import svd
from .forms import across, adjoint, down, matrices
from .solutions import lanes_as_columns, stacked_columns

NOISE = 1e3  # a cut below this many times the rounding of a matrix leaves out rounding only


def _cuts(x: Symbol, rcond: float | None) -> bool:
    """Whether the dropped singular values may be more than rounding."""
    return rcond is not None and rcond > NOISE * float(np.finfo(x.dtype).eps) * max(x.shape[-2:])


def _pinv_shape(x: Aval, rcond: float) -> Aval:
    rows, columns = matrices(x)
    return Aval((*x.shape[:-2], columns, rows), x.dtype)


def _pinv_push(t: Symbol, out: Symbol, x: Symbol, rcond: float) -> Any:
    """Golub and Pereyra (SIAM J. Numer. Anal. 10, 1973): valid while the rank does not change."""
    if not x.size:
        return None
    if _cuts(x, rcond):
        return _cut_push(t, x, rcond)
    left = out @ adjoint(out) @ adjoint(t)
    right = adjoint(t) @ adjoint(out) @ out
    return left - left @ x @ out + (right - out @ x @ right) - out @ t @ out


def _cut_push(t: Symbol, x: Symbol, rcond: float) -> Any:
    """By divided differences of the function that is 1/s above the cut and 0 below; in closed form between kept values.

    Noferini, A formula for the Fréchet derivative of a generalized matrix function, SIMAX 38, 2017.
    """
    u, s, vh = svd(x, full=False, vectors=True)
    v, k = adjoint(vh), s.shape[-1]
    kept = gt(s, expand(max_(s, axis=(s.ndim - 1,), keepdims=False), s, (s.ndim - 1,)) * rcond)
    inverse = where(kept, s.builder.constant(1, s.aval) / where(kept, s, 1), 0)
    si, sj, gi, gj = down(s, k), across(s, k), down(inverse, k), across(inverse, k)
    both = logical_and(down(kept, k), across(kept, k))
    one = logical_xor(down(kept, k), across(kept, k))
    even = where(one, (gi - gj) / where(one, si - sj, 1), where(both, -(gi * gj), 0))
    odd = where(one, (gi + gj) / where(one, si + sj, 1), where(both, gi * gj, 0))
    image = t @ v
    inner = adjoint(u) @ image
    turned = adjoint(inner)
    core = (inner + turned) * to_dtype(even * 0.5, x.dtype) + (inner - turned) * to_dtype(odd * 0.5, x.dtype)
    change = u @ core @ vh
    squares = to_dtype(across(inverse * inverse, k), x.dtype)
    if x.shape[-2] > k:
        change = change + (image - u @ inner) @ (vh * swap(squares))
    if x.shape[-1] > k:
        change = change + (u * to_dtype(across(inverse * inverse, x.shape[-2]), x.dtype)) @ (
            adjoint(u) @ t - inner @ vh
        )
    return adjoint(change)


pinv = primitive("pinv", _pinv_shape, "np.linalg.pinv({0}, {rcond})", batch=elementwise, diff=(push(_pinv_push),))


def _lstsq_shape(a: Aval, b: Aval, rcond: float | None) -> Aval:
    rows, columns = matrices(a)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != rows or a.dtype != b.dtype:
        raise ValueError(f"{a} and {b} do not form linear equations")
    return Aval((columns, *b.shape[1:]), b.dtype)


def _lstsq_push(t: Symbol, out: Symbol, a: Symbol, b: Symbol, rcond: float | None) -> Any:
    """The rule of the pseudo-inverse, with a solution in place of each product with it."""
    if rcond is not None and _cuts(a, rcond):
        return _cut_push(t, a, rcond) @ b
    turned, t_turned = adjoint(a), adjoint(t)

    def solved(matrix: Symbol, right: Symbol) -> Any:
        return lstsq(matrix, right, rcond=rcond)

    missed = solved(a, solved(turned, t_turned @ (b - a @ out)))
    null = t_turned @ solved(turned, out)
    return missed + (null - solved(a, a @ null)) - solved(a, t @ out)


def _lstsq_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, rcond: float | None) -> Any:
    """NumPy solves for one matrix only; several matrices take their pseudo-inverses."""
    if not flags[0]:
        return lanes_as_columns(lambda b: lstsq(args[0], b, rcond=rcond), args[1])
    a, b, vector = stacked_columns(size, args, flags)
    cut = float(np.finfo(a.dtype).eps) * max(a.shape[-2:]) if rcond is None else rcond
    out = pinv(a, rcond=cut) @ b
    return reshape_to(out, out.shape[:-1]) if vector else out


def _lstsq_code(node: Node) -> str:
    option = "" if node.attrs["rcond"] is None else ", {rcond}"
    return f"np.linalg.lstsq({{0}}, {{1}}{option})[0]"


# the solution alone; the other results of np.linalg.lstsq are composed
lstsq: Primitive = primitive(
    "lstsq",
    _lstsq_shape,
    _lstsq_code,
    names="lstsq",
    batch=_lstsq_batch,
    diff=(push(_lstsq_push), pull(lambda ct, a, b, rcond: lstsq(swap(a), ct, rcond=rcond))),
)
