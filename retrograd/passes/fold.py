"""fold: operations on numbers that fill constants become constants, while a graph is simplified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.evaluate import run_node
from ..ir.graph import Node, Value
from ..ir.primitive import Primitive
from ..ops.elementwise import add, cast, constant_of, div, eq, ge, gt, le, lt, mul, ne, neg, sub
from ..ops.shape import broadcast, permute, reshape
from .simplify import FOLDS

MOVES = frozenset({broadcast, reshape, permute})
FOLDED = MOVES | {add, sub, mul, div, neg, lt, le, gt, ge, eq, ne, cast}


def fold(b: Builder, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
    """Fold an operation on numbers that fill constants: exact, as each element is computed alone.

    An operation that would warn or fail is left as it is, so that it does so when it runs.
    """
    numbers = [constant_of(b, v) for v in inputs]
    if any(n is None for n in numbers):
        return None
    aval = prim.avals([v.aval for v in inputs], attrs)[0]
    if any(a.kind == "python" for a in (aval, *(v.aval for v in inputs))):
        return None
    if prim in MOVES:
        return b.constant(numbers[0], aval)
    node = Node(prim, tuple(inputs), attrs, (Value(aval),))
    filled = [np.full((), n, v.aval.dtype) for v, n in zip(inputs, numbers, strict=True)]
    args = [x if v.aval.kind == "array" else x[()] for x, v in zip(filled, inputs, strict=True)]
    try:
        with np.errstate(all="raise", under="ignore"):
            (value,) = run_node(node, args)
    except (ArithmeticError, ValueError):
        return None
    return b.constant(np.asarray(value)[()], aval)


FOLDS.update(dict.fromkeys(FOLDED, fold))
