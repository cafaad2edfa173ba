"""small_arrays: Graph → Graph in which 1-D arrays of a few elements are numbers, one for each element.

What only moves elements, as views, indices and joins do, leaves no operation: it says which number stands where. Sums
add in NumPy's order. Arrays that come in, that go out, or of which loops read or write rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import count

import numpy as np

from ....ir.builder import Builder, Symbol
from ....ir.evaluate import run_node
from ....ir.graph import Graph, Node, Value
from ....ir.loop_node import loop_of
from ....ir.primitive import REGISTRY
from ....ir.rewrite import walk
from ....ir.structure import Body
from ....ir.texts import Arg
from ....ir.types import Aval
from ....ops.batching import by_elements
from ....ops.index import additem, subitem
from ....ops.structural.guard import guard
from ....ops.structural.on_numbers import assemble, elements
from ....ops.structural.region import turn
from ....ops.structural.stack import absent, stack_length, step_numbers
from .number_texts import rounds_alike, text_of

LARGEST = 12  # elements of an array that is taken apart
MOST = 400  # operations on numbers that take the place of operations on arrays
NUMBERS_PER_CALL = 12  # operations on numbers that take as long as one of NumPy's on an array
NUMBERS_PER_FUNCTION = 6  # ... and as one of NumPy's on a number
LANES = 8  # partial sums of NumPy's sums
SEEN = 3  # sums within each other whose terms are looked at
MOVES = frozenset(
    {
        *("array", "broadcast", "concatenate", "diag", "diagonal", "getitem", "named", "owned", "permute", "reshape"),
        *("roll", "setitem", "stop_gradient"),
    }
)
PASSED = frozenset({guard, turn, step_numbers})
FLOAT, BOOL = np.dtype(np.float64), np.dtype(bool)
Pieces = list[Symbol]


class _StaysWhole(Exception):  # noqa: N818 - a signal, not an error
    """An array cannot be taken apart here."""


def is_small(aval: Aval) -> bool:
    """Whether a value is an array, or a list of arrays, that may be taken apart."""
    known = aval.kind == "array" and aval.dtype in (FLOAT, BOOL) and len(aval.steps or ()) <= 1
    return known and aval.ndim == 1 and 1 <= aval.size <= LARGEST


def taken_apart(graph: Graph) -> Graph | None:
    """The graph with numbers in place of its small arrays; None if they must stay, or if it would be no quicker."""
    return _quicker(graph, _IntoNumbers(graph, graph.inputs))


def loops_apart(graph: Graph) -> Graph | None:
    """The graph with numbers in place of the small arrays in its loops; None as above.

    The lists that one loop fills and another reads are lists of numbers.
    """
    if not any(_is_loop(node) and any(is_small(v.aval) for v in (*node.inputs, *node.outputs)) for node in graph.nodes):
        return None
    return _quicker(graph, _IntoNumbers(graph, graph.inputs, loops_only=True))


def _quicker(graph: Graph, made: _IntoNumbers) -> Graph | None:
    try:
        apart = made.graph()
    except _StaysWhole:
        return None
    before, after = ([node for node in walk(g) if node.inputs] for g in (graph, apart))
    if len(after) > MOST:
        return None
    ends = sum(node.prim in (elements, assemble) for node in after)
    calls = sum(2 if node.prim.name in REDUCTIONS else 1 for node in before)  # of NumPy's; a reduction takes as two
    return apart if sum(map(_operations, after)) - ends <= NUMBERS_PER_CALL * (calls - ends) else None


def _operations(node: Node) -> int:
    """How many operations on numbers take as long as this one."""
    return NUMBERS_PER_FUNCTION if len(node.outputs) == 1 and "np." in text_of(node) else 1


def _is_loop(node: Node) -> bool:
    return loop_of(node) is not None


class _IntoNumbers:
    """A graph under construction, and what stands for the values of the old one: a symbol, pieces, or both."""

    def __init__(
        self, graph: Graph, inputs: Sequence[Value], expands: Sequence[bool] = (), *, loops_only: bool = False
    ) -> None:
        self.old, self.b, self.loops_only = graph, Builder(), loops_only
        self.wholes: dict[Value, Symbol] = {}
        self.pieces: dict[Value, Pieces] = {}
        for value, apart in zip(inputs, expands or [False] * len(inputs), strict=True):
            if apart:
                pairs = zip(_avals(value.aval), _hints(value), strict=True)
                self.pieces[value] = [self.b.input(aval, hint) for aval, hint in pairs]
            else:
                self.wholes[value] = self.b.input(value.aval, value.hint)

    def graph(self, expands: Sequence[bool] = ()) -> Graph:
        """The new graph; ``expands`` tells of each result whether it becomes pieces."""
        for node in self.old.nodes:
            self.b.where, self.b.replica = node.where, node.replica
            self._node(node)
        self.b.where, self.b.replica = None, 0
        outs: list[Symbol] = []
        for value, apart in zip(self.old.outputs, expands or [False] * len(self.old.outputs), strict=True):
            outs += self._held(value) if apart else [self._whole(value)]
        return self.b.graph(self.old.name, outs)

    def _node(self, node: Node) -> None:
        prim, outs = node.prim, node.outputs
        structure = prim.structure
        if structure is not None and (structure.loop or (structure.branches(node) and not self.loops_only)):
            self._structural(node)
        elif prim is stack_length and node.inputs[0] in self.pieces:
            self._set(outs[0], self.b.emit(prim, [self.pieces[node.inputs[0]][0].value], {}))
        elif prim is absent and is_small(node.out.aval):
            avals = _avals(node.out.aval)
            self._set(node.out, [self.b.emit(prim, [], {**node.attrs, "aval": aval})[0] for aval in avals])
        elif prim.name in REDUCTIONS and not node.inputs[0].aval.shape:
            x = REDUCTIONS[prim.name]([self._whole(node.inputs[0])])
            self.wholes[node.out] = _as_held(self.b, x, node.out.aval)
        elif self.loops_only or prim in PASSED or not any(is_small(v.aval) for v in (*node.inputs, *outs)):
            operands, hints = [self._whole(v).value for v in node.inputs], [v.hint for v in outs]
            symbols = self.b.emit(prim, operands, node.attrs, hints, [v.aval for v in outs])
            self.wholes.update(zip(outs, symbols, strict=True))
        elif prim.multi:
            raise _StaysWhole
        else:
            self._set(node.out, self._apart(node))

    def _apart(self, node: Node) -> Pieces:
        """The pieces of the result of an operation on small arrays."""
        prim, out = node.prim, node.out.aval
        indexed = any(isinstance(i, Arg) for i in node.attrs.get("index", ()))
        if indexed or out.steps is not None or (out.shape and not is_small(out)):
            raise _StaysWhole
        if prim.name == "const":
            return self._constants(node)
        if prim.name in MOVES:
            return self._moved(node)
        if prim in (additem, subitem):
            return self._added(node)
        if prim.name in REDUCTIONS:
            return self._reduced(node)
        if prim.name == "cast":
            (pieces,) = self._broadcast(node.inputs, out.shape)
            return [
                self.b.emit(prim, [x.value], {"aval": aval})[0] for x, aval in zip(pieces, _avals(out), strict=True)
            ]
        if not by_elements(prim) or not text_of(node) or (prim.name == "pow" and not rounds_alike("pow")):
            raise _StaysWhole
        if prim.name == "power" and node.inputs[1].aval.shape:  # NumPy takes a root only if one exponent says so
            raise _StaysWhole
        rows = zip(*self._broadcast(node.inputs, out.shape), strict=True)
        made = zip(rows, _avals(out), _hints(node.out), strict=True)
        return [self.b.emit(prim, [x.value for x in row], node.attrs, [hint], [aval])[0] for row, aval, hint in made]

    def _constants(self, node: Node) -> Pieces:
        values = np.broadcast_to(np.array(node.attrs["value"]), node.out.aval.shape)
        pairs = zip(values.flat, _avals(node.out.aval), strict=True)
        return [self.b.constant(x.item(), aval) for x, aval in pairs]

    def _broadcast(self, values: Iterable[Value], shape: tuple[int, ...]) -> list[Pieces]:
        """The pieces of each value, one for each element of the shape."""
        found = []
        for value in values:
            pieces, own = self._of(value), value.aval.shape
            places = np.broadcast_to(np.arange(len(pieces)).reshape(own), shape)
            found.append([pieces[i] for i in places.flat])
        return found

    def _moved(self, node: Node) -> Pieces:
        """The pieces that the operation puts in each place, found by running it on their numbers; it may add zeros."""
        numbers = count(1)
        operands = [[next(numbers) for _ in range(v.aval.size)] for v in node.inputs]
        arrays = [np.array(x, FLOAT).reshape(v.aval.shape) for x, v in zip(operands, node.inputs, strict=True)]
        pieces = [x for v in node.inputs for x in self._of(v)]
        (places,) = run_node(node, arrays)
        zero = self.b.constant(0, _avals(node.out.aval)[0])
        return [pieces[int(i) - 1] if i else zero for i in np.ravel(places)]

    def _added(self, node: Node) -> Pieces:
        """The sums or differences in the places of an index, which names none twice."""
        target, value = node.inputs[:2]
        pieces = list(self._of(target))
        places = np.asarray(np.arange(len(pieces)).reshape(target.aval.shape)[node.attrs["index"]])
        (added,) = self._broadcast([value], places.shape)
        prim = REGISTRY["add" if node.prim is additem else "sub"]
        for place, x in zip(places.flat, added, strict=True):
            pieces[place] = prim(pieces[place], x)
        return pieces

    def _reduced(self, node: Node) -> Pieces:
        """The sum, or the largest or smallest element; over no axis, that of each element alone."""
        pieces = self._of(node.inputs[0])
        rows = [pieces] if node.attrs["axis"] else [[x] for x in pieces]
        return list(map(REDUCTIONS[node.prim.name], rows))

    def _structural(self, node: Node) -> None:
        """The loop or choice with pieces in place of small arrays, but for the arrays of which steps have rows."""
        structure = node.prim.structure
        assert structure is not None
        loop = loop_of(node)
        if ((loop is not None and loop.plan is not None) or node.attrs.get("lanes")) and any(
            is_small(v.aval) for v in (*node.inputs, *node.outputs)
        ):
            raise _StaysWhole
        rows = structure.of_operands(node, range(len(node.inputs))).get("xs", [])
        ins = [is_small(v.aval) and (v.aval.steps is not None or i not in rows) for i, v in enumerate(node.inputs)]
        outs = [is_small(v.aval) and structure.group(node, k) != "arrays" for k, v in enumerate(node.outputs)]
        roles = {graph: body for body, graph in structure.parts(node)}
        made = {name: self._body(node, roles[graph], graph, ins, outs) for name, graph in node.graphs}
        members = structure.of_operands(node, _sizes(node.inputs, ins)) | structure.of_results(
            node, _sizes(node.outputs, outs)
        )
        groups = (*structure.operands, *structure.results)
        sizes = {group.size: sum(members[group.name]) for group in groups if isinstance(group.size, str)}
        operands: Pieces = []
        for value, apart in zip(node.inputs, ins, strict=True):
            operands += self._held(value) if apart else [self._whole(value)]
            if not apart and operands[-1].aval != value.aval:  # a number in place of an array without axes
                raise _StaysWhole
        hints = [h for v, f in zip(node.outputs, outs, strict=True) for h in (_hints(v) if f else [v.hint])]
        results = iter(
            self.b.emit(node.prim, [x.value for x in operands], structure.attrs(node, **made, **sizes), hints)
        )
        for value, apart in zip(node.outputs, outs, strict=True):
            if apart:
                self.pieces[value] = [next(results) for _ in range(value.aval.size)]
            else:
                self.wholes[value] = next(results)

    def _body(self, node: Node, body: Body, graph: Graph, ins: Sequence[bool], outs: Sequence[bool]) -> Graph:
        structure = node.prim.structure
        assert structure is not None
        takes = [k is not None and ins[k] for k in structure.sources(node, body, graph)]
        gives = [k is not None and outs[k] for k in structure.targets(node, body, graph)]
        return _IntoNumbers(graph, graph.inputs, takes).graph(gives)

    def _set(self, value: Value, pieces: Pieces) -> None:
        if any(x.shape or x.dtype != value.aval.dtype for x in pieces):
            raise _StaysWhole
        if is_small(value.aval):
            self.pieces[value] = pieces
        elif value.aval.shape:
            raise _StaysWhole
        else:
            (self.wholes[value],) = pieces

    def _of(self, value: Value) -> Pieces:
        """The pieces of a value: a number is its own."""
        if value not in self.pieces:
            if not value.aval.shape:
                return [self.wholes[value]]
            if not is_small(value.aval) or value.aval.steps is not None:
                raise _StaysWhole
            self.pieces[value] = self.b.emit(elements, [self.wholes[value].value], {}, _hints(value))
        return self.pieces[value]

    def _held(self, value: Value) -> Pieces:
        """The pieces of a value as loops and choices hand them on: all of one kind."""
        return [_as_held(self.b, x, aval) for x, aval in zip(self._of(value), _avals(value.aval), strict=True)]

    def _whole(self, value: Value) -> Symbol:
        if value not in self.wholes:
            if value.aval.steps is not None:
                raise _StaysWhole
            pieces = [x.value for x in self._held(value)]
            self.wholes[value] = self.b.emit(assemble, pieces, {"shape": value.aval.shape}, [value.hint])[0]
        return self.wholes[value]


def _as_held(b: Builder, x: Symbol, aval: Aval) -> Symbol:
    if x.aval == aval:
        return x
    if aval.steps is not None or x.aval.steps is not None:
        raise _StaysWhole
    return b.emit(REGISTRY["cast"], [x.value], {"aval": aval})[0]


def _sizes(values: Sequence[Value], apart: Sequence[bool]) -> list[int]:
    """The number of values that stand for each value."""
    return [v.aval.size if f else 1 for v, f in zip(values, apart, strict=True)]


def _hints(value: Value) -> list[str | None]:
    """Names for the pieces of a value: ``x0``, ``x1`` and so on."""
    return [value.hint and f"{value.hint}{i}" for i in range(value.aval.size)]


def _avals(aval: Aval) -> list[Aval]:
    """The avals of the pieces of a value."""
    return [replace(aval, shape=(), kind="scalar")] * aval.size


def _added_up(row: Pieces) -> Symbol:
    """The sum of a row in NumPy's order: from eight numbers on, it begins with eight partial sums.

    NumPy adds it to 0.0, so it is never -0.0.
    """
    if len(row) >= LANES:
        a, b, c, d, e, f, g, h = row[:LANES]
        row = [((a + b) + (c + d)) + ((e + f) + (g + h)), *row[LANES:]]
    total = _chain("add", row)
    return total if total.dtype != FLOAT or _never_minus_zero(total) else total + 0.0


def _never_minus_zero(x: Symbol, deep: int = SEEN) -> bool:
    """Whether a number is seen not to be -0.0; a sum is -0.0 only if all its terms are."""
    name, operands = x.node.prim.name if x.node is not None else "", x.operands
    if name == "add":
        return deep > 0 and any(_never_minus_zero(y, deep - 1) for y in operands[::-1])
    return name in ("square", "exp", "abs") or (name == "mul" and operands[0].value is operands[1].value)


def _chain(name: str, row: Pieces) -> Symbol:
    return reduce(REGISTRY[name], row)


REDUCTIONS: dict[str, Callable[[Pieces], Symbol]] = {
    "sum": _added_up,
    "max": partial(_chain, "maximum"),
    "min": partial(_chain, "minimum"),
}
