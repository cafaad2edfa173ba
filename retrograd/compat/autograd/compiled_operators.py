"""Operators: derivatives with autograd's call signatures, one compiled object per function and options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...api.gradients import Gradient
from ...compiler.compiled import Compiled
from ...compiler.composed import Composed
from ...compiler.signature import Call, name_of
from ...errors import ArgnumsError
from ...tracer.array import Tracer, shadow_of

Argnum = int | Sequence[int]
Chosen = int | tuple[int, ...]
Function = Callable[..., Any]


def chosen(argnum: Any) -> Chosen:
    """An ``argnum`` as retrograd takes it: a position, or a tuple of them. ArgnumsError for anything else."""
    many = tuple(argnum) if isinstance(argnum, (tuple, list)) else (argnum,)
    if any(isinstance(k, bool) or not isinstance(k, (int, np.integer)) for k in many):
        raise ArgnumsError(
            f"argnum is {argnum!r}",
            remedy="give a position from 0, or a list of positions; for a name, use grad_named(f, name)",
        )
    if len(set(many)) < len(many):
        raise ArgnumsError(f"argnum is {argnum!r}, which names an argument twice", remedy="name each position once")
    return tuple(map(int, many)) if isinstance(argnum, (tuple, list)) else int(argnum)


def positions(argnum: Chosen) -> tuple[int, ...]:
    """The chosen positions as a tuple, also where there is one."""
    return argnum if isinstance(argnum, tuple) else (argnum,)


class Operator(Compiled):
    """A derivative of a function, compiled. Integers among the differentiated arguments become floats.

    Others are traced from the first call on, where that can be: losses are written as ``f(params, step)``.
    """

    counts = True

    def __init__(self, function: Function, transform: Any) -> None:
        super().__init__(function, transform)
        self._chosen = positions(transform.argnums)
        label(self, transform.label, function, transform.argnums)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*with_floats(args, self._chosen), **kwargs)

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return super()._take(with_floats(args, self._chosen), kwargs)


def label(made: Any, operator: str, function: Function, argnum: Chosen) -> Any:
    """What an operator made, with a name such as ``grad_of_f_wrt_argnum_0``."""
    made.__name__ = f"{operator}_of_{getattr(function, '__name__', 'function')}_wrt_argnum_{argnum}"
    made.__doc__ = f"The {operator} of {getattr(function, '__name__', 'a function')} by argument {argnum}."
    return made


def with_floats(args: tuple[Any, ...], at: Sequence[int]) -> tuple[Any, ...]:
    """The arguments, with floats for the integers at these positions."""
    made = list(args)
    for k in at:
        if -len(made) <= k < len(made):
            made[k] = _floats(made[k], outside=True)
    return tuple(made)


def _floats(x: Any, outside: bool) -> Any:
    """A number or an array as floats if it is of integers; inside of containers Python's ints stay, as counts do."""
    if type(x) in (list, tuple):
        return type(x)(_floats(item, False) for item in x)
    if type(x) is dict:
        return {key: _floats(item, False) for key, item in x.items()}
    if isinstance(x, Tracer):
        return np.multiply(x, 1.0) if np.asarray(shadow_of(x)).dtype.kind in "iu" else x
    if isinstance(x, (np.ndarray, np.integer)):
        return x.astype(float) if x.dtype.kind in "iu" else x
    return float(x) if outside and type(x) is int else x


@dataclass(frozen=True)
class Combined(Composed):
    """An operator that is composed of others: ``make(argnums, f)`` is recorded."""

    argnums: Chosen = 0

    @classmethod
    def of(cls, name: str, make: Callable[[Chosen, Function], Function], argnums: Chosen) -> Combined:
        """The operator of this name."""
        return cls(name, make=make, options=(argnums,), argnums=argnums)


@dataclass(frozen=True)
class GradientOf(Gradient):
    """The gradient of ``make(f)``, which is a number made of the results of ``f``."""

    make: Callable[[Function], Function] = lambda function: function

    def build(self, function: Function) -> Function:
        built = self.make(function)
        built.__name__ = f"{name_of(function)}_{self.label}"
        return built
