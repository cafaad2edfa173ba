"""Bodies of structured control flow: traced separately, with their captures, and added to a trace as one node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ..errors import CarryError, OptionError, ShapeError, TreeError, UnsupportedError
from ..ir.builder import Builder, Symbol
from ..ir.evaluate import run_node
from ..ir.graph import Graph, Node
from ..ir.loop_node import loop_of
from ..ir.primitive import Primitive
from ..ir.types import Aval, aval_of
from ..ops.elementwise import BOOL, ne
from ..ops.structural.loops import MOST_STEPS
from ..passes.inline import inline_into
from ..tracer.array import Tracer, shadow_of, wrap_all
from ..tracer.generators import HOISTED
from ..tracer.outside import trace_here
from ..tracer.record import Recorded, placed, record
from ..tracer.trace import MADE_UP, Capture, Trace, traceable
from ..tracer.tree import Spec, flatten, leaf_paths, unflatten, written
from ..where import user_site
from .example_values import examples
from .executable import Executable
from .recording import results_of
from .settings import EXACT
from .signature import is_traced, name_of, parameter_names
from .stages import run as run_stages


class Escape(Exception):  # noqa: N818 - a signal, not an error
    """A continuation was called: the recording for its ``callcc`` ends with ``value``.

    ``value`` is LEFT if ``trace`` has a throw that tells the value when the compiled function runs.
    """

    def __init__(self, tag: int, value: Any, trace: Trace) -> None:
        super().__init__()
        self.tag, self.value, self.trace = tag, value, trace


LONG = 2000  # nodes that run; from so many on compiling them pays
LEFT = object()  # the result of a branch that calls a continuation


def as_arrays(tree: Any) -> Any:
    """The tree with NumPy scalars in place of Python numbers."""
    leaves, spec = flatten(tree)
    return unflatten(spec, [strong(x) for x in leaves])


def strong(x: Any) -> Any:
    """A Python number as the NumPy scalar that it becomes in a loop."""
    if isinstance(x, Tracer):
        return x if isinstance(x.shadow, (np.ndarray, np.generic)) else x.astype(x.dtype)
    if type(x) is int and not -(1 << 63) <= x < 1 << 63:
        raise CarryError(f"an array cannot hold the integer {x}", remedy="write it as a float, or as a smaller integer")
    if isinstance(x, (bool, int, float, complex)):
        return aval_of(x).dtype.type(x)
    traceable(x)
    return x


class Start(NamedTuple):
    """The initial carry of a loop: its leaves, their example values and avals, and their structure."""

    carry: list[Any]
    shadows: list[Any]
    avals: list[Aval]
    spec: Spec
    weak: tuple[bool, ...]


def weak_leaves(init: Any) -> tuple[bool, ...]:
    """For each leaf of an initial carry, whether it is a Python number: the body may need a wider dtype."""
    return tuple(type(shadow_of(x)) in (bool, int, float, complex) for x in flatten(init)[0])


def start_of(init: Any, weak: tuple[bool, ...] | None = None) -> Start:
    """``init`` as the carry of a loop: Python numbers become NumPy scalars. ``weak`` tells which leaves were such."""
    leaves, spec = flatten(init)
    weak = weak_leaves(init) if weak is None else weak
    return _start([strong(x) for x in leaves], spec, weak)


def _start(carry: list[Any], spec: Spec, weak: tuple[bool, ...]) -> Start:
    shadows = [shadow_of(x) for x in carry]
    return Start(carry, shadows, [aval_of(x) for x in shadows], spec, weak)


def widened(recorded: Recorded, start: Start, found: Spec | None = None) -> Start | None:
    """The start with the dtypes that a body returns in place of Python numbers, if these are wider."""
    found = recorded.out_spec if found is None else found
    if found != start.spec or any(i < start.spec.num_leaves for i in recorded.statics):
        return None
    after = recorded.graph.out_avals[: len(start.avals)]
    dtypes = [_wider(a.dtype, b.dtype) for a, b in zip(start.avals, after, strict=True)]
    on = [weak and a.dtype != d for weak, a, d in zip(start.weak, start.avals, dtypes, strict=True)]
    carry = [x.astype(d) if wide else x for x, d, wide in zip(start.carry, dtypes, on, strict=True)]
    return _start(carry, start.spec, start.weak) if any(on) else None


def _wider(number: np.dtype[Any], found: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a Python number beside results of another dtype: floats for an int beside floats."""
    kinds = "biufc"
    rises = number.kind in kinds and found.kind in kinds and kinds.index(found.kind) > kinds.index(number.kind)
    return np.result_type(number.type(0).item(), found) if rises else number


def check_functions(label: str, remedy: str, *functions: Any) -> None:
    """OptionError unless all are functions."""
    for f in functions:
        if not callable(f):
            raise OptionError(f"{label} needs a function, got {type(f).__name__}", remedy=f"write {remedy}")


