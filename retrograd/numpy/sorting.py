"""Sorting and searching along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import sort as ops
from ..ops.index import getitem
from ..tracer import masks as found
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.creation import fresh
from ..tracer.mutation import read
from ..tracer.operands import Axis, as_array, axis_of, lifted, only_default
from ..tracer.table import implements
from ..tracer.ufuncs import assign
from .repeat import plain
from .shapes import ravel


def _line(a: Any, axis: Axis) -> tuple[Any, int]:
    """The array and one of its axes; the flat array if ``axis`` is None."""
    x = ravel(a) if axis is None else as_array(a)
    return x, axis_of(x, -1 if axis is None else axis)


def _is_stable(kind: Any, order: Any, stable: Any) -> bool:
    only_default("sort", order=(order, None))
    np.sort(np.zeros(1), kind=kind, stable=stable)  # NumPy's own errors
    return bool(stable) or kind in {"stable", "mergesort"}


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[Any, ...]:
    mask = as_array(a)
    if not mask.ndim:
        np.nonzero(np.zeros(()))  # NumPy's own error
    return found.nonzero(mask if mask.dtype == np.bool_ else np.not_equal(mask, 0))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return nonzero(ravel(a))[0]


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    return np.stack(nonzero(a), axis=1) if np.ndim(a) else np.zeros((int(bool(a)), 0), np.int64)


@implements(np.sort)
def sort(a: Any, axis: Axis = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x, k = _line(a, axis)
    return apply(ops.sort, [x], axis=k, stable=_is_stable(kind, order, stable))


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    return np.sort(a).astype(np.sort_complex(np.zeros(1, a.dtype)).dtype)


@implements(np.argsort)
def argsort(a: Any, axis: Axis = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x, k = _line(a, axis if a.ndim else None)
    return apply(ops.argsort, [x], axis=k, stable=_is_stable(kind, order, stable))


def _kth(kth: Any) -> Any:
    found = np.asarray(plain(kth, "kth")).tolist()
    return tuple(found) if isinstance(found, list) else found


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Axis = -1, kind: Any = "introselect", order: Any = None) -> Any:
    only_default("partition", order=(order, None))
    np.partition(np.zeros(1), 0, kind=kind)  # NumPy's own error
    x, k = _line(a, axis)
    return apply(ops.partition, [x], axis=k, kth=_kth(kth))


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Axis = -1, kind: Any = "introselect", order: Any = None) -> Any:
    only_default("argpartition", order=(order, None))
    np.argpartition(np.zeros(1), 0, kind=kind)  # NumPy's own error
    x, k = _line(a, axis if a.ndim else None)
    return apply(ops.argpartition, [x], axis=k, kth=_kth(kth))


def sort_in_place(self: Tracer, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """``x.sort()``."""
    assign(self, sort(self, axis, kind, order, stable=stable))


def partition_in_place(self: Tracer, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    """``x.partition(kth)``."""
    assign(self, partition(self, kth, axis, kind, order))


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    rows = lifted(*keys)
    if rows[0].ndim == 0:
        return lexsort([ravel(row) for row in rows])[0]
    return apply(ops.lexsort, rows, axis=axis_of(rows[0], axis))


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    x, y = lifted(a, v)
    np.searchsorted(shadow_of(x), shadow_of(y), side, None if sorter is None else shadow_of(sorter))  # its errors
    return apply(ops.searchsorted, [x if sorter is None else x[sorter], y], side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    return apply(ops.digitize, lifted(x, bins), right=bool(right))


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Axis = -1) -> Any:
    x, index = lifted(arr, indices)
    np.take_along_axis(shadow_of(x), shadow_of(index), axis)  # NumPy's own errors
    x = ravel(x) if axis is None else x
    k = 0 if axis is None else axis_of(x, axis)
    if index.shape == (*x.shape[:k], index.shape[k], *x.shape[k + 1 :]) and _distinct(index, k):
        return apply(ops.take_along, [x, index], axis=k)
    places = [fresh(np.arange(n).reshape(-1, *(1,) * (x.ndim - 1 - i))) for i, n in enumerate(x.shape)]
    return x[tuple(index if i == k else place for i, place in enumerate(places))]


def _distinct(index: Any, axis: int) -> bool:
    """Whether no index can occur twice on a line: argsort made it, and at most a slice cut it."""
    made = index.home.builder.made
    node = None if index.const else made.get(read(index).value)
    while node is not None and node.prim is getitem and all(isinstance(i, slice) for i in node.attrs["index"]):
        node = made.get(node.inputs[0])
    return node is not None and node.prim in (ops.argsort, ops.argpartition) and node.attrs["axis"] == axis
