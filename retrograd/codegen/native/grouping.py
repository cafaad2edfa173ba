"""Which values get storage, and which of them share loops.

Storage have results, reductions over more than a few elements, the operands and results of loops, and costly values
that several loops read. These are roots. Roots over one space share a nest. A nest that reads another one at the same
outermost index alone goes into the same outermost loop, row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import loop_of
from .c_texts import text_of
from .choices import is_choice
from .decided_formulas import is_formula_value
from .decided_places import writes_at
from .decided_slices import is_ragged_product
from .elements import FEW, SHORT, NeedsStorage, StandsFor
from .indices import AxisIndex, CArray, CNumber, Indices, at, c_type, count, extents, packed
from .overwriting import long_chains
from .pieces import made_of_pieces, stored_between_pieces
from .prices import LOCAL, PricedWriter

COUNTS = frozenset({"add", "mul", "sub"})  # what makes integers that count of others
OUTERMOST = AxisIndex("q0")  # where reads are found out

Place = tuple[CArray, Indices]
Stages = list[list[Value]]
PulledBy = dict[Value, dict[tuple[int, int], set[Indices]]]  # by the group and the stage


class RootGroups(PricedWriter):
    """Finds the roots of a graph, their groups, and their storage."""

    def __init__(self, stored: set[Value]) -> None:
        super().__init__(stored)
        self.workspaces: list[tuple[str, str, int]] = []  # their types, names and numbers of elements
        self.growing: list[str] = []  # arrays for as many steps as there are
        self.graph = Graph("", (), (), ())  # what is being written
        self.bases: set[Value] = set()  # carries that writes change in their place
        self.foreign: set[Value] = set()  # results of a body that the body does not compute
        self.done: set[Value] = set()  # results that stand where they are wanted
        self.target: dict[Value, CArray] = {}  # where roots are written
        self.unordered: dict[str, str] = {}  # of totals of extrema, the variables that know of nan
        self.readers: dict[Value, list[tuple[int, bool]]] = {}
        self.chained: set[Node] = set()  # writes into arrays that have storage, one after the other
        self.groups: dict[Graph, list[Node | Stages]] = {}  # as they are written, one after the other
        self.read_by: dict[Value, list[tuple[Value, Indices]]] = {}  # what roots read, with indices q0, q1, ...
        self.plain: set[Value] = set()  # roots whose elements are all computed in the same way

    def _stands_alone(self, node: Node) -> bool:
        """Whether a node shares loops with no other."""
        decided = writes_at(node) or is_ragged_product(node) or is_formula_value(node)
        return decided or is_choice(node) or node in self.chained

    def _few(self, value: Value) -> bool:
        return count(value) <= FEW and value not in self.stored

    def store_between_pieces(self, graph: Graph) -> None:
        """Store what is made of pieces where it would be computed again and again."""
        self.chained |= long_chains(graph)
        self.stored |= stored_between_pieces(graph, self.stored, self.chained)

    def in_order(self, graph: Graph, placed: set[Value]) -> list[Value | Node]:
        """The roots of a graph, as they are written one after the other."""
        return self._roots(graph, placed)

    def _roots(self, graph: Graph, placed: set[Value]) -> list[Value | Node]:
        needed = set(graph.outputs)
        live = set()
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.outputs):
                live.add(node)
                needed.update(node.inputs)
        roots: list[Value | Node] = []
        for node in graph.nodes:
            if node not in live:
                continue
            if (loop := loop_of(node)) is not None:
                consts, _, rows = loop.layout.operands(loop.operands)
                for x in (*consts, *rows):
                    self._hold_ready(graph, x, pieces=x in rows)
                roots.append(node)
                continue
            if self._stands_alone(node):
                roots.append(node)
                continue
            reduces = self.reduces(node.out)
            stored = node.out in self.stored and node.prim.name != "const"
            if reduces or stored or (node.out in placed and count(node.out) > SHORT):
                roots.append(node.out)
        return [*roots, *(v for v in graph.outputs if v in self.foreign)]

    def _hold_ready(self, graph: Graph, value: Value, pieces: bool) -> None:
        """The operand of a loop is computed once, and not at each step, if it costs anything or has ``pieces``."""
        node = graph.producer.get(value)
        if node is not None and _numbers_steps(graph, node):
            return
        if node is not None and count(value) > FEW and value.aval.steps is None and value not in self.stored:
            text = text_of(node)
            if text is not None and text.c:
                raise NeedsStorage(value)
        made = made_of_pieces(graph, value, self._has_storage) if pieces else None
        if made is not None:
            raise NeedsStorage(made)

    def _has_storage(self, node: Node) -> bool:
        out = node.outputs[0]
        return node.prim.multi or out in self.stored or self.reduces(out) or self._stands_alone(node)

    # spaces

    def reduces(self, value: Value) -> bool:
        """Whether a value is a reduction with loops of its own."""
        node = self.made.get(value)
        text = None if node is None or value in self.foreign else text_of(node)
        if node is None or text is None or text.fold is None:
            return False
        return math.prod(node.inputs[0].aval.shape[a] for a in node.attrs["axis"]) > SHORT or value in self.stored

    def space(self, value: Value) -> tuple[int, ...]:
        """The extents of the loops that compute a value."""
        return self.made[value].inputs[0].aval.shape if self.reduces(value) else extents(value)

    def kept(self, value: Value) -> list[int]:
        """The axes of the space that the value has."""
        gone = self.made[value].attrs["axis"] if self.reduces(value) else ()
        return [a for a in range(len(self.space(value))) if a not in gone]

    def place(self, value: Value, index: Indices) -> Indices:
        """Where in the value a point of the space belongs."""
        if not self.reduces(value):
            return index
        kept = self.kept(value)
        if self.made[value].attrs["keepdims"]:
            return tuple(i if a in kept else at(0) for a, i in enumerate(index))
        return tuple(index[a] for a in kept)

    def element(self, value: Value, index: Indices) -> str:
        """What is stored, or added up, at a point of the space."""
        if self.reduces(value):
            return self.folded(self.made[value], index)
        if value in self.foreign:
            return self.pull(value, index)
        held = self.held.pop(value, None)
        pending = value in self.pending
        self.pending.discard(value)
        try:
            return self.pull(value, index)
        finally:
            if held is not None:
                self.held[value] = held
            if pending:
                self.pending.add(value)

    # groups

    def _grouped(self, graph: Graph, roots: list[Value | Node]) -> list[Node | Stages]:
        self.pending |= {r for r in roots if isinstance(r, Value) and r not in self.foreign}
        self.pending |= {v for r in roots if isinstance(r, Node) for v in r.outputs}
        self.prices = {}
        groups: list[Any] = []  # loops, and stages of roots
        where: dict[Value, int] = {}
        loops: PulledBy = {}
        known: dict[Any, str] = {}  # what chained writes compute outside of their loops, as one after the other does
        beyond: set[Value] = set()  # values of which a loop reads the same elements in each row
        for root in roots:
            if isinstance(root, Node):
                for x in root.inputs:
                    for below in self._pending_below(x):
                        self.readers.setdefault(below, []).append((len(groups), False))
                where.update(dict.fromkeys(root.outputs, len(groups)))
                if root in self.chained and root.inputs[1] in graph.producer and root.inputs[1] not in self.pending:
                    self._reads(root.inputs[1], known)
                    self._note_reads(root.inputs[1], (len(groups), 0), loops, beyond)
                groups.append(root)
                continue
            if root in self.foreign:
                for below in self._pending_below(root):
                    self.readers.setdefault(below, []).append((len(groups), False))
                groups.append([[root]])
                continue
            reads = [(v, index) for v, index in self._reads(root) if v is not root]
            self.read_by[root] = reads
            own = where[root] = self._join(groups, where, root, reads)
            for v, index in reads:
                self.readers.setdefault(v, []).append((own, self._in_row(v, index)))
            self._note_reads(root, (own, len(groups[own]) if len(self.space(root)) > 1 else 0), loops, beyond)
        for v in graph.outputs:  # small ones are pulled at the end
            for below in self._pending_below(v) if v not in self.pending else ():
                self.readers.setdefault(below, []).append((len(groups), False))
        order = {v: k for k, node in enumerate(graph.nodes) for v in node.outputs}
        costly = []
        for v in sorted(loops.keys() & order.keys(), key=order.__getitem__):
            if self.costly(v, loops[v], v in beyond):
                costly.append(v)
                self.pending.add(v)
                self.prices = {}  # what reads it costs less
        if costly:
            raise NeedsStorage(*costly)
        self.groups[graph] = groups
        return groups

    def _note_reads(self, root: Value, own: tuple[int, int], loops: PulledBy, beyond: set[Value]) -> None:
        """Note what the ``own`` loop of a root computes inside of it."""
        space = self.space(root)
        for v, indices in self.pulled.items():
            inner = {k for k in indices if len(space) == 1 or any(_inner(i) for i in k)}
            again = [k for k in inner if _again(k, space)]
            if again:
                inner.add(())  # one more use
            if any(OUTERMOST not in k for k in again):
                beyond.add(v)
            if inner:
                loops.setdefault(v, {}).setdefault(own, set()).update(map(_without_numbers, inner))

    def _join(self, groups: list[Any], where: dict[Value, int], root: Value, reads: list[Any]) -> int:
        """Put a root into the last group, or into that of what it reads if it reads that row by row; else into its own.

        Steps of loops write where others may still read, so their groups keep the order of the roots.
        """
        last, made = len(groups) - 1, max((where[v] for v, _ in reads if v in where), default=-1)
        moves = not self.groups and 0 in self.kept(root)  # the groups of the kernel come before those of bodies
        for own in dict.fromkeys([last, made]) if moves else [last]:
            if own >= made and own >= 0 and self._fits(groups[own], root, [r for r in reads if where.get(r[0]) == own]):
                stage, space = groups[own][-1], self.space(root)
                waits = any(v in stage and not self._at_point(v, index, space) for v, index in reads)
                if self.space(stage[0]) == space and not waits:
                    stage.append(root)
                else:
                    groups[own].append([root])
                return own
        groups.append([[root]])
        return len(groups) - 1

    def _fits(self, group: Node | Stages, root: Value, reads: list[Any]) -> bool:
        """Whether a group has rows like those of a root, which reads of it what belongs to its own row."""
        if isinstance(group, Node) or group[0][0] in self.foreign or not self.space(root):
            return False
        space, first = self.space(root), self.space(group[0][0])
        alike = bool(first) and first[0] == space[0] > 1 and (len(space) == 1) == (len(first) == 1)
        return alike and all(self._in_row(v, index) for v, index in reads)

    def _reads(self, root: Value, known: dict[Any, str] | None = None) -> list[tuple[Value, Indices]]:
        """The values with storage that a root reads, and where; its indices are q0, q1, ...

        What is ``known`` outside of its loops is not pulled again.
        """
        space = self.space(root)
        names = [f"q{k}" for k in range(len(space))]
        blocks, self.blocks = self.blocks, [type(b)() for b in self.blocks]
        if known is not None:
            self.blocks[-1].memo = known
        self.reads, self.pulled = [], {}

        def nest(k: int) -> None:
            if k == len(space):
                self.element(root, tuple(AxisIndex(n) for n in names))
                if all(self.ranges[name] == (0, n) for name, n in zip(names, space, strict=True)):
                    self.plain.add(root)
            else:
                self.loop(names[k], space[k], lambda: nest(k + 1))

        try:
            nest(0)
            return self.reads
        finally:
            self.reads, self.blocks = None, blocks

    def _pending_below(self, value: Value) -> list[Value]:
        found: dict[Value, None] = {}
        seen: set[Value] = set()
        todo = [value]
        while todo:
            v = todo.pop()
            held, node = self.held.get(v), self.made.get(v)
            if v in seen:
                continue
            seen.add(v)
            if v in self.pending:
                found[v] = None
            elif isinstance(held, StandsFor):
                todo.append(held.value)
            elif held is None and node is not None:
                todo += node.inputs
        return list(found)

    def _in_row(self, value: Value, index: Indices) -> bool:
        """Whether a read is at the outermost index at which the value is made."""
        return (
            value in self.made
            and loop_of(self.made[value]) is None
            and not self._stands_alone(self.made[value])
            and 0 in self.kept(value)
            and index[:1] == (OUTERMOST,)
        )

    def _at_point(self, value: Value, index: Indices, space: tuple[int, ...]) -> bool:
        return not self.reduces(value) and index == tuple(AxisIndex(f"q{k}") for k in range(len(space)))

    # storage

    def _allot(self, groups: list[Node | Stages], want: dict[Value, list[Any]]) -> None:
        for g, group in enumerate(groups):
            for root in () if isinstance(group, Node) else (r for stage in group for r in stage):
                self.target[root] = self._storage(root, g, groups, want.get(root, ()))
                if root not in self.foreign:
                    self.held[root] = self.target[root]

    def _storage(self, root: Value, g: int, groups: list[Any], places: Sequence[Any]) -> CArray:
        shape = extents(root)
        own = next((place for place in places if isinstance(place, tuple)), None)
        if own is not None:
            return self.part_of(own, root)
        if math.prod(shape) == 1:
            return self._number(root)
        used = self.readers.get(root, [])
        rows = len(self.space(groups[g][0][0])) > 1 and 0 in self.kept(root)
        if rows and used and all(k == g and row for k, row in used) and not places:
            return self.row_storage(root, groups[g][0][0])
        return self.stack_or_workspace(root)

    def row_storage(self, root: Value, first: Value) -> CArray:
        """Storage for a row of a value, in a nest that begins with the root ``first``."""
        shape = extents(root)
        n = count(root) // shape[0]
        return self._number(root) if n == 1 else row_at_a_time(self.local(root, n), shape, root.aval.dtype)

    def _number(self, root: Value) -> CNumber:
        name = self.fresh("s", c_type(root.aval.dtype))
        self.line(f"{c_type(root.aval.dtype)} {name};")
        return CNumber(name, extents(root), root.aval.dtype)

    def part_of(self, place: Place, value: Value) -> CArray:
        """The place of a value as an array."""
        (array, lead), shape = place, extents(value)
        if not lead:
            return array
        name = self.fresh("row", f"{c_type(array.dtype)} *restrict")
        start = array.at((*lead, *[at(0)] * (len(array.shape) - len(lead))))
        self.line(f"{c_type(array.dtype)} *restrict {name} = &{start};")
        return CArray(name, shape, array.dtype)

    def local(self, value: Value, n: int) -> str:
        """Storage on the stack, or a workspace if it is large."""
        if n > LOCAL * LOCAL:
            return self.workspace(value, (n,)).name
        name = self.fresh("s", f"{c_type(value.aval.dtype)} *restrict")
        self.line(f"{c_type(value.aval.dtype)} {name}[{n}];")
        return name

    def stack_or_workspace(self, value: Value) -> CArray:
        """Storage of an array."""
        shape = extents(value)
        if count(value) <= LOCAL:
            return CArray(self.local(value, count(value)), shape, value.aval.dtype)
        return self.workspace(value, shape)

    def workspace(self, value: Value, shape: tuple[int, ...]) -> CArray:
        """Storage that a call gets."""
        name = self.fresh("w", f"{c_type(value.aval.dtype)} *restrict")
        self.workspaces.append((c_type(value.aval.dtype), name, math.prod(shape)))
        return CArray(name, shape, value.aval.dtype)


def _numbers_steps(graph: Graph, node: Node) -> bool:
    """Whether a node is a vector of integers that count: a compiler knows more of their sums than of stored ones."""
    makers = [graph.producer.get(v) for v in node.inputs]
    if node.prim.name == "iota":
        return True
    if node.prim.name not in COUNTS or node.out.aval.dtype.kind != "i":
        return False
    return all(m is not None and (m.prim.name == "const" or _numbers_steps(graph, m)) for m in makers)


def row_at_a_time(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> CArray:
    """Storage that holds one row at a time."""
    return CArray(name, shape, dtype, (0, *packed(shape)[1:]))


def _inner(i: AxisIndex) -> bool:
    return i.var is not None and i.var != OUTERMOST.var and i.var[0] == "q"


def _without_numbers(index: Indices) -> Any:
    """An index without positions that are numbers: others there are other elements, none of which is computed twice."""
    return tuple([None if i.var is None else i for i in index])


def _again(index: Indices, space: tuple[int, ...]) -> bool:
    """Whether a loop outside of the index's innermost one computes the same element again."""
    own = {i.var for i in index}
    innermost = max((k for k in range(len(space)) if f"q{k}" in own), default=0)
    return any(space[k] > 1 and f"q{k}" not in own for k in range(innermost))
