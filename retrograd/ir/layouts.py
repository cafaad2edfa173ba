"""The order in which the axes of a value lie in memory, which NumPy chooses by the strides of the operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .evaluate import run_node
from .graph import Graph, Node, Value, filled
from .texts import Arg
from .types import Aval

Order = tuple[int, ...]  # axes of more than one element, the outermost first
Shown = np.ndarray[Any, Any]  # an array that has strides but no memory: none of its elements is ever read


class Layouts:
    """For each value of a graph, its axes in the order of memory; None if that order is not known.

    A result whose order is known lies packed in memory, without gaps or negative strides. Inputs are C-ordered, unless
    ``ordered`` is False: then nothing is known of them.
    """

    def __init__(self, graph: Graph, ordered: bool = True) -> None:
        self._made = graph.producer
        inputs = [v for v in graph.inputs if _has_axes(v.aval)]
        self._shown: dict[Value, Shown | None] = {v: _packed(v.aval) if ordered else None for v in inputs}

    def order(self, value: Value) -> Order | None:
        """The axes of a value in the order of memory."""
        if not _has_axes(value.aval):
            return ()
        shown = self._shown[value]
        return None if shown is None else _order(shown)

    def add(self, node: Node, within: Value | None = None) -> None:
        """Note the order of the results of a node; its only result may be written into ``within``."""
        for out in node.outputs:
            if len(out.aval.shape) > 1 and _has_axes(out.aval):
                self._shown[out] = self._shown[within] if within is not None else self._result(node, out)

    def pack(self, values: Iterable[Value]) -> None:
        """Note values that lie in C order."""
        self._shown.update({v: _packed(v.aval) for v in values if _has_axes(v.aval)})

    def copied(self, node: Node) -> bool:
        """Whether a node is a reshape that copies; what is not known to lie otherwise is taken for contiguous."""
        source = node.inputs[node.prim.alias or 0]
        shown = self._shown.get(source) if _has_axes(source.aval) else _packed(source.aval)
        return copies(node, self._made) if shown is None else must_copy(node, shown)

    def _result(self, node: Node, out: Value) -> Shown | None:
        prim = node.prim
        if prim.alias is not None:
            return self._view(node)
        if prim.numpy.statement or (prim.order == "C" and not prim.multi):
            return _packed(out.aval)
        if prim.multi:
            fresh = prim.order and prim.fresh is not None and any(node.outputs[k] is out for k in prim.fresh(node))
            return _packed(out.aval) if fresh else None
        if prim.name == "gather":
            return self._gathered(node)
        if not prim.order:
            return None
        arrays = [v for v in node.inputs if not (prim.numpy.broadcasts and filled(v, self._made))]
        orders = [self.order(v) for v in arrays]
        if prim.order == "K":
            kept = _kept(out.aval, [v.aval for v in arrays], orders)
            return None if kept is None else _packed(out.aval, kept)
        ordered = all(o is not None and o == tuple(sorted(o)) for o in orders)
        return _packed(out.aval) if ordered else None

    def _gathered(self, node: Node) -> Shown | None:
        """The result of neighbouring arrays as indices behind slices, whose axes are then the outermost in memory."""
        source, index = node.inputs[0], node.attrs["index"]
        order = self.order(source)
        arrays = [k for k, part in enumerate(index) if isinstance(part, Arg)]
        before = index[: arrays[0]] if arrays else ()
        neighbours = arrays == list(range(arrays[0], arrays[-1] + 1)) if arrays else False
        if not neighbours or order is None or order != tuple(sorted(order)):
            return None
        if not before or not all(isinstance(part, slice) for part in before):
            return None
        ndim = max(v.aval.ndim for v in node.inputs[1:])
        first = range(len(before), len(before) + ndim)
        return _packed(node.out.aval, (*first, *(k for k in range(node.out.aval.ndim) if k not in first)))

    def _view(self, node: Node) -> Shown | None:
        source = node.inputs[node.prim.alias or 0]
        shown = self._shown.get(source) if _has_axes(source.aval) else _packed(source.aval)
        if shown is None or len(node.inputs) > 1:
            return None
        return seen_through(node, shown)


def seen_through(node: Node, shown: Shown) -> Shown:
    """The array that a view shows, or the copy that a reshape must make."""
    found: Shown = _packed(node.out.aval) if must_copy(node, shown) else run_node(node, [shown])[0]
    return found


def must_copy(node: Node, shown: Shown) -> bool:
    """Whether this node is a reshape that must copy its operand."""
    if node.prim.name != "reshape":
        return False
    try:
        np.reshape(shown, node.out.aval.shape, copy=False)
    except ValueError:
        return True
    return False


def shown_array(value: Value, made: Mapping[Value, Node]) -> Value:
    """The array that a view shows, also a view of views; any other value itself. ``made`` has the nodes by results."""
    while (node := made.get(value)) is not None and node.prim.alias is not None:
        value = node.inputs[node.prim.alias]
    return value


def copies(node: Node, made: Mapping[Value, Node]) -> bool:
    """Whether this node is a reshape that copies, if the storage behind its operand is contiguous."""
    if node.prim.name != "reshape":
        return False
    chain, value = [node], node.inputs[0]
    while (source := made.get(value)) is not None and source.prim.alias is not None:
        if len(source.inputs) > 1:
            return False
        chain.append(source)
        value = source.inputs[0]
    view, copied = _packed(value.aval), False
    for step in reversed(chain):
        copied = must_copy(step, view)
        view = seen_through(step, view)
    return copied


def _has_axes(aval: Aval) -> bool:
    """Whether the axes can have different orders: that takes two axes with more than one element."""
    shape = aval.shape
    return len(shape) > 1 and aval.kind == "array" and aval.steps is None and sum(n > 1 for n in shape) > 1


def _packed(aval: Aval, order: Order = ()) -> Shown:
    """An array without memory that lies packed in this order, in C order if none is given."""
    size = aval.dtype.itemsize
    strides = [size] * aval.ndim
    axes = [*order, *(k for k in range(aval.ndim) if k not in order)] if order else range(aval.ndim)
    for k in reversed(axes):
        strides[k] = size
        size *= max(aval.shape[k], 1)
    return np.lib.stride_tricks.as_strided(np.empty(1, aval.dtype), aval.shape, strides, writeable=False)


def _order(shown: Shown) -> Order:
    """The axes of an array, the largest stride first; stretched axes are left out."""
    axes = [k for k, (n, step) in enumerate(zip(shown.shape, shown.strides, strict=True)) if n > 1 and step]
    return tuple(sorted(axes, key=lambda k: -abs(shown.strides[k])))


def _kept(out: Aval, avals: Sequence[Aval], orders: Sequence[Order | None]) -> Order | None:
    """The order that NumPy gives an elementwise result: that of all operands if they agree, else C if one has it."""
    axes = tuple(k for k, n in enumerate(out.shape) if n > 1)
    votes: list[Order | None] = []
    for aval, order in zip(avals, orders, strict=True):
        if order is None or (aval.shape == out.shape and len(order) < len(axes)):  # ufuncs vary here
            votes.append(None)
        elif len(order) > 1:
            votes.append(tuple(k + len(out.shape) - aval.ndim for k in order))
    if axes in votes or all(vote is not None and vote == tuple(sorted(vote)) for vote in votes):
        return axes
    first = votes[0]
    agree = first is not None and len(first) == len(axes) and all(vote == first for vote in votes)
    return first if agree else None
