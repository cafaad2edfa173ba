"""Which stretches that repeat are unrolled loops, and what takes each operand's place in a step of the loop.

Copies of a stretch become steps if each operand is, in every copy, one of these: what the same copy computed; what a
copy at a fixed distance before computed (a carry); one value for all (a constant of the loop); a number that differs
from copy to copy. If a position in an index counts up or down, the array must be one that all copies read, so that
the loop reads it step by step, or one that each copy writes and none reads, so that it is written at once after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..ops.index import additem, getitem, setitem
from .repeats import COPIES, kinds_of, stretches

REACH = 4  # copies back that a carry may come from
SHIFTS = 4  # starts that are tried


def is_number(node: Node | None) -> bool:
    """Whether a node is a number filled into an aval: such nodes belong to no copy."""
    return node is not None and node.prim.name == "const"


class Refused(Exception):  # noqa: N818 - a signal, not an error
    """This stretch stays as it is."""


@dataclass(frozen=True)
class Register:
    """A carry: what slot ``slot`` computed ``back`` copies before, and the values that stand for it at first."""

    slot: int
    out: int
    back: int
    first: tuple[Value, ...]


@dataclass(eq=False)
class Loop:
    """A stretch that is a loop. ``reads`` and ``writes`` map slots to (axis position in the index, first, step)."""

    start: int
    period: int
    copies: int
    constants: dict[Value, None] = field(default_factory=dict)
    registers: dict[Register, None] = field(default_factory=dict)
    columns: dict[tuple[Value, ...], np.ndarray[Any, Any]] = field(default_factory=dict)
    reads: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    writes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    sources: dict[tuple[int, int], Any] = field(default_factory=dict)  # of each operand: what a step takes for it
    final: dict[tuple[int, int], None] = field(default_factory=dict)  # slots whose last value is read afterwards
    collected: dict[tuple[int, int], None] = field(default_factory=dict)  # slots of which other values are

    @property
    def end(self) -> int:
        return self.start + self.period * self.copies


class Finder:
    """Finds the loops of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = [node for node in graph.nodes if not is_number(node)]
        self.place = {v: (i, k) for i, node in enumerate(self.nodes) for k, v in enumerate(node.outputs)}
        self.number = {node: i for i, node in enumerate(self.nodes)}
        self.results = set(graph.outputs)

    def loops(self) -> list[Loop]:
        """Loops that do not overlap, in order."""
        found: list[Loop] = []
        taken = np.zeros(len(self.nodes), bool)
        for start, period, copies in stretches(kinds_of(self.nodes)):
            if taken[start : start + period * copies].any():
                continue
            loop = self._loop(start, period, copies)
            if loop is not None:
                taken[loop.start : loop.end] = True
                found.append(loop)
        return sorted(found, key=lambda loop: loop.start)

    def _loop(self, start: int, period: int, copies: int) -> Loop | None:
        end = start + period * copies
        for shift in (*range(min(SHIFTS, period)), period):
            n = (end - start - shift) // period
            if n < COPIES:
                break
            loop = Loop(start + shift, period, n)
            try:
                self._check(loop)
            except Refused:
                continue
            return loop
        return None

    def _check(self, loop: Loop) -> None:
        for slot in range(loop.period):
            copies = self.nodes[loop.start + slot : loop.end : loop.period]
            self._check_slot(loop, slot, copies)
        self._check_uses(loop)

    def _check_slot(self, loop: Loop, slot: int, copies: list[Node]) -> None:
        node = copies[0]
        if any(v.aval.steps is not None for v in node.outputs):
            raise Refused
        index = node.attrs.get("index")
        moving = _moving(copies) if index is not None else None
        if moving is None:
            if index is not None and any(c.attrs["index"] != index for c in copies):
                raise Refused
            for i in range(len(node.inputs)):
                loop.sources[slot, i] = self._source(loop, slot, [c.inputs[i] for c in copies])
            return
        if len(node.inputs) != (1 if node.prim is getitem else 2):
            raise Refused
        if node.prim is getitem:
            if any(c.inputs[0] is not node.inputs[0] for c in copies) or is_number(self.producer(node.inputs[0])):
                raise Refused
            self._before(loop, node.inputs[0])
            loop.reads[slot] = moving
        elif node.prim in (setitem, additem):
            if any(c.inputs[0] is not before.out for before, c in pairwise(copies)):
                raise Refused
            self._before(loop, node.inputs[0])
            loop.sources[slot, 1] = self._source(loop, slot, [c.inputs[1] for c in copies])
            loop.writes[slot] = moving
        else:
            raise Refused

    def producer(self, value: Value) -> Node | None:
        return self.graph.producer.get(value)

    def _before(self, loop: Loop, value: Value) -> None:
        """The value must be there when the loop begins."""
        if value in self.place and self.place[value][0] >= loop.start:
            raise Refused

    def _source(self, loop: Loop, slot: int, values: Sequence[Value]) -> Any:
        first = values[0]
        if all(v is first for v in values):
            self._before(loop, first)
            if not is_number(self.producer(first)):
                loop.constants[first] = None
            return first
        if all(is_number(self.producer(v)) for v in values):
            return self._column(loop, tuple(values))
        at, out = self.place.get(values[-1], (-1, 0))
        if at < loop.start:
            raise Refused
        copy, origin = divmod(at - loop.start, loop.period)
        back = loop.copies - 1 - copy
        if back > REACH or back >= loop.copies or (back == 0 and origin >= slot) or origin in loop.writes:
            raise Refused
        for k in range(back, loop.copies):
            if self.place.get(values[k]) != (loop.start + (k - back) * loop.period + origin, out):
                raise Refused
        if back == 0:
            return (origin, out)
        aval = values[-1].aval
        for v in values[:back]:
            self._before(loop, v)
            if v.aval != aval:
                raise Refused
        register = Register(origin, out, back, tuple(values[:back]))
        loop.registers[register] = None
        return register

    def _column(self, loop: Loop, values: tuple[Value, ...]) -> Any:
        """Numbers that differ from copy to copy."""
        aval = values[0].aval
        numbers = [self.graph.producer[v].attrs["value"] for v in values]
        if aval.kind == "python" or any(v.aval != aval for v in values) or any(isinstance(n, tuple) for n in numbers):
            raise Refused
        loop.columns[values] = np.array(numbers, aval.dtype)
        return values

    def _check_uses(self, loop: Loop) -> None:
        """What is read after the loop; arrays that are written may be read only then."""
        for slot in range(loop.period):
            for k in range(loop.copies):
                node = self.nodes[loop.start + k * loop.period + slot]
                for out, value in enumerate(node.outputs):
                    outside = value in self.results
                    for user in self.graph.uses.get(value, ()):
                        at = self.number.get(user, -1)
                        if not loop.start <= at < loop.end:
                            outside = True
                        elif slot in loop.writes and at != loop.start + (k + 1) * loop.period + slot:
                            raise Refused
                    if not outside:
                        continue
                    last = k == loop.copies - 1
                    if slot in loop.writes:
                        if not last:
                            raise Refused
                    elif value.aval.kind == "python" or (value.aval.kind == "array" and not value.aval.shape):
                        raise Refused
                    else:
                        (loop.final if last else loop.collected)[slot, out] = None


def _moving(copies: Sequence[Node]) -> tuple[int, int, int] | None:
    """The position in the index at which an int counts up or down, its first value and its step."""
    index = copies[0].attrs["index"]
    found = None
    for position, item in enumerate(index):
        if type(item) is not int or all(c.attrs["index"][position] == item for c in copies):
            continue
        ints = [c.attrs["index"][position] for c in copies]
        step = ints[1] - ints[0]
        if found is not None or step == 0 or any(b - a != step for a, b in pairwise(ints)):
            raise Refused
        if min(ints) < 0 <= max(ints) or Ellipsis in index:
            raise Refused
        found = (position, ints[0], step)
    return found
