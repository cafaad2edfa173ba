"""rematerialise: Graph → Graph whose second part computes values again instead of keeping them from the first.

A ``turn`` node divides a graph: forward before it, adjoint after it. Of the values that cross it some are kept; each
other one is computed again, from kept ones, just before its first use after the turn, and forgotten after its last.
Which ones are kept is found by trying: minimum cuts under several notions of what is cheap, parts of these, and lists
by cost per byte; for few values, every subset. Each is scored by the peak of the order that results, since the least
bytes across the turn may well have a higher peak (J. Herrmann et al., arXiv 1911.13214, survey the problem).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from typing import NamedTuple

from ..ir.graph import Graph, Node, Value
from ..ops.structural.region import turn
from .place_buffers import REUSE
from .residuals import choose_residuals

FEW = 12  # crossing values up to which every subset is tried
PARTS = (2, 3, 4, 6, 8, 12, 16)  # of a cut, every k-th value
STEPS = 48  # points on the list by cost per byte
BETWEEN = 12  # points between two neighbouring choices


class Score(NamedTuple):
    """What a choice costs: the peak of memory in bytes, and the operations that are run again, in elements."""

    peak: int
    again: int


@dataclass(frozen=True, eq=False)
class Choice:
    """Values to keep across the turn, and what that costs."""

    kept: frozenset[Value]
    score: Score


def turns(graph: Graph) -> bool:
    """Whether a graph has a turn."""
    return any(node.prim is turn for node in graph.nodes)


def without_turn(graph: Graph) -> Graph:
    """The graph without the node that divides it."""
    nodes = tuple(node for node in graph.nodes if node.prim is not turn)
    return graph if len(nodes) == len(graph.nodes) else Graph(graph.name, graph.inputs, nodes, graph.outputs)


class Crossing:
    """A graph with a turn: what crosses it, and what can be computed again."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        at = next(i for i, node in enumerate(graph.nodes) if node.prim is turn)
        self.first, self.second = graph.nodes[:at], graph.nodes[at + 1 :]
        self.made = {v: node for node in self.first for v in node.outputs}
        self.needed = [v for v in dict.fromkeys(chain(*(n.inputs for n in self.second))) if v in self.made]
        self.free = {v for v, node in self.made.items() if not node.inputs and not node.prim.effect}
        held = set(graph.outputs)  # live to the end in any case
        self.held = {v for v in self.needed if v in held}
        self.choosable = [v for v in self.made if v not in self.free and v not in self.held]

    def again(self, kept: frozenset[Value]) -> Graph:
        """The graph that keeps these values only; what cannot be computed again from them is kept, too."""
        copies: dict[Value, Value] = {}
        nodes = list(self.first)
        for node in self.second:
            for value in node.inputs:
                self._recompute(value, kept, copies, nodes)
            ins = tuple(copies.get(v, v) for v in node.inputs)
            nodes.append(Node(node.prim, ins, node.attrs, node.outputs, node.where, node.replica))
        return Graph(self.graph.name, self.graph.inputs, tuple(nodes), self.graph.outputs)

    def _recompute(self, value: Value, kept: frozenset[Value], copies: dict[Value, Value], nodes: list[Node]) -> None:
        stack = [value]
        while stack:
            at = stack[-1]
            if not self._missing(at, kept, copies):
                stack.pop()
                continue
            node = self.made[at]
            missing = [v for v in node.inputs if self._missing(v, kept, copies)]
            if missing:
                stack.extend(missing)
                continue
            outs = tuple(Value(v.aval, v.hint) for v in node.outputs)
            ins = tuple(copies.get(v, v) for v in node.inputs)
            nodes.append(Node(node.prim, ins, node.attrs, outs, node.where, node.replica + 1))
            copies.update(zip(node.outputs, outs, strict=True))

    def _missing(self, value: Value, kept: frozenset[Value], copies: dict[Value, Value]) -> bool:
        if value not in self.made or not _repeatable(self.made[value]):
            return False
        return not any(value in there for there in (kept, copies, self.held, self.free))

    def score(self, kept: frozenset[Value]) -> Score:
        """The peak of the order that results, and what is run again."""
        graph = self.again(kept)
        return Score(peak_of_order(graph), sum(map(work, graph.nodes)) - sum(map(work, self.graph.nodes)))

    def choices(self) -> list[Choice]:
        """The best choices: with more memory, less is run again. The first keeps everything."""
        best = _best(Choice(kept, self.score(kept)) for kept in dict.fromkeys(self._candidates()))
        if len(self.choosable) <= FEW:
            return best
        between = dict.fromkeys(k for more, less in pairwise(best) for k in self._between(more.kept, less.kept))
        return _best([*best, *(Choice(kept, self.score(kept)) for kept in between)])

    def _between(self, more: frozenset[Value], less: frozenset[Value]) -> Iterator[frozenset[Value]]:
        """The thriftier choice with ever more of what only the other one keeps, the dearest to compute first."""
        extra = [v for v in self.made if v in more and v not in less]
        extra.sort(key=lambda v: -work(self.made[v]) / max(v.aval.nbytes, 1))
        for n in range(1, len(extra), max(1, len(extra) // BETWEEN)):
            yield less | frozenset(extra[:n])

    def _candidates(self) -> Iterator[frozenset[Value]]:
        everything = frozenset(self.needed)
        yield everything
        yield frozenset()
        if len(self.choosable) <= FEW:
            for n in range(len(self.choosable) + 1):
                yield from map(frozenset, combinations(self.choosable, n))
            return
        for limit in (0.0, 1.0, 2.0, 6.0, float("inf")):
            cut = self._cut(limit)
            yield frozenset(cut)
            for k in PARTS:
                yield frozenset(cut[::k])
                yield frozenset(cut[k - 1 :: k])
        crossing = [v for v in self.needed if v not in self.free and v not in self.held]
        cheap_first = sorted(crossing, key=lambda v: work(self.made[v]) / max(v.aval.nbytes, 1))
        step = max(1, len(cheap_first) // STEPS)
        for n in range(0, len(cheap_first), step):
            yield frozenset(cheap_first[n:])
        for k in PARTS:
            yield frozenset(crossing[::k])

    def _cut(self, limit: float) -> list[Value]:
        """A minimum cut in bytes, where nodes of at most so many operations for an element may be run again."""

        def repeatable(node: Node) -> bool:
            size = max(sum(v.aval.size for v in node.outputs), 1)
            return _repeatable(node) and work(node) <= limit * 4 * size

        def cost(value: Value) -> float:
            return 0 if value in self.held or value not in self.made else value.aval.nbytes

        found = choose_residuals(self.first, self.needed, cost, repeatable)
        return [v for v in self.made if v in found]


def _best(choices: Iterable[Choice]) -> list[Choice]:
    """Those of which no other one is better in both respects, the one that repeats least first."""
    best: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.score.again, c.score.peak, len(c.kept))):
        if not best or choice.score.peak < best[-1].score.peak:
            best.append(choice)
    return best


def _repeatable(node: Node) -> bool:
    return not node.prim.effect and not node.graphs


def work(node: Node) -> int:
    """Elements that a node reads and writes; for a product, its multiplications and additions."""
    if node.prim.alias is not None or not node.inputs:
        return 0
    if node.prim.name == "matmul":
        return 2 * node.out.aval.size * node.inputs[0].aval.shape[-1]
    return sum(v.aval.size for v in (*node.inputs, *node.outputs))


def peak_of_order(graph: Graph) -> int:
    """The most bytes that live at once, where a result takes the place of a dying operand of its size."""
    root: dict[Value, Value] = {}
    last: dict[Value, int] = {}
    for i, node in enumerate(graph.nodes):
        for out in node.outputs:
            root[out] = root.get(node.inputs[node.prim.alias], out) if node.prim.alias is not None else out
        for v in node.inputs:
            last[root.get(v, v)] = i
    last.update((root.get(v, v), len(graph.nodes)) for v in graph.outputs)
    owned: set[Value] = set()
    live = peak = 0
    for i, node in enumerate(graph.nodes):
        made = sum(v.aval.nbytes for v in node.outputs if root[v] is v)
        dying = {root[v] for v in node.inputs if v in root and last[root[v]] == i and root[v] in owned}
        reused = made if node.prim.ufunc and any(v.aval.nbytes == made >= REUSE for v in dying) else 0
        scratch = node.prim.scratch(*(v.aval for v in node.inputs), **node.attrs) if node.prim.scratch else 0
        peak = max(peak, live + made - reused + scratch)
        owned.update(v for v in node.outputs if root[v] is v)
        live += made - sum(v.aval.nbytes for v in dying)
        live -= sum(v.aval.nbytes for v in node.outputs if root[v] is v and v not in last)
    return peak

