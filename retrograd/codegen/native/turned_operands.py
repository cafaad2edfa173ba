"""Matrices that a loop only multiplies by short vectors: their columns lie side by side.

A sum along a short row takes longest where its eight parts come together. Of columns, all rows are added at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Node, Value
from ...ir.loop_node import LoopNode
from ...ops.formula_text import Formula
from ...ops.formulas import formula_at, write_within
from .decided_formulas import is_formula
from .indices import CArray, count, extents

ROWS = 16  # of the matrix, from which on they are added at a time
SHORT_ROW = 64  # elements of a row at most, beyond which its sum takes no longer
LARGEST = 2**15  # elements of a matrix, whose copy stays in the cache
STEPS = 8  # of the loop, from which on a copy of the matrix pays


def is_turned(loop: LoopNode, value: Value) -> bool:
    """Whether steps only multiply a matrix, which they do not change, by short vectors."""
    if value.aval.ndim != 2 or value.aval.steps is not None or not ROWS < count(value) <= LARGEST:
        return False
    readers = loop.body.uses.get(value, ())
    return loop.length >= STEPS and bool(readers) and all(_multiplies(node, value) for node in readers)


def _multiplies(node: Node, matrix: Value) -> bool:
    """Whether a node is a formula that multiplies parts of a matrix, with axes of their own, by vectors."""
    first = int(node.prim is write_within)
    if not is_formula(node) or matrix in node.inputs[:first]:
        return False
    formula = formula_at(node)
    for part, window, operand in zip(formula.graph.inputs, formula.windows, node.inputs[first:], strict=False):
        if operand is not matrix:
            continue
        short = part.aval.ndim == 2 and has_short_rows(formula, part, node.attrs["limits"])
        uses = formula.graph.uses.get(part, ())
        vectors = all(use.prim.name == "matmul" and use.inputs[1].aval.ndim == 1 for use in uses)
        if not short or "#" in window or not vectors or part in formula.graph.outputs:
            return False
    return True


def has_short_rows(formula: Formula, matrix: Value, limits: Sequence[int]) -> bool:
    """Whether many short rows of a matrix are summed, or of the matrices of a stack."""
    rows, row = (1, *formula.largest(matrix.aval.shape, limits))[-2:]
    return rows >= ROWS and row <= SHORT_ROW


def turned(array: CArray) -> CArray:
    """The array with its two axes laid out the other way round."""
    return CArray(array.name, array.shape, array.dtype, (1, array.shape[0]))


def lies_turned(array: object, value: Value) -> bool:
    """Whether a matrix is held so."""
    return isinstance(array, CArray) and array.strides == (1, extents(value)[0])
