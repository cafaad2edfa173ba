"""while_loop: a loop that goes on while a condition on its carry holds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS, JvpMode, Primitive, primitive
from ...ir.structure import Body, Group, Layout, Runs, Structure
from ...ir.types import Aval
from ..batching import lanes
from ..elementwise import BOOL
from ..further_reductions import any_, argmax
from .flags import instantiated
from .loops import (
    MOST_STEPS,
    active_inputs,
    active_outputs,
    batched_body,
    borrowed,
    chosen,
    fused_body,
    interleaved,
    lane_aval,
    narrowed,
    parted,
    split_body,
    transposed_by_splitting,
)

COUNT = Aval((), np.dtype(np.int64), "python")


def layout(node: Node) -> Layout:
    """The layout of a while loop."""
    return Layout(node.attrs["consts"], node.attrs["carry"])


def _shape(
    *avals: Aval, cond: Graph, body: Graph, consts: int, carry: int, memory: tuple[Any, ...] | None = None
) -> tuple[Aval, ...]:
    if cond.in_avals != avals or body.in_avals != avals or len(avals) != consts + carry:
        raise ValueError(f"condition and body do not take {', '.join(map(str, avals))}")
    decided = cond.out_avals
    if len(decided) != 1 or decided[0].shape or decided[0].dtype != BOOL:
        raise ValueError(f"the condition gives {', '.join(map(str, decided))}, not one bool")
    k_out, _, stacks = Layout(consts, carry).results(body.out_avals)
    if k_out != list(avals[consts:]):
        raise ValueError(f"the carry {', '.join(map(str, avals[consts:]))} becomes {', '.join(map(str, k_out))}")
    return (*k_out, *(s.stacked(-1) for s in stacks))


def _run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    parts, cond, body = layout(node), node.attrs["cond"], node.attrs["body"]
    consts, carry, _ = parts.operands(args)
    lists: list[list[Any]] = [[] for _ in node.outputs[parts.carry :]]
    most = MOST_STEPS.get()
    steps = itertools.count() if most is None else range(most)
    for _ in steps:
        if not evaluate(cond, [*consts, *carry])[0]:
            break
        carry, _, saved = parts.results(evaluate(body, [*consts, *carry]))
        for store, value in zip(lists, saved, strict=True):
            store.append(value)
    return [*carry, *lists]


def make_while(
    b: Builder,
    cond: Graph,
    body: Graph,
    parts: Layout,
    operands: Sequence[Symbol],
    memory: tuple[Any, ...] | None = None,
) -> tuple[list[Symbol], list[Symbol], list[Symbol]]:
    """Emit a while loop; its results as carry, nothing, and stacks."""
    attrs: dict[str, Any] = {"body": body, "carry": parts.carry, "cond": cond, "consts": parts.consts}
    if memory is not None:
        attrs["memory"] = memory
    hints = [v.hint for v in body.outputs]
    return parts.results(b.emit(while_loop, [x.value for x in operands], attrs, hints))


def _for_inputs(cond: Graph, parts: Layout, body: Graph, wide: Layout) -> Graph:
    """The condition with the inputs of an extended body: it reads the first values of each group."""
    consts, carry, _ = parts.operands(cond.inputs)
    more_consts, more_carry, _ = wide.operands(body.inputs)
    more = [[Value(v.aval, v.hint) for v in group] for group in (more_consts[len(consts) :], more_carry[len(carry) :])]
    return Graph(cond.name, (*consts, *more[0], *carry, *more[1]), cond.nodes, cond.outputs)


def _counting(parts: Layout, body: Graph) -> tuple[Graph, Layout]:
    """The body with one more carry, which counts the steps."""
    inner = Builder()
    inputs = inner.inputs_like(body.inputs)
    n = inner.input(COUNT, "n")
    outs = TRANSFORMS.inline(inner, body, inputs)
    k, _, stacks = parts.results(outs)
    k = [inner.coerce(x, v.aval) for x, v in zip(k, body.outputs, strict=False)]  # stacks follow
    return inner.graph(body.name, [*k, n + 1, *stacks]), Layout(parts.consts, parts.carry + 1)


def _jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> tuple[list[Any], list[Any]]:
    parts, cond, body = layout(node), node.attrs["cond"], node.attrs["body"]
    if mode.split:
        return _jvp_split(b, node, args, tans, mode.nan_safe)
    active, lin = active_inputs(parts, body, tans, mode.nan_safe)
    tans = [instantiated(b, t, x.aval) if f else None for t, x, f in zip(tans, args, active, strict=True)]
    on = active_outputs(parts, active, lin.out_active)
    graph, wide = fused_body(parts, body, active, on, mode)
    operands = interleaved(parts.operands(args), parts.operands(tans))
    made = make_while(b, _for_inputs(cond, parts, graph, wide), graph, wide, operands, node.attrs.get("memory"))
    return parted(made, parts.results(on))


def _jvp_split(
    b: Builder, node: Node, args: list[Symbol], tans: list[Any], nan_safe: bool
) -> tuple[list[Any], list[Any]]:
    """The loop, which also counts its steps and saves residuals, and a linear scan with that number of steps."""
    body, parts = _counting(layout(node), node.attrs["body"])
    args, tans = [*args, b.zeros(COUNT)], [*tans, None]
    active, lin = active_inputs(parts, body, tans, nan_safe)
    tans = [instantiated(b, t, x.aval) if f else None for t, x, f in zip(tans, args, active, strict=True)]
    halves = split_body(parts, body, active, lin)
    cond = _for_inputs(node.attrs["cond"], layout(node), halves.forward, halves.wide)
    made = make_while(b, cond, halves.forward, halves.wide, halves.operands(b, args), node.attrs.get("memory"))
    count = made[0][parts.carry - 1]
    outs, dots = halves.tangents(b, made, args, tans, -1, False, count)
    at = parts.carry - 1
    return outs[:at] + outs[at + 1 :], dots[:at] + dots[at + 1 :]


def _batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], **attrs: Any) -> Any:
    parts, cond, body, b = Layout(attrs["consts"], attrs["carry"]), attrs["cond"], attrs["body"], args[0].builder
    memory = attrs.get("memory")
    inner, _, outs, on, out_flags = batched_body(parts, body, size, flags)
    if _decided_per_lane(cond, size, on):
        return _batch_lanes(b, size, args, flags, parts, cond, body, memory)
    want = [*parts.operands(on)[1], *out_flags[parts.carry :]]
    outs = [lanes(size, o, f) if w else o for o, f, w in zip(outs, out_flags, want, strict=True)]
    outs = [inner.coerce(o, lane_aval(size, v.aval, w)) for o, v, w in zip(outs, body.outputs, want, strict=True)]
    graph = inner.graph(body.name, outs)
    decide = Builder()
    inputs = decide.inputs_like(graph.inputs)
    (go,), _ = TRANSFORMS.batch(decide, cond, size, inputs, on)
    operands = _spread_carry(size, args, parts, flags, on)
    carry, _, stacks = make_while(b, decide.graph(cond.name, [go]), graph, parts, operands, memory)
    return [*carry, *stacks], want


def _decided_per_lane(cond: Graph, size: int, flags: Sequence[bool]) -> bool:
    trial = Builder()
    inputs = [trial.input(lane_aval(size, v.aval, f)) for v, f in zip(cond.inputs, flags, strict=True)]
    found: bool = TRANSFORMS.batch(trial, cond, size, inputs, flags)[1][0]
    return found


def _spread_carry(
    size: int, args: Sequence[Symbol], parts: Layout, flags: Sequence[bool], on: Sequence[bool]
) -> list[Symbol]:
    """The operands, with lanes for carries that get them."""
    return [
        lanes(size, x, f) if w and i >= parts.consts else x
        for i, (x, f, w) in enumerate(zip(args, flags, on, strict=True))
    ]


def _batch_lanes(
    b: Builder,
    size: int,
    args: list[Symbol],
    flags: list[bool],
    parts: Layout,
    cond: Graph,
    body: Graph,
    memory: tuple[Any, ...] | None,
) -> Any:
    """Lanes that end one by one: the loop goes on while any lane does; lanes that ended keep their carry.

    Another carry holds which lanes go on, so that the condition is computed once per step.
    """
    batched, _, outs, on, out_flags = batched_body(parts, body, size, flags, every=True)
    graph = batched.graph(body.name, outs)

    inner = Builder()
    inputs = inner.inputs_like(graph.inputs)
    going = inner.input(Aval((size,), BOOL), "going")
    c, k, _ = parts.operands(inputs)
    lane = argmax(going, axis=0)
    found = TRANSFORMS.inline(
        inner, graph, [borrowed(going, lane, x) if f else x for x, f in zip(inputs, on, strict=True)]
    )
    k_new, _, stacks = parts.results(found)
    k_new = [lanes(size, o, f) for o, f in zip(k_new, out_flags, strict=False)]  # stacks follow
    k_new = [chosen(going, inner.coerce(new, old.aval), old) for new, old in zip(k_new, k, strict=True)]
    step = inner.graph(body.name, [*k_new, _going(inner, size, cond, [*c, *k_new], on), *stacks])

    operands = _spread_carry(size, args, parts, flags, on)
    first = _going(b, size, cond, operands, on)
    decide = Builder()
    again = any_(decide.inputs_like(step.inputs)[-1], axis=(0,), keepdims=False)
    wide = Layout(parts.consts, parts.carry + 1)
    carry, _, lists = make_while(b, decide.graph("any", [again]), step, wide, [*operands, first], memory)
    return [*carry[:-1], *lists], [*[True] * parts.carry, *out_flags[parts.carry :]]


def _going(b: Builder, size: int, cond: Graph, inputs: list[Symbol], flags: Sequence[bool]) -> Symbol:
    """The condition in each lane."""
    (go,), (flag,) = TRANSFORMS.batch(b, cond, size, inputs, flags)
    return b.coerce(lanes(size, go, flag), Aval((size,), BOOL))


def _transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    deciding = _dce(node, [False] * len(node.outputs))[1]
    if not all(isinstance(operands[i], Symbol) for i in deciding):
        raise InternalError("while_loop is not linear in what its condition reads", where=node.where)
    return transposed_by_splitting(b, node, operands, cts)


def _dce(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    """Drop unused results, but not carries that the condition or a used result needs; then drop unread inputs."""
    parts, cond, body = layout(node), node.attrs["cond"], node.attrs["body"]
    decides = TRANSFORMS.live_inputs(cond, [True])
    keep = [u or f for u, f in zip(used, parts.operands(decides)[1], strict=False)] + used[parts.carry :]
    while True:
        live = [a or b for a, b in zip(TRANSFORMS.live_inputs(body, keep), decides, strict=True)]
        grown = [k or f for k, f in zip(keep, live[parts.consts :], strict=False)] + keep[parts.carry :]
        if grown == keep:
            break
        keep = grown
    in_keep = [*live[: parts.consts], *keep[: parts.carry]]
    graphs = {"body": narrowed(body, in_keep, keep), "cond": narrowed(cond, in_keep, [True])}
    attrs = {**node.attrs, **graphs, "carry": sum(keep[: parts.carry]), "consts": sum(live[: parts.consts])}
    return attrs, [i for i, f in enumerate(in_keep) if f], [i for i, f in enumerate(keep) if f]


while_loop: Primitive = primitive(
    "while_loop",
    _shape,
    multi=True,
    run=_run,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    dce=_dce,
    structure=Structure(
        bodies=(
            Body("body", Runs.STEPS, ("consts", "carry"), ("carry", "stacks"), times=lambda _: -1),
            Body("cond", Runs.STEPS, ("consts", "carry"), ("decision",), times=lambda _: -1),
        ),
        operands=(Group("consts", "consts"), Group("carry", "carry")),
        results=(Group("carry", "carry"), Group("stacks")),
        loop=True,
    ),
)
