"""record: run a Python function on tracers, and return what it computed as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LeakedTracerError, RetrogradError, Thrown, UnsupportedError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph
from ..ir.primitive import TRANSFORMS
from ..ir.rewrite import walk
from ..ir.types import Aval
from ..where import user_site
from .around import whole
from .array import NUMBERS, Tracer, settled, shadow_of, symbol_in, wrap, wrap_all
from .foreign import adviser
from .interception import INTERCEPTION
from .surroundings import SURROUNDINGS
from .trace import CURRENT, STATEFUL, Capture, Trace, owner, stateful, taint, traceable
from .tree import Spec, flatten, map_leaves

if TYPE_CHECKING:
    from .state.reads import Read

Place = Callable[[Builder, Graph, Sequence[Symbol]], list[Symbol]]
NO_NUMBERS = (np.flexible, np.datetime64, np.timedelta64, np.longdouble, np.clongdouble)  # scalars returned as they are


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recorded function: ``graph`` takes the traced leaves, then the captures.

    ``out_spec`` is the structure of its result, ``shadows`` the example results, ``statics`` results that are no
    arrays, by position (the graph does not hold them), ``written`` the leaves that it writes into. It is ``tainted``
    if an operation failed on the examples and the function caught that: the graph is right for these examples only.
    It holds while its ``reads`` do.
    """

    graph: Graph
    out_spec: Spec
    captures: tuple[Capture, ...]
    shadows: tuple[Any, ...]
    statics: dict[int, Any]
    written: tuple[int, ...] = ()
    tainted: bool = False
    reads: tuple[Read, ...] = ()


RECORDERS: list[Callable[[Callable[..., Recorded]], Callable[..., Recorded]]] = []  # they wrap each recording


@whole
def record(
    function: Callable[[Sequence[Any]], Any],
    name: str,
    examples: Sequence[Any],
    hints: Sequence[str],
    concrete: bool = True,
    max_nodes: int | None = None,
    gathers: bool = False,
) -> Recorded:
    """Run ``function`` on one tracer per example; examples are copied first, and never changed.

    Long loops of Python's are folded. With ``gathers``, an operation whose operands all belong to enclosing traces is
    recorded here too. Inside an enclosing trace, generators are set back at the end: that trace runs the graph on the
    examples and must draw the same numbers.
    """
    run: Callable[..., Recorded] = _recorded
    for wrap_recording in RECORDERS:
        run = wrap_recording(run)
    found: Recorded = TRANSFORMS.rolled(run(function, name, examples, hints, concrete, max_nodes, gathers), concrete)
    return found


def _recorded(
    function: Callable[[Sequence[Any]], Any],
    name: str,
    examples: Sequence[Any],
    hints: Sequence[str],
    concrete: bool,
    max_nodes: int | None,
    gathers: bool,
) -> Recorded:
    parent = CURRENT.get()
    rewinds = [] if parent is None else [kind.rewinding(parent) for kind in STATEFUL]
    trace = Trace(name, parent, concrete, max_nodes)
    trace.gathers = gathers
    with trace.recording(INTERCEPTION):
        inputs, tracers = [], []
        for example, hint in zip(examples, hints, strict=True):
            if isinstance(example, Tracer):
                owner([example])
            shadow = shadow_of(example)
            inputs.append(trace.builder.input(traceable(shadow), hint or None))
            if isinstance(shadow, np.ndarray):
                shadow = TRANSFORMS.laid_alike(shadow) if concrete else np.array(shadow, order="C")
            tracers.append(wrap(trace, inputs[-1], shadow, None))
        try:
            leaves, out_spec = flatten(result := _run(function, tracers))
            leaves = leaves if trace.reader is None else trace.reader.leaves(result, leaves)
        except Exception:
            taint(trace.parent if trace.decided else None)  # one that catches it does so for these decisions only
            raise
        outputs: list[Symbol] = []
        shadows: list[Any] = []
        statics: dict[int, Any] = {}
        for i, leaf in enumerate(leaves):
            huge = type(leaf) is int and not -(1 << 63) <= leaf < 1 << 63
            if issubclass(type(leaf), (Tracer, np.ndarray, *NUMBERS)) and not (isinstance(leaf, NO_NUMBERS) or huge):
                outputs.append(_output(trace, leaf))
                shadows.append(shadow_of(leaf))
            else:
                statics[i] = leaf if trace.reader is None else trace.reader.returned(leaf, trace)
    for rewind in rewinds:
        rewind()
    graph = trace.finish(inputs, outputs)
    written = tuple(k for k, t in enumerate(tracers) if t.storage.version)
    if parent is None:
        tracers, leaves, leaf, result = [], [], None, None  # what is returned does not outlive the trace
        SURROUNDINGS[-1].end(trace)
    return Recorded(graph, out_spec, tuple(trace.captures.values()), tuple(shadows), statics, written, trace.tainted)


