"""The table of NumPy functions that are traced by compositions, and what all of them use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import Aval
from ...ops.elementwise import cast
from ..array import Tracer, apply, shadow_of
from ..trace import unsupported

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
Axis = Any


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function stands for these NumPy functions when an argument is traced."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.update((f, handler) for f in functions)
        return handler

    return register


def axes_of(x: Any, axis: Axis) -> tuple[int, ...]:
    """Axes as a tuple of non-negative ints; None means all."""
    n = np.ndim(shadow_of(x))
    if axis is None:
        return tuple(range(n))
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, n))


def only_default(name: str, **given: Any) -> None:
    for option, (value, default) in given.items():
        if value is not default:
            raise unsupported(f"np.{name} with {option}=", f"leave {option}= out")


def truth(value: Any) -> bool:
    return bool(value) if value is not np._NoValue else False


def shadow_dtype(x: Any) -> np.dtype[Any]:
    return np.asarray(shadow_of(x)).dtype


def as_array(x: Any) -> Any:
    """A Python number as a 0-d array, as NumPy functions see it."""
    if isinstance(x, Tracer) and not isinstance(x.shadow, (np.ndarray, np.generic)):
        return apply(cast, [x], aval=Aval((), x.dtype))
    return x
