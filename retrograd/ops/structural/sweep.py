"""sweep: the steps of a checkpointed loop, of which some states are kept.

With ``unsweep`` it stands for a scan that saves residuals and the scan in the other direction that reads them; the
checkpoint pass makes them once all differentiation is done. Kept states are dictionaries from the number of a state
to references, one for each carry that must be kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Graph, Node
from ...ir.primitive import primitive
from ...ir.types import Aval
from .loops import step_of
from .sweeps import Parts, Writer, schedule_of


def operands(node: Node) -> Parts:
    """consts, carry | xs."""
    return Parts((node.attrs["consts"], node.attrs["carry"]))


def results(node: Node) -> Parts:
    """carry, arrays, lists, kept states | residuals of the last step."""
    a = node.attrs
    return Parts((a["carry"], a["arrays"], a["lists"], len(a["kept"])))


def _shape(
    *avals: Aval, step: Graph, tape: Graph, consts: int, carry: int, arrays: int, lists: int, kept: tuple[int, ...],
    length: int, slots: int, reverse: bool, forth: Any, count: bool,
) -> tuple[Aval, ...]:  # fmt: skip
    c, k, xs = Parts((consts, carry)).of(avals)
    inner = (*c, *k, *map(step_of, xs))
    if step.in_avals != inner or tape.in_avals != inner:
        raise ValueError(f"the steps take {', '.join(map(str, step.in_avals))}")
    k_out, ys, saved, residuals = Parts((carry, arrays, lists)).of(tape.out_avals)
    if step.out_avals != (*k_out, *ys, *saved) or k_out != k:
        raise ValueError(f"a step makes {', '.join(map(str, step.out_avals))}")
    return (
        *k, *(Aval((length, *y.shape), y.dtype) for y in ys), *(s.stacked(length) for s in saved),
        *(k[i].stacked(slots) for i in kept), *residuals,
    )  # fmt: skip


def _run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    a, n = node.attrs, node.attrs["length"]
    consts, carry, xs = operands(node).of(args)
    _, ys, saved, kept, _ = results(node).of(node.outputs)
    arrays = [np.empty(y.aval.shape, y.aval.dtype) for y in ys]
    lists: list[list[Any]] = [[None] * n for _ in saved]
    states: list[dict[int, Any]] = [{} for _ in kept]

    def run(graph: Graph, i: int) -> tuple[list[Any], list[Any]]:
        t = n - 1 - i if a["reverse"] else i
        found = evaluate(graph, [*consts, *carry, *(x[t] for x in xs)])
        k, y_t, s_t, residuals = Parts((a["carry"], a["arrays"], a["lists"])).of(found)
        stores: list[Any] = [*arrays, *lists]
        for store, value in zip(stores, (*y_t, *s_t), strict=True):
            store[t] = value
        return k, residuals

    for verb, i, j in schedule_of(a["forth"]):
        if verb == "save":
            for state, k in zip(states, a["kept"], strict=True):
                state[i] = carry[k]
        else:
            for t in range(i, j):
                carry, _ = run(a["step"], t)
    carry, residuals = run(a["tape"], n - 1)
    return [*carry, *arrays, *lists, *states, *residuals]


def _emit(emitter: Any, node: Node, ins: list[str], outs: list[str]) -> None:
    a, n = node.attrs, node.attrs["length"]
    consts, carry, xs = operands(node).of(ins)
    k_out, arrays, lists, kept, residuals = results(node).of(outs)
    writer = Writer(emitter, node, xs, str(n))
    writer.start(k_out, carry)
    writer.stores(arrays, results(node).of(node.outputs)[1], lists)
    for name in kept:
        emitter.line(f"{name} = {{}}")

    def step(graph: Graph, t: str) -> None:
        found = writer.step(graph, [*consts, *k_out], t)
        _, y_t, s_t, rest = Parts((a["carry"], a["arrays"], a["lists"])).of(found)
        writer.collect(arrays, y_t, lists, s_t, t)
        writer.start(residuals[: len(rest)], rest)
        writer.moved(k_out, found, graph)

    if n > 1:
        action, i, j, s = (emitter.fresh(name) for name in ("action", "i", "j", "s"))
        with emitter.block(f"for {action}, {i}, {j} in {writer.schedule(a['forth'])}:"):
            with emitter.block(f'if {action} == "save":'):
                writer.start([f"{state}[{i}]" for state in kept], [k_out[k] for k in a["kept"]])
                writer.count("snapshots", 1)
            with emitter.block("else:"), emitter.block(f"for {s} in {emitter.steps(i, j)}:"):
                writer.count("advances", 1)
                step(a["step"], writer.row(s))
    writer.count("taped", 1)
    step(a["tape"], "0" if a["reverse"] else writer.last())
    if a["reverse"]:
        for name in lists:
            emitter.line(f"{name}.reverse()")


sweep = primitive(
    "sweep", _shape, multi=True, run=_run, emit=_emit,
    fresh=lambda node: range(node.attrs["carry"], node.attrs["carry"] + node.attrs["arrays"]),
)  # fmt: skip
