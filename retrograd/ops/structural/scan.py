"""scan: a loop with a carry, inputs read step by step, and results collected step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.primitive import TRANSFORMS, Primitive, primitive
from ...ir.types import Aval
from ..batching import lanes
from ..shape import move_axis
from .flags import instantiated, picked, spread


@dataclass(frozen=True)
class Layout:
    """How operands and results of a scan divide: consts, carry, xs → carry, arrays, stacks.

    The body is ``(consts, carry, x_t) -> (carry, arrays, stacks)``. Arrays are collected into one array with
    a leading axis of steps, stacks into a list of references.
    """

    consts: int
    carry: int
    arrays: int

    def operands(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        a, b = self.consts, self.consts + self.carry
        return list(items[:a]), list(items[a:b]), list(items[b:])

    def results(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        a, b = self.carry, self.carry + self.arrays
        return list(items[:a]), list(items[a:b]), list(items[b:])


def layout(node: Node) -> Layout:
    """The layout of a scan node."""
    return Layout(node.attrs["consts"], node.attrs["carry"], node.attrs["arrays"])


def step_of(x: Aval) -> Aval:
    """The aval of ``xs[t]``."""
    if x.steps is not None:
        return x.unstacked()
    return Aval(x.shape[1:], x.dtype, "array" if x.ndim > 1 else "scalar")


def _scan_shape(
    *avals: Aval, body: Graph, consts: int, carry: int, arrays: int, length: int, reverse: bool
) -> tuple[Aval, ...]:
    parts = Layout(consts, carry, arrays)
    c, k, xs = parts.operands(avals)
    if any((x.steps[0] if x.steps else x.shape[0]) != length for x in xs):
        raise ValueError(f"xs {', '.join(map(str, xs))} have not {length} steps")
    if body.in_avals != (*c, *k, *map(step_of, xs)):
        raise ValueError(f"the body takes {', '.join(map(str, body.in_avals))}")
    k_out, ys, stacks = parts.results(body.out_avals)
    if k_out != k:
        raise ValueError(f"the carry {', '.join(map(str, k))} becomes {', '.join(map(str, k_out))}")
    return (*k, *(Aval((length, *y.shape), y.dtype) for y in ys), *(s.stacked(length) for s in stacks))


def _scan_run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    parts, length = layout(node), node.attrs["length"]
    consts, carry, xs = parts.operands(args)
    steps = range(length)[::-1] if node.attrs["reverse"] else range(length)
    _, ys, stacks = parts.results(node.outputs)
    arrays = [np.empty(y.aval.shape, y.aval.dtype) for y in ys]
    lists: list[list[Any]] = [[None] * length for _ in stacks]
    for t in steps:
        carry, y_t, s_t = parts.results(evaluate(node.attrs["body"], [*consts, *carry, *(x[t] for x in xs)]))
        stores: list[Any] = [*arrays, *lists]
        for store, value in zip(stores, (*y_t, *s_t), strict=True):
            store[t] = value
    return [*carry, *arrays, *lists]


def _scan_emit(emitter: Any, node: Node, ins: list[str], outs: list[str]) -> None:
    parts, length, reverse = layout(node), node.attrs["length"], node.attrs["reverse"]
    consts, carry, xs = parts.operands(ins)
    k_out, arrays, stacks = parts.results(outs)
    _, ys, _ = parts.results(node.outputs)
    for out, init in zip(k_out, carry, strict=True):
        if out != init:
            emitter.line(f"{out} = {init}")
    for name, y in zip(arrays, ys, strict=True):
        emitter.line(f"{name} = np.empty({y.aval.shape}, {emitter.dtype(y.aval.dtype)})")
    for name in stacks:
        emitter.line(f"{name} = []")
    t = emitter.fresh("t")
    steps = f"range({length - 1}, -1, -1)" if reverse else f"range({length})"
    with emitter.block(f"for {t} in {steps}:"):
        names = [*consts, *k_out, *(f"{x}[{t}]" for x in xs)]
        results = emitter.inline(node.attrs["body"], names, bound=parts.consts + parts.carry)
        k_new, y_t, s_t = parts.results(results)
        for store, value in zip(arrays, y_t, strict=True):
            emitter.line(f"{store}[{t}] = {value}")
        for store, value in zip(stacks, s_t, strict=True):
            emitter.line(f"{store}.append({value})")
        moved = [(out, new) for out, new in zip(k_out, k_new, strict=True) if out != new]
        if moved:
            emitter.line(f"{', '.join(o for o, _ in moved)} = {', '.join(n for _, n in moved)}")
    if reverse:
        for name in stacks:
            emitter.line(f"{name}.reverse()")


def make_scan(
    b: Builder, body: Graph, parts: Layout, operands: Sequence[Symbol], length: int, reverse: bool
) -> tuple[list[Symbol], list[Symbol], list[Symbol]]:
    """Emit a scan; its results as carry, arrays and stacks."""
    attrs = {
        "arrays": parts.arrays, "body": body, "carry": parts.carry, "consts": parts.consts, "length": length,
        "reverse": reverse,
    }  # fmt: skip
    outs = b.emit(scan, [x.value for x in operands], attrs, [v.hint for v in body.outputs])
    return parts.results(outs)


def _active(node: Node, tans: Sequence[Any]) -> tuple[list[bool], Any]:
    """Which body inputs have tangents, as a fixpoint over the carries, and the linearized body."""
    parts = layout(node)
    active = [t is not None for t in tans]
    while True:
        lin = TRANSFORMS.linearize(node.attrs["body"], active)
        grown = list(active)
        for i, on in enumerate(lin.out_active[: parts.carry]):
            grown[parts.consts + i] |= on
        if grown == active:
            return active, lin
        active = grown


def _scan_jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], split: bool) -> tuple[list[Any], list[Any]]:
    active, lin = _active(node, tans)
    full = [instantiated(b, t, x.aval) if on else None for t, x, on in zip(tans, args, active, strict=True)]
    return (_jvp_split if split else _jvp_fused)(b, node, args, full, active, lin)


def _outputs_active(parts: Layout, active: list[bool], out_active: Sequence[bool]) -> list[bool]:
    return [*active[parts.consts : parts.consts + parts.carry], *out_active[parts.carry :]]


def _jvp_fused(
    b: Builder, node: Node, args: list[Symbol], tans: list[Any], active: list[bool], lin: Any
) -> tuple[list[Any], list[Any]]:
    """One scan over (consts, ċ | carry, k̇ | xs, ẋ)."""
    parts, body = layout(node), node.attrs["body"]
    on = _outputs_active(parts, active, lin.out_active)
    inner = Builder()
    groups, dots = [], []
    for values, flags in zip(parts.operands(body.inputs), parts.operands(active), strict=True):
        groups += inner.inputs_like(values)
        dots += spread(inner.inputs_like(picked(values, flags)), flags)
    outs, douts = TRANSFORMS.jvp(inner, body, groups, dots, False)
    douts = [instantiated(inner, d, o.aval) if f else None for d, o, f in zip(douts, outs, on, strict=True)]
    results: list[Symbol] = []
    for o, d in zip(parts.results(outs), parts.results(douts), strict=True):
        results += [*o, *(x for x in d if x is not None)]
    operands: list[Symbol] = []
    for a, t in zip(parts.operands(args), parts.operands(tans), strict=True):
        operands += [*a, *(x for x in t if x is not None)]
    c_on, k_on, _ = parts.operands(active)
    _, y_on, _ = parts.results(on)
    wide = Layout(parts.consts + sum(c_on), parts.carry + sum(k_on), parts.arrays + sum(y_on))
    made = make_scan(b, inner.graph(body.name, results), wide, operands, node.attrs["length"], node.attrs["reverse"])
    primal: list[Any] = []
    tangent: list[Any] = []
    for got, flags in zip(made, parts.results(on), strict=True):
        primal += got[: len(flags)]
        tangent += spread(got[len(flags) :], flags)
    return primal, tangent


def _jvp_split(
    b: Builder, node: Node, args: list[Symbol], tans: list[Any], active: list[bool], lin: Any
) -> tuple[list[Any], list[Any]]:
    """Two scans: one forward that also stacks the residuals, and a linear one that reads them."""
    parts, body, length, reverse = layout(node), node.attrs["body"], node.attrs["length"], node.attrs["reverse"]
    forward = lin.forward
    c_in, _, x_in = parts.operands(forward.inputs)
    operand = dict(zip(forward.inputs, args, strict=True))
    as_const = [r for r in lin.residuals if r in c_in]
    as_xs = [r for r in lin.residuals if r in x_in]
    stacked = [r for r in lin.residuals if r not in c_in and r not in x_in]
    outs = forward.outputs[: len(body.outputs)]
    grown = Graph(body.name, forward.inputs, forward.nodes, (*outs, *stacked))
    carry, arrays, stacks = make_scan(b, grown, parts, args, length, reverse)
    own, saved = stacks[: len(stacks) - len(stacked)], stacks[len(stacks) - len(stacked) :]

    on = _outputs_active(parts, active, lin.out_active)
    inner = Builder()
    known = dict(zip(as_const, inner.inputs_like(as_const), strict=True))
    c_dot, k_dot, x_dot = (
        picked(v, f) for v, f in zip(parts.operands(forward.inputs), parts.operands(active), strict=True)
    )
    dots = inner.inputs_like(c_dot) + inner.inputs_like(k_dot)
    known |= dict(zip((*as_xs, *stacked), inner.inputs_like((*as_xs, *stacked)), strict=True))
    dots += inner.inputs_like(x_dot)
    got = TRANSFORMS.inline(inner, lin.linear, [*(known[r] for r in lin.residuals), *dots])
    douts = spread(got, lin.out_active)
    results = [instantiated(inner, d, o.aval) for d, o, f in zip(douts, outs, on, strict=True) if f]
    c_tan, k_tan, x_tan = ([t for t in group if t is not None] for group in parts.operands(tans))
    _, y_on, _ = parts.results(on)
    narrow = Layout(len(as_const) + len(c_dot), len(k_dot), sum(y_on))
    operands = [*(operand[r] for r in as_const), *c_tan, *k_tan, *(operand[r] for r in as_xs), *saved, *x_tan]
    k, a, s = make_scan(b, inner.graph(f"{body.name}_linear", results), narrow, operands, length, reverse)
    return [*carry, *arrays, *own], spread([*k, *a, *s], on)


def _scan_transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    """The scan in the other direction: carries are the carry's cotangents and sums over linear consts."""
    parts, body, length = layout(node), node.attrs["body"], node.attrs["length"]
    linear = [not isinstance(x, Symbol) for x in operands]
    c_lin, _, x_lin = parts.operands(linear)
    _, _, xs = parts.operands(operands)
    c_in, k_in, x_in = parts.operands(body.inputs)
    ct_k, ct_ys, ct_stacks = parts.results(cts)
    ct_k = [instantiated(b, ct, x.aval) for ct, x in zip(ct_k, k_in, strict=True)]
    step_cts = [*ct_ys, *ct_stacks]
    has_ct = [ct is not None for ct in step_cts]

    inner = Builder()
    known_c = spread(inner.inputs_like(v for v, f in zip(c_in, c_lin, strict=True) if not f), [not f for f in c_lin])
    k_ct = inner.inputs_like(k_in)
    sums = inner.inputs_like(picked(c_in, c_lin))
    known_x = spread(inner.inputs_like(v for v, f in zip(x_in, x_lin, strict=True) if not f), [not f for f in x_lin])
    step_outs = body.outputs[parts.carry :]
    y_ct = [inner.input(step_of(ct.aval)) if ct is not None else None for ct in step_cts]
    y_ct = [None if s is None else inner.coerce(s, o.aval) for s, o in zip(y_ct, step_outs, strict=True)]
    found = TRANSFORMS.transpose(inner, body, [*known_c, *[None] * parts.carry, *known_x], [*k_ct, *y_ct])
    n = sum(c_lin)
    into_c, into_k, into_x = found[:n], found[n : n + parts.carry], found[n + parts.carry :]
    new_k = [instantiated(inner, ct, v.aval) for ct, v in zip(into_k, k_in, strict=True)]
    new_c = [s if ct is None else inner.coerce(s + ct, s.aval) for s, ct in zip(sums, into_c, strict=True)]
    lin_x = picked(list(zip(x_in, xs, strict=True)), x_lin)
    new_x = [instantiated(inner, ct, v.aval) for ct, (v, _) in zip(into_x, lin_x, strict=True)]
    is_list = [x.aval.steps is not None for _, x in lin_x]
    results = [*new_k, *new_c, *picked(new_x, [not f for f in is_list]), *picked(new_x, is_list)]

    back = Layout(parts.consts - n, parts.carry + n, len(is_list) - sum(is_list))
    zeros = [b.zeros(v.aval) for v in picked(c_in, c_lin)]
    known = [x for x in operands if isinstance(x, Symbol)]
    known_consts, known_xs = known[: back.consts], [x for x in xs if isinstance(x, Symbol)]
    given = [*known_consts, *ct_k, *zeros, *known_xs, *picked(step_cts, has_ct)]
    graph = inner.graph(f"{body.name}_adjoint", results)
    k, arrays, lists = make_scan(b, graph, back, given, length, not node.attrs["reverse"])
    into_arrays, into_lists = iter(arrays), iter(lists)
    x_cts = iter([next(into_lists) if f else next(into_arrays) for f in is_list])
    sums_out = iter(k[parts.carry :])
    return [
        *(next(sums_out) if f else None for f in c_lin), *k[: parts.carry], *(next(x_cts) if f else None for f in x_lin)
    ]  # fmt: skip


