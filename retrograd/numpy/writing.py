"""Functions that write into arrays: put, place, putmask, copyto, put_along_axis, fill_diagonal, and ``ufunc.at``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import CapturedWriteError
from ..ir.types import Aval
from ..ops import index as ops
from ..ops.gather import once, scatter_add
from ..tracer.array import Tracer, cast_to, same_memory, settled, shadow_of, tracers_in
from ..tracer.creation import fresh
from ..tracer.index_arrays import Index, example_index, is_traced
from ..tracer.indexing import put
from ..tracer.mutation import check_writable, make_traced, read, write
from ..tracer.operands import as_array, astype, axes_of, lifted, shadow_dtype
from ..tracer.table import implements
from ..tracer.trace import owner, unsupported
from ..tracer.ufuncs import as_operand, assign, copy
from ..where import user_site
from .reductions import as_dtype
from .shapes import reshape
from .take import numbered, within

UNARY = (np.negative, np.absolute, np.square)


def _target(x: Any) -> Tracer:
    """The array to write into; CapturedWriteError if it was made outside the trace."""
    if not isinstance(x, Tracer):
        raise CapturedWriteError(
            "a traced value is written into an array created outside the traced function",
            remedy="create the array inside the traced function",
        )
    return x


def _cyclic(values: Any, count: int) -> Any:
    """``count`` values, repeated cyclically; a single value stays as it is."""
    values = np.ravel(as_operand(values))
    return values[0] if values.size == 1 else np.resize(values, count)


def _through_flat(a: Tracer, write: Callable[[Any], None]) -> None:
    """Let ``write`` change the array as if it were flat."""
    flat = reshape(a, (-1,))
    write(flat)
    if not same_memory(flat.shadow, a.shadow):
        assign(a, reshape(flat, a.shape))


def _put_cyclic(a: Tracer, places: Any, values: Any, count: int) -> None:
    """Write into ``count`` places of the flat array; without values, NumPy writes nothing."""
    if count and np.size(shadow_of(values)):
        _through_flat(a, lambda flat: put(flat, places, _cyclic(values, count)))


def put_flat(a: Tracer, index: Any, v: Any) -> None:
    """``a.flat[index] = v``: short values are repeated."""
    v = as_operand(v)
    if isinstance(index, int) or np.ndim(shadow_of(v)) == 0 or not np.size(shadow_of(v)):
        np.empty(a.shape, a.dtype).flat[shadow_of(index)] = shadow_of(v)  # NumPy's own error
    if not np.size(shadow_of(v)):
        return
    if not is_traced(index):
        places = np.ravel(np.arange(a.size)[shadow_of(index)])
        _put_cyclic(a, places, v, places.size)
    elif shadow_dtype(index).kind in "iu":
        _put_cyclic(a, np.ravel(index), v, np.size(shadow_of(index)))
    else:
        _through_flat(a, lambda flat: put(flat, index, v))


@implements(np.put)
def put_(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    at, v = np.ravel(numbered(ind, "safe")), as_operand(v)
    if at.size and not np.size(shadow_of(a)):
        raise IndexError("cannot replace elements of an empty array")
    at, a = within(at, np.size(shadow_of(a)), mode), _target(a)
    _put_cyclic(a, at, v, at.size)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    arr, mask, vals = _target(arr), as_operand(mask), as_operand(vals)
    hit = np.reshape(np.not_equal(mask, 0), arr.shape)
    if not np.size(shadow_of(vals)) and np.any(hit):
        raise ValueError("Cannot insert from an empty array!")
    if not is_traced(mask):
        put_(arr, np.flatnonzero(shadow_of(hit)), vals)
    elif np.size(shadow_of(vals)):
        values = np.ravel(*lifted(vals))
        if values.size == 1:
            values = values[0]
        else:  # the k-th place gets the k-th value
            values = values[np.reshape(np.remainder(np.cumsum(hit) - 1, values.size), arr.shape)]
        assign(arr, np.where(hit, astype(values, arr.dtype), arr))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    a, mask, values = _target(a), as_operand(mask), as_operand(values)
    if not np.size(shadow_of(values)):
        return
    if np.size(shadow_of(values)) != a.size:
        values = _cyclic(values, a.size)
    values = values if np.ndim(values) == 0 else np.reshape(values, a.shape)
    assign(a, np.where(np.reshape(mask, a.shape), astype(values, a.dtype), a))


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    dst, src = _target(dst), as_operand(src)
    if casting == "unsafe":
        src = as_array(src) if isinstance(src, Tracer) else np.asarray(src)
    if where is True:
        put(dst, ..., src)
    else:
        extra = max(np.ndim(shadow_of(src)) - dst.ndim, 0)  # leading axes of length 1
        src = src[(0,) * extra] if extra else src
        put(dst, ..., np.where(where, astype(src, dst.dtype), dst))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    arr, indices = _target(arr), as_operand(indices)
    if shadow_dtype(indices).kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        _through_flat(arr, lambda flat: put(flat, indices, values))
        return
    (k,) = axes_of(arr, axis)
    if np.ndim(indices) != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    lines = np.ix_(*(fresh(np.arange(n)) for n in arr.shape))
    put(arr, tuple(indices if j == k else line for j, line in enumerate(lines)), values)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    a = _target(a)
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = a.shape[1] + 1 if a.ndim == 2 else 1 + int(np.cumprod(a.shape[:-1]).sum())
    places = slice(None, None if wrap or a.ndim > 2 else a.shape[1] ** 2, step)
    _put_cyclic(a, places, as_operand(val), len(range(*places.indices(a.size))))


def at(ufunc: Any, a: Any, indices: Any, *operands: Any) -> None:
    """``ufunc.at(a, indices, b)``: repeated indices accumulate."""
    a = _target(a)
    wrapped = ufunc in (np.add, np.subtract) and a.dtype.kind in "iu"
    values = [np.asarray(v).astype(a.dtype) if wrapped and type(v) is int else as_operand(v) for v in operands]
    if any(not np.can_cast(np.result_type(a.dtype, shadow_of(v)), a.dtype, "same_kind") for v in values):
        raise unsupported(f"np.{ufunc.__name__}.at with values that are cast to {a.dtype}", "cast them with astype")
    if ufunc is np.add:
        _add_at(a, indices, values[0])
    elif ufunc is np.subtract:
        dtype = np.result_type(a.dtype, shadow_of(values[0]))  # beforehand: unsigned numbers have no negatives
        _add_at(a, indices, np.negative(as_dtype(values[0], dtype)))
    elif _add_at(a, indices, None):
        put(a, indices, ufunc(a[indices], *values))
    elif any(is_traced(i) for i in (indices if isinstance(indices, tuple) else (indices,))):
        raise unsupported(
            f"np.{ufunc.__name__}.at with traced indices", "use np.add.at, or indices that are plain numbers"
        )
    else:
        _one_after_another(ufunc, a, indices, values)


def _add_at(x: Tracer, index: Any, value: Any) -> bool:
    """``np.add.at(x, index, value)``; without a value, only whether it is known that no element is named twice."""
    x.shadow[example_index(x, index)]  # NumPy's own error for a bad index
    at = Index(index, x)
    if value is None or at.empty:
        return at.basic or at.unique
    trace = owner([x, *tracers_in([value, *at.operands])])
    check_writable(x, trace)
    trace.builder.where = user_site(2)[0]
    if x.const and settled([value, *at.operands]):
        np.add.at(x.shadow, example_index(x, index), shadow_of(value))
        x.storage.version += 1
        return True
    make_traced(x)
    v = cast_to(value, Aval(np.shape(x.shadow[example_index(x, index)]), x.dtype), trace)
    np.add.at(x.shadow, example_index(x, index), shadow_of(value))
    if at.basic:
        write(x, ops.additem(read(x), v, *at.symbols(trace), index=ops.shifted(at.parts, 2)))
    else:
        write(x, scatter_add(read(x), v, *at.symbols(trace), index=ops.shifted(at.parts, 2), **once(at.unique)))
    return True


def _one_after_another(ufunc: Any, a: Tracer, indices: Any, values: list[Any]) -> None:
    """Apply the ufunc to one named element after another, so that repeated indices accumulate.

    Values that are views of the array are read before the first write.
    """
    values = [copy(v) if isinstance(v, Tracer) and v.storage is a.storage else v for v in values]
    places = np.arange(a.size).reshape(a.shape)[
        tuple(map(shadow_of, indices)) if isinstance(indices, tuple) else indices
    ]
    spread = [v if np.ndim(shadow_of(v)) == 0 else np.ravel(np.broadcast_to(v, places.shape)) for v in values]

    def write(flat: Tracer) -> None:
        for k, place in enumerate(np.ravel(places).tolist()):
            flat[place] = ufunc(flat[place], *(v if np.ndim(shadow_of(v)) == 0 else v[k] for v in spread))

    _through_flat(a, write)
