"""final_states: Graph → Graph whose adjoint loops read an array as their loop leaves it, not as it was in each step.

A factorisation reads parts of its matrix that no later step writes into. What the adjoint reads of all states then
stands in the last one, and no state is kept. Nothing rounds otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.evaluate import run_node
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import LoopNode, loop_of
from ..ir.rewrite import Env, copy_nodes, mapped, rebuild
from ..ir.texts import Arg
from ..ops.formula_text import SliceNumber
from ..ops.formulas import numbers_of, value_within, write_within
from ..ops.ragged import add_within, dot_within, slices_of
from .prune import prune

Ints = np.ndarray[Any, np.dtype[np.int64]]
Box = list[tuple[Ints, Ints]]  # for each axis, its start and stop in all steps
COUNTING = frozenset({"add", "const", "iota", "mul", "neg", "sub"})  # primitives of ints that are looked through
WRITES = frozenset({"additem", "setitem", "subitem", "write_within"})


def with_final_states(graph: Graph) -> Graph:
    """The graph, and its bodies, in which lists of such states have no reader, and are not made."""
    return mapped(graph, _with_final_states) if graph.nested else graph


def _with_final_states(graph: Graph) -> Graph:
    final: dict[Value, Value] = {}  # by the list of the states
    for node in graph.nodes:
        loop = loop_of(node)
        if loop is not None and _is_plain(loop):
            final.update(_final_states(graph, loop))

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        loop = loop_of(node)
        if loop is None or final.keys().isdisjoint(node.inputs):
            return None
        return _reading(b, loop, env, {v: env[final[v]] for v in node.inputs if v in final})

    return prune(rebuild(graph, rule)) if final else graph


def _is_plain(loop: LoopNode) -> bool:
    return loop.condition is None and loop.count is None and loop.plan is None and loop.length >= 1


def _final_states(graph: Graph, loop: LoopNode) -> Iterator[tuple[Value, Value]]:
    """The lists of states that are read only where they stay, with the final states."""
    states: dict[Value, tuple[int, int]] = {}  # by the value in the body: its carry, and how many writes come before
    writes = [_writes(loop, k) for k in range(loop.layout.carry)]
    for k, (first, chain) in enumerate(zip(loop.layout.operands(loop.body.inputs)[1], writes, strict=True)):
        states.update((v, (k, i)) for i, v in enumerate([first, *(node.out for node in chain)]) if chain)
    if loop.reverse or not states:
        return
    steps = _LoopInts(graph, loop)
    for stack, v in zip(loop.stacks, loop.layout.results(loop.body.outputs)[2], strict=True):
        if v not in states or stack.aval.steps != (loop.length,) or stack in graph.outputs:
            continue
        k, done = states[v]
        later = [_bounds(steps.written(node), same=i >= done) for i, node in enumerate(writes[k])]
        readers = graph.uses.get(stack, ())
        if None not in later and all(_reads_what_stays(graph, node, stack, later) for node in readers):
            yield stack, loop.node.outputs[k]


def _writes(loop: LoopNode, k: int) -> list[Node]:
    """The writes that make the next state of a carry of the present one, in order; none if something else does."""
    start, v = loop.layout.operands(loop.body.inputs)[1][k], loop.body.outputs[k]
    chain: list[Node] = []
    while v is not start:
        node = loop.body.producer.get(v)
        if node is None or node.prim.name not in WRITES:
            return []
        chain.append(node)
        v = node.inputs[0]
    return chain[::-1]


def _bounds(box: Box | None, same: bool) -> Box | None:
    """For each step, the box around what later steps write, and this step if ``same``."""
    if box is None:
        return None
    far = np.iinfo(np.int64).max
    found = []
    for start, stop in box:
        least, most = np.minimum.accumulate(start[::-1])[::-1], np.maximum.accumulate(stop[::-1])[::-1]
        found.append((least, most) if same else (np.append(least[1:], far), np.append(most[1:], -far)))
    return found


def _reads_what_stays(graph: Graph, node: Node, stack: Value, later: Sequence[Box | None]) -> bool:
    """Whether a node is a loop that reads, of each state in the list, only what is not written later."""
    loop = loop_of(node)
    if loop is None or not _is_plain(loop) or stack.aval.steps != (loop.length,) or [*node.inputs].count(stack) > 1:
        return False
    *_, rows = loop.layout.operands(loop.operands)
    if stack not in rows:
        return False
    v = loop.layout.operands(loop.body.inputs)[2][rows.index(stack)]
    if v in loop.body.outputs:
        return False
    steps = _LoopInts(graph, loop)
    boxes = [box for reader in loop.body.uses.get(v, ()) for box in steps.read(reader, v)]
    return all(box is not None and all(w is not None and _apart(box, w) for w in later) for box in boxes)


def _apart(read: Box, written: Box) -> bool:
    """Whether boxes have no element in common, in no step."""
    found = np.zeros(len(read[0][0]), bool)
    for (start, stop), (least, most) in zip(read, written, strict=True):
        found |= (start >= stop) | (stop <= least) | (start >= most)
    return bool(found.all())


def _reading(b: Builder, loop: LoopNode, env: Env, final: Mapping[Value, Symbol]) -> Sequence[Symbol]:
    """The loop with final states among its constants, in place of the lists."""
    given, start, rows = loop.layout.operands(loop.operands)
    consts, carry, xs = loop.layout.operands(loop.body.inputs)
    lists = {x: v for x, v in zip(xs, rows, strict=True) if v in final}
    inner = Builder()
    others = [x for x in xs if x not in lists]
    inside: Env = {v: inner.input(v.aval, v.hint) for v in (*consts, *lists, *carry, *others)}
    copy_nodes(inner, loop.body.nodes, inside)
    body = inner.graph(loop.body.name, [inside[v] for v in loop.body.outputs])
    more = [final[v] for v in lists.values()]
    operands = [*(env[v] for v in given), *more, *(env[v] for v in (*start, *(v for v in rows if v not in final)))]
    layout = replace(loop.layout, consts=len(given) + len(more))
    b.where, b.replica = loop.node.where, loop.node.replica
    attrs = loop.attrs(body, layout)
    return b.emit(loop.node.prim, [x.value for x in operands], attrs, [v.hint for v in loop.node.outputs])


def _known(box: Sequence[tuple[Ints, Ints] | None]) -> Box | None:
    """The box, if all of its axes are known."""
    found = [along for along in box if along is not None]
    return found if len(found) == len(box) else None


class _LoopInts:
    """The ints of a loop's body in all steps, and the parts of arrays that these describe."""

    def __init__(self, graph: Graph, loop: LoopNode) -> None:
        self.length = loop.length
        outside = _Ints(graph, {})
        consts, _, rows = loop.layout.operands(loop.operands)
        inner, _, xs = loop.layout.operands(loop.body.inputs)
        given = {x: outside.of(v) for x, v in (*zip(inner, consts, strict=True), *zip(xs, rows, strict=True))}
        self.ints = _Ints(loop.body, given, body=True)

    def _each(self, v: Value) -> Ints | None:
        """An int in each step."""
        found = self.ints.of(v)
        return None if found is None else np.broadcast_to(np.asarray(found, np.int64), (self.length,))

    def read(self, node: Node, x: Value) -> list[Box | None]:
        """The parts of ``x`` that a node reads; None if that is not known."""
        if node.prim in (dot_within, add_within):
            return self._slices(node, x)
        first = int(node.prim is write_within)
        if node.prim not in (value_within, write_within) or x in node.inputs[:first]:
            return [None]
        windows = node.attrs["windows"]
        at = [k for k in range(len(windows)) if node.inputs[first + k] is x]
        return [self._box(node, windows[k], k, x.aval.shape) for k in at]

    def _slices(self, node: Node, x: Value) -> list[Box | None]:
        """The slices of ``x`` that a product or a sum of slices reads."""
        if node.prim is add_within and x is node.inputs[0]:
            return [None]
        pair, zero, found = slices_of(node), np.zeros(self.length, np.int64), list[Box | None]()
        length, batch = self._each(pair.length), [(zero, zero + n) for n in x.aval.shape[:-1]]
        for v, begin in zip(pair.vectors, pair.starts, strict=True):
            start = zero if begin is None else self._each(begin)
            if v is x:
                found.append(None if start is None or length is None else [*batch, (start, start + length)])
        return found

    def written(self, node: Node) -> Box | None:
        """The part that a node writes; None if that is not known."""
        shape = node.out.aval.shape
        if node.prim is write_within:
            return self._box(node, node.attrs["target"], -1, shape)
        index = node.attrs["index"]
        if Ellipsis in index or None in index:  # items are not those of the axes
            return None
        items = (*index, *[slice(None)] * (len(shape) - len(index)))
        box = [self._range(node, item, n) for item, n in zip(items, shape, strict=True)]
        return _known(box)

    def _range(self, node: Node, item: Any, n: int) -> tuple[Ints, Ints] | None:
        if isinstance(item, slice):
            chosen = range(n)[item]
            least, most = (min(chosen), max(chosen) + 1) if chosen else (0, 0)
            return np.full(self.length, least), np.full(self.length, most)
        if isinstance(item, Arg):
            v = node.inputs[item.position]
            place = None if v.aval.shape else self._each(v)
        else:
            place = np.full(self.length, item) if isinstance(item, int) else None
        if place is None:
            return None
        place = np.where(place < 0, place + n, place)
        return place, place + 1

    def _box(self, node: Node, window: Sequence[str], operand: int, shape: tuple[int, ...]) -> Box | None:
        numbers = numbers_of(node.prim, node.inputs, node.attrs)
        box = [
            self._along(item, SliceNumber("", operand, axis), numbers, shape[axis]) for axis, item in enumerate(window)
        ]
        return _known(box)

    def _along(
        self, item: str, place: SliceNumber, numbers: Mapping[SliceNumber, Value], n: int
    ) -> tuple[Ints, Ints] | None:
        """The start and stop along an axis of a window."""
        zero = np.zeros(self.length, np.int64)
        start = self._each(numbers[place]) if place in numbers else zero
        size = self._each(numbers[SliceNumber(item[0])]) if item not in ("", "#") else zero + (1 if item else n)
        if start is None or size is None or (start < 0).any():
            return None
        return start, start + size


@dataclass(eq=False)
class _Ints:
    """The ints of a graph that follow from others by counting; of a body, the numbers in all steps at once."""

    graph: Graph
    known: dict[Value, Any]
    body: bool = False

    def of(self, v: Value) -> Any:
        """An int, or an array; None if it is not known."""
        if v not in self.known:
            self.known[v] = self._found(v)
        return self.known[v]

    def _found(self, v: Value) -> Any:
        node = self.graph.producer.get(v)
        if node is None or node.prim.name not in COUNTING or v.aval.dtype.kind != "i" or (self.body and v.aval.shape):
            return None
        operands = [self.of(x) for x in node.inputs]
        return None if any(x is None for x in operands) else run_node(node, operands)[0]
