"""Rows: the aligned steps of traces, as operations in a row and branches between rows.

Where all steps have an operation of one kind, it is one item. Where the answers of a guard part them, the item has two
sides, each with the steps that went there, and these meet again at the first operation that they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ...ir.graph import Node, Value
from ...ops.structural.guard import guard
from .words import MANY, Unfoldable, Words

Spans = Mapping[int, tuple[int, int]]  # for each step, its first operation in its recording and the one behind its last


@dataclass(eq=False)
class Entry:
    """An operation of the body, with its node in each step that has it; a guard with both answers has two ``sides``.

    ``sources`` say where its operands come from, ``places`` which ints of its index count, and ``phis`` which
    variables differ by the side: for each the sources at the end of both sides.
    """

    row: Row
    at: int
    kind: int
    nodes: dict[int, Node]
    sides: tuple[Row, Row] | None = None
    sources: list[Any] = field(default_factory=list)
    places: dict[int, Any] = field(default_factory=dict)
    phis: dict[Any, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def node(self) -> Node:
        """The node in one of the steps."""
        return next(iter(self.nodes.values()))

    def inside(self, choice: Entry) -> bool:
        """Whether the item stands in one of the sides of a choice."""
        return any(side.holds(self.row) for side in choice.sides or ())


@dataclass(eq=False)
class Row:
    """Items in a row, the steps that go through them, and the choice of which the row is a side."""

    steps: frozenset[int]
    parent: Entry | None = None
    items: list[Entry] = field(default_factory=list)

    def holds(self, other: Row) -> bool:
        """Whether the other row is this one or inside of it."""
        while other is not self:
            if other.parent is None:
                return False
            other = other.parent.row
        return True

    def walk(self) -> Iterator[Entry]:
        """All items, those of sides included."""
        for item in self.items:
            yield item
            for side in item.sides or ():
                yield from side.walk()


@dataclass(eq=False)
class Stretch:
    """A loop in recordings: its body as a row, and for each value of a step the step and the item that made it.

    ``spans`` are the steps, ``counts`` how many each recording has. If a choice ends the loop, that is ``leave``, and
    the steps that go there are ``left``; the loop to make then has more steps, which do nothing.
    """

    words: Words
    body: Row
    spans: Spans
    counts: list[int]
    made: dict[Value, tuple[int, Entry, int]]
    left: frozenset[int] = frozenset()
    leave: Entry | None = None

    @property
    def length(self) -> int:
        """The steps of the loop to make."""
        return self.counts[0] if self.leave is None else 1 << (max(self.counts) - 1).bit_length()


def steps_from(words: Words, head: int) -> Stretch:
    """The loop with operations of this kind at the beginning of each step."""
    every = words.cuts(head)
    words = words.aligned([cuts[0] for cuts in every])
    spans = {k * MANY + step: span for k, cuts in enumerate(every) for step, span in enumerate(pairwise(cuts))}
    if not spans:
        raise Unfoldable("one step")
    body = _Merge(words).row(spans, None)
    left: set[int] = set()
    for k, cuts in enumerate(every):
        end, leaves = _end(words, k, body, cuts[-1])
        if leaves:
            left.add(k * MANY + len(cuts) - 1)
        elif end is None:
            end = _like_others(words, k, body, cuts)
        if end is not None:
            spans[k * MANY + len(cuts) - 1] = (cuts[-1], end)
    merge = _Merge(words)
    counts = [sum(step // MANY == k for step in spans) for k in range(len(every))]
    found = Stretch(words, merge.row(spans, None), spans, counts, merge.made, frozenset(left))
    if left:
        found.leave = next((i for i in found.body.items if any(side.steps == left for side in i.sides or ())), None)
    if (left and (found.leave is None or len(left) < len(every))) or (not left and len(set(counts)) > 1):
        raise Unfoldable("traces with other numbers of steps")
    return found


def _end(words: Words, k: int, row: Row, at: int) -> tuple[int | None, bool]:
    """The end of a step that begins at this operation of a recording, and whether a guard of the body ends it.

    None if the step goes another way than the others.
    """
    nodes, kinds = words.nodes[k], words.kinds[k]
    for item in row.items:
        if at >= len(nodes) or kinds[at] != item.kind:
            return None, False
        node = nodes[at]
        at += 1
        if item.sides is not None:
            found, leaves = _end(words, k, item.sides[bool(node.attrs["expected"])], at)
            if found is None or leaves:
                return None, False
            at = found
        elif node.prim is guard and node.attrs["expected"] != item.node.attrs["expected"]:
            return at, True
    return at, False


def _like_others(words: Words, k: int, body: Row, cuts: list[int]) -> int | None:
    """The end of a last step that goes another way, where the last operation of all others has the same number."""
    last, kinds = body.items[-1], words.kinds[k]
    if last.sides is not None or last.node.prim is guard or len(cuts) < 2:
        return None
    times = np.count_nonzero(kinds[cuts[0] : cuts[1]] == last.kind)
    found = np.flatnonzero(kinds[cuts[-1] :] == last.kind)
    return cuts[-1] + int(found[times - 1]) + 1 if len(found) >= times else None


class _Merge:
    """Lays steps over each other."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.made: dict[Value, tuple[int, Entry, int]] = {}

    def row(self, spans: Spans, parent: Entry | None) -> Row:
        """The row of the operations between two positions of each step."""
        row = Row(frozenset(spans), parent)
        at = {step: first for step, (first, _) in spans.items()}
        while True:
            ended = {at[step] >= end for step, (_, end) in spans.items()}
            if ended == {True}:
                return row
            if len(ended) > 1:
                raise Unfoldable("steps of other lengths without a decision")
            item = self._item(row, at)
            row.items.append(item)
            at = {step: position + 1 for step, position in at.items()}
            answers = {step: node.attrs["expected"] for step, node in item.nodes.items()} if _asks(item) else {}
            if len(set(answers.values())) > 1:
                at = self._divide(item, answers, {step: (at[step], end) for step, (_, end) in spans.items()})

    def _item(self, row: Row, at: Mapping[int, int]) -> Entry:
        kinds = {int(self.words.kinds[step // MANY][position]) for step, position in at.items()}
        if len(kinds) > 1:
            raise Unfoldable("steps that do something else without a decision")
        nodes = {step: self.words.nodes[step // MANY][position] for step, position in at.items()}
        item = Entry(row, len(row.items), kinds.pop(), nodes)
        for step, node in nodes.items():
            for k, value in enumerate(node.outputs):
                self.made[value] = (step, item, k)
        return item

    def _divide(self, item: Entry, answers: Mapping[int, Any], spans: Spans) -> dict[int, int]:
        """Make the sides of a choice; where the steps go on after it."""
        attrs = item.node.attrs
        if attrs["kind"] != "bool" or attrs["lanes"]:
            raise Unfoldable("a decision by a number")
        meet = self._meet(spans)
        sides = [
            self.row({step: (spans[step][0], meet[step]) for step, answer in answers.items() if answer is side}, item)
            for side in (False, True)
        ]
        item.sides = (sides[0], sides[1])
        return meet

    def _meet(self, spans: Spans) -> dict[int, int]:
        """Where steps meet again: at the first operation that all have equally often, or at the end."""
        words = {step: tuple(self.words.kinds[step // MANY][a:b].tolist()) for step, (a, b) in spans.items()}
        counts = [Counter(word) for word in set(words.values())]
        common = {kind for kind in counts[0] if all(each[kind] == counts[0][kind] for each in counts)}
        firsts = {next((k for k in word if k in common), None) for word in set(words.values())}
        first = firsts.pop()
        if firsts or first is None:
            return {step: end for step, (_, end) in spans.items()}
        return {step: spans[step][0] + word.index(first) for step, word in words.items()}


def _asks(item: Entry) -> bool:
    return item.node.prim is guard
