"""at_once: which loops are worth threads, as each of their steps only fills rows, and needs nothing of the others."""

from __future__ import annotations

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import LoopNode
from ...ops.structural.kernel import kernel
from ...ops.structural.stack import step_numbers

WORTH = 1 << 22  # bytes that a loop reads and writes
LONG = 1 << 18  # ... and an operation that is not short: between short ones, threads wait for Python's lock
SHARE = 0.9  # of the bytes, at least, that long operations read and write
FEWEST = 4  # steps
MULTIPLICATIONS = 2  # bytes as which one of them in a product counts


def at_once(graph: Graph, loop: LoopNode) -> bool:
    """Whether threads may share the steps of a loop in a graph, and these are long enough."""
    body = loop.body
    if loop.condition is not None or loop.length < FEWEST or len(loop.node.outputs) != loop.layout.arrays:
        return False
    if loop.layout.carry or body.effect or any(node.prim is not kernel for node in body.nested):
        return False
    rows = loop.layout.operands(loop.operands)[2]
    if any(v.aval.steps is not None or _only_numbered(graph, v) for v in rows):
        return False
    moved = [_moved_bytes(node) for node in body.nodes]
    long = sum(n for n in moved if n >= LONG)
    return long >= SHARE * sum(moved) and long * loop.length >= WORTH


def _only_numbered(graph: Graph, value: Value) -> bool:
    return value in graph.producer and graph.producer[value].prim is step_numbers


def _moved_bytes(node: Node) -> int:
    """About the bytes that an operation reads and writes."""
    if node.prim.alias is not None:
        return 0
    total = sum(max(v.aval.nbytes, 0) for v in (*node.inputs, *node.outputs))
    if node.prim.name == "matmul":
        total += MULTIPLICATIONS * node.out.aval.size * node.inputs[0].aval.shape[-1]
    return total
