"""Inverses and solutions of linear equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, pull, push
from ...ir.types import Aval
from ..axes import swap
from ..batching import Flags, elementwise, lanes
from ..shape import permute, reshape_to
from .forms import square

inv: Primitive = primitive(
    "inv", square, "np.linalg.inv({0})", batch=elementwise, diff=(push(lambda t, out, x: -(out @ t @ out)),)
)


def solve_shape(a: Aval, b: Aval) -> Aval:
    """The shape rule of equations: one vector for one matrix, or equal stacks of matrices."""
    n = square(a).shape[-1]
    fits = b.shape == (n,) if b.ndim == 1 else b.ndim == a.ndim and b.shape[:-1] == a.shape[:-1]
    if not fits or (b.ndim == 1 and a.ndim != 2) or a.dtype != b.dtype:
        raise ValueError(f"{a} and {b} do not form linear equations")
    return Aval(b.shape, b.dtype)


def lanes_as_columns(solved: Callable[[Symbol], Symbol], b: Symbol) -> Any:
    """Put the right sides of all lanes side by side as columns, so that the matrix is factorized once."""
    if b.ndim == 2:
        return swap(solved(swap(b)))
    size, n, k = b.shape
    out = solved(reshape_to(permute(b, axes=(1, 0, 2)), (n, size * k)))
    return permute(reshape_to(out, (out.shape[0], size, k)), axes=(1, 0, 2))


def stacked_columns(size: int, args: Sequence[Symbol], flags: Flags) -> tuple[Symbol, Symbol, bool]:
    """Both operands as stacks of matrices, and whether the right sides were vectors."""
    a, b = (lanes(size, x, flag) for x, flag in zip(args, flags, strict=True))
    vector = b.ndim == 2
    return a, reshape_to(b, (*b.shape, 1)) if vector else b, vector


def solve_batch(prim: Callable[..., Symbol], size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    """The batching rule of equations, whatever solves them."""
    if not flags[0] and args[0].ndim == 2:
        return lanes_as_columns(lambda b: prim(args[0], b), args[1])
    a, b, vector = stacked_columns(size, args, flags)
    out = prim(a, b)
    return reshape_to(out, out.shape[:-1]) if vector else out


solve: Primitive = primitive(
    "solve",
    solve_shape,
    "np.linalg.solve({0}, {1})",
    batch=solve_batch,
    diff=(push(lambda t, out, a, b: solve(a, -(t @ out))), pull(lambda ct, a, b: solve(swap(a), ct))),
)
