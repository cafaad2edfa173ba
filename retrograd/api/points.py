"""vjp, jvp, linearize and linear_transpose: derivatives at a point, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InternalError, NonDifferentiableError, OptionError, ShapeError, TreeError
from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.types import Aval
from ..passes.differentiate import pullback as pullback_graph
from ..passes.inline import inline_into
from ..passes.jvp import jvp as jvp_graph
from ..passes.linearize import linearize as linearize_graph
from ..passes.transpose import transpose
from ..runtime.executable import Executable
from ..tracer.array import Tracer, shadow_of
from ..tracer.record import Recorded, enclosing, insert
from ..tracer.trace import Capture, traceable
from ..tracer.tree import Spec, children, flatten, flatten_like
from ..tracer.where import user_site
from .compiled import Compiled, assembler, results_of
from .config import config
from .signature import Call, Wanted, take_apart, wanted


class GraphFunction:
    """A graph as a function of flat operands: compiled at its first plain call, inserted into a trace in one."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._executable: Executable | None = None

    def __call__(self, operands: Sequence[Any]) -> Sequence[Any]:
        trace = enclosing()
        if trace is not None:
            shadows = [x.shadow if isinstance(x, Capture) else shadow_of(x) for x in operands]
            return insert(trace, self.graph, operands, evaluate(self.graph, shadows), inline_into)
        if self._executable is None:
            self._executable = Executable(config.optimised(self.graph))
        plain = [x.payload if isinstance(x, Capture) else x for x in operands]
        results: Sequence[Any] = self._executable(*plain)
        return results


def _recorded(function: Callable[..., Any], args: tuple[Any, ...], label: str) -> tuple[Recorded, Call, Wanted]:
    """A function recorded at a point, all of whose arguments are differentiated."""
    compiled = Compiled(function, label)
    call = take_apart(function, args, {})
    chosen = wanted(call, function, tuple(range(len(args))))
    recorded, _ = compiled._record(call)
    return recorded, call, chosen


def _split_aux(recorded: Recorded, has_aux: bool) -> tuple[Spec, int]:
    """The structure of the differentiated output, and how many results it has."""
    if not has_aux:
        return recorded.out_spec, len(recorded.graph.outputs)
    if not (recorded.out_spec.type is tuple and len(children(recorded.out_spec)) == 2):
        raise OptionError(
            f"with has_aux=True the function returns a pair (output, aux), not {recorded.out_spec}",
            where=user_site()[0], remedy="return output, aux",
        )  # fmt: skip
    head = children(recorded.out_spec)[0]
    return head, sum(1 for i in range(head.num_leaves) if i not in recorded.statics)


def as_member(x: Any, aval: Aval, what: str) -> Any:
    """A tangent or cotangent for a value of this aval: its shape must be equal, its dtype is converted."""
    try:
        found = traceable(shadow_of(x))
    except TypeError:
        raise ShapeError(
            f"{what}: a {type(x).__name__} is no array of numbers", where=user_site()[0],
            remedy=f"pass an array of shape {aval.shape}",
        ) from None  # fmt: skip
    if found.shape != aval.shape or (found.dtype.kind == "c" and aval.dtype.kind != "c"):
        raise ShapeError(
            f"{what}: {found} is given, but the value it belongs to is {aval}", where=user_site()[0],
            remedy=f"pass an array of shape {aval.shape} and a dtype that becomes {aval.dtype}",
        )  # fmt: skip
    if isinstance(x, Tracer):
        return x if found.dtype == aval.dtype else x.astype(aval.dtype)
    if aval.kind == "array":
        return np.asarray(x, aval.dtype)
    return aval.dtype.type(x) if aval.kind == "scalar" else np.asarray(x, aval.dtype).item()


