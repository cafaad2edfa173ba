"""Compiled: the callable object that every transform returns."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ControlFlowError, OptionError
from ..ir.builder import Builder, Symbol
from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ops.structural.call import make_call
from ..ops.structural.guard import Miss
from ..passes.inline import inline_into
from ..passes.reroll.reroll import reroll
from ..passes.simplify import simplify
from ..tracer.array import shadow_of
from ..tracer.bindings import Bindings
from ..tracer.captures import following_captures
from ..tracer.generators import GENERATORS, example_of, rewinding
from ..tracer.record import Place, Recorded, enclosing, insert, record
from ..tracer.trace import CURRENT, Capture, Trace
from ..tracer.tree import Spec, unflatten
from .cache import Cache, CacheInfo
from .compilation import Derived, Path
from .example_values import examples
from .executable import Executable
from .garbage import paused, unhurried
from .paths import Paths
from .settings import OVERRIDES, config
from .signature import Call, take_apart
from .staleness import check_captures

LONG = 512  # nodes from which a recording is searched for loops
INSPECTORS: dict[str, Callable[..., Any]] = {}  # what rooms above tell of a compiled function
INLINE = 16  # nodes up to which a compiled function called in a trace is copied into it


class Compiled:
    """A function under a transform, compiled once for each structure, shapes, dtypes and static values.

    Call it like the plain function. ``graph``, ``source`` and ``dot`` show what is computed for given example
    arguments; ``executable`` gives the compiled code; ``cache_info`` counts.
    """

    inline = INLINE

    def __init__(self, function: Callable[..., Any], label: str, *, nan_safe: bool = False) -> None:
        if not isinstance(nan_safe, bool):
            raise OptionError(f"nan_safe={nan_safe!r}", remedy="choose from False and True")
        if not callable(function):
            raise OptionError(
                f"{label} wants a function, got {type(function).__name__}",
                remedy=f"write {label}(f), and call the result with the arguments",
            )
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.label = label
        self.nan_safe = nan_safe
        self._renew()

    def _renew(self) -> None:
        self._bindings = Bindings()
        self._cache: Cache[Paths] = Cache()
        self._flat: dict[Any, Paths] = {}
        self._inner: dict[Any, tuple[Recorded, Derived]] = {}
        self._methods: dict[int, tuple[Any, dict[str, Any]]] = {}

    def _forget(self) -> None:
        """A captured name was bound to something else: what was recorded is stale."""
        for kept in (self._bindings, self._cache, self._flat, self._inner):
            kept.clear()

    def __repr__(self) -> str:
        return f"<{self.label} of {getattr(self.function, '__qualname__', self.function)!s}>"

    def derive(self, recorded: Recorded, call: Call) -> Derived:
        """The transform itself, on graphs; subclasses override it."""
        return Derived(recorded.graph, results_of(recorded), {"traced": lambda: recorded.graph}, form_of(recorded))

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call, taken apart."""
        return take_apart(self.function, args, kwargs)

    def prepare(self, call: Call) -> Call:
        """Check the arguments before anything is recorded."""
        return call

    def examples(self, call: Call) -> list[Any]:
        """The values to record with."""
        return call.values()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if CURRENT.get() is not None:
            return self._inside(args, kwargs)
        settings = OVERRIDES.get() or config.base
        if not self._bindings.hold() or (settings.check_captures and not check_captures(self, args, kwargs)):
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
                entry = self._flat.get(flat)
                if entry is None:
                    entry = self._flat[flat] = self._entry(self.take(args, kwargs))
                else:
                    self._cache.hits += 1
                return entry.call(self, args)
        call = self.take(args, kwargs)
        return self._entry(call).call(self, call.values())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A compiled method is bound like a function; each instance has its own compilations, while it lives."""
        if instance is None or not hasattr(self.function, "__get__"):
            return self
        bound = self.bind(instance, owner)
        known = self._methods.get(id(instance))
        if known is None:
            bound._renew()
            kept = {name: bound.__dict__[name] for name in ("_bindings", "_cache", "_flat", "_inner", "_methods")}
            self._methods[id(instance)] = (self._keeper(instance), kept)
        else:
            bound.__dict__.update(known[1])
        return bound

    def _keeper(self, instance: Any) -> Any:
        """What says how long an instance lives: its compilations go with it."""
        try:
            end = weakref.finalize(instance, self._methods.pop, id(instance), None)
        except TypeError:  # no weak references to it: it is kept, so that its identity stays its own
            return instance
        end.atexit = False
        return end

    def bind(self, instance: Any, owner: type | None) -> Compiled:
        """The same transform of the function as a method of ``instance``."""
        bound = type(self).__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound.function = self.function.__get__(instance, owner)
        return bound

    def recorded(self, call: Call) -> Recorded:
        """The function recorded for a call, without the transform."""
        return self.record(call)[0]

    def record(self, call: Call) -> tuple[Recorded, Derived]:
        """Run the function on tracers, and derive the transform's graph from what it did."""
        if self.nan_safe and not config.nan_safe:
            with config(nan_safe=True):
                return self.record(call)

        def run(tracers: Sequence[Any]) -> Any:
            args, kwargs = call.rebuild(tracers)
            with following_captures(self.function) as function:
                return function(*args, **kwargs)

        call = self.prepare(call)
        name = getattr(self.function, "__name__", "function")
        with unhurried:
            made = record(
                run,
                name,
                self.examples(call),
                call.hints,
                max_nodes=config.max_nodes,
                gathers=CURRENT.get() is not None,  # what happens in the function stays there
            )
        recorded = rolled(made)
        if CURRENT.get() is None:
            self._bindings.add(recorded.bindings)
        with paused:
            return recorded, self.derive(recorded, call)

    def _entry(self, call: Call) -> Paths:
        return self._cache.get((config.now(), call.key()), lambda: self._make(call))

    def _make(self, call: Call) -> Paths:
        paths = Paths(call)
        paths.recorded(self, call.values())
        return paths

    def known_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Path | None:
        """The path that a call goes, if its signature is compiled."""
        call = self.take(args, kwargs)
        paths = self._cache.entries.get((config.now(), call.key()))
        return None if paths is None else paths.path(self, call.values())

    def path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Path:
        call = self.take(args, kwargs)
        return self._entry(call).path(self, call.values())

    def _inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called while another function is traced: the graph goes into that trace."""
        trace = enclosing()
        assert trace is not None
        call = self.take(args, kwargs)
        recorded, derived = self._recorded_once(call)
        rewind = rewinding(trace)
        try:
            results = _examples(trace, derived.graph, call, recorded)
        except Miss:  # its decisions were those for other values
            rewind()
            recorded, derived = self.record(call)
            results = _examples(trace, derived.graph, call, recorded)
        trace.bindings.extend(b for b in recorded.bindings if not b.in_cell)  # cells may be of this trace
        operands = [*call.values(), *recorded.captures]
        return derived.assemble(insert(trace, derived.graph, operands, results, self.place(derived.graph)))

    def place(self, graph: Graph) -> Place:
        """How the graph goes into another trace: copied into it if it is small or has effects, else as a call."""
        return inline_into if len(graph.nodes) <= self.inline or graph.effect else make_call

    def _recorded_once(self, call: Call) -> tuple[Recorded, Derived]:
        """The recording for a call inside a trace, kept unless it closes over traced values.

        Where Python may decide, it holds for these decisions only, and so is no recording for other places.
        """
        trace = enclosing()
        key = (call.key(), trace is not None and trace.concrete, config.nan_safe)
        if key not in self._inner or not all(b.holds() for b in self._inner[key][0].bindings):
            made = self.record(call)
            if made[0].tainted or any(isinstance(c.payload, Symbol) for c in made[0].captures):
                return made
            self._inner[key] = made
        return self._inner[key]

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """The compiled code for these arguments; its ``function`` takes the flat leaves and the captures."""
        self.path(args, kwargs)
        executable = self._entry(self.take(args, kwargs)).executable
        if executable is None:
            raise ControlFlowError(
                f"{self!r} catches an error that depends on the values of its arguments: such calls are interpreted",
                remedy="decide with an if before the operation that fails",
            )
        return executable

    def graph(self, *args: Any, stage: str = "optimised", **kwargs: Any) -> Graph:
        """The graph for these arguments: ``"traced"``, ``"linearized"``, ``"adjoint"`` or ``"optimised"``."""
        path = self.path(args, kwargs)
        stages: dict[str, Callable[[], Graph]] = {**path.derived.stages, "optimised": lambda: path.graph}
        if stage not in stages:
            raise OptionError(
                f"there is no stage {stage!r} of {self!r}",
                remedy=f"choose from {sorted(stages)}",
            )
        return stages[stage]()

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The generated module for these arguments: it runs on NumPy alone, and SciPy where it is used."""
        return self.executable(*args, **kwargs).source()

    def plan(self, *args: Any, **kwargs: Any) -> Any:
        """What a call with these arguments keeps in memory and computes again; print it, or draw it."""
        return INSPECTORS["plan"](self, args, kwargs)

    def tradeoff(self, *args: Any, **kwargs: Any) -> Any:
        """What less memory would cost: the peak of a call, and the work done again, from all memory to the least.

        A gradient without loops keeps ever fewer values; loops follow ever thriftier plans, all the same. Nothing is
        compiled for it. Print it, or draw it.
        """
        return INSPECTORS["tradeoff"](self, args, kwargs)

    def dot(self, *args: Any, **kwargs: Any) -> str:
        """The graph for these arguments as DOT text."""
        from ..ir.dot import to_dot  # networkx is heavy

        return to_dot(self.graph(*args, **kwargs))

    def cache_info(self) -> CacheInfo:
        """Calls that found their signature compiled, that compiled it, and signatures kept."""
        return self._cache.info()


