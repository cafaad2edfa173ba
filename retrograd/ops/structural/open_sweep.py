"""open_sweep: the steps of a checkpointed loop whose number is found at run time; some of their states are kept."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Graph, Node
from ...ir.primitive import primitive
from ...ir.structure import Body, Group, Runs, Structure
from ...ir.types import Aval
from .loops import step_of
from .sweeps import Parts, schedule_of


def operands(node: Node) -> Parts:
    """The number of steps if there is no condition, consts, carry | xs."""
    return Parts((int("cond" not in node.attrs), node.attrs["consts"], node.attrs["carry"]))


def results(node: Node) -> Parts:
    """carry, lists | kept states."""
    return Parts((node.attrs["carry"], node.attrs["lists"]))


def _shape(
    *avals: Aval,
    step: Graph,
    consts: int,
    carry: int,
    lists: int,
    kept: tuple[int, ...],
    reverse: bool,
    room: Any,
    count: bool,
    cond: Graph | None = None,
) -> tuple[Aval, ...]:
    _, c, k, xs = Parts((int(cond is None), consts, carry)).of(avals)
    if step.in_avals != (*c, *k, *map(step_of, xs)) or (cond and cond.in_avals != (*c, *k)):
        raise ValueError(f"the steps take {', '.join(map(str, step.in_avals))}")
    k_out, saved = Parts((carry,)).of(step.out_avals)
    if k_out != k or len(saved) != lists:
        raise ValueError(f"a step makes {', '.join(map(str, step.out_avals))}")
    return (*k, *(s.stacked(-1) for s in saved), *(k[i].stacked(-1) for i in kept))


def _run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    a = node.attrs
    count, consts, carry, xs = operands(node).of(args)
    lists: list[list[Any]] = [[] for _ in range(a["lists"])]
    states: list[dict[int, Any]] = [{} for _ in a["kept"]]
    for i, old in enumerate(schedule_of(a["room"])):
        going = i < int(count[0]) if count else bool(evaluate(a["cond"], [*consts, *carry])[0])
        if not going:
            break
        for state, k in zip(states, a["kept"], strict=True):
            if old >= 0:
                del state[old]
            if old > -2:
                state[i] = carry[k]
        t = int(count[0]) - 1 - i if a["reverse"] else i
        carry, saved = Parts((a["carry"],)).of(evaluate(a["step"], [*consts, *carry, *(x[t] for x in xs)]))
        for store, value in zip(lists, saved, strict=True):
            store.append(value)
    for store in lists if a["reverse"] else ():
        store.reverse()
    return [*carry, *lists, *states]


open_sweep = primitive(
    "open_sweep",
    _shape,
    multi=True,
    final=True,
    run=_run,
    structure=Structure(
        bodies=(
            Body("step", Runs.STEPS, ("consts", "carry", "xs"), ("carry", "lists"), lambda _: -1, advances=True),
            Body("cond", Runs.STEPS, ("consts", "carry"), ("decision",), lambda _: -1),
        ),
        operands=(
            Group("count", lambda a: "cond" not in a),
            Group("consts", "consts"),
            Group("carry", "carry"),
            Group("xs"),
        ),
        results=(Group("carry", "carry"), Group("lists", "lists"), Group("kept")),
    ),
    fresh=lambda _: (),
)