def _scan_batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], **attrs: Any) -> Any:
    parts, body, b = Layout(attrs["consts"], attrs["carry"], attrs["arrays"]), attrs["body"], args[0].builder
    flags = list(flags)
    while True:
        inner = Builder()
        inputs = [inner.input(_lane_aval(size, v.aval, f), v.hint) for v, f in zip(body.inputs, flags, strict=True)]
        outs, out_flags = TRANSFORMS.batch(inner, body, size, inputs, flags)
        grown = list(flags)
        for i, on in enumerate(out_flags[: parts.carry]):
            grown[parts.consts + i] |= on
        if grown == flags:
            break
        flags = grown
    k_flags = flags[parts.consts : parts.consts + parts.carry]
    want = [*k_flags, *out_flags[parts.carry :]]
    outs = [lanes(size, o, f) if w else o for o, f, w in zip(outs, out_flags, want, strict=True)]
    outs = [inner.coerce(o, _lane_aval(size, v.aval, w)) for o, v, w in zip(outs, body.outputs, want, strict=True)]
    c, k, xs = parts.operands(args)
    k = [
        x if not w or x.aval == _lane_aval(size, v.aval, w) else lanes(size, x, False)
        for x, v, w in zip(k, parts.operands(body.inputs)[1], k_flags, strict=True)
    ]
    xs = [
        move_axis(x, 0, 1) if f and x.aval.steps is None else x
        for x, f in zip(xs, parts.operands(flags)[2], strict=True)
    ]
    made = make_scan(b, inner.graph(body.name, outs), parts, [*c, *k, *xs], attrs["length"], attrs["reverse"])
    carry, arrays, stacks = made
    _, y_flags, _ = parts.results(want)
    arrays = [move_axis(y, 1, 0) if f else y for y, f in zip(arrays, y_flags, strict=True)]
    return [*carry, *arrays, *stacks], want


def _lane_aval(size: int, aval: Aval, flag: bool) -> Aval:
    return Aval((size, *aval.shape), aval.dtype, "array", aval.steps) if flag else aval


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
    small = Graph(body.name, tuple(picked(body.inputs, in_keep)), body.nodes, tuple(picked(body.outputs, keep)))
    counts = {"consts": sum(c_live), "carry": sum(k_keep), "arrays": sum(y_keep)}
    attrs = {**node.attrs, "body": TRANSFORMS.prune(small), **counts}
    return attrs, [i for i, f in enumerate(in_keep) if f], [i for i, f in enumerate(keep) if f]


scan = primitive(
    "scan", _scan_shape, multi=True, run=_scan_run, emit=_scan_emit, jvp=_scan_jvp, transpose=_scan_transpose,
    batch=_scan_batch, dce=_scan_dce,
    fresh=lambda node: range(node.attrs["carry"], node.attrs["carry"] + node.attrs["arrays"]),
)  # fmt: skip
