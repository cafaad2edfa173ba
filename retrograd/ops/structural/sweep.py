"""sweep: the steps of a checkpointed loop; some of their states are kept.

Together with ``unsweep`` it replaces a scan that saves residuals and the scan in the other direction that reads them;
the checkpoint pass makes both once all differentiation is done. Kept states are dictionaries from the number of a state
to references, one dictionary for each carry that must be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node
from ...ir.primitive import primitive
from ...ir.structure import Attrs, Body, Group, Runs, Structure
from ...ir.types import Aval
from .loops import step_of
from .state_key import key_of
from .sweeps import DISK, OPAQUE, Parts, schedule_of


def operands(node: Node) -> Parts:
    """consts, carry | xs."""
    return Parts((node.attrs["consts"], node.attrs["carry"]))


def results(node: Node) -> Parts:
    """carry, arrays, lists, kept states, disk, residuals by step (if there are those) | residuals of the last step."""
    a = node.attrs
    return Parts((a["carry"], a["arrays"], a["lists"], len(a["kept"]), int("disk" in a), int(a.get("mixed", False))))


def _shape(
    *avals: Aval,
    step: Graph,
    tape: Graph,
    consts: int,
    carry: int,
    arrays: int,
    lists: int,
    kept: tuple[int, ...],
    length: int,
    slots: int,
    reverse: bool,
    forth: Any,
    count: bool,
    disk: tuple[str, bool] | None = None,
    mixed: bool = False,
) -> tuple[Aval, ...]:
    c, k, xs = Parts((consts, carry)).of(avals)
    inner = (*c, *k, *map(step_of, xs))
    if step.in_avals != inner or tape.in_avals != inner:
        raise ValueError(f"the steps take {', '.join(map(str, step.in_avals))}")
    k_out, ys, saved, residuals = Parts((carry, arrays, lists)).of(tape.out_avals)
    if step.out_avals != (*k_out, *ys, *saved) or k_out != k:
        raise ValueError(f"a step makes {', '.join(map(str, step.out_avals))}")
    return (
        *k,
        *(Aval((length, *y.shape), y.dtype) for y in ys),
        *(s.stacked(length) for s in saved),
        *(k[i].stacked(slots) for i in kept),
        *[OPAQUE] * ((disk is not None) + mixed),
        *residuals,
    )


def _run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    a, n = node.attrs, node.attrs["length"]
    consts, carry, xs = operands(node).of(args)
    _, ys, saved, kept, on_disk, mixed, _ = results(node).of(node.outputs)
    arrays = [np.empty(y.aval.shape, y.aval.dtype) for y in ys]
    lists: list[list[Any]] = [[None] * n for _ in saved]
    states: list[dict[int, Any]] = [{} for _ in kept]
    schedule, disk = schedule_of(a["forth"]), None
    tapes: dict[int, list[Any]] = {}
    if on_disk:
        directory, resume = a["disk"]
        disk = import_module(DISK).open_disk(directory, key_of(node) if resume else "", args)
        schedule = disk.resumed(schedule, len(carry) + len(arrays)) if resume else schedule

    def run(graph: Graph, i: int) -> tuple[list[Any], list[Any]]:
        t = n - 1 - i if a["reverse"] else i
        found = evaluate(graph, [*consts, *carry, *(x[t] for x in xs)])
        k, y_t, s_t, residuals = Parts((a["carry"], a["arrays"], a["lists"])).of(found)
        stores: list[Any] = [*arrays, *lists]
        for store, value in zip(stores, (*y_t, *s_t), strict=True):
            store[t] = value
        return k, residuals

    for verb, i, j in schedule:
        if verb == "save":
            for state, k in zip(states, a["kept"], strict=True):
                state[i] = carry[k]
        elif verb == "store" and disk is not None:
            disk.write(i, *stored(a, carry, arrays))
        elif verb == "fetch" and disk is not None:
            found = disk.read(i, len(carry) + len(arrays))
            found = list(found) if len(carry) + len(arrays) > 1 else [found]
            for k, x in zip(_order(a), found, strict=False):
                carry[k] = x
            arrays = found[len(carry) :]
        elif verb == "tape":
            carry, tapes[i] = run(a["tape"], i)
        else:
            for t in range(i, j):
                carry, _ = run(a["step"], t)
    carry, residuals = run(a["tape"], n - 1)
    return [*carry, *arrays, *lists, *states, *([disk] if on_disk else []), *([tapes] if mixed else []), *residuals]


def _order(attrs: Any) -> list[int]:
    """The carries in the order in which they go to disk: first the carries that the adjoint sweep needs."""
    return [*attrs["kept"], *(k for k in range(attrs["carry"]) if k not in attrs["kept"])]


def stored(attrs: Any, carry: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """The values of a state that go to disk: all if a later run may resume there, else only the kept carries."""
    if attrs["disk"][1]:
        return [*(carry[k] for k in _order(attrs)), *arrays]
    return [carry[k] for k in attrs["kept"]]


def _advances(attrs: Attrs) -> int:
    steps: int = sum(j - i for verb, i, j in schedule_of(attrs["forth"]) if verb == "advance")
    return steps


def _tapes(attrs: Attrs) -> int:
    tapes: int = sum(verb == "tape" for verb, _, _ in schedule_of(attrs["forth"]))
    return 1 + tapes


TAKES, GIVES = ("consts", "carry", "xs"), ("carry", "arrays", "lists")

sweep = primitive(
    "sweep",
    _shape,
    multi=True,
    final=True,
    run=_run,
    structure=Structure(
        bodies=(
            Body("step", Runs.STEPS, TAKES, GIVES, _advances, advances=True),
            Body("tape", Runs.STEPS, TAKES, (*GIVES, "last"), _tapes),
        ),
        operands=(Group("consts", "consts"), Group("carry", "carry"), Group("xs")),
        results=(
            Group("carry", "carry"),
            Group("arrays", "arrays"),
            Group("lists", "lists"),
            Group("kept", lambda a: len(a["kept"])),
            Group("disk", lambda a: "disk" in a),
            Group("tapes", lambda a: a.get("mixed", False)),
            Group("last"),
        ),
    ),
    fresh=lambda node: range(node.attrs["carry"], node.attrs["carry"] + node.attrs["arrays"]),
    order="C",
)
