"""scan: a loop with a carry, inputs read step by step, and results collected step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import REGISTRY, TRANSFORMS, JvpMode, Primitive, primitive
from ...ir.structure import Body, Group, Layout, Runs, Structure
from ...ir.types import Aval
from ..axes import move_axis
from ..batching import lanes
from ..elementwise import lt
from ..further_reductions import argmax, max_
from ..shape import broadcast_to
from .flags import instantiated, picked, spread
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
    make_scan,
    narrowed,
    parted,
    split_body,
    step_of,
    transposed_by_splitting,
)
from .stack import zero_of

INT = np.dtype(np.int64)


def layout(node: Node) -> Layout:
    """The layout of a scan node, without the operand that gives the number of steps."""
    return Layout(node.attrs["consts"], node.attrs["carry"], node.attrs["arrays"])


def counted(node: Node, items: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The operand that gives the number of steps if the length is -1, else None; and the other operands."""
    return (items[0], list(items[1:])) if node.attrs["length"] < 0 else (None, list(items))


def _scan_shape(
    *avals: Aval,
    body: Graph,
    consts: int,
    carry: int,
    arrays: int,
    length: int,
    reverse: bool,
    memory: tuple[Any, ...] | None = None,
) -> tuple[Aval, ...]:
    parts = Layout(consts, carry, arrays)
    if length < 0:
        count, *rest = avals
        if count.shape or count.dtype.kind not in "iu" or arrays:
            raise ValueError(f"{count} steps, or arrays of so many rows, cannot be")
        avals = tuple(rest)
    c, k, xs = parts.operands(avals)
    if any((x.steps[0] if x.steps else x.shape[0]) != length for x in xs):
        raise ValueError(f"xs {', '.join(map(str, xs))} do not have {length} steps")
    if body.in_avals != (*c, *k, *map(step_of, xs)):
        raise ValueError(f"the body takes {', '.join(map(str, body.in_avals))}")
    k_out, ys, stacks = parts.results(body.out_avals)
    if k_out != k:
        raise ValueError(f"the carry {', '.join(map(str, k))} becomes {', '.join(map(str, k_out))}")
    return (*k, *(Aval((length, *y.shape), y.dtype) for y in ys), *(s.stacked(length) for s in stacks))


def _scan_run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    parts, (count, rest) = layout(node), counted(node, args)
    length, most = node.attrs["length"] if count is None else int(count), MOST_STEPS.get()
    if count is not None and most is not None:
        length = min(length, most)
    consts, carry, xs = parts.operands(rest)
    steps = range(length)[::-1] if node.attrs["reverse"] else range(length)
    _, ys, stacks = parts.results(node.outputs)
    arrays = [np.zeros(y.aval.shape, y.aval.dtype) for y in ys]
    lists = [[zero_of(s.aval.unstacked())] * length for s in stacks]
    for t in steps[:most]:
        carry, y_t, s_t = parts.results(evaluate(node.attrs["body"], [*consts, *carry, *(x[t] for x in xs)]))
        stores: list[Any] = [*arrays, *lists]
        for store, value in zip(stores, (*y_t, *s_t), strict=True):
            store[t] = value
    return [*carry, *arrays, *lists]


def _scan_jvp(
    b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode
) -> tuple[list[Any], list[Any]]:
    parts, body, length, reverse = layout(node), node.attrs["body"], node.attrs["length"], node.attrs["reverse"]
    (count, args), (_, tans) = counted(node, args), counted(node, tans)
    memory = node.attrs.get("memory")
    active, lin = active_inputs(parts, body, tans, mode.nan_safe)
    tans = [instantiated(b, t, x.aval) if on else None for t, x, on in zip(tans, args, active, strict=True)]
    if mode.split:
        halves = split_body(parts, body, active, lin)
        made = make_scan(b, halves.forward, halves.wide, halves.operands(b, args), length, reverse, count, memory)
        return halves.tangents(b, made, args, tans, length, reverse, count)
    on = active_outputs(parts, active, lin.out_active)
    graph, wide = fused_body(parts, body, active, on, mode)
    operands = interleaved(parts.operands(args), parts.operands(tans))
    return parted(make_scan(b, graph, wide, operands, length, reverse, count, memory), parts.results(on))


