"""retain: choose, for any budget, the values of a forward graph that a derivative keeps so that the least runs again.

Choices are made once, for all budgets: with more bytes, never more runs again. For few values every subset is tried.
For more, weighing bytes against work turns the lower convex hull of (bytes, work) into a series of minimum cuts
(Lagrangian relaxation; H. Everett, Oper. Res. 11, 1963); between two of these, values are added, the dearest to compute
first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, combinations, pairwise
from typing import NamedTuple

from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS
from ...ops.structural.host import repeats
from .min_cut import INFINITE, choose_residuals, points_between
from .search import work

FEW = 12  # values up to which every subset is tried
BETWEEN = 64  # points between two neighbours on the hull
DEPTH = 4  # of the search for the hull: at most 2 ** DEPTH - 1 cuts between its ends


class Retained(NamedTuple):
    """The values that are kept, their bytes, and the operations that run again, in elements."""

    values: frozenset[Value]
    nbytes: float
    again: float


def effort(node: Node) -> int:
    """Elements that a node reads and writes, over all steps of a loop; over one step if their number is not known."""
    structure, total = node.prim.structure, work(node)
    if structure is not None:
        for body, graph in structure.parts(node):
            total += max(structure.times(node, body), 1) * sum(map(effort, graph.nodes))
    return total


class Retention:
    """The part of a forward graph that computes ``needed``.

    It may keep ``savable`` values, and results that must not be computed again. A list of steps whose length is found
    at run time is of infinite size.
    """

    def __init__(self, graph: Graph, needed: Sequence[Value], savable: Collection[Value]) -> None:
        self.graph, self.needed = graph, needed
        self.nodes: list[Node] = []  # the nodes that compute the needed values, the last one first
        reached = set(needed)
        for node in reversed(graph.nodes):
            if any(v in reached for v in node.outputs):
                self.nodes.append(node)
                reached.update(node.inputs)
        once = {v for node in self.nodes if not repeats(node) for v in node.outputs}
        may = {*savable, *once}
        self.choosable = [v for node in self.nodes for v in node.outputs if v in reached and v in may]
        self.effort = {node: INFINITE if not repeats(node) else effort(node) for node in self.nodes}

    @cached_property
    def _bits(self) -> tuple[dict[Value, int], list[tuple[int, int, float]]]:
        """A bit for each value; for each node, the last one first, the bits of its results and operands, its effort."""
        bit: dict[Value, int] = {}
        for value in chain(self.needed, *((*node.outputs, *node.inputs) for node in self.nodes)):
            bit.setdefault(value, 1 << len(bit))
        steps = [
            (sum(bit[v] for v in node.outputs), sum(bit[v] for v in set(node.inputs)), self.effort[node])
            for node in self.nodes
        ]
        return bit, steps

    def retained(self, values: Iterable[Value]) -> Retained:
        """The bytes of these values, and the operations that run again if only these are kept."""
        bit, steps = self._bits
        kept = frozenset(values)
        held = sum(bit[v] for v in kept)
        missing = sum(bit[v] for v in set(self.needed)) & ~held
        again: float = 0
        for made, read, cost in steps:
            if missing & made:
                again += cost
                missing |= read & ~held
        return Retained(kept, sum(map(_nbytes, kept)), again)

    def choices(self) -> list[Retained]:
        """The best choices: with more bytes, less runs again. The last choice takes the fewest bytes of all."""
        found = sorted(map(self.retained, self._candidates()), key=lambda r: (r.again, r.nbytes, len(r.values)))
        best: list[Retained] = []
        for choice in found:
            if choice.again < INFINITE and (not best or choice.nbytes < best[-1].nbytes):
                best.append(choice)
        return best

    def _candidates(self) -> Iterator[Iterable[Value]]:
        if len(self.choosable) <= FEW:
            yield from chain.from_iterable(combinations(self.choosable, n) for n in range(len(self.choosable) + 1))
            return
        hull = self._hull()
        yield from hull
        for more, less in pairwise(hull):
            yield from points_between(more, less, self.choosable, self._price, BETWEEN)

    def _price(self, value: Value) -> float:
        """The work to compute a value again, per byte."""
        return self.effort[self.graph.producer[value]] / max(_nbytes(value), 1)

    def _hull(self) -> list[set[Value]]:
        """Choices from the one that runs least again to the one that keeps least."""
        most = 1 + sum(int(_nbytes(v)) for v in self.choosable if _nbytes(v) < INFINITE)
        longest = 1 + sum(int(e) for e in self.effort.values() if e < INFINITE)
        ends = self._cut(1, most), self._cut(longest, 1)
        return [ends[0], *self._inside(*ends, DEPTH), ends[1]]

    def _inside(self, more: set[Value], less: set[Value], depth: int) -> list[set[Value]]:
        """Points of the hull between two of its points."""
        a, b = self.retained(more), self.retained(less)
        if depth == 0 or not (a.again < b.again < INFINITE and b.nbytes < a.nbytes < INFINITE):
            return []
        per_byte, per_element = int(b.again - a.again), int(a.nbytes - b.nbytes)
        middle = self._cut(per_byte, per_element)
        c = self.retained(middle)
        if c.nbytes * per_byte + c.again * per_element >= a.nbytes * per_byte + a.again * per_element:
            return []
        return [*self._inside(more, middle, depth - 1), middle, *self._inside(middle, less, depth - 1)]

    def _cut(self, per_byte: int, per_element: int) -> set[Value]:
        """The values to keep at these prices for bytes and work."""
        choosable = set(self.choosable)

        def price(value: Value) -> float:
            if value not in self.graph.producer or not self.graph.producer[value].inputs:
                return 0
            return _nbytes(value) * per_byte if value in choosable else INFINITE

        found = choose_residuals(
            self.graph.nodes,
            self.needed,
            price,
            lambda node: self.effort[node] < INFINITE,
            lambda node: self.effort[node] * per_element,
        )
        return found & choosable


def _nbytes(value: Value) -> float:
    return INFINITE if any(n < 0 for n in value.aval.steps or ()) else value.aval.nbytes


@TRANSFORMS.register("retentions")
def retentions(graph: Graph, needed: Sequence[Value], savable: Collection[Value]) -> list[Retained]:
    """The choices for a forward graph, first the one that runs least again; see ``Retention``."""
    return Retention(graph, needed, savable).choices()
