"""Prove which repeating stretches are unrolled loops, and find the source of each operand in a step of the loop.

Copies of a stretch become steps if each operand is, in every copy, one of these: a result of the same copy; a result of
the copy at a fixed distance before (a carry); one value for all copies (a constant of the loop); a number that differs
from copy to copy; a part of an array that exists before the loop. Such parts are laid out before the loop: as a slice
if an index counts up or down, else by a gather. An array that each copy writes at an index that counts, and none reads,
is written at once after the loop. If copies also read it, it is a carry, and its indices are operands, if it is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ops.formulas import operations, value_within, write_within
from ...ops.index import additem, getitem, setitem
from ...ops.ragged import add_within, dot_within
from ...ops.shape import broadcast
from .contiguous import contiguous
from .find_repeats import COPIES, NODES, length, masked, width
from .longest_chain import longest_chain
from .multiples import multiples
from .nodes_of_copies import counted, is_number, repeating

REACH = 4  # copies back that a carry may come from
GATHERED = 1 << 20  # bytes that may be gathered from an array, or if that is more,
TIMES = 4  # so many times its size
MANY = 8192  # nodes of a graph in which also short loops on slices fold, since there are many of them
LIGHT = 512  # bytes of the largest result in a short loop
SMALL = 4096  # bytes of an array that may be a carry whatever its steps do
KEPT = 1 << 31  # bytes of all states of a larger one, if a plan of memory copies each
WIDE = 8  # steps that run together on average are faster without a loop, by levels
SHIFTS = 4  # how many starts are tried
LAST = 16  # copies that must be steps of a loop by themselves before all are looked at
ON_SLICES = frozenset({add_within, dot_within, value_within, write_within})


class Refused(Exception):  # noqa: N818 - a signal, not an error
    """A stretch stays as it is."""


Places = dict[int, np.ndarray[Any, Any]]  # ints or starts of slices that differ from copy to copy, by position


class Moving(NamedTuple):
    """A position in an index at which an int, or the start of a slice, counts: its first value and its step."""

    position: int
    first: int
    step: int


def moving(index: tuple[Any, ...], places: Places) -> Moving | None:
    """The only position at which indices differ, if ints count up or down there, or slices follow each other."""
    if len(places) != 1:
        return None
    ((position, ints),) = places.items()
    step = ints[1] - ints[0]
    if (np.diff(ints) != step).any() or ints.min() < 0 <= ints.max() or width(index[position]) not in {0, step}:
        return None
    return Moving(position, int(ints[0]), int(step))


@dataclass(frozen=True)
class Register:
    """A carry: result ``out`` of slot ``slot``, ``back`` copies before; ``first`` are its values before the loop."""

    slot: int
    out: int
    back: int
    first: tuple[Value, ...]


@dataclass(eq=False)
class Loop:
    """A stretch that is a loop.

    ``reads`` are slots that read parts of an array that exists before the loop; ``rows`` are values that nodes
    elsewhere read from such an array, with one of these nodes; ``writes`` are slots that write at an index that counts;
    ``places`` are slots that read or write a carry, whose indices become operands.
    """

    start: int
    period: int
    copies: int
    constants: dict[Value, None] = field(default_factory=dict)
    registers: dict[Register, None] = field(default_factory=dict)
    columns: dict[tuple[Value, ...], np.ndarray[Any, Any]] = field(default_factory=dict)
    reads: dict[int, Places] = field(default_factory=dict)
    rows: dict[tuple[Value, ...], tuple[Node, Places]] = field(default_factory=dict)
    writes: dict[int, Moving] = field(default_factory=dict)
    places: dict[int, Places] = field(default_factory=dict)
    sources: dict[tuple[int, int], Any] = field(default_factory=dict)  # where a step takes each operand from
    final: dict[tuple[int, int], None] = field(default_factory=dict)  # results whose last value is read after the loop
    collected: dict[tuple[int, int], None] = field(default_factory=dict)  # results of which other values are read, too

    @property
    def end(self) -> int:
        return self.start + self.period * self.copies

    def distinct_places(self) -> dict[bytes, np.ndarray[Any, Any]]:
        """The different columns of indices of carries, by their bytes."""
        return {column.tobytes(): column for places in self.places.values() for column in places.values()}


class Finder:
    """Finds the loops of a graph.

    ``elements``, as for C: their steps may write any elements of large matrices, and short loops pay, of as many nodes
    as ``least``.
    """

    def __init__(self, graph: Graph, elements: bool, least: int) -> None:
        self.graph, self.elements, self.least = graph, elements, least
        self.nodes, self.at = counted(graph)
        self.place = {v: (i, k) for i, node in enumerate(self.nodes) for k, v in enumerate(node.outputs)}
        self.number = {node: i for i, node in enumerate(self.nodes)}
        self.results = set(graph.outputs)

    def loops(self) -> list[Loop]:
        """Loops that do not overlap, in order. Loops whose indices need no operands come first."""
        found: list[Loop] = []
        taken = np.zeros(len(self.nodes), bool)
        like = repeating(self.graph)
        for several, anywhere, (start, period, copies) in product((False, True), (False, True), like):
            if length(self.at, start, period, copies) < self.least or taken[start : start + period * copies].any():
                continue
            for m in self._multiples(start, period, copies) if several else (1,):
                loop = self._loop(start, m * period, copies // m, anywhere)
                if loop is not None:
                    taken[loop.start : loop.end] = True
                    found.append(loop)
                    break
        return sorted(found, key=lambda loop: loop.start)

    def _multiples(self, start: int, period: int, copies: int) -> Iterator[int]:
        """Numbers of copies that may make one step together."""

        def origin(value: Value) -> tuple[int, int] | None:
            at, out = self.place.get(value, (-1, 0))
            made = self.producer(value)
            if at < start and made is not None and (is_number(made) or made.prim is getitem):
                return None  # numbers and parts of arrays may differ from step to step
            return at - start, out

        return multiples(self.nodes[start : start + period * copies], period, origin)

    def _loop(self, start: int, period: int, copies: int, anywhere: bool) -> Loop | None:
        end = start + period * copies
        for shift in (*range(min(SHIFTS, period)), *range(period, REACH * period + 1, period)):
            n = (end - start - shift) // period
            if n < COPIES or not self._pays(start + shift, period, n):
                break
            loop = Loop(start + shift, period, n)
            try:
                if n > LAST:  # most refusals show in the last copies, and all copies take long
                    self._check_slots(Loop(loop.end - LAST * period, period, LAST), anywhere)
                self._check(loop, anywhere)
            except Refused:
                continue
            return loop
        return None

    def _pays(self, start: int, period: int, copies: int) -> bool:
        """Whether a stretch is as fast as a loop: in C a short one is, in NumPy one of small arrays and few numbers.

        A loop may compute again in its derivative what the stretch would keep, which counts for more than NumPy's calls
        if arrays are large; and a call on numbers is so fast that what a loop does beside it counts.
        """
        step = self.nodes[start : start + period]
        on_slices = copies * sum(operations(node) - 1 for node in step if node.prim in ON_SLICES)
        nodes = length(self.at, start, period, copies) + on_slices
        if nodes >= (self.least if self.elements else NODES) or (on_slices and len(self.graph.nodes) >= MANY):
            return True
        avals = [v.aval for node in step for v in node.outputs]
        arrays = sum(bool(aval.shape) for aval in avals)
        return 2 * arrays > len(avals) and all(aval.nbytes <= LIGHT for aval in avals)

    def _check_slots(self, loop: Loop, anywhere: bool) -> None:
        for slot in range(loop.period):
            copies = self.nodes[loop.start + slot : loop.end : loop.period]
            self._check_slot(loop, slot, copies, anywhere)

    def _check(self, loop: Loop, anywhere: bool) -> None:
        self._check_slots(loop, anywhere)
        if len(loop.reads) == loop.period or not self._follow(loop):  # nothing is computed, or all at once
            raise Refused
        self._check_uses(loop)

    def _check_slot(self, loop: Loop, slot: int, copies: list[Node], anywhere: bool) -> None:
        node = copies[0]
        if any(v.aval.steps is not None for v in node.outputs):
            raise Refused
        places = _places(copies)
        if places and self._reads_one(loop, copies, places, anywhere):
            loop.reads[slot] = places
            return
        counting = moving(node.attrs["index"], places) if places else None
        if counting and node.prim in (setitem, additem) and self._writes_one(loop, copies, places):
            loop.sources[slot, 1] = self._source(loop, slot, [c.inputs[1] for c in copies], anywhere)
            loop.writes[slot] = counting
            return
        if places:
            small = node.prim in (getitem, setitem, additem) and self._may_be_written(loop, node.inputs[0])
            if not (anywhere and small) or any(width(node.attrs["index"][k]) for k in places):
                raise Refused
            loop.places[slot] = places
        for i in range(len(node.inputs)):
            loop.sources[slot, i] = self._source(loop, slot, [c.inputs[i] for c in copies], anywhere)

    def _may_be_written(self, loop: Loop, array: Value) -> bool:
        """Whether steps may write elements of an array: a small one, a vector, or one that a step works on as a whole.

        The loop has the array as a carry and updates it in place. NumPy better computes elements of larger matrices
        together, by levels; so are those of larger vectors, unless ``_follow`` finds that steps follow each other.
        """
        if array.aval.nbytes <= SMALL:
            return True
        in_order = self.elements or array.aval.ndim == 1 or self._on_slices(loop)
        return in_order and loop.copies * array.aval.nbytes <= KEPT

    def _on_slices(self, loop: Loop) -> bool:
        return any(node.prim in ON_SLICES for node in self.nodes[loop.start : loop.start + loop.period])

    def _follow(self, loop: Loop) -> bool:
        """Whether steps wait for each other, or write into no large vector: few of them could run together."""
        written = [self.nodes[loop.start + slot].inputs[0].aval for slot in loop.places]
        if self.elements or self._on_slices(loop) or all(aval.nbytes <= SMALL for aval in written):
            return True
        return WIDE * longest_chain(self.nodes[loop.start : loop.end]) >= loop.copies

    def _reads_one(self, loop: Loop, reads: Sequence[Node | None], places: Places, anywhere: bool) -> bool:
        """Whether parts of one array, which exists before the loop, can be laid out before it."""
        first = reads[0]
        if first is None or len(first.inputs) != 1 or Ellipsis in first.attrs["index"]:
            return False
        array = first.inputs[0]
        if any(n is None or n.prim is not getitem or n.inputs != (array,) for n in reads):
            return False
        if is_number(self.producer(array)) or not self._is_before(loop, array) or _cut_off(first, first.out, places):
            return False
        if moving(first.attrs["index"], places) is not None:
            return True
        few = len(reads) * first.out.aval.nbytes <= max(GATHERED, TIMES * array.aval.nbytes)
        return anywhere and few and (not first.out.aval.shape or self._has_rows(array, first.attrs["index"]))

    def _has_rows(self, array: Value, index: tuple[Any, ...]) -> bool:
        """Whether the parts lie in memory as in a gathered array, so that results computed from them keep bits."""
        leading = sum(type(item) is int for item in index) or 1
        rows = all(type(item) is int or width(item) for item in index[:leading])
        return rows and all(item == slice(None) for item in index[leading:]) and array in contiguous(self.graph)

    def _writes_one(self, loop: Loop, copies: Sequence[Node], places: Places) -> bool:
        """Whether copies write into one array that exists before the loop, and only the last state of it is read."""
        if not self._is_before(loop, copies[0].inputs[0]) or any(len(c.inputs) != 2 for c in copies):
            return False
        if _cut_off(copies[0], copies[0].inputs[1], places):
            return False
        return all(
            after.inputs[0] is before.out and self.graph.uses[before.out] == [after] and before.out not in self.results
            for before, after in pairwise(copies)
        ) and all(self.number[user] >= loop.end for user in self.graph.uses.get(copies[-1].out, ()))

    def producer(self, value: Value) -> Node | None:
        return self.graph.producer.get(value)

    def _is_before(self, loop: Loop, value: Value) -> bool:
        """Whether the value exists before the loop."""
        return value not in self.place or self.place[value][0] < loop.start

    def _source(self, loop: Loop, slot: int, values: Sequence[Value], anywhere: bool) -> Any:
        first = values[0]
        if all(v is first for v in values):
            if not self._is_before(loop, first):
                raise Refused
            self._hold(loop, first)
            return first
        if all(is_number(self.producer(v)) for v in values):
            return self._column(loop, tuple(values))
        found = self._computed(loop, slot, values) or self._row(loop, tuple(values), anywhere)
        if found is None:
            raise Refused
        return found

    def _hold(self, loop: Loop, value: Value) -> None:
        """Make a value a constant of the loop; what is only stretched is stretched in each step."""
        node = self.producer(value)
        if node is not None and node.prim is broadcast:
            self._hold(loop, node.inputs[0])
        elif not is_number(node):
            loop.constants[value] = None

    def _computed(self, loop: Loop, slot: int, values: Sequence[Value]) -> tuple[int, int] | Register | None:
        """The result of a slot that each copy, or a copy at a fixed distance before, computed."""
        at, out = self.place.get(values[-1], (-1, 0))
        copy, origin = divmod(at - loop.start, loop.period)
        back = loop.copies - 1 - copy
        if at < loop.start or back > min(REACH, loop.copies - 1) or origin in loop.writes:
            return None
        if back == 0 and origin >= slot:
            return None
        for k in range(back, loop.copies):
            if self.place.get(values[k]) != (loop.start + (k - back) * loop.period + origin, out):
                return None
        if back == 0:
            return (origin, out)
        if any(not self._is_before(loop, v) or v.aval != values[-1].aval for v in values[:back]):
            return None
        register = Register(origin, out, back, tuple(values[:back]))
        loop.registers[register] = None
        return register

    def _row(self, loop: Loop, values: tuple[Value, ...], anywhere: bool) -> tuple[Value, ...] | None:
        """Parts of one array that exists before the loop, which nodes anywhere read."""
        reads = [self.producer(v) for v in values]
        nodes = [n for n in reads if n is not None and n.prim is getitem]
        if len(nodes) < len(reads) or any(masked(n.attrs["index"]) != masked(nodes[0].attrs["index"]) for n in nodes):
            return None
        places = _places(nodes)
        if not places or not self._reads_one(loop, nodes, places, anywhere):
            return None
        loop.rows[values] = nodes[0], places
        return values

    def _column(self, loop: Loop, values: tuple[Value, ...]) -> Any:
        """Numbers that differ from copy to copy."""
        aval = values[0].aval
        numbers = [self.graph.producer[v].attrs["value"] for v in values]
        if aval.kind == "python" or any(v.aval != aval for v in values) or any(isinstance(n, tuple) for n in numbers):
            raise Refused
        loop.columns[values] = np.array(numbers, aval.dtype)
        return values

    def _collectable(self, value: Value) -> bool:
        """Whether a row of an array is of the same kind as the value, and lies in memory as it does."""
        number = value.aval.kind == "python" or (value.aval.kind == "array" and not value.aval.shape)
        return not number and value in contiguous(self.graph)

    def _check_uses(self, loop: Loop) -> None:
        """Note the results that are read after the loop."""
        for slot in range(loop.period):
            for k in range(loop.copies):
                node = self.nodes[loop.start + k * loop.period + slot]
                for out, value in enumerate(node.outputs):
                    outside = value in self.results or any(
                        not loop.start <= self.number.get(user, -1) < loop.end
                        for user in self.graph.uses.get(value, ())
                    )
                    if not outside or slot in loop.writes:
                        continue
                    if k < loop.copies - 1 and not self._collectable(value):
                        raise Refused
                    (loop.final if k == loop.copies - 1 else loop.collected)[slot, out] = None


def _cut_off(node: Node, part: Value, places: Places) -> bool:
    """Whether a slice that differs from copy to copy goes beyond the end of the array."""
    index = node.attrs["index"]
    return any(width(index[k]) not in {0, part.aval.shape[axis_of(index, k)]} for k in places if width(index[k]))


def axis_of(index: tuple[Any, ...], position: int) -> int:
    """The axis of the result that belongs to this position of the index."""
    return sum(type(item) is not int for item in index[:position])


def _places(copies: Sequence[Node]) -> Places:
    """The positions at which indices of nodes differ that are equal when masked; none for nodes without an index."""
    found: dict[int, list[int]] = {}
    for k, item in enumerate(copies[0].attrs.get("index", ())):
        if type(item) is int:
            found[k] = [c.attrs["index"][k] for c in copies]
        elif width(item):
            found[k] = [c.attrs["index"][k].start for c in copies]
    return {k: np.array(ints) for k, ints in found.items() if min(ints) != max(ints)}
