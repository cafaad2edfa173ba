"""A tree of ways: the decisions that recordings have made, which finds the way of a call without recording it.

At a fork stands the question that Python asked, with the operations that it takes to ask it and that no fork above
needs. Each answer leads on to the next fork or to a way. Operations are the same in all ways that share them, so a
way is only taken in if it asks what the others ask until it parts from them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ..ir.builder import attr_key, attrs_key
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import with_bodies
from ..ir.runners import prepared_node
from ..ops.structural.guard import answer, guard
from ..passes.control.merge_paths import equal


class Computed:
    """An operation on given values, or a given value, which has no ``run``."""

    __slots__ = ("operands", "run", "single")

    def __init__(self, run: Callable[..., Any] | None, single: bool, operands: tuple[Place, ...]) -> None:
        self.run, self.single, self.operands = run, single, operands


Place = tuple[Computed, int]  # one of the results of an operation
FEW = 1024  # operations up to which those that no way needs are not looked for


@dataclass(eq=False, slots=True)
class Fork:
    """A question, the operations to compute before, and what comes after each answer."""

    before: tuple[Computed, ...]
    asked: Place
    kind: str
    lanes: bool
    after: dict[Any, Fork | KnownWay]


class ConstantArray(NamedTuple):
    """An array that a recording made, in place of the key of an input: it is the same whatever is given."""

    array: np.ndarray[Any, Any]


class KnownWay:
    """A leaf of the tree; ``answers`` are those that lead there."""

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self.answers = answers


class TreeOfWays:
    """The ways that were added; what they are given is known by a key."""

    def __init__(self) -> None:
        self._root: Fork | None = None
        self._given: dict[Hashable, Computed] = {}
        self._known: dict[Any, Computed] = {}
        self._many = FEW  # operations from which those are looked for that no way needs any more
        self._bodies: dict[int, list[ref[Graph]]] = {}

    def find(self, given: Mapping[Hashable, Any]) -> KnownWay | None:
        """The way of these values, if it is known; what computing them raises is raised."""
        at: Fork | KnownWay | None = self._root
        env: dict[Computed, Any] = {c: (given[key],) for key, c in self._given.items() if key in given}
        while isinstance(at, Fork):
            for c in at.before:
                assert c.run is not None
                found = c.run(*[env[source][k] for source, k in c.operands])
                env[c] = (found,) if c.single else found
            source, k = at.asked
            at = at.after.get(_answered(env[source][k], at.kind, at.lanes))
        return at

    def add(self, way: KnownWay, graph: Graph, given: Sequence[Hashable]) -> bool:
        """Add a way with its recording, which is ``keepable`` and whose inputs have these keys.

        False where it does not fit to the others.
        """
        if not way.answers:
            return False
        if len(self._known) > self._many:
            self._forget()
            self._many = max(FEW, 2 * len(self._known))
        places: dict[Value, Place] = {}
        for v, key in zip(graph.inputs, given, strict=True):
            places[v] = (self._made(key.array) if isinstance(key, ConstantArray) else self._input(key)), 0
        ready = set(self._given.values())
        at: Fork | KnownWay | None = self._root
        parted: tuple[Fork, Any] | None = None  # the last fork of other ways, and the answer
        new: list[tuple[Fork, Any]] = []
        for node in _asked(graph):
            if node.prim is not guard:
                c = self._computed(graph, node, tuple([places[v] for v in node.inputs]))
                for k, v in enumerate(node.outputs):
                    places[v] = c, k
                continue
            asked, kind, lanes = places[node.inputs[0]], node.attrs["kind"], node.attrs["lanes"]
            key = attr_key(node.attrs["expected"])
            if at is None:
                before = _missing(asked[0], ready)
                new.append((Fork(before, asked, kind, lanes, {}), key))
                ready.update(before)
                continue
            if not isinstance(at, Fork) or (at.asked, at.kind, at.lanes) != (asked, kind, lanes):
                return False
            ready.update(at.before)
            parted = at, key
            at = at.after.get(key)
        if at is not None:
            return False
        end: Fork | KnownWay = way
        for fork, key in reversed(new):
            fork.after[key] = end
            end = fork
        if parted is not None:
            parted[0].after[parted[1]] = end
        else:
            assert isinstance(end, Fork)
            self._root = end
        return True

    def remove(self, way: KnownWay) -> None:
        """Remove a way, and what only it needs."""
        at: Fork | KnownWay | None = self._root
        last: tuple[Fork, Any] | None = None  # the last fork that other ways need, and the answer
        for key in way.answers:
            assert isinstance(at, Fork)
            if last is None or len(at.after) > 1:
                last = at, key
            at = at.after[key]
        assert last is not None
        del last[0].after[last[1]]
        if self._root is not None and not self._root.after:
            self._root = None

    def _forget(self) -> None:
        """Let go the operations that no way needs."""
        needed = set[Computed]()
        stack: list[Fork | KnownWay | None] = [self._root]
        while stack:
            at = stack.pop()
            if isinstance(at, Fork):
                needed.update(at.before)
                stack.extend(at.after.values())
        self._known = {key: c for key, c in self._known.items() if c in needed}

    def _input(self, key: Hashable) -> Computed:
        return self._given.setdefault(key, Computed(None, True, ()))

    def _made(self, array: np.ndarray[Any, Any]) -> Computed:
        """An array as an operation without operands; equal ones are one."""
        key = (array.shape, array.dtype, array.strides, sha256(array.tobytes()).digest())
        return self._known.setdefault(key, Computed(lambda: array, True, ()))

    def _computed(self, graph: Graph, node: Node, operands: tuple[Place, ...]) -> Computed:
        """The operation of a node on known operands, which is one for all ways."""
        if node.prim.structure is not None:
            node = with_bodies(node, self._body)
        key = (node.prim, attrs_key(node.attrs) if node.attrs else (), node.replica, operands)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Computed(*prepared_node(graph, node), operands)
        return found

    def _body(self, graph: Graph) -> Graph:
        """The first graph that is equal, of those that some way has."""
        known = self._bodies.setdefault(len(graph.nodes), [])
        for held in known:
            other = held()
            if other is not None and equal(graph, other):
                return other
        known[:] = [held for held in known if held() is not None]
        known.append(ref(graph))
        return graph


def keepable(graph: Graph) -> bool:
    """Whether a recording does nothing but compute and decide."""
    return not any(node.effect for node in graph.nodes if node.prim is not guard)


def _asked(graph: Graph) -> list[Node]:
    """The guards of a recording, and what computes their operands, in order."""
    needed: set[Value] = set()
    found = []
    for node in reversed(graph.nodes):
        if node.prim is guard or not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            found.append(node)
    return found[::-1]


def _missing(last: Computed, ready: set[Computed]) -> tuple[Computed, ...]:
    """What must be computed for an operation, itself included, in order."""
    found: dict[Computed, None] = {}
    stack = [last]
    while stack:
        at = stack[-1]
        if at in ready or at in found:
            stack.pop()
            continue
        waiting = [c for c, _ in at.operands if c not in ready and c not in found]
        if waiting:
            stack.extend(waiting)
        else:
            found[at] = None
            stack.pop()
    return tuple(found)


def _answered(value: Any, kind: str, lanes: bool) -> Any:
    """The key of the answer that Python gets; None where lanes answer differently."""
    if not lanes:
        return attr_key(answer(value, kind))
    each = {attr_key(answer(v, kind)) for v in np.asarray(value)}
    return each.pop() if len(each) == 1 else None