def _members(spec: Spec, tree: Any, avals: Sequence[Aval | None], what: str) -> list[Any]:
    leaves = flatten_like(spec, tree, what)
    return [as_member(x, a, what) for x, a in zip(leaves, avals, strict=True) if a is not None]


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value at a point, and the pullback there: ``(out, pullback)``, with ``has_aux`` ``(out, pullback, aux)``.

    ``pullback(ct)`` takes a cotangent with the structure and shapes of ``out`` and returns a tuple, one
    cotangent per primal. It may be called any number of times. Raises NonDifferentiableError, ShapeError,
    TreeError.

    >>> import numpy as np, retrograd as rg
    >>> out, pullback = rg.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> [float(ct) for ct in pullback(1.0)]
    [4.0, 3.0]
    """
    recorded, call, chosen = _recorded(function, primals, "vjp")
    head, n = _split_aux(recorded, has_aux)
    active = [*chosen.active, *(False for _ in recorded.captures)]
    lin = linearize_graph(recorded.graph, active)
    results = GraphFunction(lin.forward)([*call.values(), *recorded.captures])
    count = len(recorded.graph.outputs)
    outs, residuals = results[:count], results[count:]
    seeded = [i < n and aval.inexact for i, aval in enumerate(recorded.graph.out_avals)]
    backward = GraphFunction(pullback_graph(lin, seeded))
    avals = _leaf_avals(recorded, head)
    tree = results_of(recorded)(outs)

    def pullback(ct: Any) -> tuple[Any, ...]:
        cts = _members(head, ct, avals, "the cotangent")
        grads: tuple[Any, ...] = chosen.tree(backward([*residuals, *cts]))
        return grads

    return (tree[0], pullback, tree[1]) if has_aux else (tree, pullback)


def _leaf_avals(recorded: Recorded, head: Spec) -> list[Aval | None]:
    """The aval of each leaf of the output; None where it has no cotangent."""
    rest = iter(recorded.graph.out_avals)
    avals = [None if i in recorded.statics else next(rest) for i in range(head.num_leaves)]
    return [a if a is not None and a.inexact else None for a in avals]


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value at a point and its derivative along tangents: ``(out, out_tangent)``.

    ``primals`` and ``tangents`` are tuples or lists with one entry per argument, of equal structures and shapes.
    Raises NonDifferentiableError, ShapeError, TreeError.

    >>> import numpy as np, retrograd as rg
    >>> [float(v) for v in rg.jvp(lambda x: x**2, (3.0,), (1.0,))]
    [9.0, 6.0]
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TreeError(
            "jvp takes a tuple of primals and a tuple of tangents", where=user_site()[0],
            remedy="write jvp(f, (x,), (x_dot,))",
        )  # fmt: skip
    recorded, call, chosen = _recorded(function, tuple(primals), "jvp")
    active = [*chosen.active, *(False for _ in recorded.captures)]
    operands = [*call.values(), *recorded.captures]
    dots = _tangents(chosen, call, recorded, tangents)
    results = GraphFunction(jvp_graph(recorded.graph, active))([*operands, *dots])
    n = len(recorded.graph.outputs)
    assemble = results_of(recorded)
    return assemble(results[:n]), assembler(recorded.out_spec, recorded.statics)(results[n:])


def _tangents(chosen: Wanted, call: Call, recorded: Recorded, tangents: Sequence[Any]) -> list[Any]:
    avals = [recorded.graph.inputs[k].aval for k, on in enumerate(chosen.active) if on]
    wanted_leaves = [avals[i] if i >= 0 else None for i in chosen.leaves]
    filled = flatten(tuple(tangents))
    if filled[1] != chosen.spec:
        return _members(flatten(chosen.tree([0.0] * len(avals)))[1], tuple(tangents), avals, "the tangents")
    return _members(chosen.spec, tuple(tangents), wanted_leaves, "the tangents")


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value at a point, and the derivative there as a linear function of tangents: ``(out, linear)``.

    >>> import numpy as np, retrograd as rg
    >>> out, linear = rg.linearize(np.sin, 0.0)
    >>> float(linear(2.0))
    2.0
    """
    recorded, call, chosen = _recorded(function, primals, "linearize")
    active = [*chosen.active, *(False for _ in recorded.captures)]
    lin = linearize_graph(recorded.graph, active)
    results = GraphFunction(lin.forward)([*call.values(), *recorded.captures])
    n = len(recorded.graph.outputs)
    residuals = results[n:]
    forward = GraphFunction(lin.linear)
    assemble = results_of(recorded)
    avals = recorded.graph.out_avals

    def linear(*tangents: Any) -> Any:
        dots = iter(forward([*residuals, *_tangents(chosen, call, recorded, tangents)]))
        full = [next(dots) if on else _zero(a) for on, a in zip(lin.out_active, avals, strict=True)]
        return assemble(full)

    return assemble(results[:n]), linear


def _zero(aval: Aval) -> Any:
    return np.zeros(aval.shape, aval.dtype) if aval.kind == "array" else aval.dtype.type(0)


def linear_transpose(function: Callable[..., Any], *examples: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function: ``ct -> tuple``, one entry per argument.

    ``examples`` give shapes and dtypes only. Raises NonDifferentiableError where the function is not linear.

    >>> import numpy as np, retrograd as rg
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> rg.linear_transpose(lambda x: A @ x, np.zeros(2))(np.array([1.0, 0.0]))
    (array([1., 2.]),)
    """
    recorded, call, chosen = _recorded(function, examples, "linear_transpose")
    captures = recorded.captures
    n = len(call.traced)
    inputs = recorded.graph.inputs
    turned = Graph(recorded.graph.name, (*inputs[n:], *inputs[:n]), recorded.graph.nodes, recorded.graph.outputs)
    try:
        backward = GraphFunction(transpose(turned, len(captures)))
    except InternalError as fault:
        raise NonDifferentiableError(
            f"the function is not linear: {fault.what}", where=fault.where,
            remedy="transpose its linearization: rg.linearize(f, x)[1]",
        ) from None  # fmt: skip
    avals: list[Aval | None] = list(recorded.graph.out_avals)

    def transposed(ct: Any) -> tuple[Any, ...]:
        cts = _members(recorded.out_spec, ct, avals, "the cotangent")
        found: tuple[Any, ...] = chosen.tree(backward([*captures, *cts]))
        return found

    return transposed
