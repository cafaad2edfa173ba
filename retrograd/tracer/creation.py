"""Creation functions inside a trace: ``np.zeros(3)`` called by the user's code gives a traced, mutable array.

NumPy never hands such calls over; ``interception`` says how these functions take their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .array import Tracer, enter, shadow_of, wrap
from .concatenators import Concatenator
from .interception import substitutes
from .trace import CURRENT, Trace, traceable, unsupported
from .where import user_site


def active_trace() -> Trace:
    """The trace that creation calls belong to."""
    trace = CURRENT.get()
    assert trace is not None
    return trace


def fresh(value: Any) -> Any:
    """A traced array whose contents are plain numbers so far; an array of strings or dates stays as it is."""
    if isinstance(value, tuple):  # np.linspace(..., retstep=True)
        return tuple(map(fresh, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "SUMm":
        return value
    traceable(value)
    return wrap(active_trace(), None, value, user_site(2)[0])


def _numbers_only(name: str) -> Callable[..., Any]:
    original = getattr(np, name)

    def create(*args: Any, **options: Any) -> Any:
        if holds_tracers((*args, *options.values()), const=False):
            raise unsupported(f"np.{name} of a traced value", "make the array of plain numbers, then scale or shift it")
        return fresh(original(*map(shadow_of, args), **{key: shadow_of(x) for key, x in options.items()}))

    return create


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """``np.full``, whose value may be traced."""
    shadow = shadow_of(fill_value)
    made = fresh(np.full(shape, shadow, dtype, "F" if order == "F" else "C"))
    if isinstance(fill_value, Tracer) and not fill_value.const:
        made[...] = fill_value
    return made


def empty(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """``np.empty``, filled with zeros so that a trace never depends on stale memory."""
    return fresh(np.zeros(shape, dtype, order))


def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """``np.array`` of numbers, arrays and tracers in nested lists."""
    if isinstance(obj, Tracer):
        made = np.copy(obj) if copy or not isinstance(obj.shadow, np.ndarray) else obj
    elif holds_tracers(obj):
        made = np.stack([x if isinstance(x, Tracer) else array(x) for x in obj])
    elif isinstance(obj, np.ndarray) and not copy:
        return np.asarray(obj, dtype)
    else:
        return fresh(np.array(obj, dtype, order=order, ndmin=ndmin))
    if dtype is not None and made.dtype != traceable(np.empty(0, dtype)).dtype:
        made = made.astype(dtype)
    return np.reshape(made, (1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def asarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    """``np.asarray``: an array, traced or not, is returned as it is."""
    return array(a, dtype, copy=False)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """``np.take``, which NumPy hands over only if the array is traced, but not if the indices are."""
    if not isinstance(a, Tracer) and holds_tracers([indices], const=False):
        a = enter(active_trace(), np.asarray(a))
    return np.take(a, indices, axis, out, mode)  # type: ignore[call-overload]  # of all kinds of arguments


def holds_tracers(obj: Any, const: bool = True) -> bool:
    """Whether nested lists hold tracers; unless ``const``, only those whose value is not known count."""
    if not isinstance(obj, (list, tuple)):
        return False
    return any(const or not x.const if isinstance(x, Tracer) else holds_tracers(x, const) for x in obj)


def isscalar(element: Any) -> bool:
    """``np.isscalar``, which NumPy does not hand over either."""
    return bool(np.isscalar(shadow_of(element)))


@substitutes("numpy")
def _of_numpy(numpy: ModuleType) -> Mapping[str, Any]:
    return {
        "isscalar": isscalar,
        "array": array,
        "asarray": asarray,
        "asanyarray": asarray,
        "full": full,
        "empty": empty,
        "take": take,
        "r_": Concatenator(np.r_, columns=False, fresh=fresh),
        "c_": Concatenator(np.c_, columns=True, fresh=fresh),
        **{
            name: _numbers_only(name)
            for name in ("zeros", "ones", "arange", "linspace", "eye", "identity", "tri", "logspace")
        },
    }
