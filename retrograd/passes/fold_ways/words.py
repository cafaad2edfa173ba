"""Words: traces as sequences of kinds of operations, cut into the steps of a loop."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir.builder import attr_key, attrs_key
from ...ir.graph import Graph, Node, Value
from ...ir.types import Aval
from ...ops.structural.guard import guard
from ..reroll.find_repeats import masked

COPIES = 8  # fewer steps are left as they are
HEADS = 6  # how many kinds of operations are tried as the first of a step
MANY = 1 << 32  # steps of the k-th recording have numbers from k times this
# Operations that do the same to a float of Python and to one of NumPy.
ALIKE = frozenset({"add", "sub", "mul", "neg", "lt", "le", "gt", "ge", "eq", "ne", "guard"})


class Unfoldable(Exception):  # noqa: N818 - a signal, not an error
    """The recordings stay as they are."""


def is_step(node: Node) -> bool:
    """Whether a node belongs to a place in the program; numbers and others without operands are made anywhere."""
    return bool(node.inputs) or node.prim.effect


def is_plain(node: Node) -> bool:
    """Whether a node is a guard or a plain operation."""
    prim = node.prim
    return prim is guard or (prim.structure is None and prim.run is None and not prim.effect)


def kind(node: Node) -> Hashable:
    """A key that is equal for nodes that may be one operation of a loop's body in several steps."""
    attrs = tuple(
        [
            (name, masked(value) if name == "index" else attr_key(value))
            for name, value in node.attrs.items()
            if not (name == "expected" and node.prim is guard)
        ]
    )
    alike = node.prim.name in ALIKE  # a variable may start as a number of Python
    avals = tuple([aval.dtype if alike and _is_number(aval) else aval for aval in (v.aval for v in node.inputs)])
    return node.prim, node.where, node.replica, attrs, avals


def _is_number(aval: Aval) -> bool:
    return aval.kind in ("python", "scalar") and aval.steps is None and aval.dtype.kind in "bf"


@dataclass(eq=False)
class Words:
    """Recordings over the inputs of the first one, whose graph is ``graph``: their operations, and the kinds of these.

    ``producer`` knows the nodes of all of them, numbers included; equal numbers are one value.
    """

    graph: Graph
    nodes: list[list[Node]] = field(default_factory=list)
    kinds: list[np.ndarray[Any, Any]] = field(default_factory=list)
    outputs: list[list[Value]] = field(default_factory=list)
    producer: dict[Value, Node] = field(default_factory=dict)

    def heads(self) -> list[int]:
        """Kinds of which an operation may begin each step: those that cover most, of equally many the first."""
        found, first, counts = np.unique(self.kinds[0], return_index=True, return_counts=True)
        tried: dict[int, tuple[int, int, int]] = {}
        for k, at, count in sorted(
            zip(found.tolist(), first.tolist(), counts.tolist(), strict=True), key=lambda x: x[1]
        ):
            if count >= COPIES and count not in tried:
                last = int(np.flatnonzero(self.kinds[0] == k)[-1])
                tried[count] = (last - at - (last - at) // count, count, k)
        return [k for *_, k in sorted(tried.values(), reverse=True)[:HEADS]]

    def cuts(self, head: int) -> list[list[int]]:
        """Where the steps of each recording begin."""
        found = [np.flatnonzero(kinds == head).tolist() for kinds in self.kinds]
        if not all(found):
            raise Unfoldable("traces without the loop")
        return found

    def aligned(self, starts: Sequence[int]) -> Words:
        """The same, with the values before the loop those of the first recording; ``starts`` are where loops begin."""
        found = Words(self.graph, [self.nodes[0]], self.kinds, [self.outputs[0]], dict(self.producer))
        for k, start in enumerate(starts[1:], 1):
            if not np.array_equal(self.kinds[0][: starts[0]], self.kinds[k][:start]):
                raise Unfoldable("traces that begin differently")
            env: dict[Value, Value] = {}
            for one, other in zip(self.nodes[0][:start], self.nodes[k][:start], strict=True):
                env.update(zip(other.outputs, one.outputs, strict=True))
            nodes = [_with_inputs(node, tuple([env.get(v, v) for v in node.inputs])) for node in self.nodes[k]]
            found.nodes.append(nodes)
            found.producer.update((out, node) for node in nodes[start:] for out in node.outputs)
            found.outputs.append([env.get(v, v) for v in self.outputs[k]])
        return found


def words_of(graphs: Sequence[Graph]) -> Words:
    """The words of recordings with inputs that correspond; Unfoldable where one has more than plain operations."""
    made = Words(graphs[0])
    numbers: dict[Hashable, Value] = {}
    known: dict[Hashable, int] = {}
    for graph in graphs:
        env = dict(zip(graph.inputs, graphs[0].inputs, strict=True))
        nodes = list(_renamed(graph, env, numbers, made.producer))
        made.nodes.append(nodes)
        made.kinds.append(np.array([known.setdefault(kind(n), len(known)) for n in nodes], np.int64))
        made.outputs.append([env[v] for v in graph.outputs])
    return made


def _renamed(
    graph: Graph, env: dict[Value, Value], numbers: dict[Hashable, Value], producer: dict[Value, Node]
) -> Iterator[Node]:
    for node in graph.nodes:
        if not is_plain(node):
            raise Unfoldable(f"{node.prim.name} is not a plain operation")
        if not is_step(node):
            (out,) = node.outputs
            env[out] = numbers.setdefault((node.prim, attrs_key(node.attrs)), out)
            producer.setdefault(env[out], node)
            continue
        inputs = tuple([env[v] for v in node.inputs])
        renamed = _with_inputs(node, inputs)
        env.update(zip(node.outputs, node.outputs, strict=True))
        producer.update(dict.fromkeys(node.outputs, renamed))
        yield renamed


def _with_inputs(node: Node, inputs: tuple[Value, ...]) -> Node:
    if inputs == node.inputs:
        return node
    return Node(node.prim, inputs, node.attrs, node.outputs, node.where, node.replica)
