"""paths: merge the traced paths of a function into one graph, which follows the path that its guards choose.

The paths agree up to the first decision that turns out differently. There the graph divides: one path becomes the body
of an ``exit_if``, which ends with the results of that path, and the other path goes on. The side with more paths goes
on, so that a loop with a varying number of steps nests by no more than one level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import ControlFlowError
from ...ir.builder import Builder, attr_key
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS
from ...ir.rewrite import walk, with_bodies
from ...ops.structural.exit_if import exit_if
from ...ops.structural.guard import guard
from ..prune import prune


@TRANSFORMS.register("merge_paths")
def merge_paths(paths: Sequence[Graph]) -> Graph:
    """Merge graphs with the same inputs that differ in the answers their guards expect; the first gives the name."""
    if len(paths) == 1:
        return paths[0]
    level = _Level(None)
    inputs = [s.value for s in level.share_inputs(paths[0])]
    walks = [_Walk(path, dict(zip(path.inputs, inputs, strict=True))) for path in paths]
    outputs = _merge(level, walks)
    return Graph(paths[0].name, tuple(inputs), tuple(level.nodes), tuple(outputs))


def without_guards(graph: Graph) -> Graph:
    """The graph for arguments for which its guards are known to hold."""
    nodes = tuple(node for node in graph.nodes if node.prim is not guard)
    if len(nodes) == len(graph.nodes):
        return graph
    return graph.once("without guards", lambda: prune(Graph(graph.name, graph.inputs, nodes, graph.outputs)))


def asked_first(graph: Graph) -> tuple[Graph, Graph]:
    """Split a graph into its guards, with the values that they check, and the rest.

    Draws and host calls that must run before the last guard belong to the first graph: their results are among its
    results, and are further inputs of the second.
    """
    asked: set[Value] = set()
    early: dict[Node, None] = {}
    found = False
    for node in reversed(graph.nodes):
        if node.prim is guard or not asked.isdisjoint(node.outputs):
            asked.update(node.inputs)
            found = found or _acts(node)
        if found and _acts(node):
            early[node] = None
    first = tuple(n for n in graph.nodes if n in early or not _acts(n))
    rest = tuple(n for n in graph.nodes if n not in early and n.prim is not guard)
    known = tuple(v for node in reversed(early) for v in node.outputs)
    return (
        prune(Graph(graph.name, graph.inputs, first, known)),
        prune(Graph(graph.name, (*graph.inputs, *known), rest, graph.outputs)),
    )


def _acts(node: Node) -> bool:
    return any(inner.prim.effect and inner.prim is not guard for inner in walk(node))


class _Level(Builder):
    """The graph of one nesting level; values of ``outer`` levels become inputs where they are read."""

    def __init__(self, outer: _Level | None) -> None:
        super().__init__()
        self.outer = outer
        self.passed: dict[Value, Value] = {}
        self.entered: dict[Value, Value] = {}  # inputs of this level, and their values at the enclosing level
        self.bodies: _Bodies = _Bodies() if outer is None else outer.bodies

    def reach(self, value: Value) -> Value:
        """A value of this level or of an enclosing level, as a value of this level."""
        if self.outer is None or value in self.made or value in self.entered:
            return value
        if value not in self.passed:
            outside = self.outer.reach(value)
            source = self.outer.made.get(outside)
            if source is not None and not source.inputs and not source.prim.effect:
                self.passed[value] = self.emit(source.prim, (), source.attrs, [value.hint])[0].value
            else:
                self.passed[value] = self.input(value.aval, value.hint).value
                self.entered[self.passed[value]] = outside
        return self.passed[value]


class _Bodies:
    """The bodies of nodes: each path was recorded with bodies of its own, and equal ones become one."""

    def __init__(self) -> None:
        self.known: dict[int, list[Graph]] = {}
        self.first: dict[Graph, Graph] = {}

    def merged(self, node: Node) -> Node:
        """The node with each of its bodies replaced by the first equal one."""
        return with_bodies(node, self._one)

    def _one(self, graph: Graph) -> Graph:
        if graph not in self.first:
            like = self.known.setdefault(len(graph.nodes), [])
            self.first[graph] = next((other for other in like if equal(graph, other)), graph)
            if self.first[graph] is graph:
                like.append(graph)
        return self.first[graph]


def equal(a: Graph, b: Graph) -> bool:
    """Whether two graphs compute the same, node by node."""
    if a is b:
        return True
    if (a.in_avals, a.out_avals, len(a.nodes)) != (b.in_avals, b.out_avals, len(b.nodes)):
        return False
    same = dict(zip(a.inputs, b.inputs, strict=True))
    for x, y in zip(a.nodes, b.nodes, strict=True):
        if x.prim is not y.prim or x.replica != y.replica or x.attrs.keys() != y.attrs.keys():
            return False
        if [same.get(v) for v in x.inputs] != list(y.inputs):
            return False
        if not all(_same_attr(value, y.attrs[name]) for name, value in x.attrs.items()):
            return False
        same.update(zip(x.outputs, y.outputs, strict=True))
    return [same.get(v) for v in a.outputs] == list(b.outputs)


def _same_attr(a: object, b: object) -> bool:
    return equal(a, b) if isinstance(a, Graph) and isinstance(b, Graph) else attr_key(a) == attr_key(b)


@dataclass(eq=False)
class _Walk:
    """One path during the merge: ``env`` maps placed values, ``pending`` are nodes that need not be placed yet."""

    graph: Graph
    env: dict[Value, Value]
    at: int = 0
    pending: dict[Node, None] = field(default_factory=dict)

    def to_next_effect(self) -> Node | None:
        """Skip nodes without effects; the next node with one."""
        while self.at < len(self.graph.nodes):
            node = self.graph.nodes[self.at]
            if node.effect:
                return node
            self.pending[node] = None
            self.at += 1
        return None

    def place(self, level: _Level, value: Value) -> Value:
        """Place a value of the path and all that it depends on; the value at this level."""
        stack = [value]
        while stack:
            at = stack[-1]
            if at in self.env:
                stack.pop()
                continue
            node = self.graph.producer[at]
            missing = [v for v in node.inputs if v not in self.env]
            if missing:
                stack.extend(missing)
                continue
            self.copy(level, node)
        return level.reach(self.env[value])

    def copy(self, level: _Level, node: Node) -> None:
        """Place a node whose operands are placed."""
        self.pending.pop(node, None)
        outs = level.copy_node(level.bodies.merged(node), [level.reach(self.env[v]) for v in node.inputs])
        self.env.update((v, s.value) for v, s in zip(node.outputs, outs, strict=True))

    def rest(self, level: _Level) -> list[Value]:
        """Place all remaining nodes in order; the results."""
        for node in [*self.pending, *self.graph.nodes[self.at :]]:
            if not node.outputs or node.outputs[0] not in self.env:
                for value in node.inputs:
                    self.place(level, value)
                self.copy(level, node)
        return [self.place(level, value) for value in self.graph.outputs]


def _merge(level: _Level, walks: list[_Walk]) -> list[Value]:
    """Place paths at a level, dividing it where they diverge; the results of the path that goes on."""
    while len(walks) > 1:
        effects = [path.to_next_effect() for path in walks]
        ended = next((path for path, node in zip(walks, effects, strict=True) if node is None), None)
        if ended is not None:  # no guard is left: any other path that came here would be the same path
            return ended.rest(level)
        nodes = [node for node in effects if node is not None]
        operands = [[path.place(level, v) for v in node.inputs] for path, node in zip(walks, nodes, strict=True)]
        same = [
            node.prim is nodes[0].prim
            and (ins == operands[0] if node.prim is guard else _like(level, ins, operands[0]))
            and _question(level, node) == _question(level, nodes[0])
            for node, ins in zip(nodes, operands, strict=True)
        ]
        if nodes[0].prim is guard:
            asked = [path for path, on in zip(walks, same, strict=True) if on]
            walks = _divide(level, asked, [w for w in walks if w not in asked], operands[0][0])
        elif all(same):
            _together(level, walks, nodes, operands[0])
        else:
            raise ControlFlowError(
                f"{walks[0].graph.name} behaves differently here than in an earlier call with the same decisions",
                where=nodes[0].where,
                remedy="decide by the arguments, and not by state that an earlier call left",
            )
    return walks[0].rest(level)


def _like(level: _Level, a: Sequence[Value], b: Sequence[Value]) -> bool:
    """Whether operands may be equal: loops that Python unrolled differ if later code reads more of their steps."""
    return len(a) == len(b) and all(
        x is y or (x in level.made and y in level.made and x.aval == y.aval) for x, y in zip(a, b, strict=True)
    )


def _question(level: _Level, node: Node) -> object:
    """The key by which effects are compared; for a guard, the question without the answer."""
    answer = "expected" if node.prim is guard else ""
    return [(name, attr_key(value)) for name, value in level.bodies.merged(node).attrs.items() if name != answer]


def _together(level: _Level, walks: Sequence[_Walk], nodes: Sequence[Node], operands: Sequence[Value]) -> None:
    """Place an effect that all paths share, once."""
    outs = level.copy_node(level.bodies.merged(nodes[0]), operands)
    for path, node in zip(walks, nodes, strict=True):
        path.env.update((v, s.value) for v, s in zip(node.outputs, outs, strict=True))
        path.at += 1


def _divide(level: _Level, asked: list[_Walk], others: list[_Walk], value: Value) -> list[_Walk]:
    """Put the paths of each answer but one into bodies of their own; the paths of that one answer go on."""
    groups: dict[object, list[_Walk]] = {}
    answers: dict[object, Node] = {}
    for path in asked:
        node = path.graph.nodes[path.at]
        path.at += 1
        key = attr_key(node.attrs["expected"])
        groups.setdefault(key, []).append(path)
        answers[key] = node
    if others:
        going, leaving = None, list(groups)
    else:
        going = max(groups, key=lambda key: len(groups[key]))
        leaving = [key for key in groups if key != going]
    for key in leaving:
        inner = _Level(level)
        results = _merge(inner, groups[key])
        body = Graph(f"path_{len(level.nodes)}", tuple(inner.inputs), tuple(inner.nodes), tuple(results))
        level.where = answers[key].where
        level.emit(exit_if, (value, *inner.entered.values()), {**answers[key].attrs, "body": body})
    if going is None:
        return others
    if len(groups) == 1 or answers[going].attrs["kind"] != "bool" or answers[going].attrs["lanes"]:
        level.copy_node(answers[going], [value])
    return groups[going]
