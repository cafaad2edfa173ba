"""Reductions: sum, max, mean, argmax, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import reduce
from ..array import apply, shadow_of
from ..ufuncs import astype
from .shapes import ravel, reshape
from .table import Axis, as_array, axes_of, implements, only_default, shadow_dtype, truth


@implements(np.sum)
def sum_(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:  # fmt: skip
    only_default("sum", out=(out, None), initial=(initial, np._NoValue), where=(where, np._NoValue))
    wanted = np.dtype(dtype) if dtype is not None else np.add.reduce(np.zeros(1, shadow_dtype(a))).dtype
    a = a if a.dtype == wanted else astype(a, wanted)
    return _reduce(reduce.sum_, a, axis, keepdims)


def _reduce(prim: Any, a: Any, axis: Axis, keepdims: Any) -> Any:
    return apply(prim, [as_array(a)], axis=axes_of(a, axis), keepdims=truth(keepdims))


@implements(np.max, np.amax)
def max_(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:  # fmt: skip
    only_default("max", out=(out, None), initial=(initial, np._NoValue), where=(where, np._NoValue))
    return _reduce(reduce.max_, a, axis, keepdims)


@implements(np.min, np.amin)
def min_(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:  # fmt: skip
    only_default("min", out=(out, None), initial=(initial, np._NoValue), where=(where, np._NoValue))
    return _reduce(reduce.min_, a, axis, keepdims)


@implements(np.mean)
def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = np._NoValue
) -> Any:
    only_default("mean", out=(out, None), where=(where, np._NoValue))
    count = int(np.prod([np.shape(shadow_of(a))[i] for i in axes_of(a, axis)], dtype=int))
    kind = np.dtype(dtype) if dtype is not None else np.mean(np.zeros(1, shadow_dtype(a))).dtype
    wide = np.dtype(np.float32) if kind == np.float16 and dtype is None else kind
    total = sum_(a, axis, wide, keepdims=keepdims)
    return astype(total / count, kind) if wide != kind else total / count


@implements(np.argmax)
def argmax(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return _arg(reduce.argmax, a, axis, out, keepdims)


@implements(np.argmin)
def argmin(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return _arg(reduce.argmin, a, axis, out, keepdims)


def _arg(prim: Any, a: Any, axis: Axis, out: Any, keepdims: Any) -> Any:
    only_default(prim.name, out=(out, None))
    x = ravel(a) if axis is None else a
    (k,) = axes_of(x, 0 if axis is None else axis)
    found = apply(prim, [x], axis=k)
    if not truth(keepdims):
        return found
    return reshape(found, tuple(1 if axis is None or i == k else n for i, n in enumerate(a.shape)))
