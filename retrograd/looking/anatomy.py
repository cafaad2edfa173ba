"""Anatomy: one compilation taken apart, so that each operation knows its line, its source, its adjoint and its cost.

A trace is numbered, derived and planned once more. Passes keep lines, so that each operation of the derivative
says from which operation of the trace it comes, and each statement of the source from which operation of the graph.
"""

from __future__ import annotations

import copy
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..compiler.compilation import Compilation, Derived
from ..compiler.executable import Executable
from ..compiler.garbage import paused
from ..compiler.paths import FINDERS, Paths
from ..compiler.settings import config
from ..compiler.stages import PIPELINE, run
from ..ir.graph import Graph, Node, Value
from ..ir.printer import value_names
from ..ir.rewrite import walk
from ..ir.types import Aval
from ..ops.structural.region import turn
from .origins import final_of, line_of, origin, relabelled, traced_of

FORWARD, ADJOINT, AGAIN, LATER = "forward", "adjoint", "again", "later"
PARTS = {
    FORWARD: "the function",
    ADJOINT: "the adjoint",
    AGAIN: "computed again",
    LATER: "computed later, not repeated",
}
UNKNOWN = re.compile(r"\s+# :0$")
# Bodies of a loop behind the turn that repeat steps of the function.
REPEATING = ("advance", "retape")


@dataclass(frozen=True, eq=False)
class PlacedNode:
    """An operation of the compiled graph: ``number`` names it, ``outer`` is the operation whose body holds it.

    ``part`` is one of forward, adjoint, again and later. ``traced`` is the number of the operation in the recording
    that led to it, ``lines`` are the statements that it became. ``times`` says how often it runs in a call, and is open
    where data decide.
    """

    number: int
    node: Node
    part: str
    outer: int | None
    body: str
    traced: int | None
    times: float
    open: bool
    names: tuple[str, ...]
    operands: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Piece:
    """One piece of code of a compilation: a gradient has one, a derivative at a point has two."""

    part: str
    executable: Executable
    operations: tuple[int, ...]

    @property
    def source(self) -> list[str]:
        """Its lines; statements that stand for no line of the user's have no comment."""
        return [UNKNOWN.sub("", line) for line in self.executable.module.source.splitlines()]

    @cached_property
    def statements(self) -> dict[int, int]:
        """The operation behind each line of source, by the number of the line from 1 on."""
        lines = self.executable.module.lines.items()
        return {line: found for line, where in lines if (found := final_of(where)) is not None}


