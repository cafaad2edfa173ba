"""Checkpointed loops: ``sweep`` runs the steps and keeps some states, ``unsweep`` goes back and runs steps again.

They stand for a scan that saves residuals and for the scan in the other direction that alone reads them; the
checkpoint pass makes them once all differentiation is done. Kept states are dictionaries from the number of a state
to references, one for each carry that must be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node
from ...ir.primitive import literal, primitive
from ...ir.schedule import PLACERS
from ...ir.types import Aval
from .loops import step_of

LARGE = 64 * 1024  # bytes from which a name that only shares a state with another is deleted at once

COUNT = '''
def count(name, change):
    """Count an executed step or a kept state; what observes the module replaces this function."""
'''


@dataclass(frozen=True)
class Parts:
    """Lists of given lengths, one after the other, and a rest."""

    sizes: tuple[int, ...]

    def of(self, items: Sequence[Any]) -> list[list[Any]]:
        """The items divided."""
        found, at = [], 0
        for size in self.sizes:
            found.append(list(items[at : at + size]))
            at += size
        return [*found, list(items[at:])]


def forth_operands(node: Node) -> Parts:
    """consts, carry | xs."""
    return Parts((node.attrs["consts"], node.attrs["carry"]))


def forth_results(node: Node) -> Parts:
    """carry, arrays, lists, kept states | residuals of the last step."""
    a = node.attrs
    return Parts((a["carry"], a["arrays"], a["lists"], len(a["kept"])))


def back_operands(node: Node) -> Parts:
    """consts, kept states, residuals of the last step, carry | xs."""
    a = node.attrs
    return Parts((a["consts"], a["kept"], a["residuals"], a["carry"]))


def back_results(node: Node) -> Parts:
    """carry, arrays | stacks."""
    return Parts((node.attrs["carry"], node.attrs["arrays"]))


# Schedules in attributes: ("name", arguments...) calls a placer, KEPT stands for the numbers of the kept states.

KEPT = "kept"


def schedule_source(text: Any, kept: str) -> str:
    """Source of the schedule."""
    if isinstance(text, tuple) and text and isinstance(text[0], str):
        return f"{text[0]}({', '.join(schedule_source(x, kept) for x in text[1:])})"
    return kept if text == KEPT else literal(text)


def schedule_of(text: Any, kept: Any = ()) -> Any:
    """The schedule itself."""
    if isinstance(text, tuple) and text and isinstance(text[0], str):
        arguments = [schedule_of(x, kept) for x in text[1:]]
        return range(*arguments) if text[0] == "range" else PLACERS[text[0]].function(*arguments)
    return kept if text == KEPT else text


def placers_of(text: Any) -> Iterator[str]:
    """The sources of the placers that a schedule calls."""
    if isinstance(text, tuple):
        for x in text:
            yield from placers_of(x)
        if text and isinstance(text[0], str) and text[0] != "range":
            yield from PLACERS[text[0]].sources


def _forth_shape(
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


def _back_shape(
    *avals: Aval, advance: Graph, back: Graph, first: Graph, consts: int, kept: int, residuals: int, carry: int,
    arrays: int, length: int, reverse: bool, again: bool, way: Any, count: bool,
) -> tuple[Aval, ...]:  # fmt: skip
    c, states, last, k, xs = Parts((consts, kept, residuals, carry)).of(avals)
    steps, now = [*map(step_of, xs)], [s.unstacked() for s in states]
    for graph, taken in ((advance, (*c, *now)), (back, (*c, *now, *k)), (first, (*c, *last, *k))):
        if graph.in_avals != (*taken, *steps):
            raise ValueError(f"{graph.name} takes {', '.join(map(str, graph.in_avals))}")
    k_out, ys, stacks = Parts((carry, arrays)).of(back.out_avals)
    if k_out != k or first.out_avals != back.out_avals or advance.out_avals != tuple(now):
        raise ValueError(f"a step back makes {', '.join(map(str, back.out_avals))}")
    return (*k, *(Aval((length, *y.shape), y.dtype) for y in ys), *(s.stacked(length) for s in stacks))


def _forth_run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    a, n = node.attrs, node.attrs["length"]
    consts, carry, xs = forth_operands(node).of(args)
    _, ys, saved, kept, _ = forth_results(node).of(node.outputs)
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


def _back_run(evaluate: Any, node: Node, *args: Any) -> list[Any]:
    a, n = node.attrs, node.attrs["length"]
    consts, states, last, carry, xs = back_operands(node).of(args)
    _, ys, stacks = back_results(node).of(node.outputs)
    arrays = [np.empty(y.aval.shape, y.aval.dtype) for y in ys]
    lists: list[list[Any]] = [[None] * n for _ in stacks]
    states = [dict(state) for state in states]

    def back(graph: Graph, i: int, given: Sequence[Any]) -> list[Any]:
        t = n - 1 - i if a["reverse"] else i
        k, y_t, s_t = back_results(node).of(evaluate(graph, [*consts, *given, *carry, *(x[t] for x in xs)]))
        stores: list[Any] = [*arrays, *lists]
        for store, value in zip(stores, (*y_t, *s_t), strict=True):
            store[t] = value
        return k

    carry = back(a["first"], n - 1, last)
    now: Sequence[Any] = ()
    for verb, i, j in schedule_of(a["way"], states[0] if states else ()):
        if verb == "back":
            carry = back(a["back"], i, now)
        elif verb == "advance":
            for t in range(i, j):
                x_t = [x[n - 1 - t if a["reverse"] else t] for x in xs]
                now = evaluate(a["advance"], [*consts, *now, *x_t])
        elif verb == "load":
            now = [state[i] for state in states]
        for state, value in zip(states, now, strict=True) if verb == "save" else ():
            state[i] = value
        for state in states if verb == "drop" else ():
            del state[i]
    return [*carry, *arrays, *lists]


class _Writer:
    """What the two emission rules share."""

    def __init__(self, emitter: Any, node: Node, xs: Sequence[str], arrays: Sequence[str]) -> None:
        self.emitter, self.node, self.xs, self.arrays = emitter, node, xs, arrays

    def start(self, names: Sequence[str], inits: Sequence[str]) -> None:
        """Assign the carries."""
        for name, init in zip(names, inits, strict=True):
            if name != init:
                self.emitter.line(f"{name} = {init}")

    def count(self, name: str, change: int) -> None:
        """A call that counts, where that is asked for."""
        if self.node.attrs["count"]:
            self.emitter.scope.helpers[COUNT] = None
            self.emitter.line(f'count("{name}", {change})')

    def row(self, i: str) -> str:
        """The row of xs and arrays that belongs to step ``i``."""
        return f"{self.node.attrs['length'] - 1} - {i}" if self.node.attrs["reverse"] else i

    def step(self, graph: Graph, given: Sequence[str], t: str) -> list[str]:
        """A body at row ``t``."""
        names = [*given, *(f"{x}[{t}]" for x in self.xs)]
        found: list[str] = self.emitter.inline(graph, names, bound=len(given))
        return found

    def moved(self, names: Sequence[str], values: Sequence[str], graph: Graph) -> None:
        """Assign the next carries; large ones keep no second name."""
        pairs = [(n, v) for n, v in zip(names, values, strict=True) if n != v]
        if pairs:
            self.emitter.line(f"{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}")
        made = {v for node in graph.nodes for v in node.outputs}
        large = [
            v for (v, o) in zip(values, graph.outputs[: len(values)], strict=True)
            if o in made and o.aval.kind == "array" and o.aval.nbytes >= LARGE and v.isidentifier()
        ]  # fmt: skip
        if large:
            self.emitter.line(f"del {', '.join(dict.fromkeys(large))}")

    def schedule(self, text: Any, kept: str) -> str:
        """Source of a schedule, whose placers are added to the module."""
        for source in placers_of(text):
            self.emitter.scope.helpers[source] = None
        return schedule_source(text, kept)


def _forth_emit(emitter: Any, node: Node, ins: list[str], outs: list[str]) -> None:
    a = node.attrs
    consts, carry, xs = forth_operands(node).of(ins)
    k_out, arrays, lists, kept, residuals = forth_results(node).of(outs)
    _, ys, _, _, _ = forth_results(node).of(node.outputs)
    writer = _Writer(emitter, node, xs, arrays)
    writer.start(k_out, carry)
    for name, y in zip(arrays, ys, strict=True):
        emitter.line(f"{name} = np.empty({y.aval.shape}, {emitter.dtype(y.aval.dtype)})")
    for name in lists:
        emitter.line(f"{name} = []")
    for name in kept:
        emitter.line(f"{name} = {{}}")

    def step(graph: Graph, t: str) -> list[str]:
        found = writer.step(graph, [*consts, *k_out], t)
        k, y_t, s_t, rest = Parts((a["carry"], a["arrays"], a["lists"])).of(found)
        for store, value in zip(arrays, y_t, strict=True):
            emitter.line(f"{store}[{t}] = {value}")
        for store, value in zip(lists, s_t, strict=True):
            emitter.line(f"{store}.append({value})")
        if rest:
            writer.start(residuals, rest)
        writer.moved(k_out, k, graph)
        return rest

    if a["length"] > 1:
        action, i, j, s = (emitter.fresh(name) for name in ("action", "i", "j", "s"))
        with emitter.block(f"for {action}, {i}, {j} in {writer.schedule(a['forth'], '')}:"):
            with emitter.block(f'if {action} == "save":'):
                for state, k in zip(kept, a["kept"], strict=True):
                    emitter.line(f"{state}[{i}] = {k_out[k]}")
                writer.count("snapshots", 1)
            with emitter.block("else:"), emitter.block(f"for {s} in range({i}, {j}):"):
                writer.count("advances", 1)
                t = _named(emitter, writer.row(s), s)
                step(a["step"], t)
    writer.count("taped", 1)
    step(a["tape"], str(0 if a["reverse"] else a["length"] - 1))
    if a["reverse"]:
        for name in lists:
            emitter.line(f"{name}.reverse()")


def _named(emitter: Any, row: str, s: str) -> str:
    if row == s:
        return s
    t: str = emitter.fresh("t")
    emitter.line(f"{t} = {row}")
    return t


def _back_emit(emitter: Any, node: Node, ins: list[str], outs: list[str]) -> None:
    a = node.attrs
    consts, states, last, carry, xs = back_operands(node).of(ins)
    k_out, arrays, stacks = back_results(node).of(outs)
    _, ys, _ = back_results(node).of(node.outputs)
    writer = _Writer(emitter, node, xs, arrays)
    writer.start(k_out, carry)
    for name, y in zip(arrays, ys, strict=True):
        emitter.line(f"{name} = np.empty({y.aval.shape}, {emitter.dtype(y.aval.dtype)})")
    for name in stacks:
        emitter.line(f"{name} = []")
    if a["again"]:
        copies = [emitter.fresh(name) for name in states]
        writer.start(copies, [f"{name}.copy()" for name in states])
        states = copies

    def back(graph: Graph, given: Sequence[str], t: str) -> None:
        k, y_t, s_t = back_results(node).of(writer.step(graph, [*consts, *given, *k_out], t))
        for store, value in zip(arrays, y_t, strict=True):
            emitter.line(f"{store}[{t}] = {value}")
        for store, value in zip(stacks, s_t, strict=True):
            emitter.line(f"{store}.append({value})")
        writer.moved(k_out, k, graph)

    back(a["first"], last, str(0 if a["reverse"] else a["length"] - 1))
    if a["length"] > 1:
        now = [emitter.fresh(v.hint) for v in a["advance"].inputs[len(consts) : len(consts) + len(states)]]
        _way(writer, now, states, back, consts)
    if not a["reverse"]:
        for name in stacks:
            emitter.line(f"{name}.reverse()")


def _way(
    writer: _Writer, now: list[str], states: list[str], back: Callable[[Graph, Sequence[str], str], None],
    consts: Sequence[str],
) -> None:  # fmt: skip
    """The loop over the actions of the way back."""
    emitter, a = writer.emitter, writer.node.attrs
    action, i, j, s = (emitter.fresh(name) for name in ("action", "i", "j", "s"))
    with emitter.block(f"for {action}, {i}, {j} in {writer.schedule(a['way'], states[0])}:"):
        with emitter.block(f'if {action} == "advance":'), emitter.block(f"for {s} in range({i}, {j}):"):
            writer.count("advances", 1)
            t = _named(emitter, writer.row(s), s)
            writer.moved(now, writer.step(a["advance"], [*consts, *now], t), a["advance"])
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
            back(a["back"], now, _named(emitter, writer.row(i), i))


def _fresh(parts: Callable[[Node], Parts]) -> Callable[[Node], range]:
    def fresh(node: Node) -> range:
        carry, arrays = parts(node).sizes[:2]
        return range(carry, carry + arrays)

    return fresh


sweep = primitive(
    "sweep", _forth_shape, multi=True, run=_forth_run, emit=_forth_emit, fresh=_fresh(forth_results)
)  # fmt: skip
unsweep = primitive("unsweep", _back_shape, multi=True, run=_back_run, emit=_back_emit, fresh=_fresh(back_results))
