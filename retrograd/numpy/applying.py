"""Functions applied along or over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracer.operands import axis_of, lifted
from ..tracer.table import implements
from .shapes import moveaxis


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    (arr,) = lifted(arr)
    k = axis_of(arr, axis)
    turned = moveaxis(arr, k, -1)
    lead = turned.shape[:-1]
    if 0 in lead:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [func1d(turned[at], *args, **kwargs) for at in np.ndindex(lead)]
    first = lifted(found[0], arr)[0]
    stacked = np.stack([v.astype(first.dtype) for v in lifted(*found, arr)[:-1]])
    out = np.reshape(stacked, (*lead, *first.shape))
    order = (*range(k), *range(len(lead), out.ndim), *range(k, len(lead)))
    return np.transpose(out, order)


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    (value,) = lifted(a)
    n = value.ndim
    for axis in np.atleast_1d(axes).tolist():
        k = axis + n if axis < 0 else axis
        found = func(value, k)
        value = found if found.ndim == value.ndim else np.expand_dims(found, k)
        if value.ndim != n:
            raise ValueError("function is not returning an array of the correct shape")
    return value