class Composed(Compiled):
    """A transform whose ``build(f)`` is a function that calls ``f`` and other transforms of it."""

    def __init__(
        self, build: Callable[[Callable[..., Any]], Callable[..., Any]], function: Callable[..., Any], label: str
    ) -> None:
        super().__init__(function, label)
        self.build, self.inner = build, function
        self.function = build(function)
        self.function.__name__ = f"{getattr(function, '__name__', 'function')}_{label}"

    def __repr__(self) -> str:
        return f"<{self.label} of {getattr(self.inner, '__qualname__', self.inner)!s}>"

    def bind(self, instance: Any, owner: type | None) -> Compiled:
        if not hasattr(self.inner, "__get__"):
            return self
        return Composed(self.build, self.inner.__get__(instance, owner), self.label)


def _examples(trace: Trace, graph: Graph, call: Call, recorded: Recorded) -> Sequence[Any]:
    captured = [  # a recording may be used again in another trace, which has examples of generators of its own
        example_of(trace, c.payload) if isinstance(c.payload, GENERATORS) else c.shadow for c in recorded.captures
    ]
    values = [*map(shadow_of, call.values()), *captured]
    return examples(trace, lambda: evaluate(graph, values), graph.out_avals)


def rolled(recorded: Recorded) -> Recorded:
    """The recording with Python's loops as loops of the graph, where they are long."""
    if len(recorded.graph.nodes) < LONG:
        return recorded
    with paused:
        graph, arrays = reroll(simplify(recorded.graph))
    inputs = graph.inputs[len(graph.inputs) - len(arrays) :]
    more = [Capture(x, Symbol(Builder(), v), x, made=True) for x, v in zip(arrays, inputs, strict=True)]
    return replace(recorded, graph=graph, captures=(*recorded.captures, *more))


def form_of(recorded: Recorded) -> Any:
    """What ``results_of`` depends on."""
    return recorded.out_spec, recorded.statics


def results_of(recorded: Recorded) -> Callable[[Sequence[Any]], Any]:
    """Results in the structure that the function returned, static ones included."""
    return assembler(recorded.out_spec, recorded.statics)


def assembler(spec: Spec, statics: dict[int, Any]) -> Callable[[Sequence[Any]], Any]:
    """From a flat list of results to the tree ``spec`` with ``statics`` at their places."""
    if spec.is_leaf() and not statics:
        return _only
    n = spec.num_leaves

    def assemble(results: Sequence[Any]) -> Any:
        rest = iter(results)
        return unflatten(spec, [statics[i] if i in statics else next(rest) for i in range(n)])

    return assemble


def _only(results: Sequence[Any]) -> Any:
    return results[0]
