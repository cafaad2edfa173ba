"""residuals: choose by a minimum cut the values that the forward graph keeps; cheap values are computed again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import fsum

from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS
from ...ir.target import TARGETS
from ..linearize import Linearized
from ..prune import prune

INFINITE = float("inf")
STATE = 0.99  # of its bytes, what the state of a loop costs
SEVERAL = 4  # operations that are not worth their repetition, to keep a state in place of something else
TWO = 2  # operations that are not worth their repetition, to keep one array less, of as many bytes
LEAST = 512  # bytes of residuals among which one more array counts for little


def choose_residuals(
    nodes: Sequence[Node],
    needed: Iterable[Value],
    cost: Callable[[Value], float],
    recomputable: Callable[[Node], bool],
    effort: Callable[[Node], float] = lambda node: 0,
) -> set[Value]:
    """The cheapest values from which recomputable nodes compute all that is ``needed``.

    This is a minimum cut between the values that cannot be computed again (inputs, results of other nodes) and the
    needed ones: to cut a value costs ``cost(value)``, to compute it again ``effort(node)``. Constants need not be kept.
    Of equal cuts, take the one nearest to the needed values, so that the least is computed again.
    """
    made = {v: node for node in nodes for v in node.outputs}
    network = Network()
    seen: set[Value] = set()
    stack = list(needed)
    for value in stack:
        network.join((value, "out"), SINK, INFINITE)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        network.join((value, "in"), (value, "out"), cost(value))
        node = made.get(value)
        if node is None or not recomputable(node):
            network.join(SOURCE, (value, "in"), INFINITE)
            continue
        if (again := effort(node)) > 0:
            network.join(SOURCE, (value, "in"), again)
        for operand in node.inputs:
            network.join((operand, "out"), (value, "in"), INFINITE)
            stack.append(operand)
    far = network.beyond_cut()
    return {v for v in seen if (v, "out") in far and (v, "in") not in far}


def points_between(
    more: Collection[Value],
    less: Collection[Value],
    values: Iterable[Value],
    price: Callable[[Value], float],
    most: int,
) -> Iterator[frozenset[Value]]:
    """Add to the thriftier of two choices more and more of the values that only the other keeps, the dearest first.

    A value is dear if it costs much to compute. There are about ``most`` such choices; values of equal price come in
    the order of ``values``.
    """
    extra = sorted((v for v in values if v in more and v not in less), key=price, reverse=True)
    for n in range(1, len(extra), max(1, len(extra) // most)):
        yield frozenset((*less, *extra[:n]))


SOURCE, SINK = "source", "sink"


class Network:
    """A flow network, whose vertices are any hashable objects. Maximum flow by Dinic's method (1970)."""

    def __init__(self) -> None:
        self.number: dict[object, int] = {}
        self.edges: list[list[int]] = []  # the edges of each vertex; edge i and edge i ^ 1 are opposite
        self.target: list[int] = []
        self.room: list[float] = []

    def _vertex(self, name: object) -> int:
        if name not in self.number:
            self.number[name] = len(self.edges)
            self.edges.append([])
        return self.number[name]

    def join(self, a: object, b: object, capacity: float) -> None:
        """Add an edge."""
        x, y, edge = self._vertex(a), self._vertex(b), len(self.target)
        self.edges[x].append(edge)
        self.edges[y].append(edge + 1)
        self.target += (y, x)
        self.room += (capacity, 0.0)

    def beyond_cut(self) -> set[object]:
        """The sink's side of the minimum cut nearest to the sink: the vertices that still reach the sink."""
        source, sink = self._vertex(SOURCE), self._vertex(SINK)
        while (level := self._levels(source))[sink] >= 0:
            following = [0] * len(self.edges)
            while self._augment(source, sink, level, following):
                pass
        near = {sink}
        queue = deque([sink])
        while queue:
            for edge in self.edges[queue.popleft()]:
                if self.room[edge ^ 1] > 0 and self.target[edge] not in near:
                    near.add(self.target[edge])
                    queue.append(self.target[edge])
        return {name for name, v in self.number.items() if v in near}

    def _levels(self, source: int) -> list[int]:
        level = [-1] * len(self.edges)
        level[source] = 0
        queue = deque([source])
        while queue:
            v = queue.popleft()
            for edge in self.edges[v]:
                if self.room[edge] > 0 and level[self.target[edge]] < 0:
                    level[self.target[edge]] = level[v] + 1
                    queue.append(self.target[edge])
        return level

    def _onward(self, v: int, level: list[int], following: list[int]) -> int | None:
        """The next edge of a vertex with room to the next level; earlier edges are used up."""
        for edge in self.edges[v][following[v] :]:
            if self.room[edge] > 0 and level[self.target[edge]] == level[v] + 1:
                return edge
            following[v] += 1
        return None

    def _augment(self, source: int, sink: int, level: list[int], following: list[int]) -> bool:
        """Fill one path of the level graph; whether there was a path."""
        path: list[int] = []
        v = source
        while v != sink:
            edge = self._onward(v, level, following)
            if edge is not None:
                path.append(edge)
                v = self.target[edge]
            elif path:
                v = self.target[path.pop() ^ 1]
                following[v] += 1
            else:
                return False
        flow = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= flow
            self.room[edge ^ 1] += flow
        return True


