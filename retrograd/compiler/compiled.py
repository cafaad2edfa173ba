"""Compiled: the callable object that every transform returns."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from types import GenericAlias
from typing import Any, TypeVar

from ..errors import OptionError
from ..ir.graph import Graph
from ..tracer.record import Recorded
from ..tracer.surroundings import SURROUNDINGS
from ..tracer.trace import CURRENT
from .cache import SHARING, Cache
from .compilation import INSPECTORS, Compilation, Derived
from .executable import Executable
from .inside import called_inside
from .paths import FINDERS, Found, Once, Paths
from .settings import Settings, config
from .signature import Call
from .transform import Transform

F = TypeVar("F", bound=Callable[..., Any])
MOST_VERSIONS = 8  # of one signature, each for another state of what the function reads
MOST_ONCE = 3  # recordings in a row that hold for one call, until a warning
UNSERVED = object()  # what a server gives for a call that it does not know, or that is traced
MEMBERS = ["at", "executable", "graph", "source"]  # and those that extensions add


class Compiled:
    """A function under a transform, compiled once for each structure, shapes, dtypes and static values.

    Call it like the plain function. ``at(*args)`` is the compilation for these arguments: its recording, graphs and
    code. ``graph``, ``source`` and ``executable`` show parts of it; extensions add members. Code is made when the
    function is called, or when the code is asked for.
    """

    def __init__(self, function: Callable[..., Any], transform: Transform) -> None:
        transform.accept(function)
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = function
        self._user, self._transform = function, transform
        self._function = transform.build(function)
        self._bound: tuple[Compiled, Any] | None = None  # for a method, the unbound one and the instance
        self.__dict__.update(SHARING[-1].caches_of(function, transform, _caches))

    __class_getitem__: Any = classmethod(GenericAlias)  # Compiled[[Array, int], Array] in annotations
    _cache: Cache[Paths]
    _servers: list[Callable[..., Any]]
    _inner: dict[Any, Any]
    _methods: dict[int, tuple[Any, dict[str, Any]]]
    _told: set[type[Warning]]

    def __repr__(self) -> str:
        return self._transform.describe(self._user)

    def __dir__(self) -> list[str]:
        return [*MEMBERS, "__call__", "__doc__", "__name__", "__wrapped__"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for serve in self._servers:
            result = serve(self, args, kwargs)
            if result is not UNSERVED:
                return result
        return self.call(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that no server knows."""
        if CURRENT.get() is not None:
            return called_inside(self, args, kwargs)
        found = FINDERS[-1](self, self._take(args, kwargs))
        INSPECTORS["known"](self, found, args, kwargs)
        return found.paths.call(self, *found.operands)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A compiled method is bound like a function; each instance has its own compilations, while it lives."""
        return self if instance is None else INSPECTORS["bound"](self, instance, owner, _caches)

    def __reduce__(self) -> Any:
        return INSPECTORS["reduced"](self, sys._getframe(1).f_globals)

    def __copy__(self) -> Compiled:
        return self  # as functions are

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return INSPECTORS["copied"](self, memo)

    def parts(self) -> tuple[Any, ...]:
        """The parts for a pickle; a bound method is pickled as the compiled function and the instance."""
        if self._bound is not None:
            return Compiled.__get__, self._bound
        return Compiled, (self._user, self._transform)

    def of(self, function: Callable[..., Any]) -> Compiled:
        """The same transform of another function."""
        return Compiled(function, self._transform)

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call, taken apart."""
        return self._transform.take(self._function, args, kwargs)

    def _record(self, call: Call) -> tuple[Recorded, Derived]:
        """Run the function on traced values, and derive the transform's graph from what it did."""
        with SURROUNDINGS[-1].watching() as reading:
            recorded, derived = self._transform.record(self._function, call)
            return replace(recorded, reads=reading.found), derived

    def found(self, call: Call) -> Found:
        """The paths of a call whose reads hold, recorded now if there are none, and their present captures."""
        settings = self._transform.settings()
        key = (settings, call.key)
        versions = self._cache.versions(key)
        found = self._holding(versions, call)
        if found is not None:
            self._cache.hits += 1
            return found
        with self._cache.lock(key):
            found = self._holding(versions, call)
            if found is None:
                others = SHARING[-1].versions_of(self._user, (self._transform, key))
                found = self._holding(others or [], call)
                if found is None:
                    return self._made(versions, others, call, settings)
                _keep(versions, found.paths)
            self._cache.hits += 1
        return found

    def _holding(self, versions: list[Paths], call: Call) -> Found | None:
        statics = call.statics()
        for paths in tuple(versions):
            captures = paths.check(self._user, statics)
            if captures is not None:
                return Found(paths, captures, call)
        return None

    def _made(self, versions: list[Paths], others: list[Paths] | None, call: Call, settings: Settings) -> Found:
        """Record a call, and keep it for later ones if what it has read still holds."""
        statics = call.statics()
        if len(versions) == MOST_VERSIONS:
            INSPECTORS["retraced"](self, versions[0], statics)
        paths = Paths(call, settings)
        way = paths.recorded(self, call.values(), statics)[0]
        self._cache.misses += 1
        captures = paths.check(self._user, statics)
        if captures is None:  # it changes what it reads, or reads what cannot be watched
            self._cache.once += 1
            if self._cache.once == MOST_ONCE:
                INSPECTORS["unwatched"](self, paths, statics)
            return Found(Once(way), (), call)
        self._cache.once = 0
        _keep(versions, paths)
        if others is not None:
            SHARING[-1].keep(paths, others, _keep)
        self._cache.trim(config.cache_size)
        return Found(paths, captures, call)

    def at(self, *args: Any, **kwargs: Any) -> Compilation:
        """The compilation for these arguments, recorded now if their signature is new."""
        found = FINDERS[-1](self, self._take(args, kwargs))
        return found.paths.way(self, *found.operands)

    def graph(self, *args: Any, stage: str = "optimised", **kwargs: Any) -> Graph:
        """The graph for these arguments: ``"traced"``, ``"linearized"``, ``"adjoint"`` or ``"optimised"``."""
        graphs = self.at(*args, **kwargs).graphs
        if stage not in graphs:
            raise OptionError(f"{self!r} has no stage {stage!r}", remedy=f"choose from {sorted(graphs)}")
        return graphs[stage]()

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """The compiled code for these arguments; its ``function`` takes the flat leaves and the captures."""
        return self.at(*args, **kwargs).executable

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The generated module for these arguments: it runs on NumPy alone, and SciPy where it is used."""
        return self.at(*args, **kwargs).source


def member(function: F) -> F:
    """Make a function of a compiled object a member of all; extensions add theirs by it."""
    setattr(Compiled, function.__name__, function)
    MEMBERS.append(function.__name__)
    return function


def _keep(versions: list[Paths], paths: Paths | Once) -> None:
    """Put paths in front, and let the last of too many go."""
    assert isinstance(paths, Paths)
    versions.insert(0, paths)
    del versions[MOST_VERSIONS:]


def _caches() -> dict[str, Any]:
    """What was compiled for one function: by signature, by what serves its calls, in traces, for instances."""
    return {"_cache": Cache(), "_servers": [], "_inner": {}, "_methods": {}, "_told": set()}
