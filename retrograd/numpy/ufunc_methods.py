"""The methods of ufuncs: ``np.add.reduce``, ``np.maximum.accumulate``, ``np.multiply.outer``, ``np.add.reduceat``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.builder import Builder
from ..ir.primitive import REGISTRY
from ..ir.types import Aval
from ..ops import cumulative
from ..ops import reduceat as runs
from ..ops.elementwise import where as choose
from ..ops.shape import stop_gradient
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.creation import fresh
from ..tracer.operands import Axis, apply_all, axis_of, lifted, shadow_dtype
from ..tracer.table import UFUNC_METHODS
from ..tracer.trace import unsupported
from ..tracer.ufunc_options import python_function
from ..tracer.ufuncs import UFUNCS, copy
from .cumulative import accumulated
from .reductions import ABSENT, array_of, as_dtype, axes_over, given, reduced_into, summed_in, widened
from .repeat import at_places
from .shapes import moveaxis, reshape
from .writing import at


def _logsumexp(a: Any, axis: Axis, keepdims: bool, where: bool) -> Any:
    """``np.logaddexp.reduce``, relative to the maximum, through which no derivative flows: it would cancel."""
    a = as_dtype(a, np.logaddexp.reduce(np.zeros(1, a.dtype)).dtype)
    top = np.max(a, axis=axis, keepdims=True, initial=-np.inf)
    top = apply(stop_gradient, [np.where(np.isfinite(top), top, 0)])
    total = np.sum(np.exp(a - top), axis=axis, keepdims=keepdims)
    found = np.where(total == 0, -np.inf, np.log(np.where(total == 0, 1, total)))
    return found + (top if keepdims else np.reshape(top, np.shape(shadow_of(found))))


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

SIGNLESS = (np.hypot, np.gcd)  # of one number, they give its absolute value: as if begun with their identity, 0


def _reduce(
    ufunc: Any,
    array: Any,
    axis: Axis = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    _not_python(ufunc, "reduce")
    a = array_of(array, initial, where)
    if (out := _only(out)) is not None:
        dtype = _computed_in(ufunc, a, dtype, out)
        starts = given(initial) or ufunc in REDUCE or ufunc.identity is not None
        if not starts and dtype is not None and not np.can_cast(dtype, shadow_dtype(out)):
            what = f"np.{ufunc.__name__}.reduce into an array of {shadow_dtype(out)}, where the first number is cast"
            raise unsupported(what, "leave out= out, and cast the result by astype")
        return reduced_into(out, _reduce(ufunc, a, axis, dtype, None, keepdims, initial, where))
    masked_or_begun = initial is not ABSENT or where is not True
    if initial is None and (where is not True or not a.size):
        ufunc.reduce(a.shadow, axis, dtype, where=shadow_of(where), initial=None)  # NumPy's own error
    if ufunc not in REDUCE or (masked_or_begun and ufunc in (np.logical_and, np.logical_or, np.logaddexp)):
        return _reduced_step_by_step(ufunc, a, axis, dtype, bool(keepdims), initial, where)
    if dtype is not None:
        ufunc.reduce(np.ones(1, a.dtype), dtype=dtype)  # NumPy's own error
        a = as_dtype(a, np.dtype(dtype))
    options: dict[str, Any] = {} if initial is ABSENT else {"initial": initial}
    if dtype is not None and ufunc in (np.add, np.multiply):
        options["dtype"] = dtype
    return REDUCE[ufunc](a, axis=axis, keepdims=keepdims, where=where, **options)


def _computed_in(ufunc: Any, a: Any, dtype: Any, out: Any) -> Any:
    """The dtype in which NumPy reduces into ``out``; None for ufuncs that ask whether numbers are true."""
    if dtype is not None:
        return dtype
    kinds = ufunc.resolve_dtypes((shadow_dtype(out), a.dtype, None), casting="unsafe", reduction=True)
    return kinds[1] if len(set(kinds)) == 1 else None


def _not_python(ufunc: Any, method: str) -> None:
    """Refuse the methods of ufuncs that ``np.frompyfunc`` made."""
    if python_function(ufunc) is not None:
        raise unsupported(f"{method} of a ufunc created from a Python function", "repeat the function in a loop")


def _primitive(ufunc: Any, method: str, dtype: Any) -> Any:
    """The primitive that the method repeats; NumPy has these methods for ufuncs of two operands and one result only."""
    if ufunc.nin != 2:
        getattr(ufunc, method)(np.zeros(2))  # NumPy's own error
    if ufunc not in UFUNCS or ufunc is np.ldexp or len({dtype, *ufunc.resolve_dtypes((dtype, dtype, None))}) > 1:
        raise unsupported(f"np.{ufunc.__name__}.{method} of a traced value", "write it as a loop")
    return UFUNCS[ufunc]


def _stepped(prim: Any, first: Any, rest: Any, collect: bool, mask: Any = None) -> list[Any]:
    """A scan over the leading axis of ``rest`` from the carry ``first``: its last carry, and all carries if wanted."""
    b = Builder()
    step = Aval(rest.shape[1:], rest.dtype, "array" if rest.ndim > 1 else "scalar")
    carry, operand = b.input(step), b.input(step)
    out = prim(carry, operand)
    if mask is not None:
        out = choose(b.input(Aval(step.shape, np.dtype(bool), step.kind)), out, carry)
    body = b.graph(prim.name, [b.coerce(out, step), *([out] if collect else [])])
    attrs = {"arrays": int(collect), "body": body, "carry": 1, "consts": 0, "length": len(rest), "reverse": False}
    return apply_all(REGISTRY["scan"], [first, rest, *([] if mask is None else [mask])], **attrs)


def _reduced_step_by_step(ufunc: Any, a: Any, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    options = {} if initial is ABSENT else {"initial": shadow_of(initial)}
    like = ufunc.reduce(a.shadow, axis, dtype, None, keepdims, where=shadow_of(where), **options)
    prim, axes = _primitive(ufunc, "reduce", like.dtype), axes_over(a, axis)
    x = moveaxis(as_dtype(a, like.dtype), axes, range(len(axes)))
    rest = tuple(n for k, n in enumerate(a.shape) if k not in axes)
    x = reshape(x, (math.prod(a.shape[k] for k in axes), *rest))
    mask = None
    if where is not True:
        mask = moveaxis(np.broadcast_to(array_of(where, a), a.shape), axes, range(len(axes)))
        mask = reshape(mask, x.shape)
    if initial is ABSENT and ufunc in SIGNLESS and len(x) < 2:
        initial = ufunc.identity
    if not given(initial) and mask is None and len(x):
        start, x = x[0], x[1:]
    else:
        start = initial if given(initial) else ufunc.identity
        start = start if isinstance(start, Tracer) else np.asarray(start).astype(like.dtype)[()]
        start = np.zeros_like(x, shape=rest) + as_dtype(start, like.dtype)
    found = _stepped(prim, start, x, False, mask)[0] if len(x) else copy(start)  # never a view of the operand
    return reshape(found, like.shape) if np.shape(found) != like.shape else found


def _accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    _not_python(ufunc, "accumulate")
    a = array_of(array)
    if (out := _only(out)) is not None:
        dtype = _computed_in(ufunc, a, dtype, out)
        return reduced_into(out, _accumulate(ufunc, a, axis, dtype))
    if a.ndim == 0:
        ufunc.accumulate(a.shadow, axis)  # NumPy's own error
    if ufunc in (np.add, np.multiply):
        dtype = summed_in(ufunc, a, dtype, None)
    like = ufunc.accumulate(a.shadow, axis, dtype)
    if ufunc in ACCUMULATE:
        x = widened(ufunc, a, like.dtype) if ufunc in (np.add, np.multiply) else as_dtype(a, like.dtype)
        return as_dtype(accumulated(ACCUMULATE[ufunc], x, axis), like.dtype)
    prim, k = _primitive(ufunc, "accumulate", like.dtype), axis_of(a, axis)
    x = moveaxis(as_dtype(a, like.dtype), k, 0)
    if len(x) > 1:
        x = np.concatenate([x[:1], _stepped(prim, x[0], x[1:], True)[1]])
    return np.copy(moveaxis(x, 0, k))


def _reduceat(ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    _not_python(ufunc, "reduceat")
    if isinstance(indices, Tracer) and not indices.const:
        raise unsupported("reduceat with traced indices", "use np.add.at, or make the indices plain numbers")
    if (out := _only(out)) is not None:
        dtype = _computed_in(ufunc, array_of(array), dtype, out)
        return reduced_into(out, _reduceat(ufunc, array, indices, axis, dtype))
    starts = np.asarray(shadow_of(indices))
    starts = starts if starts.size else starts.astype(np.intp)
    like = ufunc.reduceat(shadow_of(array), starts, axis, dtype)  # NumPy's own errors
    a = array_of(array)
    k, n = axis_of(a, axis), a.shape[axis]
    if not starts.size:
        return np.zeros_like(a, shape=like.shape, dtype=like.dtype)
    ends = [*starts[1:].tolist(), n]
    pieces = [(start, max(end, start + 1)) for start, end in zip(starts.tolist(), ends, strict=True)]
    if ufunc not in REDUCEAT:
        parts = [np.copy(a[cumulative.along(k, slice(*piece))]) for piece in pieces]
        found = np.stack([_of_run(ufunc, part, k, like.dtype) for part in parts], axis=k)
        return as_dtype(found, like.dtype)
    first, last = pieces[0][0], pieces[-1][1]
    if np.all(np.diff(starts) > 0):
        part = a if (first, last) == (0, n) else a[cumulative.along(k, slice(first, None))]
    else:  # the pieces one after another
        part = at_places(a, np.concatenate([np.arange(*piece) for piece in pieces]), k)
    lengths = [end - start for start, end in pieces]
    numbers = np.repeat(np.arange(starts.size), lengths)
    begins = np.cumsum([0, *lengths[:-1]], dtype=np.int64)
    return apply(REDUCEAT[ufunc], [as_dtype(part, like.dtype), fresh(begins), fresh(numbers)], axis=k)


def _of_run(ufunc: Any, part: Any, axis: int, dtype: Any) -> Any:
    """The reduction of one run; of a run of one entry, the entry."""
    if part.shape[axis] == 1:
        return np.squeeze(part, axis)
    options: dict[str, Any] = {"initial": None} if ufunc in SIGNLESS else {}
    part = np.copy(moveaxis(part, axis, part.ndim - 1), order="C")  # NumPy's loop runs along the axis
    return _reduce(ufunc, part, part.ndim - 1, dtype, **options)


def _only(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _outer(ufunc: Any, a: Any, b: Any, **options: Any) -> Any:
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise unsupported(f"np.{ufunc.__name__}.outer of a traced value", "call the ufunc itself")
    x, y = lifted(a, b)
    return ufunc(np.reshape(x, (*x.shape, *(1,) * y.ndim)), y, **options)


UFUNC_METHODS.update({"reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat, "outer": _outer, "at": at})
