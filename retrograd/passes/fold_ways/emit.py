"""Emit a loop that chooses: a scan over the varying values, with a cond for each branch of the body."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.python_loops import lines_of, loop_line
from ...ir.structure import Layout
from ...ir.texts import Arg
from ...ir.types import Aval
from ...ops.elementwise import BOOL
from ...ops.gather import counted
from ...ops.structural.cond import make_cond
from ...ops.structural.guard import guard
from ...ops.structural.loops import make_scan
from .apart import Apart
from .overlay import Entry, Row
from .variables import Carry, Column, Nothing, Outside, Phi, ResultOf, Variables
from .words import MANY, Unfoldable, is_step

MOST_NUMBERS = 4096  # of a column, which stands in the code
ANSWER = Aval((), BOOL, "scalar")


class FoldedLoop(NamedTuple):
    """The loop of a folded graph."""

    node: Node
    parts: Layout
    body: Graph
    length: int


@dataclass(frozen=True, eq=False)
class Folded:
    """A recording with a loop folded.

    The last ``choices`` results of ``graph`` are the answers of its choices, an array over the steps for each one.
    ``own`` are nodes that no recording has: numbers that count, changes from a number of Python to one of NumPy, and
    the guard that the loop has ended. ``sides`` are the graphs of each choice, the one for False first.
    """

    graph: Graph
    choices: int
    own: frozenset[Node]
    sides: Mapping[Node, tuple[Graph, Graph]]
    loop: FoldedLoop


def emitted(found: Variables) -> Folded:
    """The first recording with its loop folded."""
    return _FoldedBuilder(found).folded()


class _FoldedBuilder(Apart):
    """The new graph."""

    def __init__(self, found: Variables) -> None:
        super().__init__()
        self.found, self.words = found, found.steps.words
        self.own: set[Node] = set()
        self.sides: dict[Node, tuple[Graph, Graph]] = {}
        self.env: dict[Value, Symbol] = dict(
            zip(self.words.graph.inputs, self.share_inputs(self.words.graph), strict=True)
        )

    def folded(self) -> Folded:
        """The whole graph."""
        steps, nodes = self.found.steps, self.words.nodes[0]
        start, end = steps.spans[0][0], steps.spans[steps.counts[0] - 1][1]
        self._copy(nodes[:start])
        self.where = loop_line(lines_of(nodes[start:end]), lines_of(nodes)) or nodes[start].where
        loop, answers = self._loop()
        self._copy(nodes[end:])
        graph = self.graph(self.words.graph.name, [*map(self.at, self.words.outputs[0]), *answers])
        return Folded(graph, len(answers), frozenset(self.own), self.sides, loop)

    def _copy(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            outs = self.copy_node(node, [self.at(v).value for v in node.inputs])
            self.env.update(zip(node.outputs, outs, strict=True))

    def at(self, value: Value) -> Symbol:
        """A value of the first recording in the new graph."""
        if value not in self.env:
            node = self.words.producer[value]
            if is_step(node):
                raise Unfoldable("a value of the loop that is not a variable")
            (self.env[value],) = self.copy_node(node, ())
        return self.env[value]

    def _loop(self) -> tuple[FoldedLoop, list[Symbol]]:
        """Place the loop; the answers of its choices."""
        found = self.found
        body = _BodyScope(self, None)
        carried = [(carry, body.input(carry.aval)) for carry in found.carries]
        body.known.update(carried)
        columns = found_columns(found)
        body.known.update((key, body.input(column.aval)) for key, column in columns.items())
        whole, items = found.steps.leave is None, choices(found.steps.body)
        lives = None if whole else body.input(ANSWER, "lives")
        results = body.step(found, items) if lives is None else body.living(lives, found, items)
        inputs = [*body.consts.values(), *([] if lives is None else [lives]), *body.inputs_of(carried, columns)]
        outputs = tuple(s.value for s in results)
        graph = Graph("body", tuple(s.value for s in inputs), tuple(body.nodes), outputs)
        operands = [
            *map(self.at, body.consts),
            *([] if whole else [self.constant(True, ANSWER)]),
            *(self._first(carry) for carry in found.carries),
            *map(self._column, columns.values()),
        ]
        parts = Layout(len(body.consts), len(results) - len(items), len(items))
        final, arrays, _ = make_scan(self, graph, parts, operands, found.steps.length, False)
        loop = FoldedLoop(self.nodes[-1], parts, graph, found.steps.length)
        if not whole:  # longer loops are others
            self.emit(guard, (final[0].value,), {"kind": "bool", "expected": False, "lanes": False})
            self.own.add(self.nodes[-1])
            del final[0]
        for value, carry in found.finals.items():
            self.env[value] = self.fitted(final[found.carries.index(carry)], value.aval)
        return loop, arrays

    def _first(self, carry: Carry) -> Symbol:
        """The value of a carry when the loop begins; zero where no recording reads it."""
        first = {value for step, value in carry.heads.items() if step % MANY == 0}
        if len(first) > 1:
            raise Unfoldable("a variable that starts differently in each trace")
        return self.fitted(self.at(first.pop()), carry.aval) if first else self.zeros(carry.aval)

    def _column(self, column: Column) -> Symbol:
        """The numbers of all steps as an array: an iota where they count."""
        if len(column.numbers) > MOST_NUMBERS:
            raise Unfoldable("more numbers than code should contain")
        numbers = np.array(column.numbers, column.aval.dtype)
        before = len(self.nodes)
        counting = counted(self, numbers)
        made = self.constant(numbers) if counting is None else counting
        self.own.update(self.nodes[before:])
        return made

    def fitted(self, x: Symbol, aval: Aval) -> Symbol:
        """A value with the aval of a variable."""
        return _fitted(self, self.own, x, aval)


def _fitted(b: Builder, own: set[Node], x: Symbol, aval: Aval) -> Symbol:
    if x.shape != aval.shape:
        raise Unfoldable("a variable of several shapes")
    before = len(b.nodes)
    made = b.coerce(x, aval)
    own.update(b.nodes[before:])
    return made


def choices(row: Row) -> list[Entry]:
    """The choices of a row and of its sides."""
    return [item for item in row.walk() if item.sides is not None]


def found_columns(found: Variables) -> dict[Hashable, Column]:
    """The columns that the body reads, by what tells them apart."""
    columns = {}
    for item in found.steps.body.walk():
        phis = [source for phi in item.phis.values() for source in phi]
        for source in (*item.sources, *item.places.values(), *phis, *(c.update for c in found.carries)):
            if isinstance(source, Column):
                columns[_key(source)] = source
    return columns


def _key(source: Any) -> Hashable:
    """What finds a source among the known ones of a scope."""
    if isinstance(source, Column):
        return source.aval, repr(source.numbers)
    return source if isinstance(source, (Carry, tuple)) else id(source)


class _BodyScope(Apart):
    """The body of the loop, or a side of a choice; what belongs to an enclosing scope is an input where it is read."""

    def __init__(self, target: _FoldedBuilder, outer: _BodyScope | None) -> None:
        super().__init__()
        self.target, self.outer = target, outer
        self.known: dict[Any, Symbol] = {}
        self.consts: dict[Value, Symbol] = {}  # of the body: values from before the loop, and its inputs for them
        self.taken: dict[Any, tuple[Symbol, Symbol]] = {}  # of a side: values of the enclosing scope, and its inputs

    def inputs_of(self, carried: Sequence[tuple[Carry, Symbol]], columns: Mapping[Hashable, Column]) -> list[Symbol]:
        """The inputs for carries and columns."""
        return [*(symbol for _, symbol in carried), *(self.known[key] for key in columns)]

    def fitted(self, x: Symbol, aval: Aval) -> Symbol:
        """A value with the aval of a variable."""
        return _fitted(self, self.target.own, x, aval)

    def get(self, source: Any) -> Symbol:
        """The value of a source in this scope."""
        key = _key(source)
        if key not in self.known:
            self.known[key] = self._found(source, key)
        return self.known[key]

    def _found(self, source: Any, key: Hashable) -> Symbol:
        if isinstance(source, Outside):
            node = self.target.words.producer.get(source.value)
            if node is not None and not is_step(node):
                return self.copy_node(node, ())[0]
        if self.outer is not None:
            outside = self.outer.get(source)
            mine = self.input(outside.aval, outside.value.hint)
            self.taken[key] = (outside, mine)
            return mine
        if not isinstance(source, Outside):
            raise Unfoldable("a value that is not known where it is read")
        self.consts[source.value] = self.input(source.value.aval, source.value.hint)
        return self.consts[source.value]

    def run(self, row: Row) -> None:
        """Emit the items of a row."""
        for item in row.items:
            if item.sides is None:
                self._operation(item)
            else:
                self._choice(item, item.sides)

    def step(self, found: Variables, items: Sequence[Entry]) -> list[Symbol]:
        """Emit a step of the loop; the carries after it, and the answers of its choices."""
        self.run(found.steps.body)
        ended = [self.fitted(self.get(carry.update), carry.aval) for carry in found.carries]
        return [*ended, *(self.fitted(self.get(("answer", item)), ANSWER) for item in items)]

    def living(self, lives: Symbol, found: Variables, items: Sequence[Entry]) -> list[Symbol]:
        """A step of a loop that a decision ends; behind that, the carries stay as they are."""
        live, over = _BodyScope(self.target, self), _BodyScope(self.target, self)
        results = live.step(found, items)
        kept = [over.fitted(over.get(carry), carry.aval) for carry in found.carries]
        no = [over.constant(False, ANSWER) for _ in items]
        results = [live.get(("stays", found.steps.leave)), *results]
        return self._chosen(lives, (over, live), ([over.constant(False, ANSWER), *kept, *no], results))

    def _operation(self, item: Entry) -> None:
        node, operands = item.node, [self.get(source) for source in item.sources]
        attrs = dict(node.attrs)
        if item.places:
            index = list(attrs["index"])
            for position, column in item.places.items():
                index[position] = Arg(len(operands))
                operands.append(self.get(column))
            attrs["index"] = tuple(index)
        self.where, self.replica = node.where, node.replica
        outs = self.emit(node.prim, [s.value for s in operands], attrs, [v.hint for v in node.outputs])
        self.replica = 0
        self.known.update((ResultOf(item, k), s) for k, s in enumerate(outs))

    def _choice(self, item: Entry, sides: tuple[Row, Row]) -> None:
        decided = self.get(item.sources[0])
        if decided.dtype != BOOL or decided.shape:
            raise Unfoldable("a decision by a number")
        self.known["answer", item] = decided
        inner = [_BodyScope(self.target, self) for _ in sides]
        for scope, side in zip(inner, sides, strict=True):
            scope.run(side)
        results = [[scope.result(phi, k) for phi in item.phis.values()] for k, scope in enumerate(inner)]
        nested = [choices(side) for side in sides]
        for k, scope in enumerate(inner):
            for at, found in enumerate(nested):
                results[k] += [
                    scope.fitted(scope.get(("answer", choice)), ANSWER) if at == k else scope.constant(False, ANSWER)
                    for choice in found
                ]
        steps = self.target.found.steps
        if item is steps.leave:
            for scope, side, found_here in zip(inner, sides, results, strict=True):
                found_here.append(scope.constant(side.steps != steps.left, ANSWER))
        if not results[0]:  # nothing reads what the sides do, which stand here all the same
            results = [[scope.constant(False, ANSWER)] for scope in inner]
        self.where = item.node.where
        made = self._chosen(decided, inner, results)
        keys = [*(Phi(item, key) for key in item.phis), *(("answer", choice) for found in nested for choice in found)]
        if item is steps.leave:
            keys.append(("stays", item))
        self.known.update(zip(keys, made, strict=bool(keys)))

    def _chosen(
        self, decided: Symbol, inner: Sequence[_BodyScope], results: Sequence[Sequence[Symbol]]
    ) -> list[Symbol]:
        """Emit a choice between two scopes with these results."""
        if any(one.shape != other.shape for one, other in zip(*results, strict=True)):
            raise Unfoldable("a variable of several shapes")
        avals = [_common(one.aval, other.aval) for one, other in zip(*results, strict=True)]
        taken = {key: outside for scope in inner for key, (outside, _) in scope.taken.items()}
        graphs = []
        for scope, found in zip(inner, results, strict=True):
            outs = [scope.fitted(s, aval).value for s, aval in zip(found, avals, strict=True)]
            inputs = [scope.taken[key][1].value if key in scope.taken else Value(s.aval) for key, s in taken.items()]
            graphs.append(Graph("side", tuple(inputs), tuple(scope.nodes), tuple(outs)))
        made = make_cond(self, decided, graphs, list(taken.values()))
        self.target.sides[self.nodes[-1]] = (graphs[0], graphs[1])
        return made

    def result(self, phi: tuple[Any, Any], side: int) -> Symbol:
        """What a variable is at the end of a side; what it was before, or zero, where no step of that side tells."""
        if not isinstance(phi[side], Nothing):
            return self.get(phi[side])
        other = phi[1 - side]
        if isinstance(other, (Carry, Outside)):
            return self.get(other)
        return self.zeros(_aval(other))


def _aval(source: Any) -> Aval:
    """The aval of a source that is no value from before the loop, and no carry."""
    if isinstance(source, ResultOf):
        return source.item.node.outputs[source.out].aval
    if isinstance(source, Phi):
        sides = [each for each in source.item.phis[source.key] if not isinstance(each, Nothing)]
        return sides[0].aval if isinstance(sides[0], Carry) else _aval(sides[0])
    assert isinstance(source, (Column, Outside))
    return source.aval if isinstance(source, Column) else source.value.aval


def _common(a: Aval, b: Aval) -> Aval:
    """The aval of what is the one or the other."""
    if a != b and (a.dtype != b.dtype or "array" in (a.kind, b.kind)):
        raise Unfoldable("a variable of several types")
    return a if a.kind != "python" else b
