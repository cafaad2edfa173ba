"""Compilations that calls such as ``rg.vjp(f, x)`` keep with the function that they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..where import FOREIGN
from .compiled import Compiled
from .transform import Transform

NAME = "__retrograd__"  # in the dictionary of a function: what is kept with it
VALUES = (np.ndarray, np.generic, np.dtype, int, float, complex, str, bytes, type(None), slice, type(Ellipsis))
Parts = tuple[Any, ...]


class Kept:
    """The compilations of one function, made of these parts; copies and pickles have none."""

    def __init__(self, function: FunctionType | None = None) -> None:
        self.function = function
        self.parts = None if function is None else _parts(function)
        self.made: dict[Transform, Compiled] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, ()


def kept_with(function: Callable[..., Any], transform: Transform) -> Compiled:
    """The function under a transform, compiled once for as long as it lives, if nothing that it captures hides changes.

    Bindings follow names and arrays. A list, a dict or an object may change without a name being bound anew, so that
    a function which captures one is recorded at each call.
    """
    if not isinstance(function, FunctionType) or not _follows(function, set()):
        return Compiled(function, transform)
    kept = function.__dict__.get(NAME)
    if not isinstance(kept, Kept) or kept.function is not function or kept.parts != _parts(function):
        kept = function.__dict__[NAME] = Kept(function)  # a wrapper may have taken over the names of another function
    found = kept.made.get(transform)
    if found is None:
        found = kept.made[transform] = Compiled(function, transform)
    return found


def _parts(function: FunctionType) -> Parts:
    """The code and the defaults of a function, by identity."""
    keywords = function.__kwdefaults__ or {}
    defaults = (*(function.__defaults__ or ()), *keywords.values())
    return (id(function.__code__), *map(id, defaults), *keywords)


def _follows(value: Any, seen: set[int]) -> bool:
    """Whether bindings see every change of a captured value."""
    if id(value) in seen or isinstance(value, VALUES):
        return True
    seen.add(id(value))
    if isinstance(value, tuple):
        return type(value) is tuple and all(_follows(x, seen) for x in value)
    if isinstance(value, Compiled):
        return _follows(value.__wrapped__, seen)
    if isinstance(value, FunctionType):
        return _is_foreign(value.__module__) or all(_follows(x, seen) for x in _captured(value))
    if isinstance(value, ModuleType):
        return _is_foreign(value.__name__)
    return isinstance(value, (BuiltinFunctionType, np.ufunc)) or (
        isinstance(value, type) and _is_foreign(value.__module__)
    )


def _captured(function: FunctionType) -> Iterator[Any]:
    """The values of the names that the code of a function, and of those inside it, may read."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_foreign(module: str | None) -> bool:
    return (module or "").partition(".")[0] in FOREIGN
