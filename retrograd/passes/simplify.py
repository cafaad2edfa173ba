"""simplify: Graph → Graph by tables of rewrites, in one walk that reaches the normal form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import Primitive
from ..ir.rewrite import with_bodies
from ..ops.elementwise import const
from .patterns import Rule
from .prune import prune
from .rules import EXACT

# How to fold an operation on numbers that fill constants, if that can be done exactly.
Fold = Callable[[Builder, Primitive, Sequence[Value], Mapping[str, Any]], Symbol | None]
FOLDS: dict[Primitive, Fold] = {}


class Simplifier(Builder):
    """A builder that rewrites each node as it is made, so that one walk reaches the normal form."""

    def __init__(self, rules: Sequence[Rule], fired: Counter[str] | None = None) -> None:
        super().__init__()
        self.rules: dict[Primitive, list[Rule]] = {}
        for rule in rules:
            self.rules.setdefault(rule.pattern.prim, []).append(rule)
        self.candidates: dict[tuple[Primitive | None, ...], list[Rule]] = {}
        self.fired = Counter() if fired is None else fired
        self.bodies: dict[Graph, Graph] = {}

    def emit(
        self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any], *rest: Any, **more: Any
    ) -> list[Symbol]:
        rewritten = self._rewritten(prim, inputs, attrs)
        return super().emit(prim, inputs, attrs, *rest, **more) if rewritten is None else [rewritten]

    def keep(self, node: Node) -> tuple[Value, ...]:
        self.replica = node.replica
        rewritten = self._rewritten(node.prim, node.inputs, node.attrs)
        self.replica = 0
        return super().keep(node) if rewritten is None else (rewritten.value,)

    def _rewritten(self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        """The value of a node after a rule or folding; None if nothing applies."""
        if prim not in self.rules and prim not in FOLDS:
            return None
        makers = [None if (node := self.made.get(v)) is None else node.prim for v in inputs]
        for rule in self._candidates(prim, makers):
            result = rule.apply(self, inputs, attrs)
            if result is not None:
                self.fired[rule.name] += 1
                (aval,) = prim.avals([v.aval for v in inputs], attrs)
                return self.coerce(result, aval)
        if prim in FOLDS and makers.count(const) == len(makers):
            folded = FOLDS[prim](self, prim, inputs, attrs)
            if folded is not None:
                self.fired["fold"] += 1
                return folded
        return None

    def _candidates(self, prim: Primitive, makers: Sequence[Primitive | None]) -> list[Rule]:
        """The rules that a node with operands from these primitives may match; cached, as few combinations occur."""
        key = (prim, *makers)
        if key not in self.candidates:
            self.candidates[key] = [r for r in self.rules.get(prim, ()) if r.may_match(makers)]
        return self.candidates[key]

    def body(self, graph: Graph) -> Graph:
        """A body in normal form; a body that several nodes share stays one."""
        if graph not in self.bodies:
            inner = Simplifier((), self.fired)
            inner.rules, inner.candidates, inner.bodies = self.rules, self.candidates, self.bodies
            self.bodies[graph] = _rebuilt(inner, graph)
        return self.bodies[graph]


def _rebuilt(b: Simplifier, graph: Graph) -> Graph:
    """The graph, node by node; a node with other operands keeps its results, so that what reads them can stay."""
    b.inputs.extend(graph.inputs)
    new: dict[Value, Value] = {}  # what stands for values that are no more
    for old in graph.nodes:
        b.where, node = old.where, with_bodies(old, b.body)
        if not new.keys().isdisjoint(old.inputs):
            inputs = tuple([new.get(v, v) for v in old.inputs])
            node = Node(old.prim, inputs, node.attrs, old.outputs, old.where, old.replica)
        outputs = b.keep(node)
        if outputs is not old.outputs:
            new.update(zip(old.outputs, outputs, strict=True))
    outputs = tuple([new.get(v, v) for v in graph.outputs])
    same = tuple(b.nodes) == graph.nodes and outputs == graph.outputs
    return prune(graph if same else Graph(graph.name, graph.inputs, tuple(b.nodes), outputs))


def simplify(graph: Graph, rules: Sequence[Rule] = (), fired: Counter[str] | None = None) -> Graph:
    """The graph in normal form under the EXACT rules and any further ``rules``; ``fired`` counts the rewrites."""
    mark = ("in normal form", *rules)
    if graph.knows(mark):
        return graph
    simple = _rebuilt(Simplifier([*EXACT, *rules], fired), graph)
    simple.once(mark, lambda: True)
    return simple