def recorded_body(
    function: Callable[..., Any],
    label: str,
    trees: Sequence[tuple[list[Any], Spec]],
    runs: bool = True,
    may_leave: bool = False,
    hoists: bool = False,
) -> Recorded:
    """A function recorded on one tree of examples per argument, for all values: decisions by Python are refused.

    If the function does not run on the examples, they neither warn nor fail. With ``may_leave``, a function that calls
    a continuation returns LEFT; with ``hoists``, it may draw random numbers, unless the function around it may not.
    """
    own = parameter_names(function)
    names = own if len(own) == len(trees) else [f"arg{k}" for k in range(len(trees))]
    hints = [hint for name, (leaves, spec) in zip(names, trees, strict=True) for hint in _hints(name, spec)]

    def run(tracers: Sequence[Any]) -> Any:
        rest = iter(tracers)
        given = [unflatten(spec, [next(rest) if _enters(x) else x for x in leaves]) for leaves, spec in trees]
        try:
            return function(*given)
        except Escape:
            if may_leave:
                return LEFT
            raise UnsupportedError(
                "a continuation is called in every step of a loop",
                remedy="call it in a branch: rg.cond(p, lambda: k(value), lambda: ...)",
            ) from None

    leaves = [x for group, _ in trees for x in group]
    trace = trace_here()
    token = HOISTED.set(hoists and (trace is None or trace.concrete or HOISTED.get()))
    try:
        return _recorded(run, label_of(function, label), leaves, hints, runs)
    finally:
        HOISTED.reset(token)


def _recorded(run: Callable[..., Any], name: str, leaves: list[Any], hints: list[str], runs: bool) -> Recorded:
    entering = [(x, hint) for x, hint in zip(leaves, hints, strict=True) if _enters(x)]
    given, names = [x for x, _ in entering], [hint for _, hint in entering]
    with nullcontext() if runs else made_up():
        return record(run, name, given, names, concrete=False, gathers=True)


@contextmanager
def made_up() -> Iterator[None]:
    """The block in which recordings are of functions that do not run on their examples, and so cannot fail on them."""
    token = MADE_UP.set(True)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        MADE_UP.reset(token)


def _hints(name: str, spec: Spec) -> list[str]:
    return [f"{name}_{path}" if path else name for path in leaf_paths(spec)]


def _enters(x: Any) -> bool:
    return is_traced(x) or type(x) is int


def label_of(function: Callable[..., Any], default: str) -> str:
    """A name for the graph of a function."""
    name = name_of(function, default)
    return name if name.isidentifier() else default


def closed(graphs: Sequence[tuple[Graph, int, Sequence[Capture]]]) -> tuple[list[Graph], list[Capture]]:
    """Graphs recorded apart, over the union of what they captured; captures follow the first ``n`` inputs."""
    union = {_identity(c): c for _, _, captures in graphs for c in captures}
    made = []
    for graph, n, captures in graphs:
        b = Builder()
        inputs = b.inputs_like(graph.inputs[:n])
        extra = {key: b.input(c.symbol.aval, c.symbol.value.hint) for key, c in union.items()}
        outs = inline_into(b, graph, [*inputs, *(extra[_identity(c)] for c in captures)])
        made.append(b.graph(graph.name, outs))
    return made, list(union.values())


def _identity(capture: Capture) -> Any:
    """The identity of a capture: the value of an enclosing trace, or the array itself."""
    return capture.payload.value if isinstance(capture.payload, Symbol) else id(capture.payload)


def captures_first(graph: Graph, n: int) -> Graph:
    """The graph with its captures, which follow ``n`` inputs, in front of these inputs."""
    return Graph(graph.name, (*graph.inputs[n:], *graph.inputs[:n]), graph.nodes, graph.outputs)


def typed(graph: Graph, avals: Sequence[Aval]) -> Graph:
    """The graph, whose first results get exactly these avals."""
    b = Builder()
    outs = inline_into(b, graph, b.inputs_like(graph.inputs))
    k = len(avals)
    return b.graph(graph.name, [*(b.coerce(o, a) for o, a in zip(outs[:k], avals, strict=True)), *outs[k:]])


def left(recorded: Recorded) -> bool:
    """Whether a recorded function called a continuation."""
    return recorded.statics.get(0) is LEFT


def returning_zeros(graph: Graph, avals: Sequence[Aval]) -> Graph:
    """A graph that is left before it ends; its results are never seen."""
    b = Builder()
    inline_into(b, graph, b.inputs_like(graph.inputs))
    return b.graph(graph.name, [b.zeros(a) for a in avals])


def operand(trace: Trace, x: Any) -> tuple[Symbol, Any]:
    """A capture, or a value from the user, as a symbol of the trace, with its example value."""
    return placed(trace, x), x.shadow if isinstance(x, Capture) else shadow_of(x)


def put(trace: Trace, prim: Primitive, attrs: dict[str, Any], operands: Sequence[tuple[Symbol, Any]]) -> list[Any]:
    """Put a node into the trace and run it on the example values; its results as tracers."""
    where = trace.builder.where = user_site()[0]
    outs = trace.builder.emit(prim, [s.value for s, _ in operands], attrs)
    if not outs:
        return []
    node = trace.builder.made[outs[0].value]
    shadows = [shadow for _, shadow in operands]
    found = examples(trace, lambda: _results(node, shadows), [v.aval for v in node.outputs])
    return wrap_all(trace, outs, found, where)


