"""join_parts: Graph → Graph in which equal operations on neighbouring parts of an array become one on all of them.

The gates of a recurrent cell are an example: sigmoids of three slices of one product. The pass runs in front of
derivatives, so that adjoints and residuals are those of the joined operations. Elementwise results keep their bits.
Parts are joined only if cotangents reach all of them or none: a zero in place of none, times an infinite slope, is nan.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir.builder import Builder, Symbol, attrs_key
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import loop_of
from ..ir.primitive import TRANSFORMS
from ..ir.rewrite import Env, rebuild, with_bodies, with_nodes
from ..ir.types import Aval
from ..ops.batching import by_elements
from ..ops.elementwise import const
from ..ops.index import getitem
from ..ops.shape import broadcast, broadcast_to
from .prune import prune

SHORTEST = 13  # elements of a vector that does not become Python numbers
LARGEST = 1 << 18  # bytes of a joined result: calls for larger ones take little of their time
WORTH = 3  # views take as long as an operation

Range = tuple[int, int]  # along the axis


@TRANSFORMS.register("join_parts")
def join_parts(graph: Graph, carry: int = 0) -> Graph:
    """Join such operations in the graph and in its bodies; the first ``carry`` outputs are states of a loop."""
    return graph.once(("join_parts", carry), lambda: _joined(_with_joined_bodies(graph), carry))


def _with_joined_bodies(graph: Graph) -> Graph:
    return with_nodes(graph, map(_with_joined_parts, graph.nodes)) if graph.nested else graph


def _with_joined_parts(node: Node) -> Node:
    loop = loop_of(node)
    return with_bodies(node, lambda g: join_parts(g, loop.layout.carry if loop and g is loop.body else 0))


def _joined(graph: Graph, carry: int) -> Graph:
    if graph.prims[getitem] < 2 or sum(node.prim is getitem and part_of(node) is not None for node in graph.nodes) < 2:
        return graph
    found = _PartFinder(graph, carry)
    return prune(rebuild(graph, _Joiner(found.run_of).rule)) if found.saves_time() else graph


@dataclass(eq=False)
class JoinedParts:
    """Neighbouring members of a row. They become one operation.

    Its operands are runs, arrays of which it takes a part, and fillers.
    """

    members: dict[Range, Node]
    operands: list[JoinedParts | Value]
    axis: int

    @property
    def start(self) -> int:
        return next(iter(self.members))[0]

    @property
    def stop(self) -> int:
        return next(reversed(self.members))[1]

    @property
    def first(self) -> Node:
        return next(iter(self.members.values()))

    def shape(self) -> tuple[int, ...]:
        """The shape of the joined result."""
        shape = self.first.out.aval.shape
        return (*shape[: self.axis], self.stop - self.start, *shape[self.axis + 1 :])


@dataclass(eq=False)
class _EqualParts:
    """Equal operations on parts that lie beside each other."""

    axis: int
    nodes: dict[Range, Node] = field(default_factory=dict)


class _PartFinder:
    """Finds what becomes one operation: ``rows`` of equal operations, and the runs without gaps in them."""

    def __init__(self, graph: Graph, carry: int) -> None:
        self.source, self.reached = graph, _reached(graph, carry)
        self.outputs = set(graph.outputs)
        self.place: dict[Value, tuple[Hashable, int, Range]] = {}  # row, axis, range
        self.rows: dict[Hashable, _EqualParts] = {}
        effects = 0
        for node in graph.nodes:
            effects += node.effect
            if node.prim is getitem and (part := part_of(node)) is not None:
                self.place[node.out] = node.inputs[0], part[0], part[1:]
            elif self._is_elementwise(node) and node.out not in self.outputs:
                self._add(node, effects)
        self.found: list[JoinedParts] = []
        self.run_of: dict[Node, JoinedParts] = {}  # of each member
        for row in self.rows.values():
            for chain in _chains(row.nodes):
                self._make_run(row, chain)

    def _is_elementwise(self, node: Node) -> bool:
        if node.prim.multi or node.effect or not node.inputs or node.prim.order != "K":
            return False
        return by_elements(node.prim) and all(v.aval.shape == node.out.aval.shape for v in node.inputs)

    def _add(self, node: Node, effects: int) -> None:
        """Put a node into its row, if its operands lie at one place of their rows, or fill any place."""
        placed = {self.place[v][1:] for v in node.inputs if v in self.place}
        if len(placed) != 1:
            return
        ((axis, part),) = placed
        sources = tuple(self.place[v][0] if v in self.place else self._filler(v) for v in node.inputs)
        if None in sources:
            return
        reached = self.reached.get(node.out, 0)
        key = (node.prim, attrs_key(node.attrs), node.replica, effects, reached, axis, sources)
        row = self.rows.setdefault(key, _EqualParts(axis))
        if part not in row.nodes:
            row.nodes[part] = node
            self.place[node.out] = key, axis, part

    def _filler(self, v: Value) -> Hashable:
        """What tells fillers apart that have the same number everywhere; None for other values."""
        made = self.source.producer.get(v)
        if made is not None and made.prim is const and not isinstance(made.attrs["value"], tuple):
            return v.aval.dtype, repr(made.attrs["value"])
        if made is not None and made.prim is broadcast and not made.inputs[0].aval.shape:
            return made.inputs[0]
        return None

    def _make_run(self, row: _EqualParts, chain: Sequence[Range]) -> None:
        members = {part: row.nodes[part] for part in chain}
        run = JoinedParts(members, [], row.axis)
        aval = run.first.out.aval
        bytes_of_all = aval.nbytes // aval.shape[row.axis] * (run.stop - run.start)
        short = aval.ndim == 1 and any(node.out.aval.size < SHORTEST for node in members.values())
        if len(members) < 2 or short or bytes_of_all > LARGEST:
            return
        for v in run.first.inputs:
            made = self.source.producer.get(v)
            source = self.place[v][0] if v in self.place else v
            if isinstance(source, Value):
                run.operands.append(source)
            elif made is not None and (before := self.run_of.get(made)) and before.members.keys() >= members.keys():
                run.operands.append(before)
            else:
                return
        self.found.append(run)
        self.run_of.update(dict.fromkeys(members.values(), run))

    def saves_time(self) -> bool:
        """Whether the joined operations save more than the further views take."""
        saved = 0
        for run in self.found:
            saved += WORTH * (len(run.members) - 1)
            for node in run.members.values():
                uses = self.source.uses.get(node.out, ())
                saved -= any(reader not in self.run_of for reader in uses)
            given = (x for x in run.operands if isinstance(x, Value) and x not in run.first.inputs)
            saved -= sum(x.aval.shape != run.shape() for x in given)
        for v, (source, _, _) in self.place.items():
            uses = self.source.uses.get(v, ())
            saved += isinstance(source, Value) and bool(uses) and all(reader in self.run_of for reader in uses)
        return saved > 0


class _Joiner:
    """The rule that emits a run in place of its first member, and parts of its result for all."""

    def __init__(self, runs: dict[Node, JoinedParts]) -> None:
        self.runs = runs
        self.made: dict[JoinedParts, Symbol] = {}

    def rule(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        run = self.runs.get(node)
        if run is None:
            return None
        if run not in self.made:
            operands = [self._operand(b, v, x, run, env) for v, x in zip(run.first.inputs, run.operands, strict=True)]
            attrs = dict(node.attrs)
            if "aval" in attrs:
                attrs["aval"] = Aval(run.shape(), attrs["aval"].dtype)
            self.made[run] = b.emit(node.prim, [x.value for x in operands], attrs)[0]
        part = next(part for part, member in run.members.items() if member is node)
        return [_part(self.made[run], run.axis, part[0] - run.start, part[1] - run.start, node.out.hint)]

    def _operand(self, b: Builder, v: Value, x: JoinedParts | Value, run: JoinedParts, env: Env) -> Symbol:
        if isinstance(x, JoinedParts):
            return _part(self.made[x], run.axis, run.start - x.start, run.stop - x.start)
        if x is not v:
            return _part(env[x], run.axis, run.start, run.stop)
        made = env[v].node
        if made is not None and made.prim is const:
            return b.constant(made.attrs["value"], Aval(run.shape(), v.aval.dtype))
        assert made is not None
        return broadcast_to(b.symbol(made.inputs[0]), run.shape())


def part_of(node: Node) -> tuple[int, int, int] | None:
    """The axis, start and stop of a read that narrows one axis and leaves out nothing between; None for others."""
    index: tuple[Any, ...] = node.attrs["index"]
    if len(node.inputs) > 1 or not all(isinstance(i, slice) for i in index):
        return None
    shape = node.inputs[0].aval.shape
    whole = [i.indices(n) for i, n in zip(index, shape, strict=False)]
    narrow = [(axis, *found) for axis, found in enumerate(whole) if found != (0, shape[axis], 1)]
    if len(narrow) != 1:
        return None
    axis, start, stop, step = narrow[0]
    return (axis, start, stop) if step == 1 and start < stop else None


def _chains(nodes: dict[Range, Node]) -> list[list[Range]]:
    """The ranges in order, in groups without gaps; none if ranges overlap."""
    chains: list[list[Range]] = []
    end = -1
    for part in sorted(nodes):
        if part[0] < end:
            return []
        if part[0] == end:
            chains[-1].append(part)
        else:
            chains.append([part])
        end = part[1]
    return chains


def _part(x: Symbol, axis: int, start: int, stop: int, hint: str | None = None) -> Symbol:
    if (start, stop) == (0, x.shape[axis]):
        return x
    index = (*[slice(None)] * axis, slice(start, stop))
    return x.builder.emit(getitem, [x.value], {"index": index}, [hint])[0]


def _reached(graph: Graph, carry: int) -> dict[Value, int]:
    """For each value a set, as bits, of the outputs and bodies that give it a cotangent if they have one.

    All states of a loop have cotangents if one has.
    """
    found: dict[Value, int] = {}
    for i, v in enumerate(graph.outputs):
        found[v] = found.get(v, 0) | 1 << max(i - carry + 1, 0)
    bits = len(graph.outputs) + 1
    for node in reversed(graph.nodes):
        through = 0
        for v in node.outputs:
            through |= found.get(v, 0)
        opaque = node.prim.structure is not None or (node.prim.jvp is not None and not node.prim.diff)
        for i, v in enumerate(node.inputs):
            if opaque:
                found[v] = found.get(v, 0) | 1 << bits
                bits += 1
            elif through and node.prim.derivative(i) is not None:
                found[v] = found.get(v, 0) | through
    return found
