"""Formulas on parts of arrays, whose lengths and positions the data decide: which of them C computes."""

from __future__ import annotations

import math

from ...ir.graph import Node
from ...ops.formula_text import VIEWS
from ...ops.formulas import formula_at, operations, value_within, write_within
from .c_texts import common, text_of
from .indices import count

FORMULAS = frozenset({value_within, write_within})
LARGEST = 2**18  # elements of an array, up to which the loops of a library are not faster
LONGEST = 1024  # ... and along an axis of what is summed
MOVES = VIEWS | {"cast", "copy"}
SUMS = frozenset({"matmul", "sum"})
IN_TURN = frozenset({"count", "max", "min"})


def is_formula(node: Node) -> bool:
    """Whether a node is a formula that C computes."""
    if node.prim not in FORMULAS or max(count(v) for v in (*node.inputs, node.out)) > LARGEST:
        return False
    formula, limits = formula_at(node), node.attrs["limits"]
    summed = [v for n in formula.graph.nodes if n.prim.name in SUMS for v in n.inputs]
    longest = max((n for v in summed for n in formula.largest(v.aval.shape, limits)), default=0)
    return longest <= LONGEST and all(map(_has_text, formula.graph.nodes))


def is_formula_write(node: Node) -> bool:
    """Whether a node writes a formula into a part of an array."""
    return node.prim is write_within and is_formula(node)


def is_formula_value(node: Node) -> bool:
    """Whether a node is the value of a formula."""
    return node.prim is value_within and is_formula(node)


def adds_up(node: Node) -> bool:
    """Whether a formula has sums, whose order is not NumPy's, or functions with other last bits."""
    inner = formula_at(node).graph.nodes
    return any(n.prim.name in SUMS or ((text := text_of(n)) is not None and text.ulp > 0) for n in inner)


def work_of_formula(node: Node) -> int:
    """The additions that a formula takes at most, about."""
    each = max((text.work for n in formula_at(node).graph.nodes if (text := text_of(n)) is not None), default=1)
    elements: int = math.prod(node.attrs["limits"])
    return each * operations(node) * elements


def _has_text(node: Node) -> bool:
    name, text = node.prim.name, text_of(node)
    if any(v.aval.dtype.kind not in "fib" for v in (*node.inputs, *node.outputs)):
        return False
    if name == "const":
        return not isinstance(node.attrs["value"], tuple)
    if name == "matmul":
        a, b = (v.aval.shape for v in node.inputs)
        return max(len(a), len(b)) <= 2 or (len(a) == len(b) and a[:-2] == b[:-2])
    if name in SUMS | IN_TURN:
        return name == "count" or node.out.aval.dtype.kind == "f"
    if name == "reshape":
        before, after = ([n for n in v.aval.shape if n != 1] for v in (node.inputs[0], node.out))
        return before == after
    if name == "cast":
        return node.out.aval.dtype.kind == "f"
    return name in MOVES or (text is not None and bool(text.c) and common(node).kind in text.kinds)
