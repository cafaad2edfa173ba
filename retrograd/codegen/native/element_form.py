"""Graphs in the form in which elements are written: C has no call of a library for small products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.rewrite import Env, mapped, rebuild
from ...ops.index import additem, getitem
from ...ops.reduce import sum_
from ...ops.shape import broadcast_to, reshape_to
from .decided_places import writes_at
from .indices import full
from .overwriting import BASIC
from .running import as_loop, runs

PRODUCTS = frozenset({"matmul", "vecdot"})
Form = Callable[[Node, Sequence[Symbol]], Symbol]
SMALL = 4096  # multiplications up to which a library is not faster


def is_small_product(node: Node) -> bool:
    """Whether a node is a product of real matrices and vectors that C computes."""
    if node.out.aval.dtype.kind != "f":
        return False
    if node.prim.name == "vecdot":
        return True
    a, b = (v.aval for v in node.inputs)
    return node.prim.name == "matmul" and max(a.ndim, b.ndim) <= 2 and a.size * math.prod(b.shape[1:]) <= SMALL


def other_form(node: Node) -> Form | None:
    """What writes an operation as loops or sums that C has texts for; None if there is no need."""
    if runs(node):
        return as_loop
    return _turned if _turns(node) else None


def _turns(node: Node) -> bool:
    """Whether a node writes into an array what has the other direction along some axes."""
    items = node.attrs["index"] if node.prim.name in BASIC and len(node.inputs) == 2 else ()
    turned = [item for item in items if isinstance(item, slice) and item.step == -1]
    plain = all(isinstance(item, int) or (isinstance(item, slice) and item.step in (None, 1, -1)) for item in items)
    return bool(turned) and plain


def _turned(node: Node, operands: Sequence[Symbol]) -> Symbol:
    x, y = operands
    shape, index, back = x.shape, list[int | slice](), list[slice]()
    for item, n in zip(full(node.attrs["index"], len(shape)), shape, strict=True):
        if isinstance(item, int):
            index.append(item)
            continue
        places = range(n)[item]
        back.append(slice(None, None, places.step))
        index.append(slice(min(places, default=0), max(places, default=-1) + 1) if places.step == -1 else item)
    forward = getitem(y, index=tuple(back))
    whole = node.prim is additem and forward.shape == x.shape
    found: Symbol = x + forward if whole else node.prim(x, forward, index=tuple(index))
    return found


def element_form(graph: Graph) -> Graph:
    """The graph with sums of elements in the place of small products, also in the bodies of loops.

    The sum of an array and one of zeros with a write is a write into the array.
    """
    return mapped(graph, lambda graph: rebuild(graph, partial(_rule, graph)) if _has_others(graph) else graph)


def _rule(graph: Graph, b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    operands = [env[v] for v in node.inputs]
    if node.prim.name in PRODUCTS:
        return [b.coerce(_written_out(node, *operands), node.out.aval)]
    form = other_form(node)
    if form is not None:
        return [form(node, operands)]
    write = _added(graph, node)
    if write is not None:
        other = node.inputs[node.inputs[0] is write.out]
        return b.emit(write.prim, [env[v].value for v in (other, *write.inputs[1:])], write.attrs)
    return None


def _has_others(graph: Graph) -> bool:
    return any(node.prim.name in PRODUCTS or other_form(node) or writes_at(node) for node in graph.nodes)


def _added(graph: Graph, node: Node) -> Node | None:
    """The write into zeros at positions that differ, which the node adds to another array; None if it does not."""
    for x in node.inputs if node.prim.name == "add" else ():
        write = graph.producer.get(x)
        if write is None or not writes_at(write) or graph.uses[x] != [node] or x in graph.outputs:
            continue
        zeros = graph.producer.get(write.inputs[0])
        if _differ(write) and zeros is not None and zeros.prim.name == "const" and zeros.attrs["value"] == 0:
            return write
    return None


def _differ(write: Node) -> bool:
    """Whether a write names each element once. Elements by several arrays are too few to end the loop of the sum."""
    once = write.prim.name == "scatter_add" and write.attrs.get("unique") and len(write.inputs) == 3
    return write.prim.name == "additem" or bool(once)


def _written_out(node: Node, x: Symbol, y: Symbol) -> Symbol:
    if node.prim.name == "vecdot" or x.ndim == y.ndim == 1:
        found: Symbol = sum_(x * y, axis=(x.ndim - 1,), keepdims=False)
    elif y.ndim == 1:
        found = sum_(x * broadcast_to(y, x.shape), axis=(1,), keepdims=False)
    else:  # axes (rows,) of x, those that are summed, and columns of y
        shape = (*x.shape, y.shape[1])
        spread = broadcast_to(reshape_to(x, (*x.shape, 1)), shape)
        found = sum_(spread * broadcast_to(y, shape), axis=(x.ndim - 1,), keepdims=False)
    return found
