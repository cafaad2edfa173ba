"""Statements of the adjoint sweep of a checkpointed loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....ir.graph import Graph, Node
from ....ops.structural.sweeps import Parts
from ....ops.structural.unsweep import operands, results, unsweep
from ..bodies import BodyEmitter
from ..emitter import emits
from .sweeps import Writer

LARGE = 64 * 1024  # bytes from which a name that only shares a state with another is deleted at once


@emits(unsweep)
def _unsweep(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    a, n = node.attrs, node.attrs["length"]
    count, consts, states, disk, tapes, last, carry, xs = operands(node).of(ins)
    k_out, arrays, stacks = results(node).of(outs)
    writer = Writer(emitter, node, xs, emitter.number(node, count[0]) if count else str(n))
    emitter.start(node, k_out, carry, operands(node).of(node.inputs)[6])
    writer.stores(arrays, results(node).of(node.outputs)[1], stacks, results(node).of(node.outputs)[2])
    if a["again"]:
        given = (*states, *tapes, *disk)
        copies = [emitter.fresh(name) for name in given]
        emitter.each(copies, [f"{name}.{'again' if name in disk else 'copy'}()" for name in given])
        states, tapes, disk = Parts((len(states), len(tapes))).of(copies)

    def back(graph: Graph, given: Sequence[str], t: str) -> None:
        found = writer.step(graph, [*consts, *given, *k_out], t)
        _, y_t, s_t = results(node).of(found)
        writer.collect(arrays, y_t, stacks, s_t, t)
        writer.emitter.moved(k_out, found, graph)

    if "first" in a:
        back(a["first"], last, "0" if a["reverse"] else writer.last())
        _forget(emitter, node, last)
    if n != 1:
        now = [emitter.fresh(v.hint) for v in a["advance"].inputs[len(consts) : len(consts) + len(states)]]
        _way(writer, now, states, disk, tapes, back, consts)
    for name in disk:
        emitter.line(f"{name}.close()")
    if not a["reverse"]:
        for name in stacks:
            emitter.line(f"{name}.reverse()")


def _forget(emitter: BodyEmitter, node: Node, last: Sequence[str]) -> None:
    """Delete the names of the last step's residuals, if nothing else reads them and they are more than names."""
    values = operands(node).of(node.inputs)[5]
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
    writer: Writer,
    now: list[str],
    states: list[str],
    disks: list[str],
    tapes: list[str],
    back: Callable[[Graph, Sequence[str], str], None],
    consts: Sequence[str],
) -> None:
    """Write the loop over the actions of the adjoint sweep."""
    emitter, a = writer.emitter, writer.node.attrs
    action, i, j, s = (emitter.fresh(name) for name in ("action", "i", "j", "s"))
    kept = " + ".join(f"list({name})" for name in (*disks, states[0])) if disks else states[0]
    actions = emitter.actions(writer.node, writer.schedule(a["way"], kept))
    bodies = [a["advance"], a["back"], *([a["retape"], a["first"]] if tapes else [])]
    with emitter.working(*bodies), emitter.block(f"for {action}, {i}, {j} in {actions}:"):
        with emitter.block(f'if {action} == "advance":'), emitter.block(f"for {s} in {emitter.steps(i, j)}:"):
            writer.count("advances", 1)
            found = writer.step(a["advance"], [*consts, *now], writer.row(s))
            writer.emitter.moved(now, found, a["advance"])
        with emitter.block(f'elif {action} == "load":'):
            emitter.each(now, [f"{state}[{i}]" for state in states])
        with emitter.block(f'elif {action} == "save":'):
            emitter.each([f"{state}[{i}]" for state in states], now)
            writer.count("snapshots", 1)
        with emitter.block(f'elif {action} == "drop":'):
            emitter.line(f"del {', '.join(f'{state}[{i}]' for state in states)}")
            writer.count("snapshots", -1)
        for disk in disks:
            _from_disk(writer, disk, action, i, now)
        for tape in tapes:
            _by_tape(writer, tape, (action, i), now, back, consts)
        with emitter.block("else:"):
            writer.count("taped", 1)
            back(a["back"], now, writer.row(i))


def _from_disk(writer: Writer, disk: str, action: str, i: str, now: Sequence[str]) -> None:
    """Write the actions on states on disk."""
    emitter = writer.emitter
    with emitter.block(f'elif {action} == "fetch":'):
        emitter.line(f"{', '.join(now)} = {disk}.read({i}, {len(now)})")
    with emitter.block(f'elif {action} == "store":'):
        emitter.line(f"{disk}.write({i}, {', '.join(now)})")
        writer.count("snapshots", 1)
    with emitter.block(f'elif {action} == "discard":'):
        emitter.line(f"{disk}.drop({i})")
        writer.count("snapshots", -1)


def _by_tape(
    writer: Writer,
    tapes: str,
    at: tuple[str, str],
    now: Sequence[str],
    back: Callable[[Graph, Sequence[str], str], None],
    consts: Sequence[str],
) -> None:
    """Write the actions on residuals of single steps."""
    emitter, a, (action, i) = writer.emitter, writer.node.attrs, at
    with emitter.block(f'elif {action} == "tape":'):
        writer.count("taped", 1)
        writer.count("snapshots", 1)
        found = writer.step(a["retape"], [*consts, *now], writer.row(i))
        emitter.line(f"{tapes}[{i}] = ({', '.join([*found[len(now) :], ''])})")
        writer.emitter.moved(now, found, a["retape"])
    with emitter.block(f'elif {action} == "reverse":'):
        names = [emitter.fresh(v.hint) for v in a["retape"].outputs[len(now) :]]
        emitter.line(f"{', '.join([*names, '']).rstrip()} = {tapes}[{i}]")
        emitter.line(f"del {tapes}[{i}]")
        writer.count("snapshots", -1)
        back(a["first"], names, writer.row(i))
        emitter.line(f"del {', '.join(names)}")
