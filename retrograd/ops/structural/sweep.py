"""sweep: the steps of a checkpointed loop, of which some states are kept.

With ``unsweep`` it stands for a scan that saves residuals and the scan in the other direction that reads them; the
checkpoint pass makes them once all differentiation is done. Kept states are dictionaries from the number of a state
to references, one for each carry that must be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node
from ...ir.primitive import primitive
from ...ir.structure import Attrs, Body, Group, Runs, Structure
from ...ir.types import Aval
from .disk import open_disk
from .loops import step_of
from .sweeps import IMPORT, OPAQUE, OPEN, Parts, Writer, schedule_of


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
    disk: tuple[str, str] | None = None,
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
        directory, key = a["disk"]
        disk = open_disk(directory, key, args)
        schedule = disk.resumed(schedule) if key else schedule

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
            disk.write(i, *_stored(a, carry, arrays))
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
    """The carries in the order in which they go to disk: those that the way back needs come first."""
    return [*attrs["kept"], *(k for k in range(attrs["carry"]) if k not in attrs["kept"])]


def _stored(attrs: Any, carry: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """What goes to disk of a state: all from which a later run can go on, if one may."""
    if attrs["disk"][1]:
        return [*(carry[k] for k in _order(attrs)), *arrays]
    return [carry[k] for k in attrs["kept"]]


def _emit(emitter: Any, node: Node, ins: list[str], outs: list[str]) -> None:
    a, n = node.attrs, node.attrs["length"]
    consts, carry, xs = operands(node).of(ins)
    k_out, arrays, lists, kept, on_disk, tapes, residuals = results(node).of(outs)
    writer = Writer(emitter, node, xs, str(n))
    writer.start(k_out, carry)
    writer.stores(arrays, results(node).of(node.outputs)[1], lists)
    for name in (*kept, *tapes):
        emitter.line(f"{name} = dict()")

    def step(graph: Graph, t: str, i: str = "") -> None:
        found = writer.step(graph, [*consts, *k_out], t)
        _, y_t, s_t, rest = Parts((a["carry"], a["arrays"], a["lists"])).of(found)
        writer.collect(arrays, y_t, lists, s_t, t)
        if i:
            emitter.line(f"{tapes[0]}[{i}] = ({', '.join([*rest, ''])})")
        else:
            writer.start(residuals[: len(rest)], rest)
        writer.emitter.moved(k_out, found, graph)

    for disk in on_disk:
        emitter.scope.helpers[IMPORT] = None
        emitter.line(f"{disk} = {emitter.opened(node, f'{OPEN}({_place(a, ins)})')}")
    if n > 1:
        action, i, j, s = (emitter.fresh(name) for name in ("action", "i", "j", "s"))
        steps = f"range({i}, {j})" if lists else emitter.steps(i, j)
        bodies = [a["step"], a["tape"]] if tapes else [a["step"]]
        with emitter.working(*bodies), emitter.block(f"for {action}, {i}, {j} in {_schedule(writer, on_disk)}:"):
            with emitter.block(f'if {action} == "save":'):
                writer.start([f"{state}[{i}]" for state in kept], [k_out[k] for k in a["kept"]])
                writer.count("snapshots", 1)
            for disk in on_disk:
                _to_disk(writer, disk, action, i, _stored(a, k_out, arrays))
            for _ in tapes:
                with emitter.block(f'elif {action} == "tape":'):
                    writer.count("taped", 1)
                    writer.count("snapshots", 1)
                    step(a["tape"], writer.row(i), i)
            with emitter.block("else:"), emitter.block(f"for {s} in {steps}:"):
                writer.count("advances", 1)
                step(a["step"], writer.row(s))
    writer.count("taped", 1)
    step(a["tape"], "0" if a["reverse"] else writer.last())
    if a["reverse"]:
        for name in lists:
            emitter.line(f"{name}.reverse()")


def _place(attrs: Any, ins: Sequence[str]) -> str:
    """Arguments that open a disk: a directory, and what a run has to have in common with one that it takes up."""
    directory, key = attrs["disk"]
    return f"{directory!r}, {key!r}, ({', '.join([*ins, ''])})" if key else repr(directory)


def _schedule(writer: Writer, disks: Sequence[str]) -> str:
    text = writer.schedule(writer.node.attrs["forth"])
    return f"{disks[0]}.resumed({text})" if disks and writer.node.attrs["disk"][1] else text


def _to_disk(writer: Writer, disk: str, action: str, i: str, stored: Sequence[str]) -> None:
    """The actions on states on disk."""
    emitter = writer.emitter
    with emitter.block(f'elif {action} == "store":'):
        emitter.line(f"{disk}.write({i}, {', '.join(stored)})")
        writer.count("snapshots", 1)
    if writer.node.attrs["disk"][1]:
        with emitter.block(f'elif {action} == "fetch":'):
            emitter.line(f"{', '.join(stored)} = {disk}.read({i}, {len(stored)})")


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
    emit=_emit,
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
)
