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
from ..ops.elementwise import add, cast, div, eq, ge, gt, le, lt, mul, ne, neg, sub
from ..ops.shape import broadcast, permute, reshape
from .inline import inline_into
from .patterns import Rule, constant_of
from .prune import prune
from .rules import EXACT, FAST, REASSOCIATE

__all__ = ["EXACT", "FAST", "REASSOCIATE", "simplify"]

MOVES = {prim.name for prim in (broadcast, reshape, permute)}
FOLDED = {prim.name for prim in (add, sub, mul, div, neg, lt, le, gt, ge, eq, ne, cast)}


class Simplifier(Builder):
    """A builder that rewrites each node as it is made, so that one walk reaches the normal form."""

    def __init__(self, rules: Sequence[Rule], fired: Counter[str] | None = None) -> None:
        super().__init__()
        self.rules: dict[Primitive, list[Rule]] = {}
        for rule in rules:
            self.rules.setdefault(rule.pattern.prim, []).append(rule)
        self.fired = Counter() if fired is None else fired
        self.bodies: dict[Graph, Graph] = {}

    def emit(
        self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any], hints: Sequence[str | None] = ()
    ) -> list[Symbol]:
        rewritten = self._rewritten(prim, inputs, attrs)
        return super().emit(prim, inputs, attrs, hints) if rewritten is None else [rewritten]

    def copy_node(self, node: Node, inputs: Sequence[Value], **changed: Any) -> list[Symbol]:
        self.where, self.replica = node.where, node.replica
        rewritten = self._rewritten(node.prim, inputs, node.attrs)
        self.replica = 0
        if rewritten is not None:
            return [rewritten]
        bodies = {name: self._body(g) for name, g in node.graphs} if node.attrs else {}
        return super().copy_node(node, inputs, **bodies)

    def _rewritten(self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        """What a rule or folding makes of a node; None where nothing applies."""
        rules = self.rules.get(prim)
        if rules:
            producers = [self.made.get(v) for v in inputs]
            for rule in rules:
                result = rule.apply(self, inputs, attrs) if rule.may_match(producers) else None
                if result is not None:
                    self.fired[rule.name] += 1
                    (aval,) = prim.avals([v.aval for v in inputs], attrs)
                    return self.coerce(result, aval)
        if (prim.name in FOLDED or prim.name in MOVES) and (folded := self._fold(prim, inputs, attrs)) is not None:
            self.fired["fold"] += 1
            return folded
        return None

    def _body(self, graph: Graph) -> Graph:
        """A nested graph in normal form; one that is called in several places stays one."""
        if graph not in self.bodies:
            inner = Simplifier((), self.fired)
            inner.rules, inner.bodies = self.rules, self.bodies
            self.bodies[graph] = _rebuilt(inner, graph)
        return self.bodies[graph]

    def _fold(self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        """An operation on numbers filled into constants: exact, as each element is computed alone.

        What would warn or fail is left as it is, to do so when it runs.
        """
        numbers = [constant_of(self, v) for v in inputs]
        if any(n is None for n in numbers):
            return None
        aval = prim.avals([v.aval for v in inputs], attrs)[0]
        if any(a.kind == "python" for a in (aval, *(v.aval for v in inputs))):
            return None
        if prim.name in MOVES:
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
    return prune(b.graph(graph.name, inline_into(b, graph, b.share_inputs(graph))))


def simplify(graph: Graph, rules: Sequence[Rule] = (), fired: Counter[str] | None = None) -> Graph:
    """The graph in normal form under the EXACT rules and any further ``rules``; firings are counted in ``fired``."""
    return _rebuilt(Simplifier([*EXACT, *rules], fired), graph)
