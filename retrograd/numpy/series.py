"""``numpy.polynomial``: its functions of power, Chebyshev, Legendre, Hermite and Laguerre series, and its classes.

They are plain Python over NumPy, but NumPy's own code makes its arrays by names that no trace sees. So a traced call
runs NumPy's code over a namespace in which these names mean the same as in the user's code.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial, polyutils

from ..tracer.array import Tracer, tracers_in
from ..tracer.interception import PATCHERS, PROVIDERS, Patcher, substitutes
from ..tracer.outside import trace_here
from ..tracer.sequences import listed
from ..tracer.table import FUNCTIONS
from ..tracer.tree import flatten

Function = Callable[..., Any]

MODULES = (polynomial, chebyshev, legendre, hermite, hermite_e, laguerre)
CLASSES = (
    polynomial.Polynomial,
    chebyshev.Chebyshev,
    legendre.Legendre,
    hermite.Hermite,
    hermite_e.HermiteE,
    laguerre.Laguerre,
)
SHARED = ("as_series", "mapdomain")  # what the methods of the classes call of polyutils


class Renamed:
    """A module in which some names mean something else."""

    def __init__(self, module: Any, own: Mapping[str, Any]) -> None:
        self._module, self._own = module, own

    def __getattr__(self, name: str) -> Any:
        return self._own[name] if name in self._own else getattr(self._module, name)


class _AnyArray(type):
    """The type of a class of which traced arrays are instances, too."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x.shadow if isinstance(x, Tracer) else x, np.ndarray)


class Array(metaclass=_AnyArray):
    """What NumPy's code compares with in place of ``np.ndarray``."""


def _common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty(0, a.dtype) for a in arrays))


@functools.cache
def _numpy() -> Renamed:
    """NumPy as the user's code sees it inside a trace; types stay, for comparisons."""
    found = {name: item for provider in PROVIDERS["numpy"] for name, item in provider(np).items()}
    own = {name: item for name, item in found.items() if not isinstance(getattr(np, name), type)}
    return Renamed(np, {**own, "common_type": _common_type, "ndarray": Array})


@functools.cache
def _rewritten(module: ModuleType) -> dict[str, Any]:
    """The module's names, with its functions over other names of NumPy and of each other."""
    scope = {**vars(module), "np": _numpy()}
    if module is not polyutils:
        scope["pu"] = Renamed(polyutils, _rewritten(polyutils))
    for name, item in vars(module).items():
        plain = inspect.unwrap(item) if callable(item) else item
        if isinstance(plain, FunctionType) and plain.__module__ == module.__name__:
            copied = FunctionType(plain.__code__, scope, name, plain.__defaults__, plain.__closure__)
            copied.__kwdefaults__ = plain.__kwdefaults__
            scope[name] = copied
    return scope


def _follower(module: ModuleType, name: str) -> Function:
    """NumPy's function for plain arguments; its code over a trace's names if an argument is traced."""
    original = vars(module)[name]

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        if trace_here() is None or not tracers_in(flatten((listed(args), options))[0]):
            return original(*args, **options)
        return _rewritten(module)[name](*args, **options)

    return call


def _functions(module: ModuleType) -> dict[str, Function]:
    return {
        name: _follower(module, name)
        for name in getattr(module, "__all__", ())
        if isinstance(inspect.unwrap(vars(module)[name]) if callable(vars(module)[name]) else None, FunctionType)
    }


FOLLOWED = {module.__name__: _functions(module) for module in MODULES}
for _module in MODULES:
    FUNCTIONS.update({vars(_module)[name]: call for name, call in FOLLOWED[_module.__name__].items()})

    @substitutes(_module.__name__)
    def _of_module(module: ModuleType) -> Mapping[str, Any]:
        return FOLLOWED[module.__name__]


class Series(Patcher):
    """While some thread traces, the classes of series compute with functions that take traced coefficients."""

    def __init__(self) -> None:
        shared = [(polyutils, name, vars(polyutils)[name], _follower(polyutils, name)) for name in SHARED]
        self._places = [*shared, *(place for pair in zip(CLASSES, MODULES, strict=True) for place in _statics(*pair))]
        self._patched: list[tuple[Any, str, Any]] = []

    def patch(self) -> None:
        """Set the functions; a note of each comes first, so that an interrupted patch is undone."""
        for owner, name, original, call in self._places:
            self._patched.append((owner, name, original))
            setattr(owner, name, call)

    def restore(self) -> None:
        """Set NumPy's own functions."""
        for owner, name, original in self._patched:
            setattr(owner, name, original)
        self._patched.clear()


def _statics(cls: type, module: ModuleType) -> list[tuple[Any, str, Any, Any]]:
    """The functions that a class holds, as they are and as they are while something is traced."""
    found: list[tuple[Any, str, Any, Any]] = []
    for name, item in vars(cls).items():
        if isinstance(item, staticmethod) and item.__func__.__name__ in vars(module):
            found.append((cls, name, item, staticmethod(_follower(module, item.__func__.__name__))))
    return found


PATCHERS.append(Series())
