"""Distinct elements: their number depends on data, so the graph holds for that number only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer.operands import as_array
from ..tracer.table import implements
from ..tracer.trace import unsupported
from .shapes import ravel


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """``np.unique`` of all elements; of equal elements, the first gets the gradient."""
    if axis is not None:
        raise unsupported("np.unique along an axis", "leave axis= out, or compare the rows")
    x = as_array(ar)
    order = np.argsort(ravel(x), stable=True)
    y = ravel(x)[order]
    new = y[1:] != y[:-1]
    if equal_nan and y.dtype.kind in "fc":
        new = np.logical_and(new, np.logical_not(np.logical_and(np.isnan(y[1:]), np.isnan(y[:-1]))))
    first = np.concatenate([np.ones(min(y.size, 1), bool), new])
    found = [y[first]]
    if return_index:
        found.append(order[first])
    if return_inverse:
        rank = (np.cumsum(first) - 1)[np.argsort(order)]
        found.append(np.reshape(rank, x.shape))
    if return_counts:
        found.append(np.diff(np.concatenate([np.flatnonzero(first), np.array([y.size])])))
    return tuple(found) if len(found) > 1 else found[0]


@implements(np.unique_values)
def unique_values(x: Any, /) -> Any:
    return unique(x, equal_nan=False)


@implements(np.unique_counts)
def unique_counts(x: Any, /) -> Any:
    return type(np.unique_counts(np.zeros(1)))(*unique(x, return_counts=True, equal_nan=False))


@implements(np.unique_inverse)
def unique_inverse(x: Any, /) -> Any:
    return type(np.unique_inverse(np.zeros(1)))(*unique(x, return_inverse=True, equal_nan=False))


@implements(np.unique_all)
def unique_all(x: Any, /) -> Any:
    parts = unique(x, True, True, True, equal_nan=False)
    return type(np.unique_all(np.zeros(1)))(*parts)
