"""The methods of ufuncs: ``np.add.reduce``, ``np.maximum.accumulate``, ``np.multiply.outer``, ``np.add.reduceat``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import cumulative, runs
from ...ops.shape import stop_gradient
from ..array import Tracer, apply, shadow_of
from ..creation import fresh
from ..trace import unsupported
from .cumulative import accumulated
from .reductions import ABSENT, array_of, as_dtype
from .table import Axis, axis_of, into, lifted, only_default
from .writing import at


def _logsumexp(
    a: Any, axis: Axis, out: Any, keepdims: bool, where: Any = True, initial: Any = ABSENT
) -> Any:  # fmt: skip
    """``np.logaddexp.reduce``: relative to the maximum, whose own derivative cancels."""
    only_default("logaddexp.reduce", where=(where, True), initial=(initial, ABSENT))
    a = as_dtype(a, np.logaddexp.reduce(np.zeros(1, a.dtype)).dtype)
    top = np.max(a, axis=axis, keepdims=True, initial=-np.inf)
    top = apply(stop_gradient, [np.where(np.isfinite(top), top, 0)])
    found = np.log(np.sum(np.exp(a - top), axis=axis, keepdims=keepdims))
    return into(out, found + (top if keepdims else np.reshape(top, np.shape(shadow_of(found)))))


REDUCE: dict[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.fmax: np.nanmax,
    np.fmin: np.nanmin,
    np.logical_and: np.all,
    np.logical_or: np.any,
    np.logaddexp: _logsumexp,
}
ACCUMULATE = {
    np.add: cumulative.cumsum,
    np.multiply: cumulative.cumprod,
    np.maximum: cumulative.cummax,
    np.minimum: cumulative.cummin,
}
REDUCEAT = {np.add: runs.run_sum, np.maximum: runs.run_max, np.minimum: runs.run_min}


def _reduce(
    ufunc: Any, array: Any, axis: Axis = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = ABSENT, where: Any = True,
) -> Any:  # fmt: skip
    a = array_of(array, initial, where)
    a = a if dtype is None else as_dtype(a, np.dtype(dtype))
    options = {} if initial is ABSENT else {"initial": initial}
    return REDUCE[ufunc](a, axis=axis, out=_only(out), keepdims=keepdims, where=where, **options)


def _accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    a = array_of(array)
    wanted = np.dtype(dtype) if dtype is not None else ufunc.accumulate(np.zeros(1, a.dtype)).dtype
    if a.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    return into(_only(out), accumulated(ACCUMULATE[ufunc], as_dtype(a, wanted), axis))


def _reduceat(
    ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:  # fmt: skip
    if isinstance(indices, Tracer) and not indices.const:
        raise unsupported("reduceat with traced indices", "use np.add.at, or make the indices plain numbers")
    starts = np.asarray(shadow_of(indices))
    ufunc.reduceat(shadow_of(array), starts, axis)  # NumPy's own errors
    a = array_of(array)
    wanted = np.dtype(dtype) if dtype is not None else ufunc.reduceat(np.zeros(1, a.dtype), [0]).dtype
    k = axis_of(a, axis)
    if not starts.size or np.any(np.diff(starts) <= 0):
        raise unsupported("reduceat with indices that do not increase", "sort them, or sum the parts one by one")
    first, n = int(starts[0]), a.shape[k]
    numbers = np.repeat(np.arange(starts.size), np.diff(np.append(starts, n)))
    part = a if first == 0 else a[cumulative.along(k, slice(first, None))]
    operands = [as_dtype(part, wanted), fresh((starts - first).astype(np.int64)), fresh(numbers)]
    return into(_only(out), apply(REDUCEAT[ufunc], operands, axis=k))


def _only(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _outer(ufunc: Any, a: Any, b: Any, **options: Any) -> Any:
    x, y = lifted(a, b)
    return ufunc(np.reshape(x, (*x.shape, *(1,) * y.ndim)), y, **options)


def ufunc_method(ufunc: Any, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """``ufunc.method(*inputs, **options)`` with a tracer among its arguments."""
    table: dict[str, tuple[dict[Any, Any], Any]] = {
        "reduce": (REDUCE, _reduce),
        "accumulate": (ACCUMULATE, _accumulate),
        "reduceat": (REDUCEAT, _reduceat),
    }
    if method == "at":
        return at(ufunc, *inputs)
    if method == "outer" and ufunc.nin == 2 and ufunc.nout == 1:
        return _outer(ufunc, *inputs, **options)
    known, handler = table.get(method, ({}, None))
    if handler is None or ufunc not in known:
        name = f"np.{ufunc.__name__}.{method}"
        raise unsupported(f"{name} of a traced value", "use the NumPy function of the same purpose")
    return handler(ufunc, *inputs, **options)
