"""Reads and writes by arrays of positions: they copy, and may name an element twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull
from ..ir.texts import Arg
from ..ir.types import Aval
from .axes import move_axis
from .batching import Flags, lanes
from .elementwise import cast, eq, where
from .index import Index, indexed, shifted, write_shape
from .shape import broadcast_to, iota, reshape_to

INT = np.dtype(np.int64)


def once(unique: bool) -> dict[str, bool]:
    """The attribute that says that a read or a write names no element twice."""
    return {"unique": True} if unique else {}


def counted(b: Builder, numbers: np.ndarray[Any, Any]) -> Symbol | None:
    """A vector of integers that count up or down, as an iota; None for other numbers, and for fewer than two."""
    if numbers.dtype != INT or numbers.ndim != 1 or len(numbers) < 2:
        return None
    first, second = numbers[:2].tolist()
    by = second - first  # differences of arrays wrap
    if first + by * (len(numbers) - 1) != numbers[-1] or (np.diff(numbers) != by).any():
        return None
    steps: Any = b.emit(iota, (), {"aval": Aval(numbers.shape, INT)})[0]
    steps = steps if by == 1 else steps * by
    found: Symbol = steps if first == 0 else steps + first
    return found


def _gather_shape(x: Aval, *arrays: Aval, index: Index, unique: bool = False) -> Aval:
    return indexed(x, arrays, index)


def _scatter_shape(x: Aval, v: Aval, *arrays: Aval, index: Index, unique: bool = False) -> Aval:
    return write_shape(x, v, *arrays, index=index)


def _first_is_split(index: Index) -> bool:
    """Whether array indices are separated by slices, so that NumPy puts their axes first."""
    at = [k for k, i in enumerate(index) if isinstance(i, (Arg, int)) and not isinstance(i, bool)]
    return bool(at) and at[-1] - at[0] + 1 != len(at)


def _array_axis(index: Index) -> int:
    """The axis of the result at which the axes of the array indices begin."""
    if _first_is_split(index):
        return 0
    axis = 0
    for item in index:
        if isinstance(item, Arg) or (isinstance(item, int) and any(isinstance(i, Arg) for i in index)):
            return axis
        axis += 1
    return axis


def _counting(b: Builder, size: int) -> Symbol:
    """0, 1, ..., size - 1."""
    return b.emit(iota, (), {"aval": Aval((size,), INT)})[0]


def _lane_index(size: int, arrays: Sequence[Symbol], flags: Flags, index: Index, offset: int) -> tuple[Any, ...]:
    """Index arrays with a leading array of lane numbers, so that lane k reads by its own indices."""
    ndim = max(a.ndim - f for a, f in zip(arrays, flags, strict=True))
    full = [reshape_to(_counting(arrays[0].builder, size), (size, *(1,) * ndim))]
    for a, f in zip(arrays, flags, strict=True):
        shape = a.shape[1:] if f else a.shape
        full.append(reshape_to(a, (size if f else 1, *(1,) * (ndim - len(shape)), *shape)))
    return full, (Arg(offset), *shifted(index, 1))


def _gather_batch(
    prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, index: Index, unique: bool = False
) -> Any:
    x, *arrays = args
    width = max(a.ndim - f for a, f in zip(arrays, flags[1:], strict=True))
    if not any(flags[1:]):
        out = gather(x, *arrays, index=(slice(None), *index), **once(unique))
        return move_axis(out, width if _first_is_split((slice(None), *index)) else 0, 0)
    if not flags[0]:
        padded = [_padded(size, a, f, width) for a, f in zip(arrays, flags[1:], strict=True)]
        return move_axis(gather(x, *padded, index=index), _array_axis(index), 0)
    full, joined = _lane_index(size, arrays, flags[1:], index, 1)
    out = gather(x, *full, index=joined, **once(unique))
    return _arrays_to(out, width, _array_axis(index))


def _padded(size: int, a: Symbol, flag: bool, width: int) -> Symbol:
    shape = a.shape[1:] if flag else a.shape
    a = reshape_to(a, (size if flag else 1, *(1,) * (width - len(shape)), *shape))
    return broadcast_to(a, (size, *a.shape[1:]))


def _arrays_to(out: Symbol, width: int, axis: int) -> Symbol:
    """From axes (lane, arrays, others) to (lane, others[:axis], arrays, others[axis:])."""
    for k in range(width):
        out = move_axis(out, 1 + k if axis == 0 else 1, 1 + k if axis == 0 else axis + width)
    return out


def _scatter_batch(
    prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, index: Index, unique: bool = False
) -> Any:
    x, v, *arrays = args
    x, v = lanes(size, x, flags[0]), lanes(size, v, flags[1])
    width = max(a.ndim - f for a, f in zip(arrays, flags[2:], strict=True))
    full, joined = _lane_index(size, arrays, flags[2:], index, 2)
    axis = _array_axis(index)
    for k in range(width):  # to axes (lane, arrays, others)
        v = move_axis(v, 1 + axis + k, 1 + k)
    return prim(x, v, *full, index=joined, **once(unique))


def _gather_pull(acc: Symbol, ct: Symbol, x: Any, *arrays: Symbol, index: Index, unique: bool = False) -> Any:
    return scatter_add(acc, ct, *arrays, index=shifted(index, 1), **once(unique))


gather: Primitive = primitive(
    "gather", _gather_shape, "{0}[{index}]", diff=(pull(_gather_pull, into=True), None), batch=_gather_batch
)


def _winners(ct: Symbol, x: Any, v: Any, arrays: Sequence[Symbol], index: Index) -> Symbol:
    """A mask of the elements of ``v`` that no later one overwrote."""
    number = reshape_to(_counting(ct.builder, math.prod(v.shape)), v.shape)
    blank = ct.builder.constant(-1, Aval(tuple(x.shape), INT))
    last = gather(scatter(blank, number, *arrays, index=index), *arrays, index=shifted(index, -1))
    return eq(last, number)  # type: ignore[no-any-return]  # symbols are untyped under operators


def _scatter_pull_v(ct: Symbol, x: Any, v: Any, *arrays: Symbol, index: Index, unique: bool = False) -> Any:
    got = gather(ct, *arrays, index=shifted(index, -1), **once(unique))
    return got if unique else where(_winners(ct, x, v, arrays, index), got, 0)


def _scatter_pull_x(ct: Symbol, x: Any, v: Any, *arrays: Symbol, index: Index, unique: bool = False) -> Any:
    return scatter(ct, ct.builder.zeros(Aval(v.shape, ct.dtype)), *arrays, index=index, **once(unique))


scatter: Primitive = primitive(
    "scatter",
    _scatter_shape,
    statement="{0}[{index}] = {1}",
    writes=0,
    loose=(1,),
    joint=True,
    batch=_scatter_batch,
    diff=(pull(_scatter_pull_x), pull(_scatter_pull_v), None),
)


def _scatter_add_pull_v(ct: Symbol, x: Any, v: Any, *arrays: Symbol, index: Index, unique: bool = False) -> Any:
    return gather(ct, *arrays, index=shifted(index, -1), **once(unique))


def _scatter_add_code(node: Node) -> str:
    if node.attrs.get("unique"):
        return "{0}[{index}] += {1}"
    return "np.add.at({0}, {2}, {1})" if node.attrs["index"] == (Arg(2),) else "np.add.at({0}, np.s_[{index}], {1})"


def _positions(x: Symbol, shape: tuple[int, ...], arrays: Sequence[Symbol], index: Index) -> Symbol:
    """For each element of the part ``x[index]``, whose shape is given, its position in ``x`` flattened."""
    b, left, width = x.builder, _array_axis(index), max(a.ndim for a in arrays)
    free = iter([*range(left), *range(left + width, len(shape))])  # where axes of slices and None end up
    dims = iter(enumerate(x.shape))
    total: Any = None
    offset, stride = 0, x.size
    for item in (*index, *(slice(None),) * (x.ndim - sum(i is not None for i in index))):
        if item is None:
            next(free)
            continue
        k, n = next(dims)
        stride //= n
        if isinstance(item, int):
            offset += item % n * stride
            continue
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            offset += start * stride
            term, at, ndim = _counting(b, len(range(start, stop, step))) * (step * stride), next(free), 1
        else:
            given = arrays[item.position - 2]
            if k:  # an index out of bounds must not name another element
                term = gather(_counting(b, n) * stride, given, index=(Arg(1),))
            else:
                term = cast(given, aval=Aval(given.shape, INT)) * stride
            at, ndim = left + width - given.ndim, given.ndim
        term = broadcast_to(reshape_to(term, (*(1,) * at, *term.shape, *(1,) * (len(shape) - at - ndim))), shape)
        total = term if total is None else total + term
    result: Symbol = total + offset if offset else total
    return result


def _scatter_add_lower(b: Builder, node: Node, args: Sequence[Symbol]) -> list[Symbol]:
    """Scatter into the flattened ``x``, several times faster than ``np.add.at`` in two or more dimensions."""
    x, v, *arrays = args
    flat = x.ndim == 1 and node.attrs["index"] == (Arg(2),) and arrays[0].ndim == 1
    if flat or node.attrs.get("unique"):
        return b.copy_node(node, [s.value for s in args])
    if not v.size:
        return [x]
    at = reshape_to(_positions(x, v.shape, arrays, node.attrs["index"]), (v.size,))
    total = scatter_add(reshape_to(x, (x.size,)), reshape_to(v, (v.size,)), at, index=(Arg(2),))
    return [reshape_to(total, x.shape)]


scatter_add: Primitive = primitive(
    "scatter_add",
    _scatter_shape,
    statement=_scatter_add_code,
    writes=0,
    loose=(1,),
    joint=True,
    batch=_scatter_batch,
    lower=_scatter_add_lower,
    scratch=lambda x, v, *_, unique=False, **__: v.nbytes if unique else 0,  # np.add.at needs none
    diff=(pull(lambda ct, *operands, index, unique=False: ct), pull(_scatter_add_pull_v), None),
)
