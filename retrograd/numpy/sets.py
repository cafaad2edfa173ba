"""Sets of numbers, and arrays without their outer zeros: the lengths of the results depend on data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer.array import shadow_of
from ..tracer.operands import axes_of, lifted
from ..tracer.table import implements
from ..tracer.ufuncs import as_operand
from .reductions import as_dtype
from .shapes import ravel


def _distinct(x: Any, assume_unique: bool) -> Any:
    return ravel(x) if assume_unique else np.unique(x)


def _sorted_union(a: Any, b: Any, assume_unique: bool) -> Any:
    """The distinct elements of each, in one sorted array: common elements stand beside each other."""
    return np.sort(np.concatenate([_distinct(a, assume_unique), _distinct(b, assume_unique)]))


def _promoted(function: Any, ar1: Any, ar2: Any, *options: Any) -> list[Any]:
    """Both in the dtype of NumPy's result, which is not widened for a number."""
    like = function(shadow_of(as_operand(ar1)), shadow_of(as_operand(ar2)), *options)
    return [as_dtype(x, like.dtype) for x in lifted(ar1, ar2)]


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    a, b = _promoted(np.union1d, ar1, ar2)
    return np.unique(np.concatenate([ravel(a), ravel(b)]))


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    a, b = lifted(ar1, ar2)
    row = _sorted_union(a, b, assume_unique)
    common = row[:-1][row[1:] == row[:-1]]
    if not return_indices:
        return common
    first = [np.array([np.argmax(ravel(x) == v) for v in common], np.int64) for x in (a, b)]
    return common, first[0], first[1]


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    a, b = _promoted(np.setxor1d, ar1, ar2, assume_unique)
    row = _sorted_union(a, b, assume_unique)
    if not row.size:
        return row
    change = np.concatenate([np.ones(1, bool), row[1:] != row[:-1], np.ones(1, bool)])
    return row[np.logical_and(change[1:], change[:-1])]


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    a, b = lifted(ar1, ar2)
    row = _distinct(a, assume_unique)
    return row[np.isin(row, b, invert=True)]


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> Any:
    (x,) = lifted(filt)
    np.trim_zeros(np.zeros(x.shape), trim, axis)  # NumPy's own error
    axes = axes_of(x, axis)
    if not axes:
        return filt
    places = np.nonzero(x)
    index = []
    for k in range(x.ndim):
        if k not in axes:
            index.append(slice(None))
        elif not places[k].size:
            index.append(slice(0))
        else:
            first = int(np.min(places[k])) if "f" in trim.lower() else None
            last = int(np.max(places[k])) + 1 if "b" in trim.lower() else None
            index.append(slice(first, last))
    return x[tuple(index)]
