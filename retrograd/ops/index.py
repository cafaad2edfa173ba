"""Reads and writes by index: basic ones (ints and slices: views), and by arrays of integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.primitive import Arg, Primitive, primitive, pull
from ..ir.types import Aval
from .batching import Flags, lanes, shifted_index
from .elementwise import eq, where
from .shape import broadcast_to, iota, move_axis, reshape_to

Index = tuple[Any, ...]


def indexed(x: Aval, arrays: Sequence[Aval], index: Index) -> Aval:
    """The aval of ``x[index]``, by NumPy's own rules on an array without memory."""
    probe = np.broadcast_to(np.empty((), x.dtype), x.shape)
    found = iter(arrays)
    got: Any = probe[tuple(np.zeros(next(found).shape, np.intp) if isinstance(i, Arg) else i for i in index)]
    return Aval(got.shape, x.dtype, "array" if isinstance(got, np.ndarray) else "scalar")


def _getitem_shape(x: Aval, index: Index) -> Aval:
    return indexed(x, (), index)


def _write_shape(x: Aval, v: Aval, *arrays: Aval, index: Index) -> Aval:
    part = indexed(x, arrays, index)
    if v.shape != part.shape or v.dtype != x.dtype:
        raise ValueError(f"{v} does not fit into the part {part} of {x}")
    return Aval(x.shape, x.dtype)


def _gather_shape(x: Aval, *arrays: Aval, index: Index) -> Aval:
    return indexed(x, arrays, index)


def _zero_part(ct: Symbol, x: Any, v: Any, index: Index) -> Any:
    zero = ct.builder.zeros(Aval(v.shape, ct.dtype, v.aval.kind))
    return setitem(ct, zero, index=index)


getitem: Primitive = primitive(
    "getitem", _getitem_shape, "{0}[{index}]", alias=0, cheap=True, batch=shifted_index,
    diff=(pull(lambda acc, ct, x, index: additem(acc, ct, index=index), into=True),),
)  # fmt: skip

setitem: Primitive = primitive(
    "setitem", _write_shape, statement="{0}[{index}] = {1}", writes=0, loose=(1,), joint=True, batch=shifted_index,
    diff=(pull(_zero_part), pull(lambda ct, x, v, index: getitem(ct, index=index))),
)  # fmt: skip

additem: Primitive = primitive(
    "additem", _write_shape, statement="{0}[{index}] += {1}", writes=0, loose=(1,), joint=True, batch=shifted_index,
    diff=(pull(lambda ct, x, v, index: ct), pull(lambda ct, x, v, index: getitem(ct, index=index))),
)  # fmt: skip


def _shifted(index: Index, by: int) -> Index:
    """The index with its operands at positions ``by`` further."""
    return tuple(Arg(i.position + by) if isinstance(i, Arg) else i for i in index)


def _first_is_split(index: Index) -> bool:
    """Whether array indices are separated by slices, so that NumPy puts their axes first."""
    at = [k for k, i in enumerate(index) if isinstance(i, (Arg, int)) and not isinstance(i, bool)]
    return bool(at) and at[-1] - at[0] + 1 != len(at)


def _array_axis(index: Index) -> int:
    """Where the axes of the array indices begin in the result."""
    if _first_is_split(index):
        return 0
    axis = 0
    for item in index:
        if isinstance(item, Arg) or (isinstance(item, int) and any(isinstance(i, Arg) for i in index)):
            return axis
        axis += 1
    return axis


def _lane_index(size: int, arrays: Sequence[Symbol], flags: Flags, index: Index, offset: int) -> tuple[Any, ...]:
    """Index arrays with a leading array of lane numbers, so that lane k reads by its own indices."""
    ndim = max(a.ndim - f for a, f in zip(arrays, flags, strict=True))
    b = arrays[0].builder
    lane = b.emit(iota, (), {"aval": Aval((size,), np.dtype(np.int64))})[0]
    full = [reshape_to(lane, (size, *(1,) * ndim))]
    for a, f in zip(arrays, flags, strict=True):
        shape = a.shape[1:] if f else a.shape
        full.append(reshape_to(a, (size if f else 1, *(1,) * (ndim - len(shape)), *shape)))
    return full, (Arg(offset), *_shifted(index, 1))


