"""Shared parts of loops: the groups of their operands, and the bodies of their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import REGISTRY, TRANSFORMS, JvpMode
from ...ir.structure import Layout
from ...ir.texts import Arg
from ...ir.types import Aval
from ..elementwise import where
from ..index import getitem
from ..shape import broadcast_to, reshape_to, stop_gradient
from .flags import instantiated, picked, spread

REFERENCE = 8.0  # bytes of an entry in a list of steps
# How many steps an interpreted loop makes at most. None if its results count. If they are only examples, a few steps
# will do, since the loop may not be meant for these values and need not end.
MOST_STEPS: ContextVar[int | None] = ContextVar("retrograd_most_steps", default=None)


def step_of(x: Aval) -> Aval:
    """The aval of ``xs[t]``."""
    if x.steps is not None:
        return x.unstacked()
    return Aval(x.shape[1:], x.dtype, "array" if x.ndim > 1 else "scalar")


def lane_aval(size: int, aval: Aval, flag: bool) -> Aval:
    """The aval over lanes if the flag is set."""
    return Aval((size, *aval.shape), aval.dtype, "array", aval.steps) if flag else aval


def make_scan(
    b: Builder,
    body: Graph,
    parts: Layout,
    operands: Sequence[Symbol],
    length: int,
    reverse: bool,
    count: Symbol | None = None,
    memory: tuple[Any, ...] | None = None,
) -> tuple[list[Symbol], list[Symbol], list[Symbol]]:
    """Emit a scan; its results as carry, arrays and stacks. ``count`` is the number of steps if length is -1.

    ``memory`` is the plan by which the checkpoint pass computes saved residuals again.
    """
    attrs: dict[str, Any] = {
        "arrays": parts.arrays,
        "body": body,
        "carry": parts.carry,
        "consts": parts.consts,
        "length": length,
        "reverse": reverse,
    }
    if memory is not None:
        attrs["memory"] = memory
    given = operands if count is None else [count, *operands]
    outs = b.emit(REGISTRY["scan"], [x.value for x in given], attrs, [v.hint for v in body.outputs])
    return parts.results(outs)


def active_inputs(parts: Layout, body: Graph, tans: Sequence[Any], nan_safe: bool) -> tuple[list[bool], Any]:
    """For each input of the body whether it has a tangent, as a fixpoint over the carries; and the linearized body."""
    active = [t is not None for t in tans]
    while True:
        lin = TRANSFORMS.linearize(body, active, nan_safe=nan_safe)
        grown = list(active)
        for i, on in enumerate(lin.out_active[: parts.carry]):
            grown[parts.consts + i] |= on
        if grown == active:
            return active, lin
        active = grown


def active_outputs(parts: Layout, active: Sequence[bool], out_active: Sequence[bool]) -> list[bool]:
    """For each result whether it has a tangent; a carry has one if the incoming carry does."""
    return [*active[parts.consts : parts.consts + parts.carry], *out_active[parts.carry :]]


def interleaved(divided: tuple[list[Any], ...], dots: tuple[list[Any], ...]) -> list[Any]:
    """Each group, followed by its tangents that are not None."""
    return [x for group, ds in zip(divided, dots, strict=True) for x in (*group, *(d for d in ds if d is not None))]


def fused_body(parts: Layout, body: Graph, active: list[bool], on: list[bool], mode: JvpMode) -> tuple[Graph, Layout]:
    """The body over (consts, ċ | carry, k̇ | xs, ẋ), with tangents of the results in ``on``."""
    inner = Builder()
    groups: list[Symbol] = []
    dots: list[Any] = []
    for values, flags in zip(parts.operands(body.inputs), parts.operands(active), strict=True):
        groups += inner.inputs_like(values)
        dots += spread(inner.inputs_like(picked(values, flags)), flags)
    outs, douts = TRANSFORMS.jvp(inner, body, groups, dots, mode)
    douts = [instantiated(inner, d, o.aval) if f else None for d, o, f in zip(douts, outs, on, strict=True)]
    results = interleaved(parts.results(outs), parts.results(douts))
    c_on, k_on, _ = parts.operands(active)
    _, y_on, _ = parts.results(on)
    wide = Layout(parts.consts + sum(c_on), parts.carry + sum(k_on), parts.arrays + sum(y_on))
    return inner.graph(body.name, results), wide


def parted(made: tuple[list[Any], ...], on: tuple[list[bool], ...]) -> tuple[list[Any], list[Any]]:
    """Split the results of a fused loop into primals and tangents."""
    primal: list[Any] = []
    tangent: list[Any] = []
    for got, flags in zip(made, on, strict=True):
        primal += got[: len(flags)]
        tangent += spread(got[len(flags) :], flags)
    return primal, tangent


@dataclass(frozen=True, eq=False)
class Split:
    """The body of a loop split into a forward body, which also saves residuals, and a linear one.

    A residual that is a const or an x is passed on as such. A residual that depends on consts alone is a carry, whose
    last value serves all steps. All other residuals are stacked.
    """

    parts: Layout  # the layout of the loop
    on: list[bool]  # for each result whether it has a tangent
    forward: Graph
    wide: Layout  # the layout of the forward loop
    carried: list[Aval]
    linear: Graph
    narrow: Layout  # the layout of the linear loop
    consts: list[int]  # the positions of residuals among the operands
    xs: list[int]

    def operands(self, b: Builder, args: Sequence[Symbol]) -> list[Symbol]:
        """The operands of the forward loop."""
        c, k, xs = self.parts.operands(args)
        return [*c, *k, *(b.zeros(a) for a in self.carried), *xs]

    def tangents(
        self,
        b: Builder,
        made: tuple[list[Symbol], ...],
        args: Sequence[Symbol],
        tans: Sequence[Any],
        length: int,
        reverse: bool,
        count: Symbol | None = None,
    ) -> tuple[list[Symbol], list[Any]]:
        """The results of the loop and, by the linear loop, their tangents, given the results of the forward loop."""
        carry, arrays, stacks = made
        own = len(self.on) - self.parts.carry - self.parts.arrays
        c_tan, k_tan, x_tan = ([t for t in group if t is not None] for group in self.parts.operands(tans))
        shared = [args[i] for i in self.consts] + carry[self.parts.carry :]
        operands = [*shared, *c_tan, *k_tan, *(args[i] for i in self.xs), *stacks[own:], *x_tan]
        results = make_scan(b, self.linear, self.narrow, operands, length, reverse, count)
        tangents = spread([x for group in results for x in group], self.on)
        return [*carry[: self.parts.carry], *arrays, *stacks[:own]], tangents


def split_body(parts: Layout, body: Graph, active: list[bool], lin: Any) -> Split:
    """Split the body of a loop by its linearization, with the fewest bytes of residuals.

    Consts and xs cost nothing. Carries are preferred: to save them takes no more than a list of references.
    """
    c_in, k_in, x_in = parts.operands(lin.forward.inputs)
    k_out = lin.forward.outputs[: parts.carry]
    fixed, states = _fixed(lin.forward, c_in), {*k_in, *k_out}

    def cost(value: Value) -> float:
        if value in c_in or value in x_in:
            return 0.0
        if value in fixed:
            return REFERENCE
        return value.aval.nbytes + REFERENCE

    lin = TRANSFORMS.few_residuals(lin, cost, states.__contains__, REFERENCE)
    forward = lin.forward
    as_const = [r for r in lin.residuals if r in c_in]
    as_xs = [r for r in lin.residuals if r in x_in]
    rest = [r for r in lin.residuals if r not in c_in and r not in x_in]
    carried = [r for r in rest if r in fixed and r.aval.steps is None]
    stacked = [r for r in rest if r not in carried]

    on = active_outputs(parts, active, lin.out_active)
    k, arrays, stacks = parts.results(forward.outputs[: len(on)])
    inits = [Value(r.aval, r.hint) for r in carried]
    grown = Graph(body.name, (*c_in, *k_in, *inits, *x_in), forward.nodes, (*k, *carried, *arrays, *stacks, *stacked))
    wide = Layout(parts.consts, parts.carry + len(carried), parts.arrays)

    inner = Builder()
    known = dict(zip((*as_const, *carried), inner.inputs_like((*as_const, *carried)), strict=True))
    dots_of = (picked(v, f) for v, f in zip((c_in, k_in, x_in), parts.operands(active), strict=True))
    c_dot, k_dot, x_dot = dots_of
    dots = inner.inputs_like(c_dot) + inner.inputs_like(k_dot)
    known |= dict(zip((*as_xs, *stacked), inner.inputs_like((*as_xs, *stacked)), strict=True))
    dots += inner.inputs_like(x_dot)
    got = TRANSFORMS.inline(inner, lin.linear, [*(known[r] for r in lin.residuals), *dots])
    douts = spread(got, lin.out_active)
    outs = forward.outputs[: len(on)]
    results = [instantiated(inner, d, o.aval) for d, o, f in zip(douts, outs, on, strict=True) if f]
    narrow = Layout(len(as_const) + len(carried) + len(c_dot), len(k_dot), sum(parts.results(on)[1]))
    places = {v: i for i, v in enumerate(forward.inputs)}
    return Split(
        parts,
        on,
        grown,
        wide,
        [r.aval for r in carried],
        inner.graph(f"{body.name}_linear", results),
        narrow,
        [places[r] for r in as_const],
        [places[r] for r in as_xs],
    )


def _fixed(graph: Graph, consts: Sequence[Value]) -> set[Value]:
    """The values that depend on consts alone, and so are the same in every step."""
    fixed = set(consts)
    for node in graph.nodes:
        if all(v in fixed for v in node.inputs):
            fixed.update(node.outputs)
    return fixed


def batched_body(
    parts: Layout, body: Graph, size: int, flags: Sequence[bool], every: bool = False
) -> tuple[Builder, list[Symbol], list[Symbol], list[bool], list[bool]]:
    """The body over lanes: its builder, inputs, outputs, and for each input and output whether it carries lanes.

    A carry has lanes if its start or its next value does, or if ``every`` is set.
    """
    on = list(flags)
    while True:
        for i in range(parts.consts, parts.consts + parts.carry) if every else ():
            on[i] = True
        inner = Builder()
        inputs = [inner.input(lane_aval(size, v.aval, f), v.hint) for v, f in zip(body.inputs, on, strict=True)]
        outs, out_on = TRANSFORMS.batch(inner, body, size, inputs, on)
        grown = list(on)
        for i, f in enumerate(out_on[: parts.carry]):
            grown[parts.consts + i] |= f
        if grown == on:
            return inner, inputs, outs, on, list(out_on)
        on = grown


def over_lanes(mask: Symbol, aval: Aval) -> Symbol:
    """One bool per lane, stretched over the lanes of ``aval``."""
    return broadcast_to(reshape_to(mask, (aval.shape[0], *(1,) * (aval.ndim - 1))), aval.shape)


def chosen(mask: Symbol, x: Symbol, y: Symbol) -> Symbol:
    """``x`` in the lanes of the mask, ``y`` in the others."""
    picked_: Symbol = where(over_lanes(mask, x.aval), x, y)
    return picked_


def borrowed(mask: Symbol, lane: Symbol, x: Symbol) -> Symbol:
    """``x`` with the values of one lane in all lanes outside the mask.

    A lane that takes no part in a computation runs with the operands of a lane that does, and its results are dropped.
    So it meets no point where the computation is undefined, whose nan would spoil its derivative.
    """
    if x.aval.steps is not None or not x.shape[0]:
        return x
    other = reshape_to(getitem(stop_gradient(x), lane, index=(Arg(1),)), (1, *x.shape[1:]))
    return chosen(mask, x, broadcast_to(other, x.shape))


def transposed_by_splitting(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    """The cotangents of the linear operands of a node that also computes with known operands.

    What is linear is its own derivative: the node is split at zero, and its linear half is transposed. Zeros that
    annihilate in the node still do so there.
    """
    inner = Builder()
    linear = [not isinstance(x, Symbol) for x in operands]
    known = [None if f else inner.input(x.aval) for x, f in zip(operands, linear, strict=True)]
    dots = [inner.input(x.aval) if f else None for x, f in zip(operands, linear, strict=True)]
    args = [inner.zeros(x.aval) if k is None else k for x, k in zip(operands, known, strict=True)]
    assert node.prim.jvp is not None
    _, douts = node.prim.jvp(inner, node, args, dots, JvpMode(split=True, nan_safe=False))
    on = [d is not None for d in douts]
    half = inner.graph("linear", picked(douts, on))
    found = TRANSFORMS.transpose(
        b, half, [*picked(operands, [not f for f in linear]), *[None] * sum(linear)], picked(cts, on)
    )
    return spread(found, linear)


def narrowed(body: Graph, inputs: Sequence[bool], outputs: Sequence[bool]) -> Graph:
    """The body with only some inputs and outputs, and the nodes that these outputs need."""
    small = Graph(body.name, tuple(picked(body.inputs, inputs)), body.nodes, tuple(picked(body.outputs, outputs)))
    pruned: Graph = TRANSFORMS.prune(small)
    return pruned
