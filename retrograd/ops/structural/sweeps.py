"""What the primitives of checkpointed loops share: how operands divide, schedules in attributes, statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.primitive import literal
from ...ir.schedule import PLACERS
from ...ir.types import Aval

LARGE = 64 * 1024  # bytes from which a name that only shares a state with another is deleted at once

COUNTING = '''
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


OPAQUE = Aval((), np.dtype(np.int64), "python")  # stands for a disk, or for a dictionary of residuals by step
IMPORT = "import retrograd.ops.structural.disk"
OPEN = "retrograd.ops.structural.disk.open_disk"


# Schedules in attributes: ("name", arguments...) calls a placer. KEPT stands for the numbers of the kept states, COUNT
# for the number of steps where it is found at run time.

KEPT = "kept"
COUNT = "count"


def schedule_source(text: Any, kept: str = "", count: str = "") -> str:
    """Source of the schedule."""
    if isinstance(text, tuple) and text and isinstance(text[0], str):
        return f"{text[0]}({', '.join(schedule_source(x, kept, count) for x in text[1:])})"
    return {KEPT: kept, COUNT: count}.get(text, literal(text)) if isinstance(text, str) else literal(text)


def schedule_of(text: Any, kept: Any = (), count: int = 0) -> Any:
    """The schedule itself."""
    if isinstance(text, tuple) and text and isinstance(text[0], str):
        arguments = [schedule_of(x, kept, count) for x in text[1:]]
        return range(*arguments) if text[0] == "range" else PLACERS[text[0]].function(*arguments)
    return {KEPT: kept, COUNT: count}.get(text, text) if isinstance(text, str) else text


def placers_of(text: Any) -> Iterator[str]:
    """The sources of the placers that a schedule calls."""
    if isinstance(text, tuple):
        for x in text:
            yield from placers_of(x)
        if text and isinstance(text[0], str) and text[0] != "range":
            yield from PLACERS[text[0]].sources


class Writer:
    """Writes what the steps of all sweeps have in common; ``n`` is source of the number of steps, if it is known."""

    def __init__(self, emitter: Any, node: Node, xs: Sequence[str], n: str) -> None:
        self.emitter, self.node, self.xs, self.n = emitter, node, xs, n

    def stores(self, arrays: Sequence[str], values: Sequence[Value], lists: Sequence[str]) -> None:
        """Make the arrays and lists that results are collected in."""
        for name, value in zip(arrays, values, strict=True):
            self.emitter.line(f"{name} = np.empty({value.aval.shape}, {self.emitter.dtype(value.aval.dtype)})")
        for name in lists:
            self.emitter.line(f"{name} = []")

    def collect(
        self, arrays: Sequence[str], ys: Sequence[str], lists: Sequence[str], saved: Sequence[str], t: str
    ) -> None:
        """Put the results of one step there."""
        for store, value in zip(arrays, ys, strict=True):
            self.emitter.line(f"{store}[{t}] = {value}")
        for store, value in zip(lists, saved, strict=True):
            self.emitter.line(f"{store}.append({value})")

    def start(self, names: Sequence[str], inits: Sequence[str]) -> None:
        """Assign the carries."""
        for name, init in zip(names, inits, strict=True):
            if name != init:
                self.emitter.line(f"{name} = {init}")

    def count(self, name: str, change: int) -> None:
        """A call that counts, where that is asked for."""
        if self.node.attrs["count"]:
            self.emitter.scope.helpers[COUNTING] = None
            self.emitter.line(f'count("{name}", {change})')

    def last(self) -> str:
        """Source of the number of the last step."""
        return str(int(self.n) - 1) if self.n.isdigit() else f"{self.n} - 1"

    def row(self, i: str) -> str:
        """A name for the row of xs and arrays that belongs to step ``i``."""
        if not self.node.attrs["reverse"]:
            return i
        t: str = self.emitter.fresh("t")
        self.emitter.line(f"{t} = {self.last()} - {i}")
        return t

    def step(self, graph: Graph, given: Sequence[str], t: str) -> list[str]:
        """A body at row ``t``."""
        names = [*given, *(f"{x}[{t}]" for x in self.xs)]
        found: list[str] = self.emitter.inline(graph, names, bound=len(given))
        return found

    def schedule(self, text: Any, kept: str = "") -> str:
        """Source of a schedule, whose placers are added to the module."""
        for source in placers_of(text):
            self.emitter.scope.helpers[source] = None
        return schedule_source(text, kept, self.n)
