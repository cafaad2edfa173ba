"""unsweep: the way back of a checkpointed loop, from the states that a sweep kept; steps run again in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node
from ...ir.primitive import primitive
from ...ir.types import Aval
from .loops import step_of
from .sweeps import LARGE, Parts, Writer, schedule_of


def operands(node: Node) -> Parts:
    """The number of steps if it is found at run time, consts, kept states, residuals of the last step, carry | xs."""
    a = node.attrs
    return Parts((int(a["length"] < 0), a["consts"], a["kept"], a["residuals"], a["carry"]))


def results(node: Node) -> Parts:
    """carry, arrays | stacks."""
    return Parts((node.attrs["carry"], node.attrs["arrays"]))


def _shape(
    *avals: Aval, advance: Graph, back: Graph, consts: int, kept: int, residuals: int, carry: int, arrays: int,
    length: int, reverse: bool, again: bool, way: Any, count: bool, first: Graph | None = None,
    forth: Any = None,
) -> tuple[Aval, ...]:  # fmt: skip
    _, c, states, last, k, xs = Parts((int(length < 0), consts, kept, residuals, carry)).of(avals)
    steps, now = [*map(step_of, xs)], [s.unstacked() for s in states]
    taken = {advance: [*c, *now], back: [*c, *now, *k]} | ({first: [*c, *last, *k]} if first else {})
    for graph, given in taken.items():
        if graph.in_avals != (*given, *steps):
            raise ValueError(f"{graph.name} takes {', '.join(map(str, graph.in_avals))}")
    k_out, ys, stacks = Parts((carry, arrays)).of(back.out_avals)
    if k_out != k or (first or back).out_avals != back.out_avals or advance.out_avals != tuple(now):
        raise ValueError(f"a step back makes {', '.join(map(str, back.out_avals))}")
    return (*k, *(Aval((length, *y.shape), y.dtype) for y in ys), *(s.stacked(length) for s in stacks))


def _run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    a = node.attrs
    count, consts, kept, last, carry, xs = operands(node).of(args)
    n = int(count[0]) if count else a["length"]
    _, ys, stacks = results(node).of(node.outputs)
    stores: list[Any] = [*(np.empty(y.aval.shape, y.aval.dtype) for y in ys), *([None] * n for _ in stacks)]
    states: list[dict[int, Any]] = [dict(state) for state in kept]

    def steps(i: int) -> list[Any]:
        return [x[n - 1 - i if a["reverse"] else i] for x in xs]

    def back(graph: Graph, i: int, given: Sequence[Any]) -> list[Any]:
        k, y_t, s_t = results(node).of(evaluate(graph, [*consts, *given, *carry, *steps(i)]))
        for store, value in zip(stores, (*y_t, *s_t), strict=True):
            store[n - 1 - i if a["reverse"] else i] = value
        return k

    if "first" in a:
        carry = back(a["first"], n - 1, last)
    now: Sequence[Any] = ()
    for verb, i, j in schedule_of(a["way"], states[0], n):
        if verb == "back":
            carry = back(a["back"], i, now)
        elif verb == "advance":
            for t in range(i, j):
                now = evaluate(a["advance"], [*consts, *now, *steps(t)])
        elif verb == "load":
            now = [state[i] for state in states]
        elif verb == "save":
            for state, value in zip(states, now, strict=True):
                state[i] = value
        else:
            for state in states:
                del state[i]
    return [*carry, *stores]


def _emit(emitter: Any, node: Node, ins: list[str], outs: list[str]) -> None:
    a, n = node.attrs, node.attrs["length"]
    count, consts, states, last, carry, xs = operands(node).of(ins)
    k_out, arrays, stacks = results(node).of(outs)
    writer = Writer(emitter, node, xs, count[0] if count else str(n))
    writer.start(k_out, carry)
    writer.stores(arrays, results(node).of(node.outputs)[1], stacks)
    if a["again"]:
        copies = [emitter.fresh(name) for name in states]
        writer.start(copies, [f"{name}.copy()" for name in states])
        states = copies

    def back(graph: Graph, given: Sequence[str], t: str) -> None:
        found = writer.step(graph, [*consts, *given, *k_out], t)
        _, y_t, s_t = results(node).of(found)
        writer.collect(arrays, y_t, stacks, s_t, t)
        writer.moved(k_out, found, graph)

    if "first" in a:
        back(a["first"], last, "0" if a["reverse"] else writer.last())
        _forget(emitter, node, last)
    if n != 1:
        now = [emitter.fresh(v.hint) for v in a["advance"].inputs[len(consts) : len(consts) + len(states)]]
        _way(writer, now, states, back, consts)
    if not a["reverse"]:
        for name in stacks:
            emitter.line(f"{name}.reverse()")


def _forget(emitter: Any, node: Node, last: Sequence[str]) -> None:
    """Delete the names of the last step's residuals, if nothing else reads them and they are more than names."""
    values = operands(node).of(node.inputs)[3]
    order = emitter.plan.order
    gone = {
        name: value
        for name, value in zip(last, values, strict=True)
        if value in order.producer and order.uses[value] == [node] and value not in order.outputs
    }
    if any(v.aval.nbytes >= LARGE for v in gone.values()):
        emitter.line(f"del {', '.join(gone)}")
        for value in gone.values():
            del emitter.name[value]


def _way(
    writer: Writer, now: list[str], states: list[str], back: Callable[[Graph, Sequence[str], str], None],
    consts: Sequence[str],
) -> None:  # fmt: skip
    """The loop over the actions of the way back."""
    emitter, a = writer.emitter, writer.node.attrs
    action, i, j, s = (emitter.fresh(name) for name in ("action", "i", "j", "s"))
    with emitter.block(f"for {action}, {i}, {j} in {writer.schedule(a['way'], states[0])}:"):
        with emitter.block(f'if {action} == "advance":'), emitter.block(f"for {s} in {emitter.steps(i, j)}:"):
            writer.count("advances", 1)
            found = writer.step(a["advance"], [*consts, *now], writer.row(s))
            writer.moved(now, found, a["advance"])
        with emitter.block(f'elif {action} == "load":'):
            writer.start(now, [f"{state}[{i}]" for state in states])
        with emitter.block(f'elif {action} == "save":'):
            writer.start([f"{state}[{i}]" for state in states], now)
            writer.count("snapshots", 1)
        with emitter.block(f'elif {action} == "drop":'):
            emitter.line(f"del {', '.join(f'{state}[{i}]' for state in states)}")
            writer.count("snapshots", -1)
        with emitter.block("else:"):
            writer.count("taped", 1)
            back(a["back"], now, writer.row(i))


unsweep = primitive(
    "unsweep", _shape, multi=True, run=_run, emit=_emit,
    fresh=lambda node: range(node.attrs["carry"], node.attrs["carry"] + node.attrs["arrays"]),
)  # fmt: skip
