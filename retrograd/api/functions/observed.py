"""Function values at differentiated positions: their stand-ins in the traced function, and their cotangents."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ...compiler.signature import Argnums, Call, is_traced, parameter_names, take_apart
from ...errors import LeakedTracerError, OptionError, TracerConversionError, UnsupportedError
from ...ir.graph import Graph
from ...ir.primitive import TRANSFORMS
from ...ir.types import aval_of
from ...ops.structural.applied import applied, marks
from ...passes.control.expose_calls import Axis, Exposed, Site, expose
from ...tracer.array import Tracer, shadow_of, symbol_in, wrap
from ...tracer.containers import register_container
from ...tracer.outside import trace_here
from ...tracer.swallowed import forget_since, refusals
from ...tracer.trace import STOPPED, Trace
from ...tracer.tree import Spec, flatten, unflatten
from ...where import user_site
from ..lens_node import by_host
from .blocks import Block
from .closures import Fn, Same, as_mapping, converted, is_function, register_function_container
from .cotangent import FunctionCotangent

SEVERAL = 16  # the most forms that a call is compared with

_number = itertools.count(1)
HOMES: WeakValueDictionary[int, Trace] = WeakValueDictionary()  # the trace in which each function value may be called


@dataclass(frozen=True)
class Form:
    """The structure of one call: ``fixed`` arguments are not operands, ``active`` results have cotangents."""

    args: Spec
    fixed: dict[int, Any]
    results: Spec
    active: tuple[int, ...]

    def equals(self, other: Form) -> bool:
        """Whether arguments and results agree; fixed arguments are compared as the values of templates are."""
        alike = (self.args, self.results, self.active) == (other.args, other.results, other.active)
        fixed = [{i: Same(x) for i, x in form.fixed.items()} for form in (self, other)]
        return alike and fixed[0] == fixed[1]


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of one function value: its ``key`` in the marks, and the forms of its calls."""

    key: int
    forms: list[Form] = field(default_factory=list)
    count: Iterator[int] = field(default_factory=itertools.count)

    def form(self, form: Form) -> int:
        """The number of a form; equal forms share it, so that calls in a loop are alike."""
        for i, known in enumerate(self.forms[:SEVERAL]):
            if known.equals(form):
                return i
        self.forms.append(form)
        return len(self.forms) - 1

    def block(self, site: Site, outputs: Sequence[Any], cts: Sequence[Any]) -> Block:
        """The block of one call, from the arguments that it was given and the cotangents of its results."""
        form, operands = self.forms[site.call], iter(outputs)
        inputs = [form.fixed[i] if i in form.fixed else next(operands) for i in range(form.args.num_leaves)]
        cotangents: list[Any] = [None] * form.results.num_leaves
        for i, ct in zip(form.active, cts, strict=True):
            cotangents[i] = ct
        lanes = any(isinstance(a, Axis) for a in site.place)
        stacked = tuple(lanes and i not in form.fixed for i in range(form.args.num_leaves))
        made = outputs[-1] if site.chosen else True
        if isinstance(made, Tracer):
            raise UnsupportedError(
                "a function value is called in a branch that may not be taken, while an enclosing function is traced",
                remedy='use fns="captures", or choose with np.where',
            )
        return Block(unflatten(form.args, inputs), unflatten(form.results, cotangents), site.place, stacked, made)


