"""Numbers in a row, whose ends and steps may be traced: arange, linspace, logspace, geomspace; r_, c_, mgrid, ogrid."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ..tracer.array import shadow_of
from ..tracer.creation import fresh, holds_tracers, joined
from ..tracer.interception import substitutes
from ..tracer.operands import shadow_dtype
from ..tracer.table import implements
from ..tracer.trace import unsupported
from ..tracer.ufuncs import as_operand
from .joining import stack
from .reductions import as_dtype


def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any) -> Any:
    """``np.arange``; traced ends are asked for their values, which decide the number of elements."""
    if not holds_tracers((*args, *named.values()), const=False):
        return fresh(np.arange(*map(shadow_of, args), dtype=dtype, **{k: shadow_of(v) for k, v in named.items()}))
    bounds = dict(zip(("start", "stop", "step", "dtype"), args, strict=False)) | named
    if bounds.get("stop") is None:
        bounds = {**bounds, "start": 0, "stop": bounds.get("start", 0)}
    start, stop, step = bounds["start"], bounds["stop"], bounds.get("step")
    step = 1 if step is None else step
    like = np.arange(*map(shadow_of, (start, stop, step)), dtype=bounds.get("dtype", dtype))
    if like.dtype.kind == "c":
        raise unsupported("np.arange of traced complex numbers", "write start + step * np.arange(n)")
    count = int(np.ceil((stop - start) / step))
    kind = np.dtype(np.float32) if like.dtype == np.float16 else np.dtype(int) if like.dtype.kind == "b" else like.dtype
    first, second = (as_dtype(as_dtype(x, like.dtype), kind) for x in (start, start + step))
    row = first + fresh(np.arange(max(count, 0), dtype=kind)) * (second - first)
    row[:1], row[1:2] = first, second
    return as_dtype(row, like.dtype)


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """``np.linspace``, with the arithmetic of NumPy's own."""
    start, stop = as_operand(start), as_operand(stop)
    options = {"endpoint": endpoint, "retstep": retstep, "dtype": dtype, "axis": axis}
    like = np.linspace(shadow_of(start), shadow_of(stop), num := num.__index__(), **options)
    if not holds_tracers((start, stop), const=False):
        return fresh(like)
    made = like[0] if retstep else like
    kind = np.linspace(shadow_of(start), shadow_of(stop), 2).dtype
    delta = np.subtract(stop, start, dtype=kind)
    parts = num - 1 if endpoint else num
    steps = np.reshape(fresh(np.arange(0, num, dtype=kind)), (-1, *(1,) * np.ndim(shadow_of(delta))))
    step = np.positive(delta / parts) if parts > 0 else np.nan
    y = np.positive(steps * (step if parts > 0 else delta) + as_dtype(start, kind))
    if endpoint and num > 1:
        y[-1] = as_dtype(stop, kind)
    y = np.moveaxis(y, 0, axis)
    y = np.floor(y) if made.dtype.kind in "iu" else y
    y = y if y.dtype == made.dtype else y.astype(made.dtype)
    return (y, step) if retstep else y


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """``np.logspace``."""
    start, stop, base = as_operand(start), as_operand(stop), as_operand(base)
    like: Any = np.logspace(shadow_of(start), shadow_of(stop), num, endpoint, shadow_of(base), dtype, axis)
    if not holds_tracers((start, stop, base), const=False):
        return fresh(like)
    if np.ndim(shadow_of(base)):
        raise unsupported("np.logspace with an array of bases", "write base ** np.linspace(start, stop, num)")
    y = base ** linspace(start, stop, num, endpoint, axis=axis)
    return y if y.dtype == like.dtype else y.astype(like.dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """``np.geomspace`` of real numbers; its ends are exact."""
    start, stop = as_operand(start), as_operand(stop)
    like = np.geomspace(shadow_of(start), shadow_of(stop), num, endpoint, dtype, axis)
    if not holds_tracers((start, stop), const=False):
        return fresh(like)
    if like.dtype.kind == "c" or shadow_dtype(start).kind == "c":
        raise unsupported("np.geomspace of traced complex numbers", "write np.exp(np.linspace(...)) of the logarithms")
    start, stop = start * 1.0, stop * 1.0
    if np.any(start == 0) or np.any(stop == 0):
        raise ValueError("Geometric sequence cannot include zero")
    sign = np.sign(start)
    y = np.moveaxis(logspace(np.log10(start * sign), np.log10(stop * sign), num, endpoint) * sign, 0, -1)
    if num > 0:
        y[..., 0] = start
    if num > 1 and endpoint:
        y[..., -1] = stop
    y = np.moveaxis(y, -1, axis)
    return y if y.dtype == like.dtype else y.astype(like.dtype)


def ranged(bounds: slice) -> Any:
    """The numbers that a slice stands for in ``np.r_`` and ``np.mgrid``; an imaginary step counts them."""
    start = 0 if bounds.start is None else bounds.start
    step = 1 if bounds.step is None else bounds.step
    if isinstance(shadow_of(step), complex):
        return linspace(start, bounds.stop, int(abs(shadow_of(step))))
    return arange(start, bounds.stop, step)


def plain_slice(bounds: slice) -> slice:
    """A slice with example values for bounds."""
    return slice(*map(shadow_of, (bounds.start, bounds.stop, bounds.step)))


class Grid:
    """Stands for ``np.mgrid``, or with ``sparse`` for ``np.ogrid``."""

    def __init__(self, original: Any) -> None:
        self._original, self._sparse = original, original.sparse

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        plain = tuple(map(plain_slice, items))
        like = self._original[plain if isinstance(key, tuple) else plain[0]]
        if not holds_tracers([bound for i in items for bound in (i.start, i.stop, i.step)], const=False):
            return fresh(like)
        lines = [ranged(i) for i in items]
        if not isinstance(key, tuple):
            return lines[0]
        found = np.meshgrid(*lines, indexing="ij", sparse=self._sparse)
        return tuple(found) if self._sparse else stack(found)


class Concatenator:
    """Stands for ``np.r_``, or with ``columns`` for ``np.c_``, whose vectors become columns."""

    def __init__(self, original: Any, columns: bool) -> None:
        self._original, self._columns = original, columns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __getitem__(self, key: Any) -> Any:
        items = [i if isinstance(i, slice) else joined(i) for i in (key if isinstance(key, tuple) else (key,))]
        like = self._original[tuple(plain_slice(i) if isinstance(i, slice) else shadow_of(i) for i in items)]
        bounds = [b for i in items if isinstance(i, slice) for b in (i.start, i.stop, i.step)]
        if not holds_tracers([*items, *bounds]):
            return fresh(like)
        if isinstance(items[0], str):
            raise unsupported("np.r_ with a string", "use np.concatenate or np.stack")
        parts = [self._part(ranged(i) if isinstance(i, slice) else i) for i in items]
        return np.concatenate(parts, -1 if self._columns else 0, dtype=like.dtype, casting="unsafe")

    def _part(self, x: Any) -> Any:
        if self._columns and np.ndim(shadow_of(x)) < 2:
            return np.reshape(x, (-1, 1))
        return np.atleast_1d(x)


@substitutes("numpy")
def _of_numpy(numpy: ModuleType) -> Mapping[str, Any]:
    return {
        "arange": arange,
        "linspace": linspace,
        "logspace": logspace,
        "geomspace": geomspace,
        "r_": Concatenator(np.r_, columns=False),
        "c_": Concatenator(np.c_, columns=True),
        "mgrid": Grid(np.mgrid),
        "ogrid": Grid(np.ogrid),
    }
