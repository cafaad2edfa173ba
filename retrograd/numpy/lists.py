"""Functions of lists: NumPy looks for traced values among its arguments, but not in lists, which it turns into arrays.

So inside a trace these functions first turn lists with traced values, nested ones too, into traced arrays. So they do
with all sequences that NumPy takes apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..tracer.array import Tracer
from ..tracer.creation import holds_tracers
from ..tracer.interception import PROVIDERS, substitutes
from ..tracer.operators import reflecting
from ..tracer.sequences import indexed, is_sequence, nested
from ..tracer.table import FUNCTIONS, METHODS
from .creation import array

LOOKING = frozenset({"ix_"})  # functions that look into lists themselves
BY_INDEX = frozenset({"choose", "concat", "concatenate", "lexsort"})  # which ask for the length and for each element

# Functions of lists of arrays.
SEVERAL = frozenset(
    {"choose", "column_stack", "concat", "concatenate", "dstack", "hstack", "lexsort", "multi_dot", "stack", "vstack"}
)


class OfLists:
    """A function of arrays that accepts lists with traced values; for a ufunc, it has its methods too."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not _dispatches(args):
            others = {name: _array(x) for name, x in options.items() if name != "out"}  # which may be a tuple
            args, options = (*map(_array, args),), options | others
        return self.function(*args, **options)

    def reduce(self, *args: Any, **options: Any) -> Any:
        return self.function.reduce(*_arrays(args), **options)

    def reduceat(self, *args: Any, **options: Any) -> Any:
        return self.function.reduceat(*_arrays(args), **options)

    def accumulate(self, *args: Any, **options: Any) -> Any:
        return self.function.accumulate(*_arrays(args), **options)

    def outer(self, *args: Any, **options: Any) -> Any:
        return self.function.outer(*_arrays(args), **options)


class OfSeveral:
    """A function of lists of arrays that accepts lists with traced values for these."""

    def __init__(self, function: Any, by_index: bool) -> None:
        self.function, self.by_index = function, by_index

    def __call__(self, *args: Any, **options: Any) -> Any:
        options = {name: x if name == "out" else self._several(x) for name, x in options.items()}
        return self.function(*map(self._several, args), **options)

    def _several(self, x: Any) -> Any:
        if not is_sequence(type(x)):
            return x
        parts = map(_array, indexed(x) if self.by_index else nested(x))
        return tuple(parts) if isinstance(x, tuple) else list(parts)


class OfBlocks:
    """``np.block``, which takes lists apart, and makes arrays of other sequences."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, arrays: Any) -> Any:
        return self.function(_blocks(arrays))


def _blocks(x: Any) -> Any:
    return [_blocks(e) for e in x] if isinstance(x, list) else x if isinstance(x, tuple) else _array(x)


def _dispatches(args: Sequence[Any]) -> bool:
    """Whether NumPy dispatches a call itself, since an argument depends on those of the traced function."""
    return any(type(x) is Tracer and not x.const for x in args)


def _arrays(args: Sequence[Any]) -> Sequence[Any]:
    """The arguments with arrays in place of lists, unless NumPy dispatches the call."""
    return args if _dispatches(args) else [*map(_array, args)]


def _array(x: Any) -> Any:
    """A traced array in place of a sequence that holds traced values; anything else as it is."""
    return array(parts) if holds_tracers(parts := nested(x), const=False) else x


def _over(name: str, function: Any) -> Callable[..., Any]:
    if name in SEVERAL:
        return OfSeveral(function, name in BY_INDEX)
    return OfBlocks(function) if name == "block" else OfLists(function)


def of_lists(module: ModuleType) -> Mapping[str, Callable[..., Any]]:
    """The functions of a module that are traced, but have no substitute of their own, with lists among arguments."""
    others = {name for of in PROVIDERS[module.__name__] if of is not of_lists for name in of(module)}
    return {
        name: _over(name, function)
        for name, function in vars(module).items()
        if (isinstance(function, np.ufunc) or (callable(function) and function in FUNCTIONS))
        and name not in LOOKING
        and name not in others
    }


for _name in ("numpy", "numpy.linalg", "numpy.fft", "numpy.lib.stride_tricks"):
    substitutes(_name)(of_lists)


def _or_repeated(multiply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Multiply; a list or a string is repeated instead, by a number that must be known."""

    def call(self: Any, other: Any) -> Any:
        if isinstance(other, (list, tuple, str, bytes)) and not isinstance(self.shadow, np.ndarray):
            return other * self.__index__()
        return multiply(self, other)

    return call


_times, _times_reflected = reflecting("mul", np.multiply, operator.mul)
METHODS.update({"__mul__": _or_repeated(_times), "__rmul__": _or_repeated(_times_reflected)})
