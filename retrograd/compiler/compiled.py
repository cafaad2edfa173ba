"""Compiled: the callable object that every transform returns."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import OptionError
from ..ir.graph import FORMS, Graph
from ..tracer.bindings import Bindings
from ..tracer.record import Recorded
from ..tracer.trace import CURRENT
from .cache import Cache, CacheInfo
from .compilation import INSPECTORS, Compilation, Derived
from .executable import Executable
from .inside import called_inside
from .paths import Paths
from .settings import OVERRIDES, Settings, config
from .signature import Call
from .transform import Transform
from .travel import Travelling

KEPT = ("_bindings", "_cache", "_flat", "_inner", "_methods")  # the compilations of one function
FACE = ("at", "cache_info", "dot", "executable", "graph", "plan", "source", "tradeoff")


class Compiled(Travelling):
    """A function under a transform, compiled once for each structure, shapes, dtypes and static values.

    Call it like the plain function. ``at(*args)`` is the compilation for these arguments: its recording, graphs and
    code. ``graph``, ``source``, ``dot``, ``plan``, ``tradeoff`` and ``executable`` show parts of it, and ``cache_info``
    counts. Code is made when the function is called, or when the code is asked for.
    """

    def __init__(self, function: Callable[..., Any], transform: Transform) -> None:
        transform.accept(function)
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = function
        self._user, self._transform = function, transform
        self._function = transform.build(function)
        self._bound: tuple[Compiled, Any] | None = None  # for a method, the unbound one and the instance
        self._renew()

    def _renew(self) -> None:
        self._bindings = Bindings()
        self._cache: Cache[Paths] = Cache()
        self._flat: dict[Any, Paths] = {}
        self._inner: dict[Any, Any] = {}
        self._methods: dict[int, tuple[Any, dict[str, Any]]] = {}

    def _forget(self) -> None:
        """A captured name was bound to something else: what was recorded is stale."""
        for kept in (self._bindings, self._cache, self._flat, self._inner):
            kept.clear()

    def __repr__(self) -> str:
        return self._transform.describe(self._user)

    def __dir__(self) -> list[str]:
        return [*FACE, "__call__", "__doc__", "__name__", "__wrapped__"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if CURRENT.get() is not None:
            return called_inside(self, args, kwargs)
        settings = OVERRIDES.get() or config.base
        if not self._bindings.hold() or (settings.check_captures and INSPECTORS["stale"](self, args, kwargs)):
            self._forget()
        if not kwargs:
            key: list[Any] = [settings]
            for a in args:
                kind = type(a)
                if kind is np.ndarray:
                    key.append(a.shape)
                    key.append(a.dtype)
                else:
                    key.append(kind)
                    if kind is not float and kind is not np.float64:
                        break
            else:
                flat = tuple(key)
                paths = self._flat.get(flat)
                if paths is None:
                    paths = self._flat[flat] = self._paths(self._take(args, kwargs))
                else:
                    self._cache.hits += 1
                return paths.call(self, args)
        call = self._take(args, kwargs)
        return self._paths(call).call(self, call.values())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A compiled method is bound like a function; each instance has its own compilations, while it lives."""
        if instance is None or not hasattr(self._user, "__get__"):
            return self
        bound = type(self).__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._bound = self, instance
        bound._user = self._user.__get__(instance, owner)
        bound._function = self._transform.build(bound._user)
        known = self._methods.get(id(instance))
        if known is None:
            bound._renew()
            kept = {name: bound.__dict__[name] for name in KEPT}
            self._methods[id(instance)] = (self._keeper(instance), kept)
        else:
            bound.__dict__.update(known[1])
        return bound

    def parts(self) -> tuple[Any, ...]:
        """See ``Travelling``; a bound method travels as the compiled function and the instance."""
        if self._bound is not None:
            return type(self).__get__, self._bound
        return type(self), (self._user, self._transform)

    def of(self, function: Callable[..., Any]) -> Compiled:
        """The same transform of another function."""
        return Compiled(function, self._transform)

    def _keeper(self, instance: Any) -> Any:
        """The finalizer of an instance, which drops its compilations with it; or the instance itself."""
        try:
            end = weakref.finalize(instance, self._methods.pop, id(instance), None)
        except TypeError:  # no weak references to it: it is kept, so that its identity stays its own
            return instance
        end.atexit = False
        return end

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call, taken apart."""
        return self._transform.take(self._function, args, kwargs)

    def _record(self, call: Call) -> tuple[Recorded, Derived]:
        """Run the function on traced values, and derive the transform's graph from what it did."""
        recorded, derived = self._transform.record(self._function, call)
        if CURRENT.get() is None:
            self._bindings.add(recorded.bindings)
        return recorded, derived

    def _paths(self, call: Call) -> Paths:
        settings = config.now()
        return self._cache.get((settings, call.key()), lambda: self._made(call, settings))

    def _made(self, call: Call, settings: Settings) -> Paths:
        paths = Paths(call, settings)
        paths.recorded(self, call.values())
        return paths

    def at(self, *args: Any, **kwargs: Any) -> Compilation:
        """The compilation for these arguments, recorded now if their signature is new."""
        call = self._take(args, kwargs)
        return self._paths(call).way(self, call.values())

    def graph(self, *args: Any, stage: str = "optimised", **kwargs: Any) -> Graph:
        """The graph for these arguments: ``"traced"``, ``"linearized"``, ``"adjoint"`` or ``"optimised"``."""
        graphs = self.at(*args, **kwargs).graphs
        if stage not in graphs:
            raise OptionError(f"there is no stage {stage!r} of {self!r}", remedy=f"choose from {sorted(graphs)}")
        return graphs[stage]()

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """The compiled code for these arguments; its ``function`` takes the flat leaves and the captures."""
        return self.at(*args, **kwargs).executable

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The generated module for these arguments: it runs on NumPy alone, and SciPy where it is used."""
        return self.at(*args, **kwargs).source

    def dot(self, *args: Any, **kwargs: Any) -> str:
        """The graph for these arguments as DOT text."""
        text: str = FORMS["dot"](self.graph(*args, **kwargs))
        return text

    def plan(self, *args: Any, **kwargs: Any) -> Any:
        """A report of the memory that a call with these arguments keeps, and the work that it repeats."""
        return INSPECTORS["plan"](self.at(*args, **kwargs))

    def tradeoff(self, *args: Any, **kwargs: Any) -> Any:
        """The cost of less memory: the peak of a call and the repeated work, from all memory to the least.

        A gradient without loops keeps ever fewer values; loops follow ever thriftier plans, all the same. Nothing is
        compiled for it. Print it, or draw it.
        """
        return INSPECTORS["tradeoff"](self.at(*args, **kwargs))

    def cache_info(self) -> CacheInfo:
        """Calls that found their signature compiled, that compiled it, and signatures kept."""
        return self._cache.info()
