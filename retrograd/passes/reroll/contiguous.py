"""contiguous: find the values of a graph that surely lie in memory in C order without gaps, as a copy of them would.

In another layout, results may differ in the last bits, as those of sums and of products of matrices do.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph import Graph, Node, Value
from ...ir.texts import Arg
from ...ops.gather import gather
from ...ops.index import getitem
from ...ops.shape import broadcast, reshape

# Operations that give their result in the order of axes of their operands, as NumPy's ufuncs do.
LIKE_OPERANDS = frozenset(
    {
        "annihilating_div",
        "annihilating_mul",
        "cast",
        "clip",
        "concatenate",
        "const",
        "copy",
        "cumprod",
        "cumsum",
        "inv",
        "max",
        "min",
        "owned",
        "pow",
        "prod",
        "solve",
        "sum",
        "tril",
        "triu",
        "where",
    }
)


def contiguous(graph: Graph) -> frozenset[Value]:
    """The contiguous values of a graph, inputs among them: arguments are taken as contiguous."""
    return graph.once("contiguous", lambda: _contiguous(graph))


def _contiguous(graph: Graph) -> frozenset[Value]:
    found = set(graph.inputs)
    in_order = set(graph.inputs)  # values whose axes are in C order, whatever the gaps and directions
    for node in graph.nodes:
        if node.graphs:
            kept = found.issuperset(node.inputs)
            fits = follows = kept and all(contiguous(g).issuperset(g.outputs) for _, g in node.graphs)
        else:
            fits, follows = _result(node, found, in_order)
        for out in node.outputs:
            if fits or not out.aval.shape:
                found.add(out)
            if follows or not out.aval.shape:
                in_order.add(out)
    return frozenset(found)


def _result(node: Node, found: set[Value], in_order: set[Value]) -> tuple[bool, bool]:
    """Whether the result is contiguous, and whether its axes are in C order."""
    prim = node.prim
    if prim is getitem:
        base = node.inputs[0]
        return base in found and _block(node.attrs["index"]), base in in_order
    if prim is gather and len(node.inputs) == 2 and node.inputs[0].aval.ndim == 1:  # it lies as the positions do
        fits = node.inputs[1] in found
        return fits, fits
    if prim is broadcast:
        return False, node.inputs[0] in in_order
    if prim is reshape or prim.writes is not None:
        fits = node.inputs[prim.writes or 0] in found
        return fits, fits
    if prim.alias is not None or prim.multi:
        return False, False
    like = bool(prim.numpy.ufunc) or prim.name in LIKE_OPERANDS
    fits = node.out.aval.ndim == 1 or (like and in_order.issuperset(node.inputs))
    return fits, fits


def _block(index: tuple[Any, ...]) -> bool:
    """Whether an index selects elements in a row: numbers, then a slice without steps, then whole axes."""
    slices = [item for item in index if isinstance(item, slice)]
    numbers = index[: len(index) - len(slices)]
    if not all(isinstance(item, (int, Arg)) for item in numbers):
        return False
    return all(item.step in {None, 1} for item in slices[:1]) and all(item == slice(None) for item in slices[1:])