def _scan_transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    """The scan in the other direction: it carries the cotangents of the carry, and sums for linear consts."""
    parts, body, length = layout(node), node.attrs["body"], node.attrs["length"]
    if _computes_known_carries(node, operands):
        return transposed_by_splitting(b, node, operands, cts)
    count, operands = counted(node, operands)
    linear = [not isinstance(x, Symbol) for x in operands]
    c_lin, _, x_lin = parts.operands(linear)
    consts, _, xs = parts.operands(operands)
    c_in, k_in, x_in = parts.operands(body.inputs)
    ct_k, ct_ys, ct_stacks = parts.results(cts)
    k_avals = [_number(v.aval) for v in k_in]
    ct_k = [instantiated(b, ct, aval) for ct, aval in zip(ct_k, k_avals, strict=True)]
    step_cts = [*ct_ys, *ct_stacks]
    has_ct = [ct is not None for ct in step_cts]

    inner = Builder()
    known_c = _known(inner, c_in, c_lin)
    k_ct = [inner.input(aval, v.hint) for aval, v in zip(k_avals, k_in, strict=True)]
    totals = [_number(v.aval) for v in picked(c_in, c_lin)]
    sums = [inner.input(aval, v.hint) for aval, v in zip(totals, picked(c_in, c_lin), strict=True)]
    known_x = _known(inner, x_in, x_lin)
    step_outs = body.outputs[parts.carry :]
    y_ct = [inner.input(step_of(ct.aval)) if ct is not None else None for ct in step_cts]
    y_ct = [None if s is None else inner.coerce(s, o.aval) for s, o in zip(y_ct, step_outs, strict=True)]
    found = TRANSFORMS.transpose(inner, body, [*known_c, *[None] * parts.carry, *known_x], [*k_ct, *y_ct])
    n = sum(c_lin)
    into_c, into_k, into_x = found[:n], found[n : n + parts.carry], found[n + parts.carry :]
    new_k = [instantiated(inner, ct, aval) for ct, aval in zip(into_k, k_avals, strict=True)]
    new_c = [s if ct is None else _sum(inner, s, ct) for s, ct in zip(sums, into_c, strict=True)]
    lin_x = picked(list(zip(x_in, xs, strict=True)), x_lin)
    gets = [ct is not None for ct in into_x]  # an x without a cotangent needs no zeros, whose number may be unknown
    new_x = [inner.coerce(ct, v.aval) for ct, (v, _) in zip(into_x, lin_x, strict=True) if ct is not None]
    is_list = [x.aval.steps is not None for _, x in picked(lin_x, gets)]
    results = [*new_k, *new_c, *picked(new_x, [not f for f in is_list]), *picked(new_x, is_list)]

    back = Layout(parts.consts - n, parts.carry + n, len(is_list) - sum(is_list))
    zeros = [b.zeros(aval) for aval in totals]
    known_consts, known_xs = ([x for x in group if isinstance(x, Symbol)] for group in (consts, xs))
    given = [*known_consts, *ct_k, *zeros, *known_xs, *picked(step_cts, has_ct)]
    graph = inner.graph(f"{body.name}_adjoint", results)
    k, arrays, lists = make_scan(b, graph, back, given, length, not node.attrs["reverse"], count)
    x_cts = iter(spread(_merged(arrays, lists, is_list), gets))
    sums_out = iter(k[parts.carry :])
    return [
        *([] if count is None else [None]),
        *(next(sums_out) if f else None for f in c_lin),
        *k[: parts.carry],
        *(next(x_cts) if f else None for f in x_lin),
    ]


