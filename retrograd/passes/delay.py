"""delay: Graph → Graph in which results that only later nodes read are computed late, where this lowers the peak.

The forward part of a derivative also computes what only the adjoint reads, such as the derivative of a function at each
point. Such results would stay from one part to the other. Here they wait until just before their first reader, with the
nodes that serve them alone, if what they are computed from takes fewer bytes, or stays in any case. Nothing is computed
twice, and no node changes sides with an effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import with_nodes
from ..ops.structural.region import turn
from .place_buffers import POOL
from .remat.liveness import Liveness
from .remat.order import repeatable

DEEPEST = 8  # nodes in a row that wait together


def delay(graph: Graph) -> Graph:
    """The graph with nodes in an order that has a lower peak; the graph itself if none was found.

    Halves that are divided later keep their nodes, as the second may run more than once.
    """
    large = any(v.aval.nbytes >= POOL for node in graph.nodes for v in node.outputs)
    if not large or any(node.prim is turn and node.attrs.get("split") is not None for node in graph.nodes):
        return graph
    found = _Order(graph)
    order = found.found()
    if not found.large:
        return graph
    liveness = Liveness(graph)
    there = [False] * liveness.n
    lower = liveness.peak(order, there) < liveness.peak([*range(len(order))], there)
    return with_nodes(graph, (graph.nodes[i] for i in order)) if lower else graph


class _LongerStay(NamedTuple):
    """What stays for a node that waits: bytes, bytes times the number of nodes for which they stay longer, and values.

    ``nodes`` wait with it.
    """

    nbytes: float
    longer: float
    kept: dict[Value, float]
    nodes: tuple[Node, ...]


class _Order:
    """Where each node goes, found from the last node to the first.

    A node that waits stands ``before`` another one that does not wait, and both have the number of the latter.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.made = graph, graph.producer
        self.place = {node: i for i, node in enumerate(graph.nodes)}
        self.at = dict(self.place)
        self.before: dict[int, list[Node]] = {}
        self.large = False  # whether a large result waits, and not only views, which take no memory
        self.root: dict[Value, Value] = {}
        self.last: dict[Value, int] = {}  # where storage is read last, by the value that made it
        self.written: dict[Value, int] = {}  # where it is written into, so that who reads it later needs a copy
        for i, node in enumerate(graph.nodes):
            for v in node.inputs:
                self.last[self._root(v)] = i
            if node.prim.alias is not None and node.out.aval.kind == "array":
                self.root[node.out] = self._root(node.inputs[node.prim.alias])
            elif node.prim.writes is not None:
                self.written[self._root(node.inputs[node.prim.writes])] = i
        self.shown = {self._root(v) for v in graph.outputs}
        self.barrier = [len(graph.nodes)] * (len(graph.nodes) + 1)  # the next node with an effect
        for i, node in reversed([*enumerate(graph.nodes)]):
            stops = node.effect and node.prim is not turn
            self.barrier[i] = i if stops else self.barrier[i + 1]
        # how many of the first nodes have a body, a large result, or a large operand and no view of it: where there are
        # none, nothing needs the memory of what waits
        self.heavy = [0]
        for node in graph.nodes:
            shown = node.outputs if node.prim.alias is not None else (*node.inputs, *node.outputs)
            heavy = node.prim.structure is not None or any(v.aval.nbytes >= POOL for v in shown)
            self.heavy.append(self.heavy[-1] + heavy)

    def _root(self, value: Value) -> Value:
        return self.root.get(value, value)

    def found(self) -> list[int]:
        """The numbers of the nodes, in their new order."""
        for node in reversed(self.graph.nodes):
            self._place(node)
        late = {node for nodes in self.before.values() for node in nodes}
        order = []
        for i, node in enumerate(self.graph.nodes):
            order += sorted(self.place[n] for n in self.before.get(i, ()))
            order += [] if node in late else [i]
        return order

    def _place(self, node: Node) -> None:
        if node.prim.alias is None and (len(node.outputs) != 1 or node.outputs[0].aval.nbytes < POOL):
            return  # what takes no memory waits only with what does
        place = self.place[node]
        first = min((self.at[r] for v in node.outputs for r in self.graph.uses.get(v, ())), default=-1)
        if first <= place or self.at[node] != place or not self._may_wait(node, first):
            return
        if node.prim.alias is not None:
            if self._root(node.inputs[node.prim.alias]) not in self.written:
                self._wait((node,), first)
        elif self.heavy[place + 1] < self.heavy[first]:  # else nothing needs the memory
            nbytes = node.out.aval.nbytes
            cut = self._operands(node, first, 0)
            if cut.nbytes <= nbytes and cut.longer < nbytes * (first - place):
                self.large = True
                self._wait((node, *cut.nodes), first)

    def _may_wait(self, node: Node, first: int) -> bool:
        pure = bool(node.inputs) and not node.prim.multi and repeatable(node)
        return pure and first <= self.barrier[self.place[node]] and self.shown.isdisjoint(node.outputs)

    def _wait(self, nodes: Iterable[Node], first: int) -> None:
        for node in dict.fromkeys(nodes):
            self.at[node] = first
            for v in node.inputs:
                self.last[self._root(v)] = max(first, self.last[self._root(v)])
            self.before.setdefault(first, []).append(node)

    def _operands(self, node: Node, first: int, depth: int) -> _LongerStay:
        """The cheapest way to have the operands of a node at a later place."""
        cuts = [self._operand(v, node, first, depth) for v in dict.fromkeys(node.inputs)]
        kept = {v: nbytes for cut in cuts for v, nbytes in cut.kept.items()}
        longer = sum(nbytes * (first - self.last[v]) for v, nbytes in kept.items())
        return _LongerStay(sum(kept.values()), longer, kept, tuple(n for cut in cuts for n in cut.nodes))

    def _operand(self, value: Value, reader: Node, first: int, depth: int) -> _LongerStay:
        """Keep an operand, or let the node that makes it wait, too, if nothing else reads it."""
        root, maker = self._root(value), self.made.get(value)
        given = self.made.get(root) is None or not self.made[root].inputs or root in self.shown
        if maker is None or given or self.last[root] >= first:
            return _LongerStay(0, 0, {}, ())
        nbytes = self._bytes(root) if self.written.get(root) in (None, self.place[reader]) else inf
        keep = _LongerStay(nbytes, nbytes * (first - self.last[root]), {root: nbytes}, ())
        alone = self.graph.uses[value] == [reader] * len(self.graph.uses[value])
        if not alone or depth >= DEEPEST or not self._may_wait(maker, first):
            return keep
        deeper = self._operands(maker, first, depth + 1)
        return deeper._replace(nodes=(maker, *deeper.nodes)) if deeper[:2] < keep[:2] else keep

    def _bytes(self, value: Value) -> float:
        return value.aval.nbytes if value.aval.kind == "array" else 0
