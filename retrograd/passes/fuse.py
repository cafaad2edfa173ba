"""fuse: Graph → Graph in which groups of operations that a target computes together are kernels."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import Change, recursively, with_bodies, with_nodes
from ..ops.structural.kernel import kernel
from .equal_parts import equal_parts, operations

Key = tuple[int, Hashable]


def _never(node: Node) -> bool:
    return False


def _no_size(body: Graph) -> int:
    return 0


def _alike(node: Node) -> Hashable:
    return ()


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a target computes in kernels.

    It ``takes`` some of the nodes. Views and constants among these are free: each kernel makes those that it reads. The
    nodes of one kernel have equal answers to ``alike``. The results of a node that ``ends`` are read outside of its
    kernel alone: a kernel that works on parts of arrays has a sum at the end. A kernel has at least ``fewest``
    operations, or one that may stand ``alone``. If more than ``most`` repeat, equal parts are kernels of their own.
    ``size`` tells the attribute of a kernel by its body, none if it is 0.
    """

    takes: Callable[[Node], bool]
    alike: Callable[[Node], Hashable] = _alike
    ends: Callable[[Node], bool] = _never
    fewest: int = 2
    alone: Callable[[Node], bool] = _never
    most: int = sys.maxsize
    size: Callable[[Graph], int] = _no_size


def fuse(graph: Graph, policy: Policy) -> Graph:
    """Form kernels in the graph, and in the bodies of nodes that stay outside of kernels.

    Other nodes keep their order, but for those that wait for a kernel. No kernel reaches across an effect, so what ends
    a graph early stays in front of the same operations; a mark without operands and results does not count.
    """
    names = (f"{graph.name}_{k}" for k in count(1))
    return recursively(graph, lambda graph, inner: _Fusion(graph, policy, inner, names).graph())


