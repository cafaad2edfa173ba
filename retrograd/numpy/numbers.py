"""Functions of single numbers that are not ufuncs: rounding, clipping, sinc, nan_to_num, unwrap."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import bessel, extrema, rounding
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.creation import fresh
from ..tracer.operands import as_array, astype, into, shadow_dtype
from ..tracer.table import METHODS, implements
from ..tracer.trace import unsupported
from ..tracer.ufuncs import as_operand, assign, copy
from .reductions import as_dtype

ABSENT: Any = np._NoValue


def _applied(prim: Any, x: Any, shadow: Any, **attrs: Any) -> Any:
    """Record a primitive of one operand, after a cast to the dtype of the result."""
    if not isinstance(x, Tracer):
        return shadow
    return apply(prim, [x if x.dtype == shadow.dtype else astype(x, shadow.dtype)], **attrs)


@implements(np.round, np.around)
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    digits = decimals.__index__()
    return into(out, _applied(rounding.round_, a, np.round(shadow_of(a), digits), decimals=digits))


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return np.trunc(x, out=out)


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = ABSENT,
    a_max: Any = ABSENT,
    out: Any = None,
    *,
    min: Any = ABSENT,
    max: Any = ABSENT,
    **kwargs: Any,
) -> Any:
    if kwargs:
        raise unsupported(f"np.clip with {', '.join(kwargs)}", "cast with astype before or after")
    named = {"a_min": a_min, "a_max": a_max, "min": min, "max": max}
    bounds: dict[str, Any] = {name: 0 for name, x in named.items() if x is not ABSENT}
    np.clip(0, **bounds)  # NumPy's own error for a wrong choice
    given = [x if y is ABSENT else y for x, y in ((a_min, min), (a_max, max))]
    low, high = (None if x is ABSENT or x is None else as_operand(x) for x in given)
    shadow = np.clip(shadow_of(a), shadow_of(low), shadow_of(high))
    low, high = (_in_range(x, shadow.dtype) for x in (low, high))
    if all(isinstance(x, (int, float, np.generic)) and x == x for x in (low, high)):  # noqa: PLR0124 - not nan
        low, high = (shadow.dtype.type(x).item() for x in (low, high))
        return into(out, _applied(extrema.clip, a, shadow, low=low, high=high))
    if low is not None and high is not None:  # NumPy compares in the dtype of the result
        a, low, high = (as_dtype(as_operand(x), shadow.dtype) for x in (a, low, high))
    result = a if low is None else np.maximum(a, low)
    result = result if high is None else np.minimum(result, high)
    return into(out, np.positive(a) if low is high is None else as_dtype(result, shadow.dtype))


def _in_range(bound: Any, dtype: np.dtype[Any]) -> Any:
    """A bound of ``np.clip``: an integer of Python's beyond the dtype is its last number."""
    if type(bound) is not int or dtype.kind not in "iu":
        return bound
    info = np.iinfo(dtype)
    return max(info.min, min(bound, info.max))


@implements(np.sinc)
def sinc(x: Any) -> Any:
    return _applied(bessel.sinc, x, np.sinc(shadow_of(x)))


@implements(np.i0)
def i0(x: Any) -> Any:
    return _applied(bessel.i0, x, np.i0(shadow_of(x)))


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    example = shadow_of(x)
    if isinstance(example, np.ndarray):
        np.nan_to_num(example, True, *map(shadow_of, (nan, posinf, neginf)))  # NumPy's own error
    elif not copy:
        np.array(0.0, copy=False)  # NumPy's own error
    new = _finite(x, nan, posinf, neginf)
    new = new if copy else assign(x, new)
    return new if np.ndim(example) else new[()]


def _finite(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    dtype = shadow_dtype(x)
    if dtype.kind == "c":
        made = fresh(np.zeros(np.shape(shadow_of(x)), dtype))
        made.real[...] = _finite(np.real(x), nan, posinf, neginf)
        made.imag[...] = _finite(np.imag(x), nan, posinf, neginf)
        return made if made.ndim else made[()]
    if dtype.kind != "f":
        return copy(as_array(x))
    if all(isinstance(v, (int, float, np.generic, type(None))) for v in (nan, posinf, neginf)):
        attrs = {"nan": nan, "posinf": posinf, "neginf": neginf}
        numbers = {k: None if v is None else dtype.type(v).item() for k, v in attrs.items()}
        return _applied(rounding.nan_to_num, x, np.nan_to_num(shadow_of(x), **attrs), **numbers)
    posinf, neginf = (
        limit if v is None else v for v, limit in ((posinf, np.finfo(dtype).max), (neginf, np.finfo(dtype).min))
    )
    kept = np.where(x == -np.inf, astype(neginf, dtype), x)
    return np.where(np.isnan(x), astype(nan, dtype), np.where(x == np.inf, astype(posinf, dtype), kept))


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    dd = np.diff(p, axis=axis)
    discont = period / 2 if discont is None else discont
    dtype = np.result_type(shadow_of(dd), shadow_of(period))
    integer = dtype.kind in "iu"
    high, ambiguous = (period // 2, period % 2 == 0) if integer else (period / 2, True)
    wrapped = np.mod(dd + high, period) - high
    if ambiguous:
        wrapped = np.where((wrapped == -high) & (dd > 0), wrapped + period, wrapped)  # high, with wrapped's derivative
    steps = np.where(np.abs(dd) < discont, 0, wrapped - dd)
    first = tuple(slice(None, 1) if k == axis % np.ndim(shadow_of(p)) else slice(None) for k in range(p.ndim))
    rest = tuple(slice(1, None) if k == axis % np.ndim(shadow_of(p)) else slice(None) for k in range(p.ndim))
    return np.concatenate([p[first], p[rest] + np.cumsum(steps, axis)], axis, dtype=dtype)


METHODS.update(
    {
        "__divmod__": lambda self, other: (self // other, self % other),
        "__rdivmod__": lambda self, other: (other // self, other % self),
    }
)
