"""Choices between values: where, select, piecewise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..ops import elementwise as ops
from ..tracer.array import Tracer, settled, shadow_of, tracers_in, wrap
from ..tracer.creation import fresh
from ..tracer.interception import substitutes
from ..tracer.operands import as_array, astype, lifted, record, shadow_dtype
from ..tracer.table import implements
from ..tracer.trace import owner
from ..tracer.ufuncs import as_operand
from ..where import user_site


@implements(np.where)
def where(condition: Any, /, *choices: Any) -> Any:
    operands = [as_operand(x) for x in (condition, *choices)]
    shadow = np.where(*map(shadow_of, operands))
    if settled(operands):
        trace, site = owner(tracers_in(operands)), user_site()[0]
        return wrap(trace, None, shadow, site) if choices else tuple(wrap(trace, None, i, site) for i in shadow)
    if not choices:
        return np.nonzero(*operands)
    if shadow_dtype(operands[0]) != np.bool_:
        operands[0] = np.not_equal(operands[0], 0)
    if shadow.dtype.kind in "iu":  # NumPy casts also a number beyond the dtype
        operands[1:] = [np.asarray(x).astype(shadow.dtype)[()] if type(x) is int else x for x in operands[1:]]
    return record(ops.where, operands, (np.dtype(bool), shadow.dtype, shadow.dtype), shadow)


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    default = as_operand(default)
    condlist, choicelist = ([as_operand(x) for x in given] for given in (condlist, choicelist))
    like = np.select([shadow_of(c) for c in condlist], [shadow_of(c) for c in choicelist], shadow_of(default))
    chosen = _cast(default, like.dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = np.where(condition, _cast(choice, like.dtype), chosen)
    return np.broadcast_to(chosen, like.shape).copy()


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    x = as_operand(x)
    return x if shadow_dtype(x) == dtype and not isinstance(x, (int, float, complex)) else astype(x, dtype)


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Each function sees all of ``x``; a point of its piece stands for the elements outside the piece."""
    (x,) = (as_array(v) for v in lifted(x)) if isinstance(x, Tracer) else (as_operand(x),)
    conditions = _conditions(condlist, np.ndim(shadow_of(x)))
    if len(conditions) == len(funclist) - 1:
        rest = conditions[0]
        for condition in conditions[1:]:
            rest = np.logical_or(rest, condition)
        conditions.append(np.logical_not(rest))
    elif len(conditions) != len(funclist):
        n = len(conditions)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    y = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        inside = np.asarray(shadow_of(x))[np.asarray(shadow_of(condition))]
        if callable(function):
            piece = np.where(condition, x, inside.flat[0]) if inside.size else x
            function = function(piece, *args, **kw)  # noqa: PLW2901 - as NumPy does, a value from here on
        elif isinstance(shadow_of(function), (int, float, complex)):
            np.empty(1, y.dtype)[0] = shadow_of(function)  # NumPy's own error
        y = np.where(condition, _cast(function, y.dtype), y)
    return y


def _conditions(condlist: Any, ndim: int) -> list[Any]:
    """One condition per piece; a single condition may be given without a list."""
    shadow = [shadow_of(c) for c in condlist] if isinstance(condlist, (list, tuple)) else shadow_of(condlist)
    single = np.isscalar(shadow) or (not isinstance(shadow[0], (list, np.ndarray)) and ndim != 0)
    found = [as_operand(c) for c in ([condlist] if single else condlist)]
    return [c if shadow_dtype(c) == np.bool_ else np.not_equal(c, 0) for c in found]


@substitutes("numpy")
def _of_numpy(numpy: ModuleType) -> Mapping[str, Any]:
    """NumPy dispatches on some of their arguments only, and never on the results of functions."""
    return {"select": _here(select), "piecewise": _here(piecewise)}


def _here(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        made = function(*args, **options)
        return made if isinstance(made, Tracer) else fresh(made)

    return call
