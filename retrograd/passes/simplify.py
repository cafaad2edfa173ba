"""simplify: Graph → Graph by tables of rewrites, in one walk that reaches the normal form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.evaluate import run_node
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import Primitive
from ..ir.rewrite import with_bodies
from ..ir.types import Aval
from ..ops.elementwise import add, cast, const, div, eq, ge, gt, le, lt, mul, ne, neg, sub
from ..ops.shape import broadcast, permute, reshape
from .inline import inline_into
from .patterns import Rule, constant_of
from .prune import prune
from .rules import EXACT

MOVES = frozenset({broadcast, reshape, permute})
FOLDED = MOVES | {add, sub, mul, div, neg, lt, le, gt, ge, eq, ne, cast}


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
        self,
        prim: Primitive,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        hints: Sequence[str | None] = (),
        avals: Sequence[Aval] | None = None,
    ) -> list[Symbol]:
        rewritten = self._rewritten(prim, inputs, attrs)
        return super().emit(prim, inputs, attrs, hints, avals) if rewritten is None else [rewritten]

    def keep(self, node: Node) -> tuple[Value, ...]:
        self.replica = node.replica
        rewritten = self._rewritten(node.prim, node.inputs, node.attrs)
        self.replica = 0
        return super().keep(node) if rewritten is None else (rewritten.value,)

    def copy_node(self, node: Node, inputs: Sequence[Value], **changed: Any) -> list[Symbol]:
        return super().copy_node(with_bodies(node, self._body), inputs)

    def _rewritten(self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        """The value of a node after a rule or folding; None if nothing applies."""
        if prim not in self.rules and prim not in FOLDED:
            return None
        makers = [None if (node := self.made.get(v)) is None else node.prim for v in inputs]
        for rule in self._candidates(prim, makers):
            result = rule.apply(self, inputs, attrs)
            if result is not None:
                self.fired[rule.name] += 1
                (aval,) = prim.avals([v.aval for v in inputs], attrs)
                return self.coerce(result, aval)
        if prim in FOLDED and all(maker is const for maker in makers):
            folded = self._fold(prim, inputs, attrs)
            if folded is not None:
                self.fired["fold"] += 1
                return folded
        return None

    def _candidates(self, prim: Primitive, makers: Sequence[Primitive | None]) -> list[Rule]:
        """The rules that a node with operands from these primitives may match; cached, as few combinations occur."""
        key = (prim, *makers)
        found = self.candidates.get(key)
        if found is None:
            found = self.candidates[key] = [r for r in self.rules.get(prim, ()) if r.may_match(makers)]
        return found

    def _body(self, graph: Graph) -> Graph:
        """A body in normal form; a body that several nodes share stays one."""
        if graph not in self.bodies:
            inner = Simplifier((), self.fired)
            inner.rules, inner.candidates, inner.bodies = self.rules, self.candidates, self.bodies
            self.bodies[graph] = _rebuilt(inner, graph)
        return self.bodies[graph]

    def _fold(self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        """Fold an operation on numbers that fill constants: exact, as each element is computed alone.

        An operation that would warn or fail is left as it is, so that it does so when it runs.
        """
        numbers = [constant_of(self, v) for v in inputs]
        if any(n is None for n in numbers):
            return None
        aval = prim.avals([v.aval for v in inputs], attrs)[0]
        if any(a.kind == "python" for a in (aval, *(v.aval for v in inputs))):
            return None
        if prim in MOVES:
            return self.constant(numbers[0], aval)
        node = Node(prim, tuple(inputs), attrs, (Value(aval),))
        filled = [np.full((), n, v.aval.dtype) for v, n in zip(inputs, numbers, strict=True)]
        args = [x if v.aval.kind == "array" else x[()] for x, v in zip(filled, inputs, strict=True)]
        try:
            with np.errstate(all="raise", under="ignore"):
                (value,) = run_node(node, args)
        except (ArithmeticError, ValueError):
            return None
        return self.constant(np.asarray(value)[()], aval)


def _rebuilt(b: Simplifier, graph: Graph) -> Graph:
    outs = inline_into(b, graph, b.share_inputs(graph))
    if tuple(b.nodes) == graph.nodes and [o.value for o in outs] == list(graph.outputs):
        return prune(graph)
    return prune(b.graph(graph.name, outs))


def simplify(graph: Graph, rules: Sequence[Rule] = (), fired: Counter[str] | None = None) -> Graph:
    """The graph in normal form under the EXACT rules and any further ``rules``; ``fired`` counts the rewrites."""
    mark = ("in normal form", *rules)
    if graph.knows(mark):
        return graph
    simple = _rebuilt(Simplifier([*EXACT, *rules], fired), graph)
    simple.once(mark, lambda: True)
    return simple