def _merged(arrays: Sequence[Symbol], lists: Sequence[Symbol], is_list: Sequence[bool]) -> list[Symbol]:
    """Merge arrays and lists in the order that the flags give."""
    next_array, next_list = iter(arrays), iter(lists)
    return [next(next_list) if f else next(next_array) for f in is_list]


def _computes_known_carries(node: Node, operands: Sequence[Any]) -> bool:
    """Whether a carry depends on nothing linear. A carry that starts from a known zero may still be linear."""
    parts, body = layout(node), node.attrs["body"]
    linear = [not isinstance(x, Symbol) for x in counted(node, operands)[1]]
    while True:
        reached = {v for v, f in zip(body.inputs, linear, strict=True) if f}
        for inner in body.nodes:
            if any(v in reached for v in inner.inputs):
                reached.update(inner.outputs)
        grown = list(linear)
        for i, v in enumerate(body.outputs[: parts.carry]):
            grown[parts.consts + i] |= v in reached
        if grown == linear:
            return not all(parts.operands(linear)[1])
        linear = grown


def _number(aval: Aval) -> Aval:
    """The aval of a carried cotangent: for a 0-d array a NumPy scalar, as sums of such arrays are."""
    return aval if aval.shape or aval.steps is not None else Aval((), aval.dtype, "scalar")


def _known(inner: Builder, values: Sequence[Value], linear: Sequence[bool]) -> list[Any]:
    """Inputs for the known values, None for the others."""
    known = [not f for f in linear]
    return spread(inner.inputs_like(picked(values, known)), known)


def _sum(inner: Builder, total: Symbol, ct: Symbol) -> Symbol:
    add = REGISTRY["add" if total.aval.steps is None else "stack_add"]
    return inner.coerce(add(total, ct), total.aval)


def _scan_batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], **attrs: Any) -> Any:
    parts, body, b = Layout(attrs["consts"], attrs["carry"], attrs["arrays"]), attrs["body"], args[0].builder
    length, reverse = attrs["length"], attrs["reverse"]
    count = None
    if length < 0:
        if flags[0]:
            return _batch_counts(b, size, args, flags, parts, body, reverse, attrs.get("memory"))
        count, args, flags = args[0], args[1:], flags[1:]
    inner, _, outs, flags, out_flags = batched_body(parts, body, size, flags)
    k_flags = parts.operands(flags)[1]
    want = [*k_flags, *out_flags[parts.carry :]]
    outs = [lanes(size, o, f) if w else o for o, f, w in zip(outs, out_flags, want, strict=True)]
    outs = [inner.coerce(o, lane_aval(size, v.aval, w)) for o, v, w in zip(outs, body.outputs, want, strict=True)]
    graph = inner.graph(body.name, outs)
    operands = _over_lanes(size, args, parts, body, flags)
    carry, arrays, stacks = make_scan(b, graph, parts, operands, length, reverse, count, attrs.get("memory"))
    _, y_flags, _ = parts.results(want)
    arrays = [move_axis(y, 1, 0) if f else y for y, f in zip(arrays, y_flags, strict=True)]
    return [*carry, *arrays, *stacks], want


def _over_lanes(size: int, args: Sequence[Symbol], parts: Layout, body: Graph, flags: Sequence[bool]) -> list[Symbol]:
    """The operands of a loop over lanes: carries get lanes if they must, and the axis of steps stands before lanes."""
    c, k, xs = parts.operands(args)
    _, k_flags, x_flags = parts.operands(flags)
    k = [
        lanes(size, x, x.ndim > v.aval.ndim) if w else x
        for x, v, w in zip(k, parts.operands(body.inputs)[1], k_flags, strict=True)
    ]
    xs = [move_axis(x, 0, 1) if f and x.aval.steps is None else x for x, f in zip(xs, x_flags, strict=True)]
    return [*c, *k, *xs]