class FunctionValue:
    """A function value inside a trace: it computes as the plain function does, and marks its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.calls = Calls(next(_number))
        home = trace_here()
        if home is not None:
            HOMES[self.calls.key] = home

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace, where = trace_here(), user_site()[0]
        home = HOMES.get(self.calls.key)
        if trace is None or home is None or not trace.descends_from(home):
            raise LeakedTracerError(
                "a function value is called outside the function that took it",
                where=where,
                remedy="call it in the function that takes it, or return a function that calls it",
            )
        if kwargs:
            raise UnsupportedError(
                f"a function value is called with the keywords {sorted(kwargs)}",
                where=where,
                remedy="pass its arguments by position",
            )
        leaves, spec = flatten(args)
        operands = [symbol_in(trace, x) for x in leaves if is_traced(x)]
        fixed = {i: x for i, x in enumerate(leaves) if not is_traced(x)}
        before = [x.storage.version for x in leaves if isinstance(x, Tracer)]
        results, out_spec = flatten(self._results(args))
        if before != [x.storage.version for x in leaves if isinstance(x, Tracer)]:
            raise UnsupportedError(
                "a function value writes into its argument, which its cotangent cannot express",
                where=where,
                remedy="let it copy the argument first: x = x.copy()",
            )
        active = tuple(i for i, y in enumerate(results) if is_traced(y) and aval_of(shadow_of(y)).inexact)
        if not active or STOPPED.get():
            return unflatten(out_spec, results)
        call, nth = self.calls.form(Form(spec, fixed, out_spec, active)), next(self.calls.count)
        attrs = {"args": len(operands), "axes": 0, "call": call, "key": self.calls.key, "nth": nth}
        operands += [symbol_in(trace, results[i]) for i in active]
        trace.builder.where = where
        marked = trace.builder.emit(applied, [s.value for s in operands], attrs)
        for i, symbol in zip(active, marked, strict=True):
            shadow = shadow_of(results[i])
            results[i] = wrap(trace, symbol, np.array(shadow) if isinstance(shadow, np.ndarray) else shadow, where)
        return unflatten(out_spec, results)

    def _results(self, args: tuple[Any, ...]) -> Any:
        """The results of the function; if it cannot be traced, the host calls it: with pairs, but no derivative."""
        before = refusals()
        try:
            return self.function(*args)
        except (UnsupportedError, TracerConversionError):
            forget_since(before)
            return by_host(self.function, args)


class Lifted(Fn):
    """A plain function at a differentiated position; the traced function gets it as a plain function."""

    __slots__ = ()


class Observed(Fn):
    """A function value at a differentiated position, with its cotangent wanted as pairs; its captures get none."""

    __slots__ = ("index",)

    def __init__(self, function: Fn, index: int) -> None:
        super().__init__(function.template, function.captures, function._function)
        self.index = index


register_function_container(Lifted, Lifted)
register_container(
    Observed,
    lambda f: (tuple(f.captures.values()), (f.template, tuple(f.captures), f.index), tuple(f.captures)),
    lambda data, values: Observed(Fn(data[0], dict(zip(data[1], values, strict=True))), data[2]),
)


@dataclass(frozen=True, eq=False)
class FunctionCall(Call):
    """A call with function values among the differentiated arguments; ``calls`` are the calls in the last recording."""

    calls: dict[int, Calls] = field(default_factory=dict)
    apart: ClassVar[type | None] = Observed

    def rebuild(self, tracers: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = super().rebuild(tracers)
        self.calls.clear()
        return tuple(map(self._open, args)), {name: self._open(x) for name, x in kwargs.items()}

    def _open(self, x: Any) -> Any:
        if isinstance(x, Observed):
            value = FunctionValue(x.function)
            self.calls[x.index] = value.calls
            return value
        return x.function if isinstance(x, Lifted) else x


@TRANSFORMS.register("take_functions")
def take_functions(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums, fns: str
) -> Call:
    """Take a call apart; callables at differentiated positions are closure-converted, and observed for pairs."""
    if not any(map(callable, args)) and not any(map(callable, kwargs.values())):
        return take_apart(function, args, kwargs)
    names = parameter_names(function)
    chosen = [a for a in (argnums if isinstance(argnums, (tuple, list)) else [argnums]) if isinstance(a, (int, str))]
    places = {names.index(a) if isinstance(a, str) and a in names and a not in kwargs else a for a in chosen}
    places |= {a + len(args) for a in places if isinstance(a, int) and a < 0}
    given: dict[int | str, Any] = dict(enumerate(args))
    given.update(kwargs)
    found = {place: converted(x) for place, x in given.items() if place in places and is_function(x)}
    if not found:
        return take_apart(function, args, kwargs)
    for index, (place, f) in enumerate(found.items()):
        if fns == "pairs":
            given[place] = Observed(f, index)
        elif not isinstance(given[place], Fn):
            given[place] = Lifted(f.template, f.captures, f.function)
    call = take_apart(function, tuple(given[i] for i in range(len(args))), {name: given[name] for name in kwargs})
    return FunctionCall(call.leaves, call.spec, call.traced, call.names, call.orders, call.unread)


@TRANSFORMS.register("checked_form")
def checked_form(fns: str) -> str:
    """The option ``fns``; OptionError unless it is ``"captures"`` or ``"pairs"``."""
    if fns not in ("captures", "pairs"):
        raise OptionError(f"fns={fns!r} is not a form of cotangents", remedy='use "captures" or "pairs"')
    return fns


@dataclass(frozen=True, eq=False)
class Observation:
    """A recorded graph in which the calls of observed function values are exposed; it turns cotangents into pairs.

    ``graph`` has further inputs, the perturbations of results, and further outputs, the arguments of calls.
    """

    graph: Graph
    deltas: int
    sites: tuple[Site, ...]
    calls: dict[int, Calls]

    def cotangents(self, parts: Iterable[Any], args: Sequence[Any], cts: Sequence[Any]) -> Iterator[Any]:
        """The cotangents of whole arguments: pairs for observed function values, dicts for others."""
        given, found = iter(args), iter(cts)
        of = {calls.key: calls for calls in self.calls.values()}
        blocks: dict[int, list[Block]] = {key: [] for key in of}
        for site in self.sites:
            outputs = [next(given) for _ in range(site.outputs)]
            block = of[site.key].block(site, outputs, [next(found) for _ in site.results])
            if np.any(block.made):
                blocks[site.key].append(block)
        for part in parts:
            if isinstance(part, Observed):
                yield FunctionCotangent.of_blocks(blocks[self.calls[part.index].key])
            else:
                yield as_mapping(part) if isinstance(part, Fn) else part


@TRANSFORMS.register("observe")
def observe(call: Call, graph: Graph) -> Observation:
    """Expose the calls of the function values that were recorded for this call."""
    calls = dict(call.calls) if isinstance(call, FunctionCall) else {}
    exposed = expose(graph, tuple(c.key for c in calls.values())) if calls else Exposed(graph, ())
    for key in marks(exposed.graph):  # marks of enclosing functions remain; any other was kept too long
        home = HOMES.get(key)
        if home is None or not home.active:
            raise LeakedTracerError(
                "a compiled function was traced with a function value that is not one of its arguments, and is "
                "called with another",
                remedy="pass the function value to it as an argument",
            )
    return Observation(exposed.graph, sum(len(site.results) for site in exposed.sites), exposed.sites, calls)
