"""reroll: Graph → Graph in which repeated operations become a scan, as they were before Python unrolled the loop.

``prove_loops`` says which stretches are loops; all else stays as it is. The scan computes the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS
from ...ir.python_loops import lines_of, loop_line
from ...ir.rewrite import walk
from ...ir.structure import Layout
from ...ir.texts import Arg
from ...ir.types import Aval
from ...ops.axes import move_axis
from ...ops.gather import INT, gather, once
from ...ops.index import getitem, setitem
from ...ops.shape import broadcast_to, reshape_to
from ...ops.structural.loops import make_scan
from ...where import Where
from ..prune import prune
from ..simplify import simplify
from .alike_bodies import alike_bodies
from .complete import complete
from .element_steps import element_steps
from .find_repeats import COPIES, FEW, FEWEST, NODES, may_repeat, width
from .folded_graph import FoldedGraph
from .growing_slices import narrowed, widened
from .join_rows import join_rows
from .moving_parts import with_formulas, without_formulas
from .nodes_of_copies import repeating
from .products_of_elements import products_of_elements
from .prove_loops import ON_SLICES, Finder, Loop, Places, Register, axis_of, moving
from .quotients import quotients
from .step_table import place_steps

KERNEL = 4000  # operations whose gradient is one kernel of C; NumPy would run larger ones element by element
STEPS = 1000  # nodes from which on steps of few kinds are a loop over a table in C
MANY_STEPS = 50_000  # ... and in NumPy, whose loop is slower than what it replaces, which compiles for ten seconds

Columns = list[np.ndarray[Any, Any]]  # numbers that differ from step to step: the last inputs of a graph


@TRANSFORMS.register("reroll")
def reroll(graph: Graph, formulas: bool = True, elements: bool = False) -> tuple[Graph, Columns]:
    """The graph with its loops folded, also loops in loops, and the arrays that are its further inputs.

    The arrays hold numbers that differ from step to step. Values keep their bits. ``formulas`` says whether loops over
    formulas on growing slices fold, too. With ``elements``, as for C, loops that write elements of large matrices do,
    and short ones; products of rows may become sums of elements.
    """
    if len(graph.nodes) < NODES and not may_repeat(graph.nodes):
        return graph, []
    folded, columns = _with_long_loops(graph, formulas, elements)
    short = elements and len(folded.nodes) <= KERNEL
    return _folded(folded, elements, columns, FEWEST) if short else (folded, columns)


def _with_long_loops(graph: Graph, formulas: bool, elements: bool) -> tuple[Graph, Columns]:
    """The graph with all but short loops folded, and its columns of numbers."""
    graph, columns = _with_tables(graph, STEPS if elements else MANY_STEPS)
    if columns and len(graph.nodes) < NODES:
        return graph, columns
    folded, more = _loops(graph, formulas, elements, columns)
    if elements and len(folded.nodes) > STEPS:
        written_out = products_of_elements(graph)
        found = (graph, columns) if written_out is graph else _with_tables(written_out, STEPS, columns)
        if len(found[1]) > len(columns):
            return found
    return folded, more


def _loops(graph: Graph, formulas: bool, elements: bool, columns: Columns) -> tuple[Graph, Columns]:
    """The graph with those loops folded whose steps are alike, and the columns of numbers that are its last inputs."""
    simple = quotients(simplify(graph))
    with_products = widened(simple, few=elements)
    with_all = with_formulas(with_products, few=elements) if formulas else with_products
    for wide in {id(g): g for g in (with_all, with_products) if g is not simple}.values():
        folded, more = _folded(wide, elements, columns, FEW)
        if 2 * _on_slices(folded) < _on_slices(wide):
            return without_formulas(narrowed(folded)), more
    folded, more = _shorter(graph, simple, elements, columns)
    if elements and len(folded.nodes) > KERNEL:
        folded, more = _shorter(graph, simple, False, columns)
    return (graph if folded is simple and len(graph.nodes) < NODES else folded), more


def _with_tables(graph: Graph, fewest: int, columns: Columns | None = None) -> tuple[Graph, Columns]:
    """The graph with stretches of steps on elements as loops, and the columns of their tables."""
    columns = columns or []
    while (steps := element_steps(graph, fewest)) is not None:
        b = Builder()
        b.share_inputs(graph)
        target = FoldedGraph(b, graph, {v: b.symbol(v) for v in graph.inputs}, [*columns])
        for node in graph.nodes[: steps.start]:
            _copy(target, node)
        place_steps(target, steps)
        for node in graph.nodes[steps.end :]:
            _copy(target, node)
        graph, columns = prune(b.graph(graph.name, [target.at(v) for v in graph.outputs])), target.columns
    return graph, columns


def _copy(target: FoldedGraph, node: Node) -> None:
    """Take a node over."""
    outs = target.b.copy_node(node, [target.at(v).value for v in node.inputs])
    target.env.update(zip(node.outputs, outs, strict=True))


def _shorter(graph: Graph, simple: Graph, elements: bool, columns: Columns) -> tuple[Graph, Columns]:
    """The folded simple graph; the folded graph as it was traced if that is much shorter.

    Simplified, steps may differ that are alike: a read of an element looks past some writes, not past all. In C, inner
    loops that are written out in each step count, too; what repeats itself after fewer operations is tried first.
    """
    if graph.prims[setitem] < COPIES:
        return _folded(simple, elements, columns, FEW)
    traced = quotients(graph)
    first, second = sorted([simple, traced], key=_shortest_period) if elements else (simple, traced)
    found = {first: _folded(first, elements, columns, FEW)}
    short = found[first][0]
    if _size(short) < FEW if elements else 2 * len(short.nodes) <= len(simple.nodes):
        return found[first]
    found[second] = _folded(second, elements, columns, FEW)
    much = 2 * _size(found[traced][0]) <= _size(found[simple][0])
    return found[traced if much else simple]


def _shortest_period(graph: Graph) -> int:
    return min((period for _, period, _ in repeating(graph)), default=len(graph.nodes))


def _size(graph: Graph) -> int:
    """How many nodes a graph and its bodies have."""
    return sum(1 for _ in walk(graph))


def _on_slices(graph: Graph) -> int:
    """How many operations on slices of different lengths are in no loop."""
    return sum(node.prim in ON_SLICES for node in graph.nodes)


def _folded(graph: Graph, elements: bool, columns: Columns, least: int) -> tuple[Graph, Columns]:
    """The graph with its loops of at least so many nodes folded, while it becomes smaller; then loops of such loops."""
    while len(graph.nodes) >= least:
        for found in dict.fromkeys([graph, alike_bodies(graph)]):
            rolled, more = _rolled(found, columns, elements, least)
            smaller = prune(join_rows(rolled))
            if len(smaller.nodes) < len(graph.nodes):
                graph, columns = smaller, more
                break
        else:  # for example if all steps of a loop are read one by one
            break
    return graph, columns


def _rolled(graph: Graph, columns: Columns, elements: bool, least: int) -> tuple[Graph, Columns]:
    """Fold the loops of a graph whose last inputs are columns of numbers; the new graph and its columns."""
    finder = Finder(complete(graph), elements, least)
    loops = {loop.start: loop for loop in finder.loops()}
    if not loops:
        return graph, [*columns]
    graph = finder.graph
    b = Builder()
    b.share_inputs(graph)
    target = FoldedGraph(b, graph, {v: b.symbol(v) for v in graph.inputs}, [*columns])
    nodes, i = finder.nodes, 0
    while i < len(nodes):
        if i in loops:
            loop = loops[i]
            copies = [nodes[k : k + loop.period] for k in range(loop.start, loop.end, loop.period)]
            _place(target, loop, copies)
            i = loop.end
            continue
        _copy(target, nodes[i])
        i += 1
    return b.graph(graph.name, [target.at(v) for v in graph.outputs]), target.columns


class _LoopBody:
    """The body of a loop: the nodes of a copy, with operands from inputs instead of other copies."""

    def __init__(self, target: FoldedGraph, loop: Loop, nodes: Sequence[Node], held: Sequence[tuple[int, int]]) -> None:
        self.target, self.loop = target, loop
        self.b = Builder()
        constants = {v: self.b.input(v.aval, v.hint) for v in loop.constants}
        self.before = FoldedGraph(self.b, target.graph, constants, [])
        self.rows = {r: [self._like(nodes, r.slot, r.out) for _ in range(r.back)] for r in loop.registers}
        for slot, out in held:
            self._like(nodes, slot, out)
        self.values = {(slot, 0): self._like(nodes, slot, 0) for slot in loop.reads}
        self.read = {row: self.b.input(row[0].aval, row[0].hint) for row in loop.rows}
        self.columns = {c: self.b.input(Aval((), c[0].aval.dtype, "scalar")) for c in loop.columns}
        number = Aval((), INT, "scalar")
        at = {c: self.b.input(number) for c in loop.distinct_places()}
        self.places = {s: {k: at[c.tobytes()] for k, c in places.items()} for s, places in loop.places.items()}
        for slot, node in enumerate(nodes):
            if slot in loop.writes:
                self.values[slot, 0] = self._operand(slot, 1, node)
            elif slot not in loop.reads:
                self._copy(slot, node)

    def _like(self, nodes: Sequence[Node], slot: int, out: int) -> Symbol:
        value = nodes[slot].outputs[out]
        return self.b.input(value.aval, value.hint)

    def _copy(self, slot: int, node: Node) -> None:
        ins = [self._operand(slot, i, node).value for i in range(len(node.inputs))]
        attrs = dict(node.attrs)
        if slot in self.places:
            attrs["index"] = _with_operands(node.attrs["index"], self.places[slot], len(ins))
            ins += [x.value for x in self.places[slot].values()]
        self.b.where, self.b.replica = node.where, node.replica
        outs = self.b.emit(node.prim, ins, attrs, [v.hint for v in node.outputs])
        self.b.replica = 0
        self.values.update({(slot, k): x for k, x in enumerate(outs)})

    def _operand(self, slot: int, i: int, node: Node) -> Symbol:
        source, aval = self.loop.sources[slot, i], node.inputs[i].aval
        if isinstance(source, Register):
            return self.rows[source][-1]
        if isinstance(source, Value):
            return self.before.at(source)
        if source in self.read:
            return self.read[source]
        if source in self.columns:
            x = self.columns[source]
            return x if aval.kind == "scalar" else broadcast_to(x, aval.shape)
        return self.values[source]

    def carry(self) -> list[Symbol]:
        """The values of the registers after the step."""
        return [x for r, row in self.rows.items() for x in (self.values[r.slot, r.out], *row[:-1])]


def _place(target: FoldedGraph, loop: Loop, copies: Sequence[Sequence[Node]]) -> None:
    """Put the loop into the new graph, and name the values that are read after it."""
    b, nodes = target.b, copies[0]
    b.where = nodes[0].where
    registers = list(loop.registers)
    carried = {(r.slot, r.out) for r in registers}
    held = [key for key in loop.final if key not in loop.collected and key not in carried]
    step = _LoopBody(target, loop, nodes, held)
    ys = [step.values[slot, 0] for slot in loop.writes] + [step.values[key] for key in loop.collected]
    carry = step.carry()
    body = step.b.graph("body", [*carry, *(step.values[key] for key in held), *ys])
    operands = [
        *map(target.at, loop.constants),
        *(target.at(v) for r in registers for v in reversed(r.first)),
        *(b.zeros(step.values[key].aval) for key in held),
        *(_laid_out(target, nodes[slot], places) for slot, places in loop.reads.items()),
        *(_laid_out(target, node, places) for node, places in loop.rows.values()),
        *map(target.numbers, loop.columns.values()),
        *map(target.numbers, loop.distinct_places().values()),
    ]
    parts = Layout(len(loop.constants), len(carry) + len(held), len(ys))
    b.where = loop_line(lines_of(nodes), _lines(target.graph)) or nodes[0].where
    ended, arrays, _ = make_scan(b, body, parts, operands, loop.copies, False)
    rows = accumulate((r.back for r in registers), initial=0)
    final = {(r.slot, r.out): ended[row] for r, row in zip(registers, rows, strict=False)}
    final |= dict(zip(held, ended[len(carry) :], strict=True))
    target.env.update({copies[-1][slot].outputs[out]: x for (slot, out), x in final.items()})
    _write(target, loop, copies, arrays[: len(loop.writes)])
    for (slot, out), y in zip(loop.collected, arrays[len(loop.writes) :], strict=True):
        b.where = nodes[slot].where
        target.env.update({copy[slot].outputs[out]: getitem(y, index=(k,)) for k, copy in enumerate(copies)})


def _lines(graph: Graph) -> frozenset[Where]:
    found: frozenset[Where] = graph.once("lines of nodes", lambda: lines_of(graph.nodes))
    return found


def _write(target: FoldedGraph, loop: Loop, copies: Sequence[Sequence[Node]], arrays: Sequence[Symbol]) -> None:
    """Emit the writes of all copies at once."""
    for (slot, counting), y in zip(loop.writes.items(), arrays, strict=True):
        node, b = copies[0][slot], target.b
        axis = axis_of(node.attrs["index"], counting.position)
        index = _along(node.attrs["index"], *counting, loop.copies)
        b.where = node.where
        moved = move_axis(y, 0, axis)
        if width(node.attrs["index"][counting.position]):
            moved = reshape_to(moved, (*moved.shape[:axis], loop.copies * counting.step, *moved.shape[axis + 2 :]))
        base = target.at(node.inputs[0])
        target.env[copies[-1][slot].out] = b.emit(node.prim, (base.value, moved.value), {"index": index})[0]


def _along(index: tuple[Any, ...], position: int, first: int, step: int, copies: int) -> tuple[Any, ...]:
    """The index of all copies: a slice in place of the int, or of consecutive slices."""
    stop: int | None = first + step * copies
    if stop is not None and (stop >= 0) != (first >= 0):  # it counted to the end of the axis
        stop = None
    whole = slice(first, stop, None if step == 1 or width(index[position]) else step)
    return (*index[:position], whole, *index[position + 1 :])


def _with_operands(index: tuple[Any, ...], positions: Iterable[int], first: int) -> tuple[Any, ...]:
    """The index with operands at some positions; their numbers count from ``first``."""
    at = {position: Arg(first + k) for k, position in enumerate(positions)}
    return tuple([at.get(k, item) for k, item in enumerate(index)])


def _laid_out(target: FoldedGraph, node: Node, places: Places) -> Symbol:
    """The parts that the copies read, along a first axis: a slice, or a gather if leading positions differ."""
    index, x = node.attrs["index"], target.at(node.inputs[0])
    target.b.where = node.where
    counting = moving(index, places)
    if counting is not None:
        axis, copies = axis_of(index, counting.position), len(places[counting.position])
        part = getitem(x, index=_along(index, *counting, copies))
        if width(index[counting.position]):
            part = reshape_to(part, (*part.shape[:axis], copies, counting.step, *part.shape[axis + 1 :]))
        return move_axis(part, axis, 0)
    ints = [column % x.shape[k] for k, column in places.items()]
    if width(index[0]):
        ints = [ints[0][:, None] + np.arange(width(index[0]))]
    unique = len(set(zip(*(column.flat for column in ints), strict=True))) == ints[0].size
    columns = [target.numbers(column) for column in ints]
    gathered: Symbol = gather(x, *columns, index=_with_operands(index, places, 1), **once(unique))
    return gathered
