"""Follow a trace through a folded graph: the proof that the graph is equal for these answers.

The graph is walked as if it ran, with values of the trace in place of numbers: each operation must be the next one
of the trace, on the same operands. A branch takes the side that the trace took.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...ir.builder import attrs_key
from ...ir.evaluate import run_node
from ...ir.graph import Graph, Node, Value
from ...ir.texts import Arg
from ...ir.types import Aval
from ...ops.structural.guard import guard
from .emit import Folded, FoldedLoop
from .words import ALIKE, is_plain, is_step


class Differs(Exception):  # noqa: N818 - a signal, not an error
    """The recording does something else."""


class KnownValue(NamedTuple):
    """What is known without the arguments, by a key that is equal for equal ones; ``value`` is None for the rest."""

    key: Any
    value: Any = None


class EachStep(NamedTuple):
    """A result of each step of a loop."""

    each: tuple[Any, ...]


def follow(folded: Folded, recording: Graph) -> list[np.ndarray[Any, Any]] | None:
    """The answers of the choices in a recording; None unless the folded graph is the same as the recording for them.

    The inputs of the two correspond.
    """
    try:
        return _Follower(folded, recording).answers()
    except Differs:
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """A node of the folded graph, prepared: ``run`` gives its results, ``key`` tells the operation from others.

    Of a choice or a loop, ``key`` holds the graphs.
    """

    run: Callable[[_Follower, Op, list[Any]], Sequence[Any]]
    node: Node
    key: Any = None
    moves: bool = False  # whether its index has operands
    avals: tuple[Aval, ...] = ()  # of operands and results
    plain: bool = False  # whether it is one without attributes and with one result


class Program(NamedTuple):
    """A graph, prepared: what is known of it without arguments, and the operations."""

    known: dict[Value, Any]
    ops: list[Op]


class _Follower:
    def __init__(self, folded: Folded, recording: Graph) -> None:
        self.folded, self.recording = folded, recording
        self.of: dict[Value, Any] = {}  # what a value of the recording is, where it is no step
        self.rest: list[Node] = []
        for node in recording.nodes:
            if not is_plain(node):
                raise Differs
            if is_step(node):
                self.rest.append(node)
            else:
                self.of[node.outputs[0]] = _known(node)
        self.at = 0
        self.said: dict[Value, bool] = {}

    def answers(self) -> list[np.ndarray[Any, Any]]:
        """Walk the whole graph."""
        graph = self.folded.graph
        if graph.in_avals != self.recording.in_avals:
            raise Differs
        found = self.walk(graph, self.recording.inputs)
        n = len(graph.outputs) - self.folded.choices
        results = [self.of.get(v, v) for v in self.recording.outputs]
        if self.at != len(self.rest) or found[:n] != results:
            raise Differs
        if [v.aval for v in graph.outputs[:n]] != [v.aval for v in self.recording.outputs]:
            raise Differs
        return [np.array([self._answer(x) for x in steps.each]) for steps in found[n:]]

    def _answer(self, x: Any) -> bool:
        return bool(x.value) if isinstance(x, KnownValue) else self.said[x]

    def walk(self, graph: Graph, operands: Sequence[Any]) -> list[Any]:
        """The results of a graph, as values of the recording."""
        program: Program = graph.once("followed", lambda: _program(self.folded, graph))
        env = program.known.copy()
        env.update(zip(graph.inputs, operands, strict=True))
        rest, of = self.rest, self.of
        for op in program.ops:
            node = op.node
            if op.plain and self.at < len(rest):  # the same as ``_same``, for the most part of all operations
                other = rest[self.at]
                if other.prim is node.prim and not other.attrs and other.replica == node.replica:
                    inputs, outputs = other.inputs, other.outputs
                    if len(inputs) == len(node.inputs):
                        for mine, v in zip(node.inputs, inputs, strict=True):
                            x = env[mine]
                            if (x is not v and x != of.get(v, v)) or mine.aval is not v.aval:
                                break
                        else:
                            if outputs[0].aval is node.outputs[0].aval:
                                env[node.outputs[0]] = outputs[0]
                                self.at += 1
                                continue
            results = op.run(self, op, [env[v] for v in node.inputs])
            if len(results) == 1:
                env[node.outputs[0]] = results[0]
            else:
                env.update(zip(node.outputs, results, strict=True))
        return [env[v] for v in graph.outputs]

    def next(self) -> Node:
        """The next operation of the recording."""
        if self.at == len(self.rest):
            raise Differs
        self.at += 1
        return self.rest[self.at - 1]


def _program(folded: Folded, graph: Graph) -> Program:
    known = {node.outputs[0]: _known(node) for node in graph.nodes if not is_step(node) and node not in folded.own}
    return Program(known, [_prepared(folded, node) for node in graph.nodes if is_step(node) or node in folded.own])


def _prepared(folded: Folded, node: Node) -> Op:
    if node in folded.own:
        return Op(_made, node)
    if node in folded.sides:
        return Op(_side, node, folded.sides[node])
    if node is folded.loop.node:
        return Op(_loop, node, folded.loop)
    moves = any(type(part) is Arg for part in node.attrs.get("index", ()))
    avals = tuple([v.aval for v in (*node.inputs, *node.outputs)])
    plain = not node.attrs and len(node.outputs) == 1
    return Op(_same, node, attrs_key(node.attrs) if node.attrs else (), moves, avals, plain)


def _made(follower: _Follower, op: Op, operands: list[Any]) -> Sequence[Any]:
    """What a node of the folded graph alone gives."""
    if op.node.prim.name == "cast":
        return operands
    if op.node.prim is guard:  # the loop has ended
        if not (isinstance(operands[0], KnownValue) and operands[0].value is False):
            raise Differs
        return ()
    if not all(isinstance(x, KnownValue) for x in operands):
        raise Differs
    return (KnownValue(("array", id(op)), run_node(op.node, [x.value for x in operands])[0]),)


def _side(follower: _Follower, op: Op, operands: list[Any]) -> Sequence[Any]:
    """The side of a choice that the recording took."""
    if isinstance(operands[0], KnownValue):
        return follower.walk(op.key[bool(operands[0].value)], operands[1:])
    node = follower.next()
    if node.prim is not guard or node.attrs["kind"] != "bool" or node.attrs["lanes"]:
        raise Differs
    asked, *given = operands
    if node.inputs[0] is not asked:
        raise Differs
    said = follower.said[asked] = bool(node.attrs["expected"])
    return follower.walk(op.key[said], given)


def _loop(follower: _Follower, op: Op, operands: list[Any]) -> Sequence[Any]:
    loop: FoldedLoop = op.key
    consts, carry, xs = loop.parts.operands(operands)
    rows = []
    for row in zip(*map(_rows, xs), strict=True) if xs else [()] * loop.length:
        carry, answers, _ = loop.parts.results(follower.walk(loop.body, [*consts, *carry, *row]))
        rows.append(answers)
    return [*carry, *(EachStep(each) for each in zip(*rows, strict=True))]


def _rows(x: KnownValue) -> list[KnownValue]:
    """The numbers of an array, each as what a step gets."""
    array = np.asarray(x.value)
    return [KnownValue(("number", (), array.dtype, repr(number)), number.item()) for number in array]


def _same(follower: _Follower, op: Op, operands: list[Any]) -> Sequence[Any]:
    """The results of the next operation of the recording, which must be this one on these operands."""
    node, other, key, avals = op.node, follower.next(), op.key, op.avals
    if other.prim is not node.prim or other.replica != node.replica:
        raise Differs
    inputs = other.inputs
    if op.moves:
        operands, key = _at_rest(node, operands, len(inputs))
        avals = (*avals[: len(inputs)], *avals[len(node.inputs) :])
    if other.attrs is not node.attrs and attrs_key(other.attrs) != key:
        raise Differs
    if len(operands) != len(inputs):
        raise Differs
    of = follower.of
    for x, v in zip(operands, inputs, strict=True):
        if x is not v and x != of.get(v, v):
            raise Differs
    for mine, v in zip(avals, (*inputs, *other.outputs), strict=True):
        if mine is not v.aval and mine != v.aval and not _alike(node, mine, v.aval):
            raise Differs
    return other.outputs


def _at_rest(node: Node, operands: list[Any], count: int) -> tuple[list[Any], Any]:
    """The operands of an operation without those of its index, and its key with ints in their place."""
    index = [operands[part.position] if type(part) is Arg else part for part in node.attrs["index"]]
    if not all(isinstance(x, KnownValue) for x in operands[count:]):
        raise Differs
    ints = tuple([int(part.value) if isinstance(part, KnownValue) else part for part in index])
    return operands[:count], attrs_key({**node.attrs, "index": ints})


def _known(node: Node) -> KnownValue:
    value = node.attrs.get("value")
    if node.prim.name == "const" and not isinstance(value, tuple):
        aval = node.outputs[0].aval
        return KnownValue(("number", aval.shape, aval.dtype, repr(aval.dtype.type(value))), value)
    return KnownValue((node.prim, attrs_key(node.attrs)), value)


def _alike(node: Node, mine: Aval, other: Aval) -> bool:
    """Whether an operation does the same to a NumPy number as to a number of Python."""
    if node.prim.name not in ALIKE or mine.shape or other.shape or "array" in (mine.kind, other.kind):
        return False
    return mine.dtype == other.dtype and mine.kind == "scalar" and other.kind == "python"
