"""Compared iterations become a loop in the graph or, if there are few, their operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Node, Value
from ...ir.python_loops import lines_of, loop_line
from ...ir.structure import Layout
from ...ir.types import Aval
from ...ops.index import getitem
from ...ops.structural.loops import make_scan
from .period import WIDTH, Iteration, Source, kind

FEWEST = 8  # iterations
LONG = 512  # operations
REACH = 4  # iterations back that an operand may come from
STARTS = 256  # positions that are tried as the beginning

Collectable = Callable[[int], bool]


class Unlooped(Exception):  # noqa: N818 - a signal, not an error
    """A repetition that is written out."""


@dataclass(eq=False)
class Cut:
    """A loop: the position where its first iteration begins, and what the iterations hand on.

    ``carried`` has for each result of an iteration that later ones read how many of them, and ``first`` the values in
    place of iterations before the first, the latest first.
    """

    start: int
    copies: int
    carried: dict[int, int] = field(default_factory=dict)
    first: dict[tuple[int, int], Value] = field(default_factory=dict)


class Looped:
    """Emits the iterations from some recorded one to the position ``end``, which is that of the last one compared.

    ``alive`` are the values that the program still holds, by their places; the graph computes those. ``count`` is told
    how many operations are written out, and may refuse.
    """

    def __init__(
        self, b: Builder, body: Iteration, end: int, alive: Mapping[int, Value], count: Callable[[int], None]
    ) -> None:
        self.b, self.body, self.end, self.alive, self.count = b, body, end, alive, count
        self.length, self.span = body.length, body.span
        self.values: dict[int, Value] = {place: v for v, place in body.place.items()}

    # Where the loop begins ------------------------------------------------------------------------------------------

    def cut(self) -> Cut:
        """The loop that hands on least, of those the longest; Unlooped if none is long enough."""
        loose = self._first(self._alike)
        handed = self._handed_on()
        phases = {q % self.length for q in self.body.ends}
        starts = [q for q in range(loose, 1 - self.length) if q % self.length in phases]
        starts.sort(key=lambda q: (handed[q % self.length], q - loose + (self.end - q) % self.length))
        for start in starts[:STARTS]:
            copies = (self.end - start) // self.length
            if copies >= FEWEST and copies * self.length >= LONG:
                cut = self._checked(start, copies, self._carried(start))
                if cut is not None:
                    return cut
        raise Unlooped

    def _handed_on(self) -> list[int]:
        """How many values a loop hands on that begins before a node of the iteration, for each of these."""
        last: dict[int, int] = {}
        for q, _, place, _ in self._uses(0):
            last[place % self.span] = max(last.get(place % self.span, 0), q - place // WIDTH)
        always, steps = 0, [0] * (2 * self.length + 1)
        for slot, distance in last.items():
            q = slot // WIDTH
            always += distance // self.length
            steps[q + 1] += 1
            steps[q + 1 + distance % self.length] -= 1
        sums = list(accumulate(steps))
        return [always + sums[k] + sums[k + self.length] for k in range(self.length)]

    def _first(self, holds: Callable[[int], bool]) -> int:
        """The first recorded position from which on this holds."""
        q = -1
        while q >= -len(self.body.recorded) and holds(q):
            q -= 1
        return q + 1

    def _alike(self, q: int, strictly: bool = False) -> bool:
        """Whether a recorded node is like that of the iteration; also its operands that are results, if strictly."""
        node, like = self.body.node(q), self.body.nodes[q % self.length]
        if kind(node) != kind(like):
            return False
        base = (q // self.length) * self.span
        for v, source in zip(node.inputs, self.body.sources[q % self.length], strict=True):
            if isinstance(source, Value):
                if v is not source:
                    return False
            elif strictly and self.body.place.get(v) != base + source:
                return False
        return True

    def _uses(self, start: int) -> Iterator[tuple[int, int, int, int]]:
        """The operands that are results in the iteration from ``start``: position, number, place, iterations back."""
        for q in range(start, start + self.length):
            base = (q // self.length) * self.span
            for i, source in enumerate(self.body.sources[q % self.length]):
                if not isinstance(source, Value):
                    place = base + source
                    yield q, i, place, -((place - start * WIDTH) // self.span)

    def _carried(self, start: int) -> dict[int, int]:
        carried: dict[int, int] = {}
        for _, _, place, back in self._uses(start):
            if back > 0:
                slot = (place - start * WIDTH) % self.span
                carried[slot] = max(carried.get(slot, 0), back)
        return carried

    def _checked(self, start: int, copies: int, carried: dict[int, int]) -> Cut | None:
        """The loop, if its recorded iterations take one value each for what comes from before it."""
        cut = Cut(start, copies, carried)
        reach = max(carried.values(), default=0)
        if reach > REACH or start + reach * self.length > 0:
            return None
        for v in (v for sources in self.body.sources for v in sources if isinstance(v, Value)):
            if self.body.place.get(v, start * WIDTH - 1) >= start * WIDTH:
                return None
        for q, i, place, back in self._uses(start):
            slot = (place - start * WIDTH) % self.span
            for k in range(reach):
                v = self.body.node(q + k * self.length).inputs[i]
                if k < back:
                    if v.aval != self._aval(slot, start) or cut.first.setdefault((slot, back - k), v) is not v:
                        return None
                elif self.body.place.get(v) != place + k * self.span:
                    return None
        strict = range(start + reach * self.length, 0)
        return cut if all(self._alike(q, strictly=True) for q in strict) else None

    def _aval(self, slot: int, start: int) -> Any:
        node = self.body.nodes[(start + slot // WIDTH) % self.length]
        return node.outputs[slot % WIDTH].aval

    # What it becomes ------------------------------------------------------------------------------------------------

    def emit(self, recorded: Mapping[int, Value], collectable: Collectable) -> dict[Value, Value]:
        """Put the iterations into the graph, such that it computes the values that are alive.

        Some of these were ``recorded``: what stands for them from now on is returned.
        """
        try:
            cut = self.cut()
            again = {place: v for place, v in recorded.items() if place >= cut.start * WIDTH}
            new = {v: Value(v.aval, v.hint) for v in again.values()}
            self.alive = {**self.alive, **{place: new[v] for place, v in again.items()}}
            held, collected = self._wanted(cut, collectable)
        except Unlooped:
            self.alive = {place: v for place, v in self.alive.items() if place >= 0}
            self.unroll(0)
            return {}
        self._loop(cut, held, collected)
        self.unroll(cut.start + cut.copies * self.length)
        return new

    def unroll(self, start: int) -> None:
        """Write out the operations from a position on."""
        self.count(self.end - start)
        for q in range(start, self.end):
            node, base = self.body.nodes[q % self.length], (q // self.length) * self.span
            ins = [s if isinstance(s, Value) else self.values[base + s] for s in self.body.sources[q % self.length]]
            self._put(node, ins, {k: q * WIDTH + k for k in range(len(node.outputs))})

    def _put(self, node: Node, ins: Sequence[Value], places: Mapping[int, int]) -> tuple[Value, ...]:
        """Make a node; its results, which are the values that the program holds, if it does."""
        held = [self.alive.get(places[k]) if k in places else None for k in range(len(node.outputs))]
        outs = tuple([Value(w.aval, w.hint) if v is None else v for v, w in zip(held, node.outputs, strict=True)])
        new = Node(node.prim, tuple(ins), node.attrs, outs, node.where, node.replica)
        kept = self.b.keep(new)
        if kept is not outs and any(v is not None for v in held):  # it is equal to another node
            self.b.nodes.append(new)
            self.b.made.update(dict.fromkeys(outs, new))
            kept = outs
        self.values.update({place: kept[k] for k, place in places.items()})
        return kept

    def _wanted(self, cut: Cut, collectable: Collectable) -> tuple[list[int], dict[int, list[int]]]:
        """The results of the last iteration that are read later and not carried; those of earlier ones, by result."""
        begin = cut.start * WIDTH
        held: dict[int, None] = {}
        collected: dict[int, list[int]] = {}
        later = set(self.alive)
        for q in range(cut.start + cut.copies * self.length, self.end):  # the operations after the loop
            base = (q // self.length) * self.span
            later.update(base + s for s in self.body.sources[q % self.length] if not isinstance(s, Value))
        for place in sorted(later):
            copy, slot = divmod(place - begin, self.span)
            back = cut.copies - copy
            if not 0 <= copy < cut.copies or 1 <= back <= cut.carried.get(slot, 0):
                continue
            if back == 1:
                held[slot] = None
            elif collectable(place):
                collected.setdefault(slot, []).append(copy)
            else:
                raise Unlooped
        return list(held), collected

    def _loop(self, cut: Cut, held: list[int], collected: dict[int, list[int]]) -> None:
        begin = cut.start * WIDTH
        order = [(q % self.length, q) for q in range(cut.start, cut.start + self.length)]
        inner = Builder()
        outside = {v: None for i, _ in order for v in self.body.sources[i] if isinstance(v, Value)}
        numbers = [v for v in outside if (node := self.b.made.get(v)) is not None and node.prim.name == "const"]
        consts = [v for v in outside if v not in numbers]
        known: dict[Source, Value] = {v: inner.input(v.aval, v.hint).value for v in consts}
        rows = {
            slot: [inner.input(self._aval(slot, cut.start), self._hint(slot, cut.start)).value for _ in range(back)]
            for slot, back in cut.carried.items()
        }
        for slot in held:
            inner.input(self._aval(slot, cut.start), self._hint(slot, cut.start))
        for v in numbers:
            known[v] = inner.keep(self.b.made[v])[0]
        for i, q in order:
            node, base = self.body.nodes[i], (q // self.length) * self.span
            ins = []
            for s in self.body.sources[i]:
                if isinstance(s, Value):
                    ins.append(known[s])
                    continue
                back, slot = divmod(base + s - begin, self.span)
                ins.append(known[slot] if back == 0 else rows[slot][-back - 1])
            inner.where, inner.replica = node.where, node.replica
            outs = inner.emit(
                node.prim, ins, node.attrs, [v.hint for v in node.outputs], [v.aval for v in node.outputs]
            )
            inner.replica = 0
            known.update({(q - cut.start) * WIDTH + k: x.value for k, x in enumerate(outs)})
        carry = [v for slot, row in rows.items() for v in (known[slot], *row[:-1])]
        results = [*carry, *(known[slot] for slot in held), *(_row(inner, known[slot]) for slot in collected)]
        graph = inner.graph("body", [inner.symbol(v) for v in results])
        operands = [
            *consts,
            *(cut.first[slot, j] for slot, back in cut.carried.items() for j in range(1, back + 1)),
            *(self.b.zeros(self._aval(slot, cut.start)).value for slot in held),
        ]
        scratch = Builder()
        parts = Layout(len(consts), len(carry) + len(held), len(collected))
        make_scan(scratch, graph, parts, [Symbol(scratch, v) for v in operands], cut.copies, False)
        last = begin + (cut.copies - 1) * self.span
        ends = [last + slot - j * self.span for slot, back in cut.carried.items() for j in range(back)]
        places = dict(enumerate([*ends, *(last + slot for slot in held)]))
        (node,) = scratch.nodes
        body = lines_of(self.body.nodes[i] for i, _ in order)
        where = loop_line(body, body | lines_of(self.b.nodes)) or self.body.nodes[order[0][0]].where
        loop = Node(node.prim, node.inputs, node.attrs, node.outputs, where)
        stacks = self._put(loop, node.inputs, places)[len(places) :]
        for stack, (slot, copies) in zip(stacks, collected.items(), strict=True):
            for k in copies:
                made, value = Builder(), stack
                made.coerce(getitem(made.symbol(stack), index=(k,)), self._aval(slot, cut.start))
                for node in made.nodes:
                    (value,) = self._put(
                        node, (value,), {0: begin + k * self.span + slot} if node is made.nodes[-1] else {}
                    )

    def _hint(self, slot: int, start: int) -> str | None:
        return self.body.nodes[(start + slot // WIDTH) % self.length].outputs[slot % WIDTH].hint


def _row(b: Builder, value: Value) -> Value:
    """A value as it becomes a row of an array: numbers of Python become NumPy's."""
    kind = "scalar" if value.aval.kind == "python" else value.aval.kind
    return b.coerce(b.symbol(value), Aval(value.aval.shape, value.aval.dtype, kind)).value
