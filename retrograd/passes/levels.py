"""levels: which operations on numbers of a graph depend on each other, and how many of one kind do not.

Values move through arrays: one is written into an element and read from there later. Here each element of an array has
a number of its own, and reads, writes and views only say which numbers are where. So a result depends on what computed
its operands, and on nothing else. Its level is one more than the highest of theirs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..ir.primitive import Primitive
from ..ir.types import Aval
from ..ops.elementwise import add, neg, sub
from ..ops.index import getitem
from .reroll.contiguous import contiguous

Numbers = np.ndarray[Any, np.dtype[np.int64]]

EXACT = frozenset({"abs", "add", "div", "mul", "neg", "sqrt", "square", "sub"})  # IEEE 754 leaves no choice of bits
VIEWS = frozenset({"copy", "getitem", "permute", "reshape"})
TAKEN = EXACT | VIEWS | {"additem", "array", "concatenate", "const", "setitem"}  # what else there is, is plain
CHECKED = 1024  # operations after which a search ends if levels have few operations so far:
EARLY = 4  # so many times fewer than asked for, since later ones may have more
MOST = 8  # operations for each node of the graph: those on arrays are one for each element
FEW = 8  # elements that a read of another array has, if operations on it are taken apart


class OnNumbers(NamedTuple):
    """One operation on numbers: its result and its operands, by the numbers of their elements."""

    out: int
    prim: Primitive
    operands: tuple[int, ...]
    node: Node


class Unsuited(Exception):  # noqa: N818 - a signal, not an error
    """Most operations depend on the one before, or are no operations on numbers."""


class Levels:
    """The operations of a graph by levels.

    Elements are numbered. ``elements`` has the numbers of values that come from operations on numbers; ``sources`` has
    the first number of other values, of which elements are read; ``constants`` has the numbers of known numbers.

    What is no such operation is a *plain* node. One that reads results of operations, and of which operations read the
    result, splits the levels: those of one ``phase`` are computed before the plain nodes of the next.
    """

    def __init__(self, graph: Graph, wide: int, most_plain: float) -> None:
        self.graph, self.wide, self.most_plain = graph, wide, most_plain
        self.contiguous = contiguous(graph)
        numbers = (node.out.aval for node in graph.nodes if node.prim.name in EXACT and not node.out.aval.shape)
        self.dtype: np.dtype[Any] = next((a.dtype for a in numbers if a.dtype.char in "fd"), np.dtype(np.float64))
        self.elements: dict[Value, Numbers] = {}
        self.sources: dict[Value, int] = {}
        self.constants: dict[str, int] = {}
        self.known: list[float] = []  # the numbers behind ``constants``
        self.unsigned: set[int] = set()  # elements that are never -0.0, so that adding 0.0 to them changes nothing
        self.phase = array("q")  # of each element
        self.level: list[int] = []
        self.operations: dict[int, OnNumbers] = {}  # by the number of the result
        self.kinds: set[tuple[int, int, Primitive]] = set()  # phases, levels and primitives of operations
        self.plain: dict[int, list[Node]] = {}  # by phase
        self.at: dict[Value, int] = dict.fromkeys(graph.inputs, 0)  # phases of the results of plain nodes
        self.floor = 0  # the phase of the last effect: what follows it comes no earlier
        self.top = -1  # the last phase with an operation
        self.count = 0  # nodes that are operations
        self.others = 0  # plain nodes, but for constants
        self.kept: dict[Value, None] = {}  # values that plain nodes read as they are
        self.uses = {value: len(users) for value, users in graph.uses.items()}
        for value in graph.outputs:
            self.uses[value] = self.uses.get(value, 0) + 1
        for node in graph.nodes:
            self._visit(node)
            for value in node.inputs:
                self.uses[value] -= 1
        self.kept.update(dict.fromkeys(graph.outputs))

    def _visit(self, node: Node) -> None:
        if self._operates(node):
            self._counted()
            self.elements[node.out] = self._operations(node, node.prim, [self._numbers(v) for v in node.inputs])
            return
        held = [v in self.elements for v in node.inputs]
        if (any(held) or self._takes_few(node)) and self._moves(node):
            self._move(node)
            return
        phase = self.floor
        self.kept.update(dict.fromkeys(node.inputs))
        for value, placed in zip(node.inputs, held, strict=True):
            phase = max(phase, self._phase_of(value) + 1 if placed else self.at[value])
        if node.effect:
            self.floor = phase = max(phase, self.top + 1)
        elif node.prim.name == "const":
            phase = 0
        if node.prim.name != "const":
            self.others += 1
            if self.others > self.most_plain:
                raise Unsuited
        self.plain.setdefault(phase, []).append(node)
        self.at.update(dict.fromkeys(node.outputs, phase))

    def _phase_of(self, value: Value) -> int:
        """The phase in which a value with numbers is known; a view is taken of the whole array, when that is."""
        base = self.base_of(value)
        if base not in self.elements:
            return self.at[base]
        phases = np.frombuffer(self.phase, np.int64) if self.phase else np.zeros(0, np.int64)
        return int(phases[self.elements[base]].max(initial=0))

    def base_of(self, value: Value) -> Value:
        """The array that a value is a view of; the value itself if it is none."""
        node = self.graph.producer.get(value)
        viewed = node is not None and value.aval.shape and node.prim.name in VIEWS and value in self.elements
        return self.base_of(node.inputs[0]) if node is not None and viewed else value

    def _operates(self, node: Node) -> bool:
        """Whether a node is an operation on numbers, or on arrays of them that lie in memory as new arrays do."""
        if node.prim.name not in EXACT or node.attrs or node.replica:
            return False
        aval = node.out.aval
        if aval.dtype != self.dtype or not all(map(self._readable, node.inputs)):
            return False
        if aval.shape:
            return any(v in self.elements for v in node.inputs) and node.out in self.contiguous
        return aval.kind == "scalar"

    def _readable(self, value: Value) -> bool:
        """Whether the elements of a value have numbers, or can get them."""
        if value in self.elements or self._is_constant(value):
            return True
        aval: Aval = value.aval
        return aval.dtype == self.dtype and aval.kind != "python" and aval.steps is None

    def _is_constant(self, value: Value) -> bool:
        node = self.graph.producer.get(value)
        return node is not None and node.prim.name == "const" and type(node.attrs["value"]) in (int, float)

    def _takes_few(self, node: Node) -> bool:
        """Whether a node reads few elements of a value."""
        return node.prim is getitem and node.out.aval.size <= FEW and self._readable(node.inputs[0])

    def _moves(self, node: Node) -> bool:
        """Whether a node only moves elements, and its result lies in memory as a new array does, or is a view."""
        if len(node.outputs) != 1:
            return False
        prim, aval = node.prim.name, node.out.aval
        if aval.dtype != self.dtype or aval.kind == "python" or (aval.kind == "array" and not aval.shape):
            return False
        if prim in VIEWS:
            return len(node.inputs) == 1
        if prim == "array":
            return all(map(self._readable, node.inputs))
        if prim == "concatenate":
            return aval.ndim == 1 and all(map(self._readable, node.inputs))
        if prim not in {"additem", "setitem"} or len(node.inputs) != 2 or not all(map(self._readable, node.inputs)):
            return False
        return node.out in self.contiguous

    def _move(self, node: Node) -> None:
        ins, prim = [self._numbers(v) for v in node.inputs], node.prim.name
        if prim == "getitem":
            out = ins[0][node.attrs["index"]]
            out = out if out.ndim else np.array(out)
        elif prim == "permute":
            out = ins[0].transpose(node.attrs["axes"])
        elif prim in {"copy", "reshape"}:
            out = ins[0].reshape(node.out.aval.shape)
        elif prim == "array":
            out = np.array([x[()] for x in ins])
        elif prim == "concatenate":
            out = np.concatenate(ins)
        else:
            base, index = node.inputs[0], node.attrs["index"]
            out = ins[0] if self._may_change(base) else ins[0].copy()
            if prim == "additem":
                self._counted()
                ins[1] = self._operations(node, add, [out[index], ins[1]])
            out[index] = ins[1]
        self.elements[node.out] = out

    def _may_change(self, base: Value) -> bool:
        """Whether nobody else will ask for the numbers of a value, or of another value that shares them."""
        if base not in self.elements or self.uses[base] > 1 or base in self.kept:
            return False
        users = [*self.graph.uses[base], self.graph.producer[base]]
        return not any(user.prim.name in VIEWS and user.out.aval.shape for user in users)

    def _operations(self, node: Node, prim: Primitive, operands: Sequence[Numbers]) -> Numbers:
        """The numbers of the results of one operation for each element."""
        if not operands[0].ndim:
            return np.array(self._operation(node, prim, tuple([ids.item() for ids in operands])))
        columns = [np.ravel(ids).tolist() for ids in operands]
        out = [self._operation(node, prim, row) for row in zip(*columns, strict=True)]
        return np.array(out, np.int64).reshape(np.shape(operands[0]))

    def _operation(self, node: Node, prim: Primitive, operands: tuple[int, ...]) -> int:
        if prim is add:
            prim, operands = self._sum(*operands)
            if len(operands) == 1:
                return operands[0]
        phase = max([self.floor, *(self.phase[k] for k in operands)])
        level = 1 + max([self.level[k] for k in operands if self.phase[k] == phase], default=0)
        out = self._new(phase, level)
        self.operations[out] = OnNumbers(out, prim, operands, node)
        self.kinds.add((phase, level, prim))
        if prim is add and not self.unsigned.isdisjoint(operands):
            self.unsigned.add(out)
        if prim is sub and operands[0] in self.unsigned:
            self.unsigned.add(out)
        self.top = max(self.top, phase)
        return out

    def _counted(self) -> None:
        self.count += 1
        narrow = self.count % CHECKED == 0 and EARLY * self.count < self.wide * len(self.kinds)
        if narrow or len(self.operations) > MOST * len(self.graph.nodes):
            raise Unsuited

    def _sum(self, x: int, y: int) -> tuple[Primitive, tuple[int, ...]]:
        """The operation that a sum is, with the same bits; one operand alone if the other is zero."""
        for one, other in ((x, y), (y, x)):
            if other == self.constants.get("0.0") and one in self.unsigned:
                return add, (one,)
        for one, other in ((x, y), (y, x)):
            made = self.operations.get(other)
            if made is not None and made.prim is neg:
                return sub, (one, *made.operands)
        return add, (x, y)

    def whole(self) -> dict[Value, Numbers]:
        """The values that plain nodes read, or read views of, and the numbers of their elements."""
        bases = dict.fromkeys(map(self.base_of, self.kept))
        return {base: self.elements[base] for base in bases if base in self.elements}

    def groups(self) -> dict[tuple[int, int, Primitive], list[OnNumbers]]:
        """The operations that some value needs, by phase, level and primitive."""
        needed = {k for ids in self.whole().values() for k in ids.ravel().tolist()}
        found: dict[tuple[int, int, Primitive], list[OnNumbers]] = {}
        for out, operation in reversed(self.operations.items()):
            if out in needed:
                needed.update(operation.operands)
                found.setdefault((self.phase[out], self.level[out], operation.prim), []).append(operation)
        return {key: group[::-1] for key, group in found.items()}

    def _new(self, phase: int, level: int) -> int:
        self.phase.append(phase)
        self.level.append(level)
        return len(self.phase) - 1

    def _numbers(self, value: Value) -> Numbers:
        """The numbers of the elements of a value; those of a plain one are new when they are first asked for."""
        found = self.elements.get(value)
        if found is not None:
            return found
        if self._is_constant(value):
            number = float(self.graph.producer[value].attrs["value"])
            key = repr(number)  # zeros have a sign
            if key not in self.constants:
                self.constants[key] = self._new(0, 0)
                self.known.append(number)
                if key != "-0.0":
                    self.unsigned.add(self.constants[key])
            return np.full(value.aval.shape, self.constants[key])
        first = self.sources.get(value)
        if first is None:
            first = self.sources[value] = len(self.phase)
            for _ in range(value.aval.size):
                self._new(self.at[value], 0)
        return np.arange(first, first + value.aval.size).reshape(value.aval.shape)
