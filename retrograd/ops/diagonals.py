"""Diagonals of the last two axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull
from ..ir.texts import Arg
from ..ir.types import Aval
from .batching import Flags
from .gather import INT, scatter, scatter_add
from .index import Index
from .shape import iota


def _length(shape: tuple[int, ...], offset: int) -> int:
    n, m = shape[-2:]
    return max(min(n, m - offset) if offset >= 0 else min(n + offset, m), 0)


def _diagonal_shape(x: Aval, offset: int) -> Aval:
    if x.ndim < 2:
        raise ValueError(f"{x} has no diagonal")
    return Aval((*x.shape[:-2], _length(x.shape, offset)), x.dtype)


def _diagonal_code(node: Node) -> str:
    axes = ", -2, -1" if node.inputs[0].aval.ndim > 2 else ""
    return "{0}.diagonal({offset}" + axes + ")" if node.attrs["offset"] or axes else "{0}.diagonal()"


def _places(x: Symbol, offset: int) -> tuple[list[Symbol], Index]:
    """The index of a diagonal, for writes."""
    b, n = x.builder, _length(x.shape, offset)
    count = b.emit(iota, (), {"aval": Aval((n,), INT)})[0]
    rows, columns = (count + shift if shift else count for shift in (max(-offset, 0), max(offset, 0)))
    return [rows, columns], (*(slice(None),) * (x.ndim - 2), Arg(2), Arg(3))


def set_diagonal(x: Symbol, v: Symbol, offset: int) -> Symbol:
    """Write ``v`` on a diagonal of ``x``."""
    at, index = _places(x, offset)
    written: Symbol = scatter(x, v, *at, index=index, unique=True)
    return written


def _diagonal_pull(acc: Symbol, ct: Symbol, x: Any, offset: int) -> Any:
    at, index = _places(acc, offset)
    return scatter_add(acc, ct, *at, index=index, unique=True)


diagonal: Primitive = primitive(
    "diagonal",
    _diagonal_shape,
    _diagonal_code,
    names="diagonal",
    alias=0,
    through=lambda v, shape, before, offset: set_diagonal(before(), v, offset),
    cheap=True,
    diff=(pull(_diagonal_pull, into=True),),
    batch=lambda prim, size, args, flags, offset: diagonal(args[0], offset=offset),
)


def _diag_shape(x: Aval, offset: int) -> Aval:
    if x.ndim != 1:
        raise ValueError(f"{x} is not a vector")
    n = x.size + abs(offset)
    return Aval((n, n), x.dtype)


def _diag_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, offset: int) -> Any:
    (x,) = args
    n = x.shape[1] + abs(offset)
    return set_diagonal(x.builder.zeros(Aval((size, n, n), x.dtype)), x, offset)


diag: Primitive = primitive(
    "diag",
    _diag_shape,
    "np.diag({0}, {offset})",
    batch=_diag_batch,
    diff=(pull(lambda ct, x, offset: diagonal(ct, offset=offset)),),
)
