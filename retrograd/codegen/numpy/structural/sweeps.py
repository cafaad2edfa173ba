"""Statements of sweeps, which keep some states of a loop, and the parts that they share with adjoint sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ....ir.embedded import embed
from ....ir.graph import Graph, Node, Value
from ....ir.rewrite import walk
from ....ir.texts import literal
from ....ops.structural import open_sweep, sweep
from ....ops.structural.state_key import key_of
from ....ops.structural.sweeps import COUNT, DISK, KEPT, Parts
from ..bodies import BodyEmitter
from ..emitter import emits
from ..target import AROUND
from .loops import entry_of

IMPORT = f"import {DISK}"
OPEN = f"{DISK}.open_disk"

embed('''
def count(name, change):
    """Count an executed step or a kept state; what observes the module replaces this function."""
''')


def _around(graph: Graph) -> Callable[[Any], Any] | None:
    """What removes the files of a call that keeps states on disk."""
    if not any(node.attrs.get("disk") for node in walk(graph)):
        return None
    found: Callable[[Any], Any] = import_module(DISK).cleaning
    return found


AROUND.append(_around)


def _schedule_source(text: Any, kept: str, count: str) -> str:
    """Source of the schedule."""
    if isinstance(text, tuple) and text and isinstance(text[0], str):
        return f"{text[0]}({', '.join(_schedule_source(x, kept, count) for x in text[1:])})"
    return {KEPT: kept, COUNT: count}.get(text, literal(text)) if isinstance(text, str) else literal(text)


def _placers(text: Any) -> Iterator[str]:
    """The functions that a schedule calls."""
    if isinstance(text, tuple):
        for x in text:
            yield from _placers(x)
        if text and isinstance(text[0], str) and text[0] != "range":
            yield text[0]


class Writer:
    """Writes the parts that the steps of all sweeps share; ``n`` is source of the number of steps, if it is known."""

    def __init__(self, emitter: BodyEmitter, node: Node, xs: Sequence[str], n: str) -> None:
        self.emitter, self.node, self.xs, self.n = emitter, node, xs, n

    def stores(
        self, arrays: Sequence[str], values: Sequence[Value], lists: Sequence[str] = (), entries: Sequence[Value] = ()
    ) -> None:
        """Make the arrays and lists that collect results."""
        for name, value in zip(arrays, values, strict=True):
            self.emitter.line(f"{name} = {self.emitter.step_rows(value)}")
        for name, value in zip(lists, entries, strict=True):
            self.emitter.line(f"{name} = {self.emitter.empty('[]', entry_of(value))}")

    def collect(
        self, arrays: Sequence[str], ys: Sequence[str], lists: Sequence[str], saved: Sequence[str], t: str
    ) -> None:
        """Store the results of one step in these arrays and lists."""
        for store, value in zip(arrays, ys, strict=True):
            self.emitter.line(f"{store}[{t}] = {value}")
        for store, value in zip(lists, saved, strict=True):
            self.emitter.line(f"{store}.append({value})")

    def count(self, name: str, change: int) -> None:
        """Write a call that counts, if counting is asked for."""
        if self.node.attrs["count"]:
            self.emitter.embed("count")
            self.emitter.line(f'count("{name}", {change})')

    def last(self) -> str:
        """Source of the number of the last step."""
        return str(int(self.n) - 1) if self.n.isdigit() else f"{self.n} - 1"

    def row(self, i: str) -> str:
        """A name for the row of xs and arrays that belongs to step ``i``."""
        if not self.node.attrs["reverse"]:
            return i
        t = self.emitter.fresh("t")
        self.emitter.line(f"{t} = {self.last()} - {i}")
        return t

    def step(self, graph: Graph, given: Sequence[str], t: str) -> list[str]:
        """Emit a body at row ``t``."""
        names = [*given, *(f"{x}[{t}]" for x in self.xs)]
        return self.emitter.inline(graph, names, bound=len(given))

    def schedule(self, text: Any, kept: str = "") -> str:
        """Source of a schedule; the placers that it calls are added to the module."""
        self.emitter.embed(*_placers(text))
        return _schedule_source(text, kept, self.n)


@emits(sweep.sweep)
def _sweep(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    a, n = node.attrs, node.attrs["length"]
    consts, carry, xs = sweep.operands(node).of(ins)
    k_out, arrays, lists, kept, on_disk, tapes, residuals = sweep.results(node).of(outs)
    writer = Writer(emitter, node, xs, str(n))
    emitter.start(node, k_out, carry, sweep.operands(node).of(node.inputs)[1])
    values = sweep.results(node).of(node.outputs)
    writer.stores(arrays, values[1], lists, values[2])
    for name, k in zip(kept, a["kept"], strict=True):
        emitter.line(f"{name} = {emitter.empty('dict()', node.outputs[k].aval)}")
    for name in tapes:
        emitter.line(f"{name} = {emitter.empty('dict()', *(v.aval for v in values[6]))}")

    def step(graph: Graph, t: str, i: str = "") -> None:
        found = writer.step(graph, [*consts, *k_out], t)
        _, y_t, s_t, rest = Parts((a["carry"], a["arrays"], a["lists"])).of(found)
        writer.collect(arrays, y_t, lists, s_t, t)
        if i:
            emitter.line(f"{tapes[0]}[{i}] = ({', '.join([*rest, ''])})")
        else:
            emitter.each(residuals[: len(rest)], rest)
        writer.emitter.moved(k_out, found, graph)

    for disk in on_disk:
        emitter.scope.helpers[IMPORT] = None
        emitter.line(f"{disk} = {emitter.opened(node, f'{OPEN}({_place(node, ins)})')}")
    if n > 1:
        action, i, j, s = (emitter.fresh(name) for name in ("action", "i", "j", "s"))
        steps = f"range({i}, {j})" if lists else emitter.steps(i, j)
        bodies = [a["step"], a["tape"]] if tapes else [a["step"]]
        with emitter.working(*bodies), emitter.block(f"for {action}, {i}, {j} in {_schedule(writer, on_disk)}:"):
            with emitter.block(f'if {action} == "save":'):
                emitter.each([f"{state}[{i}]" for state in kept], [k_out[k] for k in a["kept"]])
                writer.count("snapshots", 1)
            for disk in on_disk:
                _to_disk(writer, disk, action, i, sweep.stored(a, k_out, arrays))
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


def _place(node: Node, ins: Sequence[str]) -> str:
    """Arguments that open a disk: a directory, and the key and operands that a resumed run must share."""
    directory, resume = node.attrs["disk"]
    return f"{directory!r}, {key_of(node)!r}, ({', '.join([*ins, ''])})" if resume else repr(directory)


def _schedule(writer: Writer, disks: Sequence[str]) -> str:
    a = writer.node.attrs
    text = writer.schedule(a["forth"])
    return f"{disks[0]}.resumed({text}, {a['carry'] + a['arrays']})" if disks and a["disk"][1] else text


def _to_disk(writer: Writer, disk: str, action: str, i: str, stored: Sequence[str]) -> None:
    """Write the actions on states on disk."""
    emitter = writer.emitter
    with emitter.block(f'elif {action} == "store":'):
        emitter.line(f"{disk}.write({i}, {', '.join(stored)})")
        writer.count("snapshots", 1)
    if writer.node.attrs["disk"][1]:
        with emitter.block(f'elif {action} == "fetch":'):
            emitter.line(f"{', '.join(stored)} = {disk}.read({i}, {len(stored)})")


@emits(open_sweep.open_sweep)
def _open_sweep(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    a = node.attrs
    count, consts, carry, xs = open_sweep.operands(node).of(ins)
    count = [emitter.number(node, name) for name in count]
    k_out, lists, kept = open_sweep.results(node).of(outs)
    writer = Writer(emitter, node, xs, count[0] if count else "")
    emitter.start(node, k_out, carry, open_sweep.operands(node).of(node.inputs)[2])
    writer.stores((), (), lists, open_sweep.results(node).of(node.outputs)[1])
    for name, k in zip(kept, a["kept"], strict=True):
        emitter.line(f"{name} = {emitter.empty('dict()', node.outputs[k].aval)}")
    room, old, i = (emitter.fresh(name) for name in ("room", "old", "i"))
    emitter.line(f"{room} = {writer.schedule(a['room'])}")
    with _steps(emitter, node, [*consts, *k_out], i, count):
        emitter.line(f"{old} = next({room})")
        with emitter.block(f"if {old} >= 0:"):
            emitter.line(f"del {', '.join(f'{state}[{old}]' for state in kept)}")
            writer.count("snapshots", -1)
        with emitter.block(f"if {old} > -2:"):
            emitter.each([f"{state}[{i}]" for state in kept], [k_out[k] for k in a["kept"]])
            writer.count("snapshots", 1)
        writer.count("advances", 1)
        t = writer.row(i)
        found = writer.step(a["step"], [*consts, *k_out], t)
        writer.collect((), (), lists, Parts((a["carry"],)).of(found)[1], t)
        writer.emitter.moved(k_out, found, a["step"])
        if not count:
            emitter.line(f"{i} += 1")
    if a["reverse"]:
        for name in lists:
            emitter.line(f"{name}.reverse()")


@contextmanager
def _steps(emitter: BodyEmitter, node: Node, names: list[str], i: str, count: list[str]) -> Iterator[None]:
    if count:
        with emitter.block(f"for {i} in range({count[0]}):"):
            yield
    else:
        emitter.line(f"{i} = 0")
        with emitter.loop(node, names):
            yield