def _results(node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """The results of a node; long loops are compiled for it, since interpreting them takes longer."""
    if node.effect or _work(node) < LONG or MOST_STEPS.get() is not None:
        return run_node(node, values)
    given = dict(zip(node.inputs, values, strict=True))
    graph = Graph(node.prim.name, tuple(given), (node,), node.outputs)
    found: tuple[Any, ...] = Executable(run_stages(graph, settings=EXACT))(*given.values())
    return found


def _work(node: Node) -> int:
    """About how many nodes are run; a loop of unknown length counts as a long one."""
    loop = loop_of(node)
    steps = 1 if loop is None else loop.length
    return (LONG if steps < 0 else steps) * (1 + sum(_work(inner) for _, body in node.graphs for inner in body.nodes))


def check_carry(recorded: Recorded, start: Start, found: Spec | None = None) -> None:
    """CarryError, which prints both carries, if a body returns another carry than it takes."""
    where = user_site()[0]
    found = recorded.out_spec if found is None else found
    if found != start.spec or any(i < start.spec.num_leaves for i in recorded.statics):
        raise CarryError(
            f"the carry has the structure {written(start.spec)}, but the body returns {written(found)}",
            where=where,
            remedy="return a carry with the containers of init, and only arrays and numbers in them",
        )
    after = recorded.graph.out_avals[: len(start.avals)]
    for name, a, b in zip(leaf_names(start.spec), start.avals, after, strict=True):
        weak = b.kind == "python" and np.can_cast(b.dtype, a.dtype, "same_kind") and b.dtype.kind in "bif"
        if a.shape != b.shape or (a.dtype != b.dtype and not weak):
            raise CarryError(
                f"the carry{name} is {a} before the body and {b} after it",
                where=where,
                remedy="start from the shape and dtype that the body returns",
            )


def leaf_names(spec: Spec) -> list[str]:
    """For messages: the position in the tree of each leaf."""
    return [f" at {path}" if path else "" for path in leaf_paths(spec)]


def common(label: str, bodies: Sequence[Recorded]) -> list[Aval]:
    """The avals of results that several functions agree on; TreeError, ShapeError if they do not agree."""
    where, first = user_site()[0], bodies[0]
    for other in bodies[1:]:
        if other.out_spec != first.out_spec or other.statics != first.statics:
            raise TreeError(
                f"{label}: one function returns {results_named(first)}, another {results_named(other)}",
                where=where,
                remedy="return the same containers from both, with equal values where they contain no arrays",
            )
    names = [n for i, n in enumerate(leaf_names(first.out_spec)) if i not in first.statics]
    return [
        _agreed(label + name, avals) for name, *avals in zip(names, *(r.graph.out_avals for r in bodies), strict=True)
    ]


def results_named(recorded: Recorded) -> str:
    """The structure of results, for messages."""
    return written(recorded.out_spec) + (f" with {list(recorded.statics.values())}" if recorded.statics else "")


def _agreed(label: str, avals: Sequence[Aval]) -> Aval:
    """The common aval: a Python number takes the dtype of the others, as in arithmetic."""
    firm = {a.dtype for a in avals if a.kind != "python"}
    if len({a.shape for a in avals}) > 1 or len(firm) > 1:
        raise ShapeError(
            f"{label}: one function returns {avals[0]}, another {next(a for a in avals if a != avals[0])}",
            remedy="return equal shapes and dtypes: x.astype(...), np.broadcast_to(...)",
        )
    weak = [a.dtype.type(0).item() for a in avals if a.kind == "python"]
    dtype = np.result_type(*firm, *weak)
    kinds = {a.kind for a in avals}
    return Aval(avals[0].shape, dtype, "array" if kinds == {"array"} else "scalar")


def results(recorded: Recorded, tracers: Sequence[Any]) -> Any:
    """Results in the structure that a recorded function returned."""
    return results_of(recorded)(tracers)


def check_single(label: str, number: str, x: Any, remedy: str) -> None:
    """ShapeError if the deciding number is an array."""
    if np.ndim(shadow_of(x)):
        raise ShapeError(
            f"{label} needs one {number}, not an array of shape {np.shape(shadow_of(x))}",
            remedy=remedy,
        )


def one_bool(label: str, recorded: Recorded) -> None:
    """ShapeError unless a function returned one number, whose truth decides."""
    avals = recorded.graph.out_avals
    if not recorded.out_spec.is_leaf() or recorded.statics or avals[0].shape:
        found = avals[0] if recorded.out_spec.is_leaf() and avals else results_named(recorded)
        raise ShapeError(f"{label} gives {found}, not one bool", remedy="reduce it with np.all or np.any")


def decision(graph: Graph) -> Graph:
    """The graph of a condition with a bool as its result: a number is true if it is not 0."""
    b = Builder()
    (out,) = inline_into(b, graph, b.inputs_like(graph.inputs))
    return b.graph(graph.name, [out if out.dtype == BOOL else ne(out, 0)])
