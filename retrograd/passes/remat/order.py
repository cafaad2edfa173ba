"""recomputation: (Graph with a turn, values to keep) → the order that computes the others again, and its cost."""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain, compress
from typing import NamedTuple

from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS
from ...ir.rewrite import with_nodes
from ...ops.structural.host import repeats
from ...ops.structural.region import turn
from ..prune import prune
from .liveness import Liveness


class Score(NamedTuple):
    """The cost of a choice: the peak of memory in bytes, and the operations that run again, in elements."""

    peak: int
    again: int


@TRANSFORMS.register("without_turn")
def without_turn(graph: Graph) -> Graph:
    """The graph without its turn, and without dead nodes."""
    if turn not in graph.prims:
        return prune(graph)
    rest = with_nodes(graph, [n for n in graph.nodes if n.prim is not turn])
    return rest if graph.knows("pruned") else prune(rest)  # a turn has no operands


class Halves:
    """A graph with a turn: the values that cross it, and the values that can be computed again.

    ``choosable`` are the values that may be kept or not. They can be computed again, and are neither constants nor
    results of the whole graph, which live to the end in any case, nor views, which cost nothing.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        at = next(i for i, node in enumerate(graph.nodes) if node.prim is turn)
        self.first, self.second = graph.nodes[:at], graph.nodes[at + 1 :]
        self.stays = graph.nodes[at].attrs.get("split") is not None  # keep for another run of the second part
        self.made = {v: node for node in self.first for v in node.outputs}
        self.needed = [v for v in dict.fromkeys(chain(*(n.inputs for n in self.second))) if v in self.made]
        self.held = set(self.needed).intersection(graph.outputs)
        self.place = {v: i for i, node in enumerate(self.first) for v in node.outputs}
        made = self.made.items()
        self.repeatable = [v for v, node in made if node.inputs and repeatable(node) and v not in self.held]
        self.choosable = [v for v in self.repeatable if self.made[v].prim.alias is None]
        self.runs = self._runs()

    def _runs(self) -> list[bool]:
        """For each node of the first part, whether it runs there under every choice."""
        runs, live = [False] * len(self.first), set(self.graph.outputs)
        for i in reversed(range(len(self.first))):
            node = self.first[i]
            if node.effect or not live.isdisjoint(node.outputs):
                runs[i] = True
                live.update(node.inputs)
        return runs

    def needless(self, node: Node) -> bool:
        """Whether the first part can do without a node, so that running it later is no repetition."""
        return not self.runs[self.place[node.outputs[0]]]


class Recomputation(Halves):
    """What each choice of kept values costs."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.whole = with_nodes(graph, (*self.first, *self.second))
        self.liveness = Liveness(self.whole)
        self._number()
        self._scores: dict[frozenset[Value], Score] = {}

    def _number(self) -> None:
        """Tables that each choice asks for, by the numbers of nodes and values."""
        nodes, number = self.whole.nodes, self.liveness.number
        self.work = [work(node) for node in nodes] * 2
        self.maker = {number[v]: i for v, i in self.place.items()}
        self.found = [True] * self.liveness.n  # the values that the second part has under every choice
        for v in self.repeatable:
            self.found[number[v]] = False
        operands = [[number[v] for v in node.inputs] for node in nodes]
        self.read = [[v for v in values if v in self.maker] for values in operands] * 2
        self.missable = [[v for v in reversed(values) if not self.found[v]] for values in operands]  # the last first
        idle = {v for v, i in self.maker.items() if not self.runs[i]}
        self.idle = [[v for v in values if v in idle] for values in operands] * 2
        self.total = sum(map(self.work.__getitem__, self._order(self._there(frozenset(self.needed)))))

    def again(self, kept: frozenset[Value]) -> Graph:
        """The graph that keeps these values only, and the values that cannot be computed again.

        A node that the first part can do without has a negative ``replica`` in the second: it does not run again, but
        later. Its original stays in the graph, and nothing reads it.
        """
        there, number, n = self._there(kept), self.liveness.number, len(self.whole.nodes)
        order = self._order(there)
        runs, copies, nodes = set(order), dict[Value, Value](), list(self.first)
        for i in order:
            node = self.whole.nodes[i % n]
            ins, outs, replica = tuple(copies.get(v, v) for v in node.inputs), node.outputs, node.replica
            if i >= n:
                outs = tuple(Value(v.aval, v.hint) for v in outs)
                replica = replica + 1 if i - n in runs else -replica - 1
                copies.update((v, out) for v, out in zip(node.outputs, outs, strict=True) if not there[number[v]])
            if i >= len(self.first):
                nodes.append(Node(node.prim, ins, node.attrs, outs, node.where, replica))
        return with_nodes(self.graph, nodes)

    def score(self, kept: frozenset[Value]) -> Score:
        """The peak of the resulting order, and the operations that run again."""
        if kept not in self._scores:
            there = self._there(kept)
            order = self._order(there)
            again = sum(map(self.work.__getitem__, order)) - self.total
            ahead = bisect_left(order, len(self.first))  # the nodes of the first part come first
            peak = self.liveness.peak(order, there, self._staying(order, there), ahead)
            self._scores[kept] = Score(peak, again)
        return self._scores[kept]

    def _staying(self, order: list[int], there: list[bool]) -> set[int]:
        """The values of the first part that the second reads, if the second may run again."""
        second = (i for i in order if i >= len(self.first)) if self.stays else ()
        return {v for i in second for v in self.read[i] if there[v]}

    def _there(self, kept: frozenset[Value]) -> list[bool]:
        """For each value by number, whether the second part finds it."""
        there, number = self.found[:], self.liveness.number
        for v in kept:
            there[number[v]] = True
        return there

    def _order(self, there: list[bool]) -> list[int]:
        """The nodes that run, by number; i + n, the second run of node i of n, comes just before its first reader."""
        had, second, n = there[:], list[int](), len(self.whole.nodes)
        missable, maker, results, idle = self.missable, self.maker, self.liveness.results, self.idle
        for i in range(len(self.first), n):
            for wanted in missable[i]:
                stack = [] if had[wanted] else [wanted]
                while stack:
                    node = maker[stack[-1]]
                    for v in missable[node]:
                        if not had[v]:
                            stack.append(v)
                            break
                    else:
                        stack.pop()
                        second.append(node + n)
                        for v in results[node]:
                            had[v] = True
            second.append(i)
        runs = self.runs[:]
        asked = [maker[v] for i in second if idle[i] for v in idle[i] if there[v]]
        while asked:
            node = asked.pop()
            if not runs[node]:
                runs[node] = True
                asked.extend([maker[v] for v in idle[node]])
        return [*compress(range(len(self.first)), runs), *second]


def repeatable(node: Node) -> bool:
    """Whether a node may run twice; nodes with bodies, such as loops, may not."""
    return repeats(node) and not node.graphs


def work(node: Node) -> int:
    """Elements that a node reads and writes; for a product, its multiplications and additions."""
    if node.prim.alias is not None or not node.inputs:
        return 0
    if node.prim.name == "matmul":
        return 2 * node.out.aval.size * node.inputs[0].aval.shape[-1]
    return sum(v.aval.size for v in (*node.inputs, *node.outputs))
