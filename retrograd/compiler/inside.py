"""Compiled functions inside a trace: their graphs go into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..ir.builder import Symbol
from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.primitive import TRANSFORMS
from ..passes.inline import inline_into
from ..tracer.array import Tracer, shadow_of
from ..tracer.outside import Plainly, trace_here
from ..tracer.record import Recorded, insert
from ..tracer.trace import STATEFUL, Capture, Trace, stateful
from .settings import config
from .signature import Call


class Callee(Protocol):
    """A compiled function, as traces and its own paths see it."""

    _user: Callable[..., Any]
    _inner: dict[Any, Any]
    _transform: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call: ...
    def _record(self, call: Call) -> tuple[Recorded, Any]: ...


def called_inside(compiled: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a compiled function while another one is traced: its graph goes into that trace.

    Code that interrupts a trace, such as a signal handler, is outside: there it is a plain call.
    """
    trace = trace_here()
    if trace is None:
        plain = {name: _outside(x) for name, x in kwargs.items()}
        with Plainly():
            return compiled(*map(_outside, args), **plain)
    call = compiled._take(args, kwargs)
    recorded, derived = _recorded_once(compiled, trace, call)
    if recorded.written:
        TRANSFORMS.check_apart([*call.values(), *(c.payload for c in recorded.captures)], recorded.written)
    rewinds, before = [kind.rewinding(trace) for kind in STATEFUL], TRANSFORMS.refusals()
    graph, operands = TRANSFORMS.without_idle_turn(derived.graph), [*call.values(), *recorded.captures]
    try:
        results = example_results(trace, graph, operands)
    except Exception:  # noqa: BLE001 - it decided for other values, or catches what these raise: any exception
        TRANSFORMS.forget_since(before)
        for rewind in rewinds:
            rewind()
        recorded, derived = compiled._record(call)
        graph, operands = TRANSFORMS.without_idle_turn(derived.graph), [*call.values(), *recorded.captures]
        results = example_results(trace, graph, operands)
    place = inline_into if derived.later is not None else compiled._transform.place(graph)
    return derived.interpreted(insert(trace, graph, operands, results, place))


def _outside(x: Any) -> Any:
    """An argument where the code is outside of the trace: the array that a tracer stands for, if it is one."""
    found = x.home.constant_of(x) if isinstance(x, Tracer) else None
    return x if found is None else found


def _recorded_once(compiled: Callee, trace: Trace, call: Call) -> tuple[Recorded, Any]:
    """The inner trace for a call inside a trace, kept unless it captures traced values, or a read no longer holds."""
    statics = call.statics()
    key = (call.key, tuple(map(id, statics)), trace.concrete, trace.runs, config.now())
    known: tuple[Recorded, Any, Any] | None = compiled._inner.get(key)
    if known is not None and all(r.holds() for r in known[0].reads):
        if trace.reader is not None:
            trace.reader.again(known[0].reads)
        return known[:2]
    made = compiled._record(call)
    recorded = made[0]
    passing = any(isinstance(c.payload, Symbol) for c in recorded.captures)
    if not passing and not recorded.tainted and all(r.holds() and r.kind != "target" for r in recorded.reads):
        compiled._inner[key] = (*made, statics)  # alive, so that their identities stay their own
    return made


def inserted(trace: Trace, graph: Graph, operands: Sequence[Any]) -> list[Any]:
    """Put a graph into a trace, applied to values and captures; its results as traced values."""
    return insert(trace, graph, operands, example_results(trace, graph, operands), inline_into)


def example_results(trace: Trace, graph: Graph, operands: Sequence[Any]) -> Sequence[Any]:
    """The results of a graph for the example values of its operands."""
    values = [_example(trace, x) for x in operands]
    found: Sequence[Any] = TRANSFORMS.examples(trace, lambda: evaluate(graph, values), graph.out_avals, operands)
    return found


def _example(trace: Trace, x: Any) -> Any:
    """A recording may be used again in another trace, which has examples of generators of its own."""
    payload = x.payload if isinstance(x, Capture) else x
    kind = stateful(payload)
    if kind is not None:
        return kind.example(trace, payload)
    return x.shadow if isinstance(x, Capture) else shadow_of(x)