class Anatomy:
    """A compilation of a call, taken apart.

    ``exact`` says whether adjoints are known operation by operation; without it, for transforms that record functions
    made by other transforms, they are known by lines.
    """

    def __init__(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.compiled = compiled
        found = FINDERS[-1](compiled, compiled._take(args, kwargs))
        self.paths, self.call = found.paths, found.call
        self.way: Compilation = found.paths.way(compiled, *found.operands)
        present = found.paths.present(found.captures) if isinstance(found.paths, Paths) else None
        self.operands = self.way.arguments(found.call.values(), present)
        self._numbers = itertools.count()
        self.operations: dict[int, PlacedNode] = {}
        with config(**self.way.settings._asdict()), paused, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the call itself has warned
            self.recording = self._numbered()
            self.derived = self._derived()
            self.codes = self._codes()
        self.exact = any(op.traced is not None for op in self.operations.values())

    def _numbered(self) -> Graph:
        """The recording with its operations numbered."""
        count = itertools.count()
        return relabelled(self.way.recorded.graph, lambda node: origin(node.where, next(count)))

    def _derived(self) -> Derived:
        """What the transform makes of the numbered recording."""
        recorded = replace(self.way.recorded, graph=self.recording)
        transform = self.compiled._transform
        found: Derived = transform.derive(self.compiled._function, recorded, self.call)
        return found

    def _codes(self) -> tuple[Piece, ...]:
        later, settings, ordered = self.derived.later, self.way.settings, self.way.signature.ordered
        if later is None:
            planned = self._labelled(run(self.derived.graph, PIPELINE, settings, until="divide"), FORWARD)
            self.planned = planned
            return (self._code(run(planned, ("divide",), settings), FORWARD, ordered),)
        planned = self.planned = self._labelled(later.planned(settings), FORWARD)
        first = self._code(later.first(planned), FORWARD, ordered)
        back = later.second(planned, settings)
        known = {final_of(node.where) for node in walk(back)} & self.operations.keys()
        if not known:
            back = self._labelled(back, ADJOINT)
        return first, self._code(back, ADJOINT, ordered)

    def _code(self, graph: Graph, part: str, ordered: bool) -> Piece:
        executable = Executable(graph, ordered=ordered)
        numbers = {final_of(node.where) for node in walk(graph)}
        return Piece(part, executable, tuple(sorted(n for n in numbers if n is not None and n in self.operations)))

    def _labelled(self, graph: Graph, part: str) -> Graph:
        """The graph with its operations numbered and noted."""
        labelled = relabelled(graph, lambda node: origin(node.where, traced_of(node.where), next(self._numbers)))
        self._note(labelled, part, None, "", 1.0, False)
        return labelled

    def _note(self, graph: Graph, part: str, outer: int | None, body: str, times: float, decided: bool) -> None:
        names = value_names(graph)
        behind = part == ADJOINT
        for node in graph.nodes:
            if node.prim is turn:
                behind = behind or outer is None
                part = ADJOINT if behind else part
                continue
            number = final_of(node.where)
            if number is None or number in self.operations:
                continue
            moved = behind and node.replica and node.prim.name != "owned"  # a copy that is made for the results alone
            of = part if not moved else AGAIN if node.replica > 0 else LATER
            self.operations[number] = PlacedNode(
                number,
                node,
                of,
                outer,
                body,
                traced_of(node.where),
                times,
                decided,
                tuple(names[v] for v in node.outputs),
                tuple(names[v] for v in node.inputs),
            )
            for name, inner, steps in bodies(node):
                inside = AGAIN if of == ADJOINT and name in REPEATING else of
                self._note(inner, inside, number, name, times * abs(steps), decided or steps < 0)

    @cached_property
    def running(self) -> set[int]:
        """The operations that the code runs; others were dropped with results that nobody asks for."""
        return {n for code in self.codes for n in code.operations}

    def line(self, operation: PlacedNode) -> str:
        """The user's line of an operation, short; empty if there is none."""
        where = line_of(operation.node.where)
        return where.short if where is not None else ""

    @cached_property
    def adjoints(self) -> dict[int, list[int]]:
        """For each operation of the function, the operations of the adjoint that come from the same recorded one."""
        of: dict[Any, list[int]] = {}
        for op in self.operations.values():
            if op.part == ADJOINT:
                of.setdefault(self._key(op), []).append(op.number)
        return {op.number: of.get(self._key(op), []) for op in self.operations.values() if op.part != ADJOINT}

    def _key(self, op: PlacedNode) -> Any:
        return op.traced if op.traced is not None else line_of(op.node.where)

    @cached_property
    def leaves(self) -> list[tuple[str, Value]]:
        """The inputs of the recording: arguments by name, then what the function captured."""
        graph = self.way.recorded.graph
        names = value_names(graph)
        return [(names[v], v) for v in graph.inputs]

    def runs(self) -> Callable[[], None]:
        """A function that runs all the code once, on copies of the arguments where it may change them."""
        codes = self.codes
        outs = self.derived.later.outs if self.derived.later is not None else 0

        def go() -> None:
            results = codes[0].executable(*fresh(self.operands, self.way.recorded.written))
            if len(codes) > 1:
                kept = results[outs:]
                rest = codes[1].executable.graph.inputs[len(kept) :]
                codes[1].executable(*kept, *(one(v.aval) for v in rest))

        return go


def bodies(node: Node) -> Iterator[tuple[str, Graph, int]]:
    """The bodies of a node that run, by name, and how often each; -1 where data decide."""
    structure = node.prim.structure
    if structure is None:
        return
    names = {id(graph): name for name, graph in node.graphs}
    for body, graph in structure.parts(node):
        steps = structure.times(node, body)
        if steps:
            yield names.get(id(graph), body.name), graph, steps


def fresh(operands: Sequence[Any], written: Sequence[int]) -> list[Any]:
    """Operands for a run that must leave no trace: arrays that are written, and generators, are copied."""
    return [
        x.copy() if k in written and isinstance(x, np.ndarray) else x if _plain(x) else copy.deepcopy(x)
        for k, x in enumerate(operands)
    ]


def _plain(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))


def one(aval: Aval) -> Any:
    """Ones of a type, in a list if it is a list of steps."""
    if aval.steps:
        return [one(aval.unstacked()) for _ in range(max(aval.steps[0], 0))]
    if aval.kind == "array":
        return np.ones(aval.shape, aval.dtype)
    value = aval.dtype.type(1)
    return value if aval.kind == "scalar" else value.item()