def _gather_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, index: Index) -> Any:
    x, *arrays = args
    width = max(a.ndim - f for a, f in zip(arrays, flags[1:], strict=True))
    if not any(flags[1:]):
        out = gather(x, *arrays, index=(slice(None), *index))
        return move_axis(out, width if _first_is_split((slice(None), *index)) else 0, 0)
    if not flags[0]:
        padded = [_padded(size, a, f, width) for a, f in zip(arrays, flags[1:], strict=True)]
        return move_axis(gather(x, *padded, index=index), _array_axis(index), 0)
    full, joined = _lane_index(size, arrays, flags[1:], index, 1)
    out = gather(x, *full, index=joined)
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


def _scatter_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, index: Index) -> Any:
    x, v, *arrays = args
    x, v = lanes(size, x, flags[0]), lanes(size, v, flags[1])
    width = max(a.ndim - f for a, f in zip(arrays, flags[2:], strict=True))
    full, joined = _lane_index(size, arrays, flags[2:], index, 2)
    axis = _array_axis(index)
    for k in range(width):  # to axes (lane, arrays, others)
        v = move_axis(v, 1 + axis + k, 1 + k)
    return prim(x, v, *full, index=joined)


def _gather_pull(acc: Symbol, ct: Symbol, x: Any, *arrays: Symbol, index: Index) -> Any:
    return scatter_add(acc, ct, *arrays, index=_shifted(index, 1))


gather: Primitive = primitive(
    "gather", _gather_shape, "{0}[{index}]", diff=(pull(_gather_pull, into=True), None), batch=_gather_batch
)


def _winners(ct: Symbol, x: Any, v: Any, arrays: Sequence[Symbol], index: Index) -> tuple[Symbol, Symbol]:
    """The cotangents read back, and which elements of ``v`` were not overwritten by a later one."""
    read = _shifted(index, -1)
    got = gather(ct, *arrays, index=read)
    b = ct.builder
    count = b.emit(iota, (), {"aval": Aval((math.prod(v.shape),), np.dtype(np.int64))})[0]
    number = reshape_to(count, v.shape)
    blank = b.constant(-1, Aval(tuple(x.shape), np.dtype(np.int64)))
    last = gather(scatter(blank, number, *arrays, index=index), *arrays, index=read)
    return got, eq(last, number)


def _scatter_pull_v(ct: Symbol, x: Any, v: Any, *arrays: Symbol, index: Index) -> Any:
    got, won = _winners(ct, x, v, arrays, index)
    return where(won, got, 0)


def _scatter_pull_x(ct: Symbol, x: Any, v: Any, *arrays: Symbol, index: Index) -> Any:
    return scatter(ct, ct.builder.zeros(Aval(v.shape, ct.dtype)), *arrays, index=index)


scatter: Primitive = primitive(
    "scatter", _write_shape, statement="{0}[{index}] = {1}", writes=0, loose=(1,), joint=True, batch=_scatter_batch,
    diff=(pull(_scatter_pull_x), pull(_scatter_pull_v), None),
)  # fmt: skip

scatter_add: Primitive = primitive(
    "scatter_add", _write_shape, statement="np.add.at({0}, np.s_[{index}], {1})", writes=0, loose=(1,), joint=True,
    batch=_scatter_batch,
    diff=(
        pull(lambda ct, x, v, *arrays, index: ct),
        pull(lambda ct, x, v, *arrays, index: gather(ct, *arrays, index=_shifted(index, -1))),
        None,
    ),
)  # fmt: skip
