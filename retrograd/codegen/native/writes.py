"""Writes into arrays that have storage: at positions that data decide, and long chains of them at known slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...ir.graph import Graph, Node, Value
from .c_texts import SIMD
from .decided_formulas import is_formula_write
from .decided_places import WRITES, places
from .decided_slices import add_slice, is_ragged_sum
from .elements import CVariables, StandsFor
from .formula_writer import FormulaWriter
from .grouping import Place
from .indices import AxisIndex, CArray, CNumber, Indices, at, count, extents
from .late_sums import LateSumWriter
from .overwriting import Writes, known_places, writes_in_place
from .row_sums import add_parts, joined
from .states_in_place import overwrite


class WriteWriter(LateSumWriter):
    """Also writes what changes some elements of an array."""

    def __init__(self, stored: set[Value], name: str) -> None:
        super().__init__(stored, name)
        self.writes: dict[Graph, Writes] = {}
        self.there: dict[Value, Place] = {}  # where results of chains stand

    def in_order(self, graph: Graph, placed: set[Value]) -> list[Value | Node]:
        """The roots of a graph, with slices of what later writes change."""
        while True:
            roots = self._roots(graph, placed)
            if self.chained.isdisjoint(graph.nodes):
                return roots
            found = self.writes[graph] = writes_in_place(graph, self.chained, roots)
            if not found.wanted:
                return roots
            self.stored |= found.wanted

    def write_at(self, node: Node, want: dict[Value, list[Any]]) -> None:
        """Write the elements of an array at positions, one after the other: a position may be there twice."""
        base = node.inputs[0]
        array = self.overwritten(node, base)
        if array is None:
            own = next((array for array, lead in filter(is_place, want.get(node.out, ())) if not lead), None)
            array = own or self.stack_or_workspace(node.out)
            self.fill(base, array)
        if is_ragged_sum(node):
            add_slice(self, node, array)
        elif is_formula_write(node):
            FormulaWriter(self, node).write(array)
        else:
            nodes = joined(self, self.graph, node, self.todo)
            if len(nodes) == 1:
                self._write_elements(node, array)
            else:
                add_parts(self, nodes, array)
            node = nodes[-1]
            self.pending.discard(node.out)
        self.held[node.out] = array
        self.home[node.out] = len(self.blocks) - 1
        self.deliver(node.out, want)

    def overwritten(self, node: Node, base: Value) -> CArray | None:
        """Where an array stands that the node may change; numbers of it that are read later are read now."""
        found, held = overwrite(self.graph, node, base, self.bases, self.stored), self.held.get(base)
        if found is None or found.wanted or not isinstance(held, CArray):
            return None
        for number in found.numbers:
            self._read_now(number)
        return held

    def _read_now(self, number: Value) -> None:
        """Read the one element of a value; all that read it later get what it is now, at any index."""
        shape = extents(number)
        name = self.pull(number, tuple(at(0) for _ in shape))
        if shape and number not in self.held:
            self.held[number] = CNumber(name, shape, number.aval.dtype)

    def formula_value(self, node: Node, want: dict[Value, list[Any]]) -> None:
        """Write the value of a formula."""
        formula = FormulaWriter(self, node)
        if not node.out.aval.shape:
            self.held[node.out] = CVariables((formula.number(),))
            self.home[node.out] = len(self.blocks) - 1
            return
        array = self._standing(node.out, node.out, want)
        formula.value(array)
        self.held[node.out] = array
        self.home[node.out] = len(self.blocks) - 1
        self.deliver(node.out, want)

    def _write_elements(self, node: Node, array: CArray) -> None:
        new = node.inputs[1]
        index = tuple(AxisIndex(self.fresh("z")) for _ in new.aval.shape)
        operator = WRITES[node.prim.name]
        self._everywhere(
            index,
            new.aval.shape,
            lambda: self.line(f"{array.at(places(self, node, index))} {operator} {self.pull(new, index)};"),
        )

    def write_known(self, node: Node, want: dict[Value, list[Any]]) -> None:
        """Write a part of an array, where it stands if nobody needs what was there."""
        (base, new), writes = node.inputs, self.writes[self.graph]
        if node in writes.numbers:
            array = self.held[base]
            assert isinstance(array, CArray)
            for number in writes.numbers[node]:
                self.pull(number, ())
        else:
            array = self._standing(node.out, writes.last.get(node, node.out), want)
            self.fill(base, array)
        index = tuple(AxisIndex(self.fresh("z")) for _ in new.aval.shape)
        operator = WRITES[node.prim.name]

        def write() -> None:
            text = self.pull(new, index)
            self.line(f"{array.at(known_places(node, index))} {operator} {text};")

        self._everywhere(index, new.aval.shape, write, SIMD)
        self.held[node.out] = array
        self.home[node.out] = len(self.blocks) - 1
        self.deliver(node.out, want)

    def _standing(self, value: Value, last: Value, want: dict[Value, list[Any]]) -> CArray:
        """Storage of a value: where the ``last`` state of it is wanted, if anywhere."""
        own = next(filter(is_place, want.get(last, ())), None)
        if own is None:
            return self.stack_or_workspace(value)
        self.there[last] = own
        return self.part_of(own, value)

    def _everywhere(self, index: Indices, shape: Sequence[int], body: Callable[[], None], pragma: str = "") -> None:
        """Loops over all elements of a shape, the innermost one with a pragma."""
        if not index:
            body()
            return
        inner = "" if len(index) > 1 else pragma
        self.loop(str(index[0].var), shape[0], lambda: self._everywhere(index[1:], shape[1:], body, pragma), inner)

    def fill(self, source: Value, array: CArray) -> None:
        """Write all elements of a value into an array."""
        held = self.held.get(source)
        while isinstance(held, StandsFor) and not held.lead:
            held = self.held.get(held.value)
        if isinstance(held, CArray) and held.whole and array.whole and source not in self.pending:
            self.line(f"memcpy({array.name}, {held.name}, sizeof(*{array.name}) * {math.prod(array.shape)});")
            return
        index = tuple(AxisIndex(self.fresh("z")) for _ in array.shape)
        self._everywhere(index, array.shape, lambda: self.line(f"{array.at(index)} = {self.pull(source, index)};"))

    def deliver(self, out: Value, want: dict[Value, list[Any]]) -> None:
        """Copy a result of the loop to where it is wanted, if it does not stand there."""
        held = self.held[out]
        if not isinstance(held, CArray):
            return
        for place in filter(is_place, want.get(out, ())):
            array, lead = place
            target = array.at((*lead, *[at(0)] * (len(array.shape) - len(lead))))
            if held.name != array.name and place is not self.there.get(out):
                self.line(f"memcpy(&{target}, {held.name}, sizeof(*{held.name}) * {count(out)});")
            self.done.add(out)


def is_place(place: Any) -> bool:
    """Whether a result goes to a place, and not into names."""
    return isinstance(place, tuple)