def _run(function: Callable[[Sequence[Any]], Any], tracers: Sequence[Any]) -> Any:
    """Call the user's function; errors of NumPy and other libraries about traced values become ours."""
    try:
        return function(tracers)
    except Thrown as thrown:
        trace = CURRENT.get()
        if trace is None or trace.parent is not None:
            raise
        raise Thrown(map_leaves(_value, thrown.payload)).with_traceback(thrown.__traceback__) from None
    except Exception as fault:
        ours = fault.__cause__
        if isinstance(fault, RetrogradError):
            raise
        if isinstance(ours, RetrogradError):
            raise ours.with_traceback(fault.__traceback__) from None
        if (named := adviser().translated(fault)) is None:
            raise
        raise named from fault


def _value(x: Any) -> Any:
    """The plain value of a thrown leaf; the outermost recording runs on the user's own arguments, so it is known."""
    return np.copy(x.shadow)[()] if isinstance(x, Tracer) else x


def _output(trace: Trace, leaf: Any) -> Symbol:
    if isinstance(leaf, Tracer) and not leaf.const:
        if not leaf.home.active:
            raise LeakedTracerError(
                f"{trace} returns a value of {leaf.home}, which has ended",
                where=leaf.where,
                remedy="return it from the function that made it",
            )
        return symbol_in(trace, leaf)
    if isinstance(leaf, np.ndarray) and leaf.dtype == object:
        raise UnsupportedError("the function returns an array of objects", remedy="return numeric arrays")
    return symbol_in(trace, leaf)


def insert(trace: Trace, graph: Graph, operands: Sequence[Any], shadows: Sequence[Any], place: Place) -> list[Any]:
    """Put a graph into ``trace``, applied to operands and captures; return its results as tracers."""
    where = user_site()[0]
    trace.count(max(len(graph.nodes), 1))
    if settled(operands) and not graph.effect and not _marked(graph):
        return [wrap(trace, None, shadow, where) for shadow in shadows]
    symbols = [placed(trace, x, v.aval) for x, v in zip(operands, graph.inputs, strict=True)]
    outs = place(trace.builder, graph, symbols)
    return wrap_all(trace, outs, shadows, where)


def _marked(graph: Graph) -> bool:
    """Whether a graph, or one inside it, holds a mark."""
    return graph.once("marked", lambda: any(node.prim.mark for node in walk(graph)))


def placed(trace: Trace, x: Any, aval: Aval | None = None) -> Symbol:
    """A capture, or a value from the user, as a symbol of the trace; a list of steps needs its aval."""
    if isinstance(x, Capture):
        if x.made:
            return trace.capture(x.payload, aval, made=True)
        x, aval = x.payload, aval or x.symbol.aval
    if isinstance(kept := x.shadow if isinstance(x, Tracer) and x.const else x, list):  # by a loop, for its derivative
        return trace.capture(kept, aval)
    if (kind := stateful(x)) is not None:
        return kind.capture(trace, x)
    return x if isinstance(x, Symbol) else symbol_in(trace, x)
