"""Tapes: recordings that are run forwards and backwards node by node, by rules made once for each kind of node.

The derivative of a whole graph costs as much as several runs of it. A tape makes no graph: it puts the rules of single
nodes together, as programs do that record each operation. So it serves a recording that may not come back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..ir.builder import Builder, attrs_key
from ..ir.graph import Graph, Node, Value
from ..ir.runners import prepared_node
from ..ir.types import Aval
from ..ops.elementwise import const
from ..ops.structural.guard import guard
from ..passes.differentiate import filled
from ..passes.jvp import STILL
from ..passes.linearize import Linearized, linearize
from ..passes.simplify import simplify
from ..passes.transpose import transpose_into

MOST = 4096  # rules that are remembered
Run = Callable[..., tuple[Any, ...]]
Avals = tuple[Aval | None, ...]


class KindPull(NamedTuple):
    """From residuals, cotangents of results, and those that operands have already, to new ones of the operands.

    ``avals`` are those of the new ones, of each active operand; None without one.
    """

    run: Run
    avals: Avals


class KindRule:
    """What a node of one kind does: ``run`` gives what of its results and residuals is no operand.

    ``outs`` and ``residuals`` are positions among the operands and what ``run`` gives; ``depends`` says which results
    depend on active operands.
    """

    def __init__(self, graph: Graph, active: Sequence[bool]) -> None:
        self._lin = lin = linearize(simplify(graph), active, nan_safe=False) if any(active) else _constant(graph)
        inputs, outputs, n = lin.forward.inputs, lin.forward.outputs, len(graph.outputs)
        new = [v for v in dict.fromkeys(outputs) if v not in inputs]
        places = [(*inputs, *new).index(v) for v in outputs]
        self.outs, self.residuals, self.depends = places[:n], places[n:], lin.out_active
        self.made = len(new)
        self.run = _program(Graph(graph.name, inputs, lin.forward.nodes, tuple(new)))
        self.active = [k for k, on in enumerate(active) if on]
        self.moving = [k for k, on in enumerate(lin.out_active) if on]
        self._pulls: dict[Avals, KindPull] = {}

    def pull(self, avals: Avals) -> KindPull:
        """How cotangents come back: ``avals`` are those of the results that depend, and what active operands have."""
        found = self._pulls.get(avals)
        if found is None:
            n = len(self.moving)
            found = self._pulls[avals] = self._pulled(avals[:n], avals[n:])
        return found

    def _pulled(self, cts: Avals, former: Avals) -> KindPull:
        linear, known = self._lin.linear, len(self._lin.residuals)
        tangents = linear.inputs[known:]
        b = Builder()
        args = b.inputs_like(linear.inputs[:known])
        seeds = [None if aval is None else b.input(aval) for aval in cts]
        olds = [None if aval is None else b.input(aval) for aval in former]
        # what an operand has already is a cotangent of its tangent as a further result
        graph = Graph(linear.name, linear.inputs, linear.nodes, (*tangents, *linear.outputs))
        found = transpose_into(b, graph, [*args, *[None] * len(tangents)], [*olds, *seeds])
        run = _program(b.graph("pull", [ct for ct in found if ct is not None]))
        return KindPull(run, tuple([None if ct is None else ct.aval for ct in found]))


def _constant(graph: Graph) -> Linearized:
    """A graph of which no input is active."""
    return Linearized(graph, Graph("none", (), (), ()), (), (False,) * len(graph.outputs))


_RULES: dict[Hashable, KindRule] = {}


def tapeable(graph: Graph) -> bool:
    """Whether a recording has nothing but operations and decisions."""
    return not any(
        node.prim.structure is not None or node.prim.mark or (node.effect and node.prim is not guard)
        for node in graph.nodes
    )


class TapedNode(NamedTuple):
    """A node that a tape runs: its rule, its operands, each once and without constants, and places of residuals."""

    node: Node
    rule: KindRule
    operands: list[Value]
    residuals: list[int]


@dataclass(frozen=True, eq=False)
class Tape:
    """A recording made ready to be run: its results, if they are wanted, and the gradients of the first one.

    ``depends`` says whether that depends on the active inputs at all. The decisions are not asked again.
    """

    forward: list[tuple[Run, list[int]]]  # functions and the places of operands; results follow those before
    outputs: list[int]
    depends: bool
    seed: Run
    backward: list[tuple[Run, list[int], list[int], list[int]]]  # places of residuals, of cotangents and of new ones
    ends: list[tuple[Run, list[int]]]  # that give the gradients
    cotangents: int  # how many there are

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """The results for these arguments, which are never changed, and the gradients."""
        values = [*args]
        extend = values.extend
        for run, operands in self.forward:
            extend(run(*[values[k] for k in operands]))
        results = [values[k] for k in self.outputs]
        cts: list[Any] = [None] * self.cotangents
        cts[:1] = self.seed()
        for run, residuals, given, new in self.backward:
            found = run(*[values[k] for k in residuals], *[cts[k] for k in given])
            for k, ct in zip(new, found, strict=True):
                cts[k] = ct
        for run, given in self.ends:
            results.extend(run(*[cts[k] for k in given]))
        return results


def tape_of(graph: Graph, active: Sequence[bool], keep: bool) -> Tape:
    """A recording as a tape; with ``keep`` its results are wanted, too."""
    made = _Maker(graph, [v for v, on in zip(graph.inputs, active, strict=True) if on])
    taken = [made.take(node) for node in _live(graph) if node.prim is not const]
    for v in graph.outputs:
        if v not in made.slots:  # a constant
            made.take(graph.producer[v])
    outputs = [made.slots[v] for v in graph.outputs] if keep else []
    result = graph.outputs[0]
    made.turn(result, taken)
    ends = [made.end(v) for v, on in zip(graph.inputs, active, strict=True) if on]
    depends = result in made.active
    return Tape(made.forward, outputs, depends, _ones(result.aval), made.backward, ends, len(made.cotangents))


class _Maker:
    """Makes the two halves of a tape."""

    def __init__(self, graph: Graph, active: Sequence[Value]) -> None:
        self.producer = graph.producer
        self.slots: dict[Value, int] = {v: k for k, v in enumerate(graph.inputs)}
        self.count = len(graph.inputs)
        self.active = {*active}
        self.still = set[Value]().union(*(find(graph) for find in STILL))
        self.forward: list[tuple[Run, list[int]]] = []
        self.backward: list[tuple[Run, list[int], list[int], list[int]]] = []
        self.cotangents: dict[Value, int] = {}
        self.avals: dict[Value, Aval] = {}  # of the cotangents

    def take(self, node: Node) -> TapedNode:
        """Run a node forwards."""
        slots, active, still = self.slots, self.active, self.still
        inputs: dict[Value, int] = {}  # the others are constants
        key: list[Any] = [node.prim, attrs_key(node.attrs)]
        for v in node.inputs:
            if v in slots:
                key += (inputs.setdefault(v, len(inputs)), v.aval, v in active)
            else:
                key.append(attrs_key(self.producer[v].attrs))
        rule = _RULES.get(kind := tuple(key)) or self._rule(kind, node, [*inputs])
        operands = [slots[v] for v in inputs]
        self.forward.append((rule.run, operands))
        places = [*operands, *range(self.count, self.count + rule.made)]
        self.count += rule.made
        for v, k in zip(node.outputs, rule.outs, strict=True):
            slots[v] = places[k]
        for k in rule.moving:
            if node.outputs[k] not in still:
                active.add(node.outputs[k])
        return TapedNode(node, rule, [*inputs], [places[k] for k in rule.residuals])

    def _rule(self, key: Hashable, node: Node, inputs: Sequence[Value]) -> KindRule:
        if len(_RULES) >= MOST:
            _RULES.clear()
        rule = _RULES[key] = KindRule(_alone(node, inputs, self.producer), [v in self.active for v in inputs])
        return rule

    def turn(self, result: Value, taken: Sequence[TapedNode]) -> None:
        """Go backwards from a result."""
        avals, places = self.avals, self.cotangents
        avals[result], places[result] = result.aval, 0
        for node, rule, operands, residuals in reversed(taken):
            if not rule.moving or avals.keys().isdisjoint(node.outputs):
                continue
            inputs = [operands[k] for k in rule.active]
            had = [*[node.outputs[k] for k in rule.moving], *inputs]
            pull = rule.pull(tuple([avals.get(v) for v in had]))
            given = [places[v] for v in had if v in places]
            new = []
            for v, aval in zip(inputs, pull.avals, strict=True):
                if aval is not None:
                    avals[v] = aval
                    new.append(places.setdefault(v, len(places)))
            self.backward.append((pull.run, residuals, given, new))

    def end(self, value: Value) -> tuple[Run, list[int]]:
        """Give the gradient of an input."""
        found = self.avals.get(value)
        return _filled(found, value.aval), [] if found is None else [self.cotangents[value]]


def _live(graph: Graph) -> list[Node]:
    """The nodes that the results need."""
    needed = set(graph.outputs)
    found = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            found.append(node)
    return found[::-1]


def _alone(node: Node, inputs: Sequence[Value], producer: Mapping[Value, Node]) -> Graph:
    """A graph of one node of these inputs, and of the constants that it takes."""
    b = Builder()
    new = {v: b.input(v.aval).value for v in inputs}
    for v in node.inputs:
        if v not in new:
            (symbol,) = b.copy_node(producer[v], ())
            new[v] = symbol.value
    return b.graph("rule", b.copy_node(node, [new[v] for v in node.inputs]))


@lru_cache(maxsize=64)
def _ones(aval: Aval) -> Run:
    """What makes the cotangent of a result."""
    b = Builder()
    return _program(b.graph("seed", [b.constant(1, aval)]))


@lru_cache(maxsize=256)
def _filled(found: Aval | None, aval: Aval) -> Run:
    """What makes the gradient of a value of its cotangent."""
    b = Builder()
    ct = None if found is None else b.input(found)
    return _program(b.graph("filled", [filled(b, ct, aval)]))


def _program(graph: Graph) -> Run:
    """A graph as a function of Python's that gives a tuple."""
    names = {v: f"_{k}" for k, v in enumerate((*graph.inputs, *(v for node in graph.nodes for v in node.outputs)))}
    lines = [f"def program({', '.join(names[v] for v in graph.inputs)}):"]
    scope: dict[str, Any] = {}
    for k, node in enumerate(graph.nodes):
        scope[f"run{k}"], single = prepared_node(graph, node)
        results = ", ".join(names[v] for v in node.outputs)
        given = ", ".join(names[v] for v in node.inputs)
        lines.append(f"    {results}{'' if single else ','} = run{k}({given})")
    lines.append(f"    return ({''.join(names[v] + ', ' for v in graph.outputs)})")
    exec("\n".join(lines), scope)  # noqa: S102 - all names are made here
    program: Run = scope["program"]
    return program
