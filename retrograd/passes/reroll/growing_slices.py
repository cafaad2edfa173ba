"""growing_slices: Graph → Graph in which operations on slices that grow from step to step have operands of one size.

``L[i, :i] @ x[:i]`` becomes ``dot_within(L[i], x, i)``, and ``y[:k] += c * z[:k]`` becomes ``add_within(y, c, z, k)``.
Each step then applies the same operations, and the steps may fold into a loop. The same holds for rows of a sparse
matrix, ``data[p:q] @ x[places[p:q]]``: all elements that the rows read are gathered from x before, once. NumPy gets the
same slices, so values keep their bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import Env, rebuild
from ...ir.texts import Arg
from ...ir.types import Aval
from ...ops.elementwise import mul, neg
from ...ops.gather import INT, gather
from ...ops.index import Index, additem, getitem
from ...ops.linear import matmul
from ...ops.ragged import add_within, dot_within, slices_of
from ...ops.shape import broadcast, broadcast_to
from ..prune import prune
from .find_repeats import COPIES

PRODUCTS = 256  # fewer products alone NumPy computes faster without a loop, since their steps compute numbers
FORWARDS, BACKWARDS = slice(None), slice(None, None, -1)
NUMBER = Aval((), INT, "scalar")


@dataclass(frozen=True, eq=False)
class VectorSlice:
    """Consecutive elements of a vector ``array[index]``; or of another vector, at the places that this one holds."""

    array: Value
    index: Index
    start: int
    length: int
    gathered: Value | None = None  # the other vector
    places: slice | None = None  # of these places, those at which some part is gathered

    @property
    def vector(self) -> Hashable:
        """Equal for parts of the same vector."""
        return self.gathered, self.array, tuple(map(repr, self.index))


@dataclass(frozen=True, eq=False)
class SliceUpdate:
    """What is added to a part of a vector: a multiple of another part."""

    factor: Value
    minus: bool


VectorSlices = dict[Node, list[VectorSlice]]
Updates = dict[Node, SliceUpdate]


def widened(graph: Graph, few: bool = False) -> Graph:
    """Give operations on slices the whole vectors as operands; the graph itself if no line has enough of them.

    With ``few``, as for C, a few products alone are enough.
    """
    parts, updates = _found(graph, few)
    if not parts:
        return graph
    moving: dict[Any, set[int]] = defaultdict(set)
    for node, pair in parts.items():
        moving[node.where, node.prim].update(k for k, part in enumerate(pair) if part.start)

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if node not in parts:
            return None
        pair, starts = parts[node], tuple(k in moving[node.where, node.prim] for k in (0, 1))
        numbers = [pair[0].length, *(part.start for part, on in zip(pair, starts, strict=True) if on)]
        operands = [*(_vector(env, part) for part in pair), *(b.constant(k, NUMBER) for k in numbers)]
        if node not in updates:
            return [dot_within(*operands, starts=starts)]
        factor = env[updates[node].factor]
        return [add_within(operands[0], -factor if updates[node].minus else factor, *operands[1:], starts=starts)]

    return prune(rebuild(graph, rule))


def narrowed(graph: Graph) -> Graph:
    """Make operations on slices that are in no loop what they were."""

    def number(v: Value) -> int:
        found: int = graph.producer[v].attrs["value"]
        return found

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if node.prim not in (dot_within, add_within):
            return None
        pair = slices_of(node)
        length = number(pair.length)
        at = [(slice(k, k + length),) for k in (0 if v is None else number(v) for v in pair.starts)]
        x, part = env[pair.vectors[0]], getitem(env[pair.vectors[1]], index=at[1])
        if node.prim is add_within:
            return [additem(x, broadcast_to(env[node.inputs[1]], part.shape) * part, index=at[0])]
        return [getitem(x, index=at[0]) @ part]

    return rebuild(graph, rule)


def _found(graph: Graph, few: bool) -> tuple[VectorSlices, Updates]:
    """Operations on slices, on lines that have several of different lengths."""
    lines: dict[Any, VectorSlices] = defaultdict(dict)
    updates: Updates = {}

    def add(node: Node, pair: list[VectorSlice]) -> None:
        lines[node.where, node.prim, *(part.array.aval for part in pair)][node] = pair

    for node in graph.nodes:
        if node.prim is matmul and all(v.aval.ndim == 1 for v in node.inputs) and node.out.aval.dtype.char in "fd":
            add(node, [vector_slice(graph, v) for v in node.inputs])
        elif node.prim is additem and (found := _update(graph, node)) is not None:
            pair, updates[node] = found
            add(node, pair)
    parts: VectorSlices = {}
    fewest = COPIES if updates or few else PRODUCTS
    for line in lines.values():
        if len(line) >= fewest and len({pair[0].length for pair in line.values()}) > 1:
            parts.update(line)
    gathered = _gathered(graph, parts)
    return {
        node: [gathered.get(part, part) for part in pair]
        for node, pair in parts.items()
        if all(part.gathered is None or part in gathered for part in pair)
    }, updates


def _update(graph: Graph, node: Node) -> tuple[list[VectorSlice], SliceUpdate] | None:
    """The parts and the factor of ``x[i:j] += c * y[k:l]``."""
    x, index = node.inputs[0], node.attrs["index"]
    whole = len(index) != 1 or type(index[0]) is not slice
    if whole or len(node.inputs) > 2 or x.aval.ndim != 1 or x.aval.dtype.char not in "fd":
        return None
    start, _, step = index[0].indices(x.aval.size)
    made = graph.producer.get(node.inputs[1])
    minus = made is not None and made.prim is neg
    made = graph.producer.get(made.inputs[0]) if made is not None and minus else made
    if step != 1 or made is None or made.prim is not mul:
        return None
    for factor, vector in (made.inputs, made.inputs[::-1]):
        wide = graph.producer.get(factor)
        if wide is not None and wide.prim is broadcast and not wide.inputs[0].aval.shape:
            target = VectorSlice(x, (), start, vector.aval.size)
            return [target, vector_slice(graph, vector)], SliceUpdate(wide.inputs[0], minus)
    return None


def vector_slice(graph: Graph, value: Value) -> VectorSlice:
    """A vector as a part of another one; of itself, if nothing better is known."""
    node, itself = graph.producer.get(value), VectorSlice(value, (), 0, value.aval.size)
    if node is not None and node.prim is gather and node.attrs["index"] == (Arg(1),) and len(node.inputs) == 2:
        x, places = node.inputs
        part = vector_slice(graph, places) if places.aval.ndim == 1 else None
        return replace(part, gathered=x) if part and x.aval.ndim == 1 and part.gathered is None else itself
    if node is None or node.prim is not getitem or len(node.inputs) > 1:
        return itself
    x = node.inputs[0]
    index = [*node.attrs["index"], *[FORWARDS] * x.aval.ndim][: x.aval.ndim]
    at = [k for k, item in enumerate(index) if type(item) is slice]
    if len(at) != 1 or not all(type(item) in (int, slice) for item in index):
        return itself
    axis, size = at[0], x.aval.shape[at[0]]
    start, _, step = index[axis].indices(size)
    length = value.aval.size
    if step not in (1, -1):
        return itself
    if x.aval.ndim > 1:
        index[axis] = FORWARDS if step == 1 else BACKWARDS
        return VectorSlice(x, tuple(index), start if step == 1 else size - 1 - start, length)
    whole = vector_slice(graph, x)
    if step == 1:
        return replace(whole, start=whole.start + start, length=length)
    return itself if whole.gathered else _backwards(whole, start, length)


def _backwards(part: VectorSlice, start: int, length: int) -> VectorSlice:
    """Elements of a part from one on, in reverse order."""
    index = list(part.index) or [FORWARDS]
    axis = next(k for k, item in enumerate(index) if type(item) is slice)
    size = part.array.aval.shape[axis]
    index[axis] = BACKWARDS if index[axis] == FORWARDS else FORWARDS
    return VectorSlice(part.array, () if index == [FORWARDS] else tuple(index), size - 1 - part.start - start, length)


def _gathered(graph: Graph, parts: VectorSlices) -> dict[VectorSlice, VectorSlice]:
    """Parts of gathered vectors that can be gathered at once: other parts read all of the places, and nothing else.

    That no effect comes in between matters for places that are not within the vector: the error stays where it was.
    """
    read: dict[Hashable, dict[VectorSlice, Node]] = defaultdict(dict)
    for node, pair in parts.items():
        for part in pair:
            if part.gathered:
                read[part.vector][part] = node
    effects = [*accumulate(node.effect for node in graph.nodes)] if read else []
    so_far = dict(zip(graph.nodes, effects, strict=False))
    found: dict[VectorSlice, VectorSlice] = {}
    for alike in read.values():
        first, end = min(part.start for part in alike), max(part.start + part.length for part in alike)
        used = np.zeros(end, bool)
        for part in alike:
            used[part.start : part.start + part.length] = True
        if len(alike) >= COPIES and used[first:].all() and len({so_far[node] for node in alike.values()}) == 1:
            found |= {part: replace(part, start=part.start - first, places=slice(first, end)) for part in alike}
    return found


def _vector(env: Env, part: VectorSlice) -> Symbol:
    x = env[part.array]
    vector: Symbol = getitem(x, index=part.index) if part.index else x
    if part.gathered is None:
        return vector
    found: Symbol = gather(env[part.gathered], getitem(vector, index=(part.places,)), index=(Arg(1),))
    return found
