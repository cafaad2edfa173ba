"""Put steps on single elements into the graph as one loop, over a table of their kinds, places and numbers.

Each iteration reads from all arrays at the places of the table, chooses what its kind computes of these numbers, and
writes one element into each state. What a kind does not read is the first element of its array, and what it does not
write stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol, attr_key
from ...ir.graph import Graph, Value
from ...ir.python_loops import lines_of, loop_line
from ...ir.structure import Layout
from ...ir.texts import Arg
from ...ir.types import Aval
from ...ops.gather import INT
from ...ops.index import getitem, setitem
from ...ops.shape import reshape_to
from ...ops.structural.cond import make_cond
from ...ops.structural.loops import make_scan
from .element_steps import (
    EarlierResult,
    ElementRead,
    ElementStep,
    ElementSteps,
    LocalResult,
    Operand,
    StepKind,
    StepNumber,
    scalars_of,
)
from .folded_graph import FoldedGraph

Array = int | Value
Slot = tuple[Array, int]  # an array, and which of the reads from it


class _Table:
    """The columns of the table, and for each kind where its operands are in them."""

    def __init__(self, found: ElementSteps) -> None:
        self.found = found
        self.kinds = np.array([step.kind for step in found.steps])
        self.written = np.zeros((len(found.states), len(found.steps)), INT)
        self.places: dict[Slot, np.ndarray[Any, Any]] = {}
        self.columns: dict[tuple[Aval, int], np.ndarray[Any, Any]] = {}  # of numbers
        self.constants: dict[tuple[int, int], Any] = {}  # numbers that all steps of a kind have
        self.slots: dict[tuple[int, int], Slot | int] = {}  # by kind and read; of what is overwritten: the state
        self.numbers: dict[tuple[int, int], tuple[Aval, int]] = {}  # by kind and number
        self.outer: dict[Value, None] = {}  # numbers that exist before the loop
        for number, kind in enumerate(found.kinds):
            at = np.flatnonzero(self.kinds == number)
            self._take(number, kind, at, [found.steps[k] for k in at])

    def _take(self, number: int, kind: StepKind, at: np.ndarray[Any, Any], steps: Sequence[ElementStep]) -> None:
        """Put what the steps of a kind read, and their numbers, into the columns."""
        written = np.array([step.written for step in steps])
        if kind.state >= 0:
            self.written[kind.state, at] = written
        reads: dict[Array, int] = {}
        numbers: dict[Aval, int] = {}
        for operand in dict.fromkeys(o for k in needed_by(kind) for o in kind.operands[k]):
            if isinstance(operand, ElementRead):
                places = np.array([step.reads[operand.place] for step in steps])
                if operand.array == kind.state and (places == written).all():
                    self.slots[number, operand.place] = kind.state
                    continue
                slot = operand.array, reads.setdefault(operand.array, 0)
                reads[operand.array] += 1
                self.slots[number, operand.place] = slot
                self.places.setdefault(slot, np.zeros(len(self.kinds), INT))[at] = places
            elif isinstance(operand, StepNumber):
                values = [step.numbers[operand.place] for step in steps]
                if len({attr_key(x) for x in values}) == 1:
                    self.constants[number, operand.place] = values[0]
                    continue
                column = operand.aval, numbers.setdefault(operand.aval, 0)
                numbers[operand.aval] += 1
                self.numbers[number, operand.place] = column
                self.columns.setdefault(column, np.zeros(len(self.kinds), operand.aval.dtype))[at] = values
            elif isinstance(operand, Value):
                self.outer[operand] = None


def needed_by(kind: StepKind) -> list[int]:
    """The positions of the nodes that a kind needs for what it writes and defines."""
    needed = {*kind.defines} | ({len(kind.nodes) - 1} if kind.state >= 0 else set())
    for position in range(len(kind.nodes) - 1, -1, -1):
        if position in needed:
            needed.update(o.position for o in kind.operands[position] if isinstance(o, LocalResult))
    return sorted(needed)


def place_steps(target: FoldedGraph, found: ElementSteps) -> None:
    """Put the loop into the new graph, and name the values that are read after it."""
    b, table, graph = target.b, _Table(found), target.graph
    nodes = [kind.nodes[-1] for kind in found.kinds]
    b.where = nodes[0].where
    arrays = list(dict.fromkeys(array for array, _ in table.places if isinstance(array, Value)))
    kinds = table.kinds.astype(bool) if len(found.kinds) == 2 else table.kinds
    body = _body(table, arrays)
    carry = [*(_flat(target.at(v)) for v in found.states), *(b.zeros(aval) for aval in found.variables)]
    operands = [
        *(_flat(target.at(v)) for v in arrays),
        *map(target.at, table.outer),
        *carry,
        *map(target.numbers, [kinds, *table.written, *table.places.values(), *table.columns.values()]),
    ]
    b.where = loop_line(lines_of(nodes), lines_of(graph.nodes)) or nodes[0].where
    parts = Layout(len(arrays) + len(table.outer), len(carry))
    ended, _, _ = make_scan(b, body, parts, operands, len(found.steps), False)
    for v, x in zip(found.last, ended, strict=False):
        target.env[v] = reshape_to(x, v.aval.shape)
    target.env.update({v: ended[len(found.states) + k] for v, k in found.held.items()})


def _flat(x: Symbol) -> Symbol:
    flat: Symbol = reshape_to(x, (x.aval.size,))
    return flat


def _body(table: _Table, arrays: Sequence[Value]) -> Graph:
    """One iteration."""
    inner, found = Builder(), table.found

    def inputs(avals: Iterable[Aval]) -> list[Symbol]:
        return [inner.input(aval) for aval in avals]

    def elements(x: Symbol, place: Symbol) -> Symbol:
        element: Symbol = getitem(x, place, index=(Arg(1),))
        return element

    def vectors(values: Sequence[Value]) -> list[Aval]:
        return [Aval((v.aval.size,), v.aval.dtype) for v in values]

    whole: dict[Array, Symbol] = dict(zip(arrays, inputs(vectors(arrays)), strict=True))
    outer = inputs(v.aval for v in table.outer)
    states = inputs(vectors(found.states))
    whole.update(enumerate(states))
    variables = inputs(found.variables)
    number = Aval((), INT, "scalar")
    kind = inner.input(Aval((), np.dtype(bool), "scalar") if len(found.kinds) == 2 else number)
    written = inputs([number] * len(states))
    places = inputs([number] * len(table.places))
    columns = inputs(Aval((), aval.dtype, "scalar") for aval, _ in table.columns)
    read = [elements(whole[array], place) for (array, _), place in zip(table.places, places, strict=True)]
    old = [elements(x, place) for x, place in zip(states, written, strict=True)]
    given = [*read, *old, *outer, *columns, *variables]
    branches = [_branch(table, k, [x.aval for x in given]) for k in range(len(found.kinds))]
    new = make_cond(inner, kind, branches, given)
    changed = [setitem(x, value, place, index=(Arg(2),)) for x, value, place in zip(states, new, written, strict=False)]
    return inner.graph("body", [*changed, *new[len(states) :]])


def _branch(table: _Table, number: int, avals: Sequence[Aval]) -> Graph:
    """What one kind computes: an element for each state, and the variables."""
    b, kind, states = Builder(), table.found.kinds[number], len(table.found.states)
    given = iter([b.input(aval) for aval in avals])
    read = {slot: next(given) for slot in table.places}
    old = [next(given) for _ in range(states)]
    outer = {v: next(given) for v in table.outer}
    columns = {column: next(given) for column in table.columns}
    variables = list(given)
    made: dict[int, Symbol] = {}

    def operand(o: Operand, aval: Aval) -> Symbol:
        if isinstance(o, ElementRead):
            slot = table.slots[number, o.place]
            x = old[slot] if isinstance(slot, int) else read[slot]
        elif isinstance(o, LocalResult):
            x = made[o.position]
        elif isinstance(o, StepNumber):
            if (number, o.place) in table.constants:
                return b.constant(table.constants[number, o.place], o.aval)
            x = columns[table.numbers[number, o.place]]
        else:
            x = variables[kind.takes[o.place]] if isinstance(o, EarlierResult) else outer[o]
        return b.coerce(x, aval)

    for position in needed_by(kind):
        node, operands = kind.nodes[position], kind.operands[position]
        ins = [operand(o, v.aval) for o, v in zip(operands, scalars_of(node), strict=True)]
        b.where, b.replica = node.where, node.replica
        read_or_written = node.prim in (getitem, setitem)
        made[position] = ins[0] if read_or_written else b.emit(node.prim, [x.value for x in ins], node.attrs)[0]
        b.replica = 0
    outs = [*old, *variables]
    for position, variable in kind.defines.items():
        outs[states + variable] = made[position]
    if kind.state >= 0:
        outs[kind.state] = b.coerce(made[len(kind.nodes) - 1], old[kind.state].aval)
    return b.graph(f"step_{number}", outs)