@TRANSFORMS.register("few_residuals")
def few_residuals(
    lin: Linearized,
    cost: Callable[[Value], float],
    states: Callable[[Value], bool] = lambda value: False,
    entry: float = 0.0,
) -> Linearized:
    """The linearized function with the cheapest residuals; its linear graph computes cheap values again.

    Of equal residuals, those are kept from which the least is computed again. But ``states``, to which a loop has a
    reference in any case, are kept instead if that takes few operations more. ``entry`` is the part of each cost that
    does not depend on the size: for it alone, one array is not kept in place of its parts, if each saves operations.
    NumPy keeps at most one array more, since it computes each in memory of its own.
    """
    nodes = lin.forward.nodes

    def preferred(value: Value) -> float:
        return cost(value) * (STATE if states(value) else 1.0)

    def without_entry(value: Value) -> float:
        price = preferred(value)
        return price - entry if price > entry else price

    chosen = choose_residuals(nodes, lin.residuals, preferred, _recomputable)
    held = {v for v in chosen if states(v)}
    if held and held.issubset(lin.forward.inputs):  # a later state is an earlier one of the next step
        other = choose_residuals(nodes, lin.residuals, cost, _recomputable)
        if _saves_operations(lin, chosen, other) and fsum(map(cost, other)) <= fsum(map(cost, chosen)):
            chosen = other
    if entry:
        parts = choose_residuals(nodes, lin.residuals, without_entry, _recomputable)
        more = 1 if TARGETS.chosen.name == "numpy" else max(1, len(parts) - len(chosen))
        as_large = LEAST <= fsum(map(preferred, parts)) <= fsum([*map(preferred, chosen), more * entry])
        if as_large and _saves_operations(lin, chosen, parts, more, more * TWO):
            chosen = parts
    if chosen == set(lin.residuals):
        return lin
    kept = [v for v in (*lin.forward.inputs, *(o for n in nodes for o in n.outputs)) if v in chosen]
    again = _between(nodes, chosen, lin.residuals)
    constants = [n for n in lin.linear.nodes if not n.inputs]
    steps = [n for n in lin.linear.nodes if n.inputs]
    count = len(lin.residuals)
    outs = lin.forward.outputs[: len(lin.forward.outputs) - count]
    linear = Graph(
        lin.linear.name,
        (*kept, *lin.linear.inputs[count:]),
        tuple(dict.fromkeys((*constants, *again, *steps))),
        lin.linear.outputs,
    )
    forward = prune(Graph(lin.forward.name, lin.forward.inputs, nodes, (*outs, *kept)))
    return replace(lin, forward=forward, linear=linear, residuals=tuple(kept))


def _recomputable(node: Node) -> bool:
    return (node.prim.cheap or not node.inputs) and not node.prim.effect


def _saves_operations(
    lin: Linearized, chosen: set[Value], other: set[Value], more: int = 0, least: int = SEVERAL
) -> bool:
    """Whether other residuals are hardly more values and save several operations. Many small values cost more."""
    nodes = lin.forward.nodes
    work, less = (
        sum(bool(node.inputs) and node.prim.alias is None for node in _between(nodes, kept, lin.residuals))
        for kept in (chosen, other)
    )
    return len(other) <= len(chosen) + more and work - less >= least


def _between(nodes: Sequence[Node], kept: set[Value], needed: Iterable[Value]) -> list[Node]:
    """The nodes that compute ``needed`` from ``kept``, in their order."""
    wanted = set(needed) - kept
    again: list[Node] = []
    for node in reversed(nodes):
        if any(v in wanted for v in node.outputs):
            again.append(node)
            wanted.update(v for v in node.inputs if v not in kept)
    return again[::-1]
