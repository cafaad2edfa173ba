"""Running sums, products and extrema, and linear recurrences, as loops along one axis, which C has texts for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.primitive import REGISTRY
from ...ir.structure import Layout
from ...ir.types import Aval
from ...ops.concatenate import concatenate
from ...ops.structural.loops import make_scan, step_of

COMBINED = {"cumsum": "add", "cumprod": "mul", "cummax": "maximum", "cummin": "minimum"}
RECURRENCE = "recurrence"
KINDS = "if"


def runs(node: Node) -> bool:
    """Whether a node is a running operation that kernels compute."""
    if node.prim.name not in COMBINED and node.prim.name != RECURRENCE:
        return False
    return node.out.aval.kind == "array" and node.out.aval.dtype.kind in KINDS


def as_loop(node: Node, operands: Sequence[Symbol]) -> Symbol:
    """The operation as a loop along its axis, inside of loops over the axes in front."""
    axis, name = node.attrs["axis"], node.prim.name
    if name == RECURRENCE:
        a, b = operands  # a[k - 1] y[k - 1] + b[k], which has no first factor
        zeros = b.builder.zeros(Aval((*b.shape[:axis], 1, *b.shape[axis + 1 :]), b.dtype))
        operands = [concatenate(*((a, zeros) if node.attrs["reverse"] else (zeros, a)), axis=axis), b]
    return _over(node, operands, axis)


def _over(node: Node, xs: Sequence[Symbol], axis: int) -> Symbol:
    b, rows = xs[0].builder, [step_of(x.aval) for x in xs]
    first = [] if axis else [b.constant(_start(node.prim.name, xs[0].dtype), rows[0])]
    body = _rows(node, rows, axis) if axis else _step(node, rows)
    reverse = axis == 0 and bool(node.attrs["reverse"])
    return make_scan(b, body, Layout(0, len(first), 1), [*first, *xs], xs[0].shape[0], reverse)[1][0]


def _step(node: Node, rows: Sequence[Aval]) -> Graph:
    inner = Builder()
    y, *xs = (inner.input(aval) for aval in (rows[0], *rows))
    found = xs[0] * y + xs[1] if len(xs) == 2 else REGISTRY[COMBINED[node.prim.name]](y, xs[0])
    return inner.graph("step", [found, found])


def _rows(node: Node, rows: Sequence[Aval], axis: int) -> Graph:
    inner = Builder()
    return inner.graph("row", [_over(node, [inner.input(aval) for aval in rows], axis - 1)])


def _start(name: str, dtype: np.dtype[Any]) -> float | int:
    """What changes no first element, also no zero with a sign."""
    whole = dtype.kind == "i"
    if name == "cumprod":
        return 1 if whole else 1.0
    if name == "cumsum":
        return 0 if whole else -0.0
    least, most = (np.iinfo(dtype).min, np.iinfo(dtype).max) if whole else (-np.inf, np.inf)
    return {"cummax": least, "cummin": most}.get(name, 0)
