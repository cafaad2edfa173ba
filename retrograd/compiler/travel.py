"""travel: how compiled functions are pickled and copied.

Pickle names a function by its module and name. A decorated function's name means the compiled object, which is then
pickled as that name, too; any other is pickled as the function and its transform. cloudpickle writes functions of
a script by value, and so are compiled ones there. Compiled code is not pickled: the other process compiles again.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .compilation import INSPECTORS

Parts = tuple[Any, ...]


def reduced(x: Any, pickler: dict[str, Any]) -> str | Parts:
    """How an object with ``parts`` is pickled, by the code of this module: by name, or as the parts say."""
    if "cloudpickle" in pickler.get("__name__", "").split(".") and _goes_by_value(x, pickler):
        return x.parts()  # type: ignore[no-any-return]  # by its own declaration
    name = getattr(x, "__qualname__", None)
    if name is not None and named(x, name) is x:
        return str(name)
    make, args, *state = x.parts()
    return make, tuple(map(_visible, args)), *state


def copied(x: Any, memo: dict[int, Any]) -> Any:
    """The object itself, as functions are; a new one where the function belongs to an object that is copied."""
    make, args, *state = x.parts()
    found = [copy.deepcopy(a, memo) for a in args]
    if all(new is old for new, old in zip(found, args, strict=True)):
        return x
    made = make(*found)
    for attributes in state:
        vars(made).update(copy.deepcopy(attributes, memo))
    return made


class Travelling:
    """A base for objects that stand for a function; they are pickled by name, or as ``parts`` says."""

    def parts(self) -> Parts:
        """A callable, its arguments, and perhaps a state, which make an equal object."""
        raise NotImplementedError

    def __reduce__(self) -> str | Parts:
        return reduced(self, sys._getframe(1).f_globals)

    def __copy__(self) -> Any:
        return self  # as functions are

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copied(self, memo)


INSPECTORS |= {"reduced": reduced, "copied": copied}


def named(x: Any, name: str) -> Any:
    """What the module of an object has by this name; None if it has nothing."""
    module = sys.modules.get(getattr(x, "__module__", None) or "")
    try:
        return functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return None


def _goes_by_value(x: Any, cloudpickle: dict[str, Any]) -> bool:
    """Whether cloudpickle writes what belongs to the module of an object by value."""
    module = str(getattr(x, "__module__", None))
    registered = [f"{name}." for name in cloudpickle.get("_PICKLE_BY_VALUE_MODULES", ())]
    return module == "__main__" or module not in sys.modules or f"{module}.".startswith(tuple(registered))


def _visible(x: Any) -> Any:
    """A function, or what stands for it in a pickle, if another object took its name by decorating it."""
    if not isinstance(x, FunctionType):
        return x
    outer = named(x, x.__qualname__)
    depth, inner = 0, outer
    while inner is not x and hasattr(inner, "__wrapped__"):
        depth, inner = depth + 1, inner.__wrapped__
    return Wrapped(outer, depth) if depth and inner is x else x


class Wrapped:
    """In a pickle, a function that was decorated so many times: what has its name now is unpickled, and unwrapped."""

    def __init__(self, outer: Any, depth: int) -> None:
        self.outer, self.depth = outer, depth

    def __reduce__(self) -> Parts:
        return unwrapped, (self.outer, self.depth)


def unwrapped(x: Any, depth: int) -> Callable[..., Any]:
    """The function behind so many decorations."""
    for _ in range(depth):
        x = x.__wrapped__
    found: Callable[..., Any] = x
    return found
