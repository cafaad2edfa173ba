"""dead_writes: Graph → Graph without writes of elements that nothing reads later.

The adjoint of ``a[i:] = x`` reads a part of the cotangent of a, and sets it to zero. If nothing reads these zeros, the
write is left out, and the part need not be copied before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import Env, mapped, rebuild
from .prune import prune

LARGEST = 1 << 20  # elements of the largest array of which it is known which are read
WRITES = frozenset({"additem", "setitem", "subitem"})

Elements = np.ndarray[Any, np.dtype[np.bool_]]


def without_dead_writes(graph: Graph) -> Graph:
    """Leave out the writes, and what computes the values that are written."""
    return mapped(graph, _without_dead_writes)


def _without_dead_writes(graph: Graph) -> Graph:
    if sum(n for prim, n in graph.prims.items() if prim.name in WRITES) < 2:
        return graph
    written = {node.out for node in graph.nodes if _writes(node)}
    if len(written) < 2:
        return graph
    dead = _Reads(graph, written).dead
    if dead:
        dead -= _returned(graph)

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        return [env[node.inputs[0]]] if node in dead else None

    return prune(rebuild(graph, rule)) if dead else graph


def _writes(node: Node) -> bool:
    """Whether a node writes at a known place."""
    return node.prim.name in WRITES and len(node.inputs) == 2 and node.out.aval.size <= LARGEST


def _returned(graph: Graph) -> set[Node]:
    """The writes that make results, or what results are views of: without them, a result might be an argument."""
    results, found = set(graph.outputs), set()
    for node in reversed(graph.nodes):
        if results.isdisjoint(node.outputs):
            continue
        if _writes(node):
            found.add(node)
        elif node.prim.alias is not None:
            results.update(node.inputs)
    return found


class _Reads:
    """Which elements of values are read, found from the last node to the first; ``dead`` are writes of others."""

    def __init__(self, graph: Graph, written: set[Value]) -> None:
        self.written = written
        self.read: dict[Value, Elements | None] = dict.fromkeys(graph.outputs)  # None: all
        self.dead: set[Node] = set()
        for node in reversed(graph.nodes):
            self._visit(node)

    def _visit(self, node: Node) -> None:
        if self.read.keys().isdisjoint(node.outputs) and not node.effect:
            return
        if node.outputs and node.outputs[0] in self.written:
            self._write(node)
        elif node.prim.name == "getitem" and len(node.inputs) == 1 and node.inputs[0] in self.written:
            self._elements(node.inputs[0])[node.attrs["index"]] = True
        else:
            self.read.update(dict.fromkeys(node.inputs))

    def _write(self, node: Node) -> None:
        (base, value), index = node.inputs, node.attrs["index"]
        read = self.read.pop(node.out)
        if read is None:
            read = np.ones(node.out.aval.shape, bool)
        if not read[index].any():
            self.dead.add(node)
        else:
            self.read[value] = None
            if node.prim.name == "setitem":
                read[index] = False
        if base in self.written:
            self._elements(base, read)
        else:
            self.read[base] = None

    def _elements(self, value: Value, also: Elements | None = None) -> Elements:
        """The elements of a value that are read, to be changed; those of another one's are added."""
        known = self.read.get(value, also)
        if known is None:
            known = np.ones(value.aval.shape, bool) if value in self.read else np.zeros(value.aval.shape, bool)
        elif also is not None and known is not also:
            known |= also
        self.read[value] = known
        return known