def _batch_counts(
    b: Builder,
    size: int,
    args: list[Symbol],
    flags: list[bool],
    parts: Layout,
    body: Graph,
    reverse: bool,
    memory: tuple[Any, ...] | None,
) -> Any:
    """Lanes with numbers of steps of their own: run as often as the longest; other lanes keep their last carry."""
    counts, *rest = args
    longest = leader = b.zeros(Aval((), INT, "scalar"))
    if size:
        longest, leader = max_(counts, axis=(0,), keepdims=False), argmax(counts, axis=0)
    _, _, outs, flags, out_flags = batched = batched_body(parts, body, size, flags[1:], every=True)
    graph = batched[0].graph(body.name, outs)

    inner = Builder()
    c_in, k_in, x_in = parts.operands(graph.inputs)
    c, many, lane = inner.inputs_like(c_in), inner.input(counts.aval), inner.input(Aval((), INT, "scalar"))
    k, t, xs = inner.inputs_like(k_in), inner.input(Aval((), INT, "scalar"), "t"), inner.inputs_like(x_in)
    mask = lt(broadcast_to(t, (size,)), inner.coerce(many, Aval((size,), INT)))
    given = [borrowed(mask, lane, x) if f else x for x, f in zip((*c, *k, *xs), flags, strict=True)]
    k_new, _, stacks = parts.results(TRANSFORMS.inline(inner, graph, given))
    k_new = [lanes(size, o, f) for o, f in zip(k_new, out_flags, strict=False)]  # stacks follow
    k_new = [chosen(mask, inner.coerce(new, old.aval), old) for new, old in zip(k_new, k, strict=True)]
    k_new = [inner.coerce(new, old.aval) for new, old in zip(k_new, k, strict=True)]
    step = inner.graph(body.name, [*k_new, t - 1 if reverse else t + 1, *stacks])

    c_args, k_args, x_args = Layout(parts.consts, parts.carry).operands(_over_lanes(size, rest, parts, body, flags))
    start = b.coerce(longest, t.aval) - 1 if reverse else b.zeros(t.aval)
    operands = [*c_args, counts, leader, *k_args, start, *x_args]
    wide = Layout(parts.consts + 2, parts.carry + 1)
    carry, _, lists = make_scan(b, step, wide, operands, -1, reverse, longest, memory)
    return [*carry[:-1], *lists], [*[True] * parts.carry, *out_flags[parts.carry :]]


def _scan_dce(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    """Drop unused results, then carries that nothing needs (a fixpoint), then unread inputs."""
    parts, body = layout(node), node.attrs["body"]
    keep = list(used)
    while True:
        live = TRANSFORMS.live_inputs(body, keep)
        grown = list(keep)
        for i in range(parts.carry):
            grown[i] |= live[parts.consts + i]
        if grown == keep:
            break
        keep = grown
    k_keep, y_keep, _ = parts.results(keep)
    c_live, _, x_live = parts.operands(live)
    in_keep = [*c_live, *k_keep, *x_live]
    counts = {"consts": sum(c_live), "carry": sum(k_keep), "arrays": sum(y_keep)}
    attrs = {**node.attrs, "body": narrowed(body, in_keep, keep), **counts}
    operands = [True, *in_keep] if node.attrs["length"] < 0 else in_keep
    return attrs, [i for i, f in enumerate(operands) if f], [i for i, f in enumerate(keep) if f]


scan = primitive(
    "scan",
    _scan_shape,
    multi=True,
    run=_scan_run,
    jvp=_scan_jvp,
    transpose=_scan_transpose,
    batch=_scan_batch,
    dce=_scan_dce,
    structure=Structure(
        bodies=(Body("body", Runs.STEPS, ("consts", "carry", "xs"), ("carry", "arrays", "stacks"), times="length"),),
        operands=(
            Group("count", lambda a: a["length"] < 0),
            Group("consts", "consts"),
            Group("carry", "carry"),
            Group("xs"),
        ),
        results=(Group("carry", "carry"), Group("arrays", "arrays"), Group("stacks")),
        loop=True,
    ),
    fresh=lambda node: range(node.attrs["carry"], node.attrs["carry"] + node.attrs["arrays"]),
    order="C",
)
