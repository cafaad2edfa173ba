"""The rewrites of formulas on parts of arrays, whose nodes have any number of operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import Primitive
from ..ir.rewrite import Env, rebuild
from ..ops.elementwise import add, literal_value, mul
from ..ops.formula_text import formula_of, text_of
from ..ops.formulas import onto, value_within, write_within
from ..ops.reduce import sum_
from ..ops.shape import broadcast, reshape
from .patterns import Hole, Match, Rule
from .rules import REASSOCIATE


class FormulaRule(Rule):
    """A rewrite of ``prim``; ``then`` gets its operands and attributes, and may return None to refuse."""

    def __init__(self, prim: Primitive, name: str, then: Callable[..., Symbol | None]) -> None:
        self.pattern, self.then, self.name = Match(prim, (Hole("x"),), {}), then, name

    def may_match(self, makers: Sequence[Primitive | None]) -> bool:
        """An addition must be one of something written; all others may match."""
        return self.pattern.prim is not add or write_within in makers

    def apply(self, b: Builder, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        return self.then(*(Symbol(b, v) for v in inputs), **attrs)


def _into_parts(x: Symbol, y: Symbol) -> Symbol | None:
    """What is added to parts of zeros is added to parts of the other, so that no array of zeros is made."""
    if _adds_to_zeros(y):
        return onto(y, x)
    return onto(x, y) if _adds_to_zeros(x) else None


def _adds_to_zeros(x: Symbol) -> bool:
    made = x.node
    while made is not None and made.prim is write_within and made.attrs["sign"]:
        x = x.builder.symbol(made.inputs[0])
        if literal_value(x) == 0:
            return True
        made = x.node
    return False


def _by_products(*operands: Symbol, **attrs: Any) -> Symbol | None:
    """Sums of a matrix times a row or a column, by BLAS. Formulas are in loops, which have one of its threads."""
    windows = attrs["windows"]
    avals = tuple(x.aval for x in operands[: len(windows)])
    graph = formula_of(attrs["formula"], avals, windows).graph
    factors = {node: found for node in graph.nodes if (found := _factors(graph, node)) is not None}
    if not factors:
        return None

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        return [env[factors[node][0]] @ env[factors[node][1]]] if node in factors else None

    products = rebuild(graph, rule)
    text = text_of(products, {v: f"x{k}" for k, v in enumerate(products.inputs)})
    value: Symbol = value_within(*operands, **attrs | {"formula": text})
    return value


def _factors(graph: Graph, node: Node) -> tuple[Value, Value] | None:
    """The vector and the matrix, or the matrix and the vector, whose product a node is."""
    if node.prim is not sum_ or node.attrs["keepdims"] or node.inputs[0].aval.ndim != 2:
        return None
    made = graph.producer.get(node.inputs[0])
    if made is None or made.prim is not mul or node.attrs["axis"] not in ((0,), (1,)):
        return None
    by_columns = node.attrs["axis"] == (0,)
    for wide, matrix in (made.inputs, made.inputs[::-1]):
        vector = _stretched(graph, wide, by_columns)
        if vector is not None and _stretched(graph, matrix, by_columns) is None:
            return (vector, matrix) if by_columns else (matrix, vector)
    return None


def _stretched(graph: Graph, value: Value, column: bool) -> Value | None:
    """The vector that fills all columns, or all rows, of a matrix."""
    made = graph.producer.get(value)
    if made is None or made.prim is not broadcast:
        return None
    (vector,) = made.inputs
    if vector.aval.ndim == 1 and not column:
        return vector if vector.aval.shape == value.aval.shape[1:] else None
    inner = graph.producer.get(vector)
    wanted = (value.aval.shape[0], 1) if column else (1, value.aval.shape[1])
    if vector.aval.shape != wanted or inner is None or inner.prim is not reshape:
        return None
    return inner.inputs[0] if inner.inputs[0].aval.ndim == 1 else None


REASSOCIATE += [
    FormulaRule(add, "add(x, write_within(y, ...))", _into_parts),
    FormulaRule(value_within, "value_within(sum(x * y))", _by_products),
]
