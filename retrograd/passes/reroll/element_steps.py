"""Find long stretches of steps on single elements that are of a few kinds, in an order that does not repeat itself.

LU by elements has two lines, but each iteration of its loops is longer than the one before. A step is what one line
computes of elements of arrays, up to an element that it writes. Steps are of one kind if they differ in places and
numbers only. What a step takes from an earlier one is a variable: it is proved, step by step, that it holds that value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir.builder import attrs_key
from ...ir.graph import Graph, Node, Value
from ...ir.types import Aval
from ...ops.elementwise import const
from ...ops.index import getitem, setitem
from ...ops.shape import copy

KINDS = 16  # of steps, at most
PERIODS = 8  # a sequence of kinds that repeats itself so often is a loop that needs no table


class NoSteps(Exception):  # noqa: N818 - a signal, not an error
    """A stretch stays as it is."""


@dataclass(frozen=True)
class ElementRead:
    """An element of an array: of a state, by its number, or of a value that the steps do not change."""

    array: int | Value
    place: int  # among the elements that a step reads


@dataclass(frozen=True)
class LocalResult:
    """A result of the step itself, by the position of its node."""

    position: int


@dataclass(frozen=True)
class StepNumber:
    """A number, by its place among those of a step."""

    place: int
    aval: Aval


@dataclass(frozen=True)
class EarlierResult:
    """A result of an earlier step, by its place among those that a step takes."""

    place: int
    aval: Aval


Site = tuple[int, int, str]  # a kind, a place, and whether something is made or taken there
Operand = ElementRead | LocalResult | StepNumber | EarlierResult | Value


@dataclass(eq=False)
class StepKind:
    """What steps of one kind compute; of the first of them the nodes, with the operands of each."""

    nodes: list[Node]
    operands: list[list[Operand]]
    state: int  # which is written, or -1
    defines: dict[int, int] = field(default_factory=dict)  # variables, by the positions of nodes that they hold
    takes: list[int] = field(default_factory=list)  # variables, by the places of results of earlier steps


@dataclass(eq=False)
class ElementStep:
    """One step: the number of its kind, the elements that it reads and writes, its numbers, and what it takes."""

    kind: int
    nodes: list[Node]
    reads: list[int]
    written: int
    numbers: list[Any]
    earlier: list[Value]


@dataclass(eq=False)
class ElementSteps:
    """A stretch of nodes as steps: the states with their first and last values, and the variables."""

    start: int
    end: int
    kinds: list[StepKind]
    steps: list[ElementStep]
    states: list[Value]
    last: list[Value]
    variables: list[Aval]
    held: dict[Value, int]  # variables that are read after the stretch, by what they hold then


def element_steps(graph: Graph, fewest: int) -> ElementSteps | None:
    """The longest stretch of the graph as such steps, if it has so many nodes."""
    start, end = _longest(graph) if len(graph.nodes) >= fewest else (0, 0)
    if end - start < fewest:
        return None
    kept: set[Value] = set()
    with suppress(NoSteps):
        for _ in range(2):
            finder = _StepFinder(graph, start, end, kept)
            found = finder.found()
            if found is not None:
                return found
            kept = finder.stale
    return None


def _longest(graph: Graph) -> tuple[int, int]:
    """The longest stretch of nodes that belong to such steps, or are numbers or copies."""
    best, start = (0, 0), 0
    for i, node in enumerate([*graph.nodes, None]):
        if node is None or not (node.prim in (const, copy) or _is_element(node) or _computes(node)):
            best, start = max(best, (start, i), key=lambda s: s[1] - s[0]), i + 1
    return best


def _is_element(node: Node) -> bool:
    """Whether a node reads one element of an array, or writes one of an array of real numbers."""
    if node.prim not in (getitem, setitem) or len(node.inputs) != (1 if node.prim is getitem else 2):
        return False
    x, index = node.inputs[0].aval, node.attrs["index"]
    known = node.prim is getitem or x.dtype.char in "fd"
    return known and bool(x.ndim) and len(index) == x.ndim and all(type(k) is int for k in index)


def _computes(node: Node) -> bool:
    """Whether a node computes a number of numbers, each time the same."""
    plain = node.prim.structure is None and not (node.prim.mark or node.prim.multi or node.effect)
    return plain and not any(v.aval.shape for v in (*node.inputs, *node.outputs))


class _StepFinder:
    """Takes a stretch apart into steps. ``kept`` are elements that are results of the steps that read them."""

    def __init__(self, graph: Graph, start: int, end: int, kept: set[Value]) -> None:
        self.graph, self.start, self.end, self.kept = graph, start, end, kept
        self.stale: set[Value] = set()  # elements whose step should keep them
        nodes = graph.nodes[start:end]
        self.made = {v: None for node in nodes for v in node.outputs if node.prim is not const}
        self.same: dict[Value, Value] = {}  # copies
        for node in nodes:
            if node.prim is copy:
                self.same[node.out] = self._original(node.inputs[0])
        self.nodes = [
            node for node in nodes if node.prim not in (const, copy) and (node.prim is not getitem or node.out in kept)
        ]
        first = (self._original(node.inputs[0]) for node in self.nodes if node.prim is setitem)
        self.states = list(dict.fromkeys(v for v in first if v not in self.made))
        self.last = [*self.states]
        self.now = {v: k for k, v in enumerate(self.states)}  # the present values of the states
        self.kinds: dict[Hashable, int] = {}
        self.examples: list[StepKind] = []
        self.steps: list[ElementStep] = []
        self.at: dict[Value, tuple[int, int]] = {}  # the kind and the position of what was computed

    def found(self) -> ElementSteps | None:
        """The stretch as steps; None if it is, once more elements are kept, and NoSteps if it is none."""
        for nodes in self._lines():
            self._read(nodes)
        after = {v for node in self.graph.nodes[self.end :] for v in node.inputs} | set(self.graph.outputs)
        used = dict.fromkeys(self._original(v) for v in self.made if v in after)
        results = [v for v in used if not self._stays(v)]
        if self.stale:
            return None
        if len(self.examples) < 2 or _repeats(np.array([step.kind for step in self.steps])):
            raise NoSteps
        avals = self._variables(results)
        held = self._proved(len(avals), results)
        return ElementSteps(self.start, self.end, self.examples, self.steps, self.states, self.last, avals, held)

    def _stays(self, v: Value) -> bool:
        """Whether a value is there after the stretch: a state, an element of one, or what is not made in it."""
        node = self.graph.producer.get(v)
        if node is None or v not in self.made or v in self.last:
            return True
        if not _is_element(node) or v in self.kept:
            return False
        if self._array(node.inputs[0]) is None:
            self.stale.add(v)
        return True

    def _original(self, v: Value) -> Value:
        return self.same.get(v, v)

    def _lines(self) -> Iterator[list[Node]]:
        """The nodes of each step: those of one line up to a write, or of one iteration of a line that repeats."""
        line: list[Node] = []
        for node in self.nodes:
            if line and node.where != line[0].where:
                yield from _iterations(line)
                line = []
            line.append(node)
            if node.prim is setitem:
                yield line
                line = []
        if line:
            yield from _iterations(line)

    def _read(self, nodes: list[Node]) -> None:
        """One step, which joins those of its kind."""
        step = ElementStep(-1, nodes, [], -1, [], [])
        local = {node.out: k for k, node in enumerate(nodes) if node.prim is not setitem}
        known: dict[tuple[int | Value, int], ElementRead] = {}
        operands = [[self._operand(v, step, local, known) for v in scalars_of(node)] for node in nodes]
        key: list[Hashable] = []
        for node, found in zip(nodes, operands, strict=True):
            if node.prim is getitem and not isinstance(found[0], ElementRead):  # of a state that is no more
                raise NoSteps
            attrs = () if _is_element(node) else attrs_key(node.attrs)
            key.append((node.prim, node.where, node.replica, attrs, node.out.aval, tuple(found)))
        state = -1
        if nodes[-1].prim is setitem:
            state = self._written(nodes[-1], step)
            key.append(state)
        step.kind = self.kinds.setdefault(tuple(key), len(self.kinds))
        if step.kind == len(self.examples):
            if step.kind == KINDS:
                raise NoSteps
            self.examples.append(StepKind(nodes, operands, state))
        self.steps.append(step)
        self.at.update({v: (step.kind, k) for v, k in local.items()})

    def _operand(
        self, v: Value, step: ElementStep, local: dict[Value, int], known: dict[tuple[int | Value, int], ElementRead]
    ) -> Operand:
        v = self._original(v)
        node = self.graph.producer.get(v)
        if node is not None and node.prim is const:
            step.numbers.append(node.attrs["value"])
            return StepNumber(len(step.numbers) - 1, v.aval)
        if node is not None and _is_element(node):
            array = self._array(node.inputs[0])
            if array is not None:
                place = _flat(node)
                if (array, place) not in known:
                    step.reads.append(place)
                return known.setdefault((array, place), ElementRead(array, len(known)))
            if v not in self.kept:
                self.stale.add(v)
        if v in local:
            return LocalResult(local[v])
        if v not in self.made:
            return v
        step.earlier.append(v)
        return EarlierResult(len(step.earlier) - 1, v.aval)

    def _array(self, x: Value) -> int | Value | None:
        """A state, or an array that the steps do not change; None for a state of before."""
        x = self._original(x)
        return self.now.get(x, None if x in self.made else x)

    def _written(self, node: Node, step: ElementStep) -> int:
        """The state that a node writes into."""
        x = self._original(node.inputs[0])
        if x not in self.now:
            if x in self.made:
                raise NoSteps
            self.now[x] = len(self.states)  # another array that begins with the same elements
            self.states.append(x)
            self.last.append(x)
        state = self.now.pop(x)
        self.now[node.out] = state
        self.last[state] = node.out
        step.written = _flat(node)
        return state

    def _variables(self, results: Sequence[Value]) -> list[Aval]:
        """Give what steps take from others, and the results, variables; their avals."""
        joined: dict[Site, Site] = {}

        def root(site: Site) -> Site:
            while joined.setdefault(site, site) != site:
                site = joined[site]
            return site

        takes: dict[tuple[int, int], None] = {}
        avals = {self._origin(v): v.aval for v in results}
        for step in self.steps:
            for place, v in enumerate(step.earlier):
                takes[step.kind, place] = None
                avals[self._origin(v)] = v.aval
                joined[root((*self._origin(v), "made"))] = root((step.kind, place, "taken"))
        number: dict[Site, int] = {}
        found: list[Aval] = []
        for (kind, position), aval in avals.items():
            variable = number.setdefault(root((kind, position, "made")), len(number))
            if variable == len(found):
                found.append(aval)
            if found[variable] != aval or variable in self.examples[kind].defines.values():
                raise NoSteps
            self.examples[kind].defines[position] = variable
        for kind, place in sorted(takes):
            self.examples[kind].takes.append(number[root((kind, place, "taken"))])
        return found

    def _origin(self, v: Value) -> tuple[int, int]:
        if v not in self.at:
            raise NoSteps
        return self.at[v]

    def _proved(self, variables: int, results: Sequence[Value]) -> dict[Value, int]:
        """The variables that hold the results at the end, if all variables hold what steps take from them."""
        holds: list[Value | None] = [None] * variables
        for step in self.steps:
            kind = self.examples[step.kind]
            if any(holds[k] is not v for k, v in zip(kind.takes, step.earlier, strict=True)):
                raise NoSteps
            for position, variable in kind.defines.items():
                holds[variable] = step.nodes[position].out
        held = {v: k for k, v in enumerate(holds) if v is not None}
        if any(v not in held for v in results):
            raise NoSteps
        return {v: held[v] for v in results}


def scalars_of(node: Node) -> Sequence[Value]:
    """The operands of a node that are numbers; of one that reads, the number that it reads."""
    if node.prim is getitem:
        return node.outputs
    return node.inputs[1:] if node.prim is setitem else node.inputs


def _flat(node: Node) -> int:
    """The place of an element among all elements of its array."""
    place = 0
    for k, n in zip(node.attrs["index"], node.inputs[0].aval.shape, strict=True):
        place = place * n + k % n
    return place


def _iterations(line: list[Node]) -> Iterator[list[Node]]:
    """A line that is repeated, iteration by iteration; what is different at its beginning comes first."""
    codes = [(node.prim, node.out.aval, len(node.inputs)) for node in line[::-1]]
    borders = [0]  # how many of the first codes are the last ones of so many, too
    for code in codes[1:]:
        n = borders[-1]
        while n and codes[n] != code:
            n = borders[n - 1]
        borders.append(n + (codes[n] == code))
    alike = next((n for n in range(len(line), 0, -1) if 2 * borders[n - 1] >= n), 0)
    period = alike - borders[alike - 1] if alike else len(line)
    first = len(line) - alike // period * period
    if first:
        yield line[:first]
    for k in range(first, len(line), period):
        yield line[k : k + period]


def _repeats(kinds: np.ndarray[Any, Any]) -> bool:
    """Whether a sequence repeats itself, perhaps after some first steps."""
    n = len(kinds)
    half = kinds[n // 2 :]
    rare = np.flatnonzero(half == half[np.argmin(np.bincount(half)[half])])
    return any(
        PERIODS * p <= n and bool((half[p:] == half[:-p]).all()) for p in {*np.diff(rare).tolist()} if p < len(half)
    )
