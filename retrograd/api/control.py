"""Structured control flow: scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..errors import CarryError, OptionError, ShapeError
from ..ir.builder import Builder, Symbol
from ..ir.evaluate import run_node
from ..ir.graph import Graph
from ..ir.types import Aval, aval_of
from ..ops.structural.scan import scan as scan_primitive
from ..passes.inline import inline_into
from ..tracer.array import Tracer, shadow_of, symbol_in, wrap_all
from ..tracer.record import Recorded, enclosing, record
from ..tracer.trace import Capture, Trace, traceable
from ..tracer.tree import children, flatten, leaf_paths, unflatten
from ..tracer.where import user_site
from .compiled import Compiled
from .signature import parameter_names


def scan(
    body: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None, *,
    reverse: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """A loop with a carry: ``body(carry, x) -> (carry, y)`` for each ``x`` along the first axis of ``xs``.

    ``init`` and ``xs`` are trees; ``length`` is needed where ``xs`` is None. Returns the last carry and the
    ``y`` stacked along a first axis. The body is recorded once; it may close over traced values, which get
    gradients. ``reverse`` runs from the last ``x`` to the first. The carry keeps its structure, shapes and
    dtypes: CarryError otherwise.

    >>> import numpy as np, retrograd as rg
    >>> total, sums = rg.scan(lambda c, x: (c + x, c + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(total), sums
    (6.0, array([1., 3., 6.]))
    """
    if not callable(body):
        raise OptionError(
            f"scan wants a body, got {type(body).__name__}", where=user_site()[0],
            remedy="write scan(body, init, xs) with body(carry, x) -> (carry, y)",
        )  # fmt: skip
    trace = enclosing()
    if trace is None:
        run = Compiled(lambda init, xs: scan(body, init, xs, length, reverse=reverse), "scan")
        result: tuple[Any, Any] = run(_as_arrays(init), _as_arrays(xs))
        return result
    carry, carry_spec = flatten(init)
    items, xs_spec = flatten(xs)
    n = _length(items, length)
    carry = [_strong(x) for x in carry]
    shadows = [shadow_of(x) for x in carry]
    firsts = [shadow_of(x)[0] if n else np.zeros(np.shape(shadow_of(x))[1:], shadow_of(x).dtype)[()] for x in items]

    def run_body(leaves: Sequence[Any]) -> Any:
        c, x = unflatten(carry_spec, leaves[: len(carry)]), unflatten(xs_spec, leaves[len(carry) :])
        return body(c, x)

    name = getattr(body, "__name__", "body")
    own = parameter_names(body)
    names = own if len(own) == 2 else ["carry", "x"]
    parts = zip(names, (carry_spec, xs_spec), strict=True)
    hints = [f"{a}_{p}" if p else a for a, spec in parts for p in leaf_paths(spec)]
    with nullcontext() if n else np.errstate(all="ignore"):  # without steps, the example is made up
        recorded = record(run_body, name if name.isidentifier() else "body", [*shadows, *firsts], hints, concrete=False)
    y_spec = _checked(recorded, carry_spec, [aval_of(s) for s in shadows])
    return _emit(trace, recorded, carry, items, n, reverse, carry_spec, y_spec)


def _as_arrays(tree: Any) -> Any:
    leaves, spec = flatten(tree)
    return unflatten(spec, [_strong(x) for x in leaves])


def _strong(x: Any) -> Any:
    """A Python number as the NumPy scalar that it becomes in a loop."""
    if isinstance(x, Tracer):
        return x if isinstance(x.shadow, (np.ndarray, np.generic)) else x.astype(x.dtype)
    if isinstance(x, (bool, int, float, complex)):
        return aval_of(x).dtype.type(x)
    traceable(x)
    return x


def _length(items: Sequence[Any], length: int | None) -> int:
    for x in items:
        if not np.ndim(shadow_of(x)):
            raise ShapeError(
                "xs of a scan need a first axis of steps", where=user_site()[0],
                remedy="stack the steps of each leaf in one array: np.array(xs)",
            )  # fmt: skip
    lengths = {np.shape(shadow_of(x))[0] for x in items} | ({length} if length is not None else set())
    if len(lengths) != 1:
        what = f"lengths {sorted(lengths)} differ" if lengths else "neither xs nor length is given"
        raise ShapeError(f"scan: {what}", where=user_site()[0], remedy="give xs of one length, or length=n")
    (n,) = lengths
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise OptionError(f"length={n!r} is no number of steps", where=user_site()[0], remedy="give length=n, n >= 0")
    return int(n)


def _checked(recorded: Recorded, carry_spec: Any, before: list[Aval]) -> Any:
    """The structure of ``y``; CarryError where the carry changes."""
    where = user_site()[0]
    spec = recorded.out_spec
    if recorded.statics or spec.type is not tuple or len(children(spec)) != 2:
        raise CarryError(f"the body returns {spec}, not a pair (carry, y)", where=where, remedy="return carry, y")
    if children(spec)[0] != carry_spec:
        raise CarryError(
            f"the carry has the structure {carry_spec}, but the body returns {children(spec)[0]}", where=where,
            remedy="return a carry with the containers of init",
        )  # fmt: skip
    after = recorded.graph.out_avals[: len(before)]
    for a, b in zip(before, after, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise CarryError(
                f"the carry is {a} before the body and {b} after it", where=where,
                remedy="start from the shape and dtype that the body returns",
            )  # fmt: skip
    return children(spec)[1]


def _emit(
    trace: Trace, recorded: Recorded, carry: list[Any], items: list[Any], n: int, reverse: bool, carry_spec: Any,
    y_spec: Any,
) -> tuple[Any, Any]:  # fmt: skip
    k, x = len(carry), len(items)
    graph = _coerced(recorded.graph, k)
    inputs = graph.inputs
    body = Graph(graph.name, (*inputs[k + x :], *inputs[:k], *inputs[k : k + x]), graph.nodes, graph.outputs)
    symbols = [_payload(trace, c) for c in recorded.captures]
    symbols += [symbol_in(trace, v) for v in (*carry, *items)]
    attrs = {
        "arrays": len(body.outputs) - k, "body": body, "carry": k, "consts": len(recorded.captures), "length": n,
        "reverse": reverse,
    }  # fmt: skip
    where = trace.builder.where = user_site()[0]
    outs = trace.builder.emit(scan_primitive, [s.value for s in symbols], attrs)
    node = trace.builder.made[outs[0].value] if outs else None
    values = [c.shadow for c in recorded.captures] + [shadow_of(v) for v in (*carry, *items)]
    results = run_node(node, values) if node is not None else ()
    tracers = wrap_all(trace, outs, results, where)
    return unflatten(carry_spec, tracers[:k]), unflatten(y_spec, tracers[k:])


def _payload(trace: Trace, capture: Capture) -> Symbol:
    return capture.payload if isinstance(capture.payload, Symbol) else symbol_in(trace, capture.payload)


def _coerced(graph: Graph, k: int) -> Graph:
    """The body with carries of exactly the avals that come in: a scalar is no 0-d array."""
    b = Builder()
    inputs = b.inputs_like(graph.inputs)
    outs = inline_into(b, graph, inputs)
    return b.graph(graph.name, [b.coerce(o, i.aval) for o, i in zip(outs[:k], inputs[:k], strict=True)] + outs[k:])
