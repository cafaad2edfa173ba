"""unsweep: the adjoint sweep of a checkpointed loop, from the states that a sweep kept; steps run again in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node
from ...ir.primitive import primitive
from ...ir.structure import Attrs, Body, Group, Runs, Structure
from ...ir.types import Aval
from .loops import step_of
from .sweeps import Parts, schedule_of


def operands(node: Node) -> Parts:
    """Number of steps if known late, consts, kept states, disk, residuals by step, and of the last step, carry | xs."""
    a = node.attrs
    also = int(a.get("disk", False)), int("retape" in a)
    return Parts((int(a["length"] < 0), a["consts"], a["kept"], *also, a["residuals"], a["carry"]))


def results(node: Node) -> Parts:
    """carry, arrays | stacks."""
    return Parts((node.attrs["carry"], node.attrs["arrays"]))


def _shape(
    *avals: Aval,
    advance: Graph,
    back: Graph,
    consts: int,
    kept: int,
    residuals: int,
    carry: int,
    arrays: int,
    length: int,
    reverse: bool,
    again: bool,
    way: Any,
    count: bool,
    first: Graph | None = None,
    forth: Any = None,
    disk: bool = False,
    retape: Graph | None = None,
) -> tuple[Aval, ...]:
    also = int(disk) + (retape is not None)
    _, c, states, _, last, k, xs = Parts((int(length < 0), consts, kept, also, residuals, carry)).of(avals)
    steps, now = [*map(step_of, xs)], [s.unstacked() for s in states]
    taken = {advance: [*c, *now], back: [*c, *now, *k]} | ({first: [*c, *last, *k]} if first else {})
    if retape:
        taken[retape] = [*c, *now]
    for graph, given in taken.items():
        if graph.in_avals != (*given, *steps):
            raise ValueError(f"{graph.name} takes {', '.join(map(str, graph.in_avals))}")
    k_out, ys, stacks = Parts((carry, arrays)).of(back.out_avals)
    if k_out != k or (first or back).out_avals != back.out_avals or advance.out_avals != tuple(now):
        raise ValueError(f"a step back makes {', '.join(map(str, back.out_avals))}")
    return (*k, *(Aval((length, *y.shape), y.dtype) for y in ys), *(s.stacked(length) for s in stacks))


def _run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    a = node.attrs
    count, consts, kept, disks, given, last, carry, xs = operands(node).of(args)
    tapes: dict[int, Any] = dict(given[0]) if given else {}
    n = int(count[0]) if count else a["length"]
    _, ys, stacks = results(node).of(node.outputs)
    stores: list[Any] = [*(np.empty(y.aval.shape, y.aval.dtype) for y in ys), *([None] * n for _ in stacks)]
    states: list[dict[int, Any]] = [dict(state) for state in kept]
    disks = [disk.again() for disk in disks] if a["again"] else disks

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
    for verb, i, j in schedule_of(a["way"], [*(i for disk in disks for i in disk), *states[0]], n):
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
        elif verb == "tape":
            now, tapes[i] = Parts((len(states),)).of(evaluate(a["retape"], [*consts, *now, *steps(i)]))
        elif verb == "reverse":
            carry = back(a["first"], i, tapes.pop(i))
        elif verb == "drop":
            for state in states:
                del state[i]
        for disk in disks:
            if verb == "store":
                disk.write(i, *now)
            elif verb == "fetch":
                found = disk.read(i, len(states))
                now = [found] if len(states) == 1 else found
            elif verb == "discard":
                disk.drop(i)
    for disk in disks:
        disk.close()
    return [*carry, *stores]


def _times(verb: str, last: int = 0) -> Callable[[Attrs], int]:
    """How many steps these actions of the adjoint sweep make, beside the last step; -1 if the data decide."""

    def count(a: Attrs) -> int:
        if a["length"] < 0:
            return -1
        kept = [i for action, i, _ in schedule_of(a["forth"]) if action in ("save", "store")]
        steps: int = sum(j - i for action, i, j in schedule_of(a["way"], kept) if action == verb)
        return last + steps

    return count


GIVES = ("carry", "arrays", "stacks")

unsweep = primitive(
    "unsweep",
    _shape,
    multi=True,
    final=True,
    run=_run,
    structure=Structure(
        bodies=(
            Body(
                "advance", Runs.STEPS, ("consts", "now", "xs"), ("now",), _times("advance"), advances=True, again=True
            ),
            Body("retape", Runs.STEPS, ("consts", "now", "xs"), ("now", "left"), _times("tape")),
            Body("back", Runs.STEPS, ("consts", "now", "carry", "xs"), GIVES, _times("back")),
            Body("first", Runs.STEPS, ("consts", "last", "carry", "xs"), GIVES, _times("reverse", 1)),
        ),
        operands=(
            Group("count", lambda a: a["length"] < 0),
            Group("consts", "consts"),
            Group("kept", "kept"),
            Group("disk", lambda a: a.get("disk", False)),
            Group("tapes", lambda a: "retape" in a),
            Group("last", "residuals"),
            Group("carry", "carry"),
            Group("xs"),
        ),
        results=(Group("carry", "carry"), Group("arrays", "arrays"), Group("stacks")),
        inner=(Group("now", "kept"),),  # the states from which steps run again
    ),
    fresh=lambda node: range(node.attrs["carry"], node.attrs["carry"] + node.attrs["arrays"]),
    order="C",
)
