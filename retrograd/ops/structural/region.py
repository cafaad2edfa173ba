"""region: a call whose derivative keeps the operands and what a policy saves, and computes everything else again."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from ...errors import MemoryBudgetError, OptionError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS, JvpMode, Primitive, primitive, pull
from ...ir.rewrite import copy_nodes
from ...ir.structure import Structure
from ...ir.types import Aval
from ...where import Where
from ..batching import elementwise
from .call import ONCE, batched_call, call, fused_call, make_call, narrowed_call, run_call, transposed_call
from .flags import spread
from .host import repeats

Policy = tuple[Any, ...]  # ("within", bytes, policy) keeps part of what a policy saves; for others see `saves`
PRODUCTS = frozenset({"convolve", "convolve_nd", "cholesky", "eigh", "matmul", "qr", "solve", "svd"})

# a value with a name for policies
named: Primitive = primitive(
    "named",
    lambda x, name: x,
    "{0}",
    alias=0,
    through=lambda v, shape, before, name: v,
    diff=(pull(lambda ct, x, name: ct),),
    batch=elementwise,
    cheap=True,
    lower=lambda b, node, args: args,
)


def make_region(b: Builder, body: Graph, operands: Sequence[Symbol], policy: Policy) -> list[Symbol]:
    """Emit a region; its results."""
    values = [b.coerce(x, v.aval).value for x, v in zip(operands, body.inputs, strict=True)]
    return b.emit(region, values, {"body": body, "policy": policy}, [v.hint for v in body.outputs])


def saves(policy: Policy, node: Node) -> bool:
    """Whether a policy saves the results of a node of the forward graph."""
    kind, *rest = policy
    name = node.attrs["name"] if node.prim is named else None
    if kind == "products":
        return node.prim.name in PRODUCTS
    if kind == "names":
        return name in rest
    if kind == "except":
        return name not in rest
    if kind == "any":
        return any(saves(p, node) for p in rest)
    if kind == "all":
        return all(saves(p, node) for p in rest)
    return bool(kind == "everything")


def savable(forward: Graph, policy: Policy) -> set[Value]:
    """The values of a forward graph that a policy saves; for a view, the value that it shows.

    A named value counts as the value that was given to ``name``.
    """
    of: dict[Value, Value] = {}
    for node in forward.nodes:
        if node.prim.alias is not None:
            of[node.out] = of.get(node.inputs[node.prim.alias], node.inputs[node.prim.alias])
    refused = {of[node.out] for node in forward.nodes if node.prim is named and not saves(policy, node)}
    found = {of.get(v, v) for node in forward.nodes if node.inputs and saves(policy, node) for v in node.outputs}
    return found - refused - set(forward.inputs)


def kept_values(
    forward: Graph, needed: Sequence[Value], policy: Policy, where: Where | None
) -> tuple[list[Value], list[Node]]:
    """The values of a forward graph that are kept for ``needed``, and the nodes that compute the others again.

    These are the nearest values that the policy saves, and in any case results of draws and of host calls, which are
    never repeated.
    """
    within = policy[0] == "within"
    saved = _within(forward, needed, policy, where) if within else savable(forward, policy)
    made, order = forward.producer, {node: i for i, node in enumerate(forward.nodes)}
    kept: dict[Value, None] = {}
    again: set[Node] = set()
    stack = list(needed)
    while stack:
        value = stack.pop()
        node = made.get(value)
        if node is None or value in kept or node in again:
            continue
        if value in saved or not repeats(node):
            kept[value] = None
        else:
            again.add(node)
            stack.extend(node.inputs)
    return list(kept), sorted(again, key=order.__getitem__)


def _within(forward: Graph, needed: Sequence[Value], policy: Policy, where: Where | None) -> Collection[Value]:
    """The values, among those that a policy saves, with which least runs again within the budget; MemoryBudgetError."""
    _, budget, allowed = policy
    choices = TRANSFORMS.retentions(forward, needed, savable(forward, allowed))
    for choice in choices:
        if choice.nbytes <= budget:
            return choice.values  # type: ignore[no-any-return]  # transforms are untyped here
    least = choices[-1].nbytes
    if math.isinf(least):
        raise OptionError(
            "the memory of this region depends on its data, so it cannot have a budget in bytes",
            where=where,
            remedy="omit the budget; results that must not be recomputed are then always kept",
        )
    raise MemoryBudgetError(
        f"results that this region must not recompute take more than {budget:,} bytes",
        minimum=int(least),
        where=where,
    )


def _shape(*avals: Aval, body: Graph, policy: Policy) -> tuple[Aval, ...]:
    return call.avals(avals, {"body": body})


def _jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> tuple[list[Any], list[Any]]:
    body, policy = node.attrs["body"], node.attrs["policy"]
    active = tuple(t is not None for t in tans)
    known = [t for t in tans if t is not None]
    if not mode.split:
        graph, flags = fused_call(body, active, mode)
        made = make_region(b, graph, [*args, *known], policy)
        return made[: len(flags)], spread(made[len(flags) :], flags)
    key = ("region", active, policy, mode.nan_safe)
    forward, again, reads, flags = body.once(key, lambda: _divided(body, active, policy, node.where, mode.nan_safe))
    results = make_call(b, forward, args, closed=True)
    n = len(body.outputs)
    available = [*args, *results[n:]]
    given = [*(available[k] for k in reads), *known]
    tangents = make_call(b, again, given, closed=True) if any(flags) else []
    return results[:n], spread(tangents, flags)


def _divided(
    body: Graph, active: Sequence[bool], policy: Policy, where: Where | None, nan_safe: bool
) -> tuple[Graph, Graph, list[int], Sequence[bool]]:
    """The forward graph with the kept values as results, and the linear graph, which computes its residuals again.

    The linear graph takes some of (operands, kept values), by position, and then the tangents.
    """
    lin = TRANSFORMS.linearize(body, active, nan_safe=nan_safe)
    kept, nodes = kept_values(lin.forward, lin.residuals, policy, where)
    outputs = lin.forward.outputs[: len(body.outputs)]
    forward = TRANSFORMS.prune(Graph(body.name, lin.forward.inputs, lin.forward.nodes, (*outputs, *kept)))
    b = Builder()
    available = [*lin.forward.inputs, *kept]
    inputs = b.inputs_like(available)
    env = dict(zip(available, inputs, strict=True))
    copy_nodes(b, nodes, env)
    tangents = b.inputs_like(lin.linear.inputs[len(lin.residuals) :])
    outs = TRANSFORMS.inline(b, lin.linear, [*(env[v] for v in lin.residuals), *tangents])
    graph = TRANSFORMS.prune(b.graph(f"{body.name}_linear", outs))
    live = TRANSFORMS.live_inputs(graph, [True] * len(graph.outputs))
    reads = [k for k in range(len(available)) if live[k]]
    taken = (*(graph.inputs[k] for k in reads), *graph.inputs[len(available) :])
    return forward, Graph(graph.name, taken, graph.nodes, graph.outputs), reads, lin.out_active


def _batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], body: Graph, policy: Policy) -> Any:
    graph, out_flags = batched_call(body, size, flags)
    return make_region(args[0].builder, graph, args, policy), out_flags


def _dce(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    attrs, ins, outs = narrowed_call(node, used)
    return {**attrs, "policy": node.attrs["policy"]}, ins, outs


region: Primitive = primitive(
    "region",
    _shape,
    multi=True,
    run=run_call,
    jvp=_jvp,
    transpose=transposed_call,
    batch=_batch,
    dce=_dce,
    structure=Structure(bodies=(ONCE,)),
)

# The turn from forward to adjoint in a derivative, with its budget in bytes, if any. With ``split`` the graph divides
# here: the first part has so many inputs and results; the second runs any number of times, so its operands stay.
turn: Primitive = primitive(
    "turn",
    lambda *, budget, split=None: (),
    multi=True,
    effect=True,
    final=True,
    run=lambda evaluate, node: (),
)


def turn_of(graph: Graph) -> Node | None:
    """The turn of a graph; None if it has none."""
    if turn not in graph.prims:
        return None
    return graph.once("turn", lambda: next(node for node in graph.nodes if node.prim is turn))