class _Fusion:
    """Gives each node a level: a kernel is what has one level and one key.

    An operand has the same level as its reader if both may stand in one kernel, or neither is taken; else a lower one.
    So kernels never wait for each other.
    """

    def __init__(self, graph: Graph, policy: Policy, inner: Change, names: Iterator[str]) -> None:
        self.source, self.policy, self.inner, self.names = graph, policy, inner, names
        self.made = graph.producer
        self.free: set[Node] = set()
        self.key: dict[Node, Key] = {}
        self.level: dict[Node, int] = {}
        self.readers: dict[Node, list[Node]] = {}  # also through free views
        self.shown: set[Node] = set()  # whose results are results of the graph, also through free views
        self.place = {node: k for k, node in enumerate(graph.nodes)}
        part = 0
        for node in graph.nodes:
            if node.effect:
                part += bool(node.inputs or node.outputs)
            elif policy.takes(node):
                if node.prim.alias is not None or not node.inputs:
                    self.free.add(node)
                else:
                    self.key[node] = part, policy.alike(node)

    def _without_views(self, values: Iterable[Value]) -> list[Node]:
        """The nodes that make values, or of which these are free views."""
        found: dict[Node, None] = {}
        todo = list(values)
        while todo:
            node = self.made.get(todo.pop())
            if node is None:
                continue
            if node in self.free:
                todo += node.inputs
            else:
                found[node] = None
        return list(found)

    def _together(self, node: Node, reader: Node) -> bool:
        own = self.key.get(node)
        return own == self.key.get(reader) and (own is None or not self.policy.ends(node))

    def graph(self) -> Graph:
        """The graph with its kernels."""
        self.shown.update(self._without_views(self.source.outputs))
        self._find_levels()
        self._wait()
        nodes = _in_order(self._units(self._groups()))
        return with_nodes(self.source, nodes)

    def _find_levels(self) -> None:
        for node in self.source.nodes:
            if node in self.free:
                continue
            before = self._without_views(node.inputs)
            self.level[node] = max((self.level[p] + (not self._together(p, node)) for p in before), default=0)
            for p in before:
                self.readers.setdefault(p, []).append(node)

    def _wait(self) -> None:
        """Move nodes into the kernels that read them, where what is kept for that is no more than what it saves."""
        taken = {(self.level[node], key) for node, key in self.key.items()}
        for node in reversed(self.source.nodes):
            readers = self.readers.get(node, [])
            if node not in self.key or node in self.shown or not readers:
                continue
            latest = min(self.level[r] - (not self._together(node, r)) for r in readers)
            if latest > self.level[node] and (latest, self.key[node]) in taken:
                kept = sum(v.aval.nbytes for v in self._kept(node, latest))
                if kept <= sum(v.aval.nbytes for v in node.outputs):
                    self.level[node] = latest

    def _kept(self, node: Node, latest: int) -> set[Value]:
        """The values that live longer if a node is computed at a later level."""
        found: set[Value] = set()
        for made in self._without_views(node.inputs):
            others = (r for r in self.readers[made] if r is not node)
            if made not in self.shown and not any(self.level[r] >= latest for r in others):
                found.update(made.outputs)
        return found

    def _groups(self) -> list[list[Node]]:
        """The nodes of each kernel."""
        found: dict[tuple[int, Key], list[Node]] = {}
        for node in self.source.nodes:
            if node in self.key:
                found.setdefault((self.level[node], self.key[node]), []).append(node)
        fewest, alone = self.policy.fewest, self.policy.alone
        parts = [part for nodes in found.values() for part in equal_parts(nodes, self.policy.most)]
        return [part for part in parts if sum(map(operations, part)) >= fewest or any(map(alone, part))]

    def _units(self, groups: list[list[Node]]) -> list[tuple[int, Node]]:
        """The nodes of the new graph, with their places in the old one; a kernel has the place of its last node."""
        inside = {node for nodes in groups for node in nodes}
        bodies = [self._body(nodes) for nodes in groups]
        left = [n for n in self.source.nodes if n not in inside and n not in self.free]
        units = [(self.place[n], n if n.prim is kernel else with_bodies(n, self.inner)) for n in left]
        read = {v for n in left for v in n.inputs} | {v for body in bodies for v in _operands(body)}
        read.update(self.source.outputs)
        for node in reversed(self.source.nodes):
            if node in self.free and not read.isdisjoint(node.outputs):
                read.update(node.inputs)
                units.append((self.place[node], node))
        for nodes, body in zip(groups, bodies, strict=True):
            results = _arranged(self.source.outputs, [v for node in nodes for v in node.outputs if v in read])
            if results:
                units.append((self.place[nodes[-1]], self._kernel(next(self.names), body, results)))
        return units

    def _body(self, nodes: list[Node]) -> list[Node]:
        """Nodes with the free views that they read."""
        found = dict.fromkeys(nodes)
        todo = [v for node in nodes for v in node.inputs]
        while todo:
            node = self.made.get(todo.pop())
            if node in self.free and node not in found:
                found[node] = None
                todo += node.inputs
        return sorted(found, key=self.place.__getitem__)

    def _kernel(self, name: str, body: list[Node], results: list[Value]) -> Node:
        operands = _arranged(self.source.inputs, _operands(body))
        new = {v: Value(v.aval, v.hint) for v in (*operands, *(v for node in body for v in node.outputs))}
        copies = tuple(
            replace(n, inputs=tuple(new[v] for v in n.inputs), outputs=tuple(new[v] for v in n.outputs)) for n in body
        )
        graph = Graph(name, tuple(new[v] for v in operands), copies, tuple(new[v] for v in results))
        size = self.policy.size(graph)
        attrs = {"body": graph, "size": size} if size else {"body": graph}
        where = next(n.where for n in body if n not in self.free)
        return Node(kernel, tuple(operands), attrs, tuple(results), where)


def _operands(body: list[Node]) -> list[Value]:
    """What nodes read and none of them makes, in the order of reading."""
    made = {v for node in body for v in node.outputs}
    return list(dict.fromkeys(v for node in body for v in node.inputs if v not in made))


def _arranged(first: Sequence[Value], values: list[Value]) -> list[Value]:
    """The values, those of the graph's inputs or outputs first: a kernel that is all of a graph is called as that."""
    order = {v: k for k, v in enumerate(first)}
    return sorted(values, key=lambda v: order.get(v, len(order)))


def _in_order(units: list[tuple[int, Node]]) -> tuple[Node, ...]:
    """Nodes in the order of their places, but for those that wait for an operand; effects keep their order."""
    units = sorted(units, key=lambda unit: unit[0])
    maker = {v: k for k, (_, node) in enumerate(units) for v in node.outputs}
    before = [{maker[v] for v in node.inputs if v in maker} for _, node in units]
    for a, b in pairwise(k for k, (_, node) in enumerate(units) if node.effect):
        before[b].add(a)
    after: dict[int, list[int]] = {}
    for k, earlier in enumerate(before):
        for a in earlier:
            after.setdefault(a, []).append(k)
    waits = [len(earlier) for earlier in before]
    ready = [k for k, n in enumerate(waits) if n == 0]
    found = []
    while ready:
        k = heapq.heappop(ready)
        found.append(units[k][1])
        for a in after.get(k, ()):
            waits[a] -= 1
            if not waits[a]:
                heapq.heappush(ready, a)
    return tuple(found)
