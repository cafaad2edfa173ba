"""Calls with the arrays of other packages: the arrays among the arguments, and a function of these only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..api.at_a_point import Vjp
from ..compiler.compiled import Compiled
from ..errors import UnsupportedError
from ..tracer.trace import stateful
from ..tracer.tree import Spec, flatten, unflatten


def package(name: str, door: str) -> Any:
    """The package of this name, which the function ``door`` needs; UnsupportedError if it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        raise UnsupportedError(
            f"{door} needs the package {name}, which is not installed", remedy=f"python -m pip install {name}"
        ) from None


@dataclass(frozen=True)
class Frame:
    """Where the arrays stand among the arguments of a call, and of which containers these are made."""

    spec: Spec
    places: tuple[int, ...]

    @classmethod
    def of(cls, args: Any, kwargs: Any, is_array: Callable[[Any], bool]) -> tuple[Frame, list[Any], tuple[Any, ...]]:
        """The frame of a call, its arrays, and its other leaves, with None in the places of arrays."""
        leaves, spec = flatten((args, kwargs))
        places = tuple(i for i, x in enumerate(leaves) if is_array(x))
        arrays = [leaves[i] for i in places]
        for i in places:
            leaves[i] = None
        return cls(spec, places), arrays, tuple(leaves)

    def call(self, function: Callable[..., Any], arrays: Sequence[Any], others: Sequence[Any]) -> Any:
        """Call a function with these arrays and other leaves."""
        leaves = list(others)
        for i, x in zip(self.places, arrays, strict=True):
            leaves[i] = x
        args, kwargs = unflatten(self.spec, leaves)
        return function(*args, **kwargs)


class Restricted:
    """A function of the moving arrays of a call, which are differentiated, of the still ones, and of other leaves."""

    def __init__(self, function: Callable[..., Any], frame: Frame, moving: Sequence[int]) -> None:
        self._function, self._frame, self.moving = function, frame, tuple(moving)
        self.vjp = Compiled(self, Vjp("vjp", argnums=(0,)))

    def parted(self, arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The moving and the still arrays of a call."""
        still = [x for i, x in enumerate(arrays) if i not in self.moving]
        return [arrays[i] for i in self.moving], still

    def __call__(self, moving: Sequence[Any], still: Sequence[Any], others: Sequence[Any]) -> Any:
        given, rest = dict(zip(self.moving, moving, strict=True)), iter(still)
        arrays = [given[i] if i in given else next(rest) for i in range(len(self._frame.places))]
        return self._frame.call(self._function, arrays, others)

    def pulled(self, moving: Sequence[Any], still: Sequence[Any], others: Sequence[Any], cts: Sequence[Any]) -> Any:
        """The cotangents of the moving arrays, for cotangents of those results that have one."""
        out, pullback = self.vjp(moving, still, others)
        return pullback(seeded(out, cts))[0]


def refuse_draws(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], why: str) -> None:
    """UnsupportedError if a compiled function draws random numbers for these arguments."""
    if any(stateful(c.payload) is not None for c in compiled.at(*args, **kwargs).recorded.captures):
        raise UnsupportedError(
            f"the function draws random numbers, and {why}", remedy="draw before the call, and pass the numbers"
        )


def seeded(out: Any, cts: Sequence[Any]) -> Any:
    """A tree of cotangents for these results: those given, in order, for floating-point ones, and zeros."""
    results, spec = flatten(out)
    rest = iter(cts)
    return unflatten(spec, [next(rest) if is_inexact(x) else 0.0 for x in results])


def is_inexact(x: Any) -> bool:
    """Whether a result has a cotangent."""
    return isinstance(x, (float, complex)) or (hasattr(x, "dtype") and x.dtype.kind in "fc")
