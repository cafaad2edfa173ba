"""block_kernels: Graph → Graph in which elementwise work on long arrays is done in kernels, block by block.

Each block stays in the processor's cache from the first operation to the last. Sums and extrema of what a kernel makes
are found block by block, too: forward and adjoint of one region are one kernel.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import loop_of
from ..ir.rewrite import walk
from ..ir.types import Aval
from ..ops.batching import by_elements
from ..ops.masks import putmask
from ..ops.structural.kernel import kernel
from ..ops.structural.stack import step_numbers
from .fuse import Policy, fuse
from .loops_in_blocks import LaneRules, lane_loops, with_sums_apart
from .place_buffers import place_buffers

SHORTEST = 32_768  # elements of arrays that are worked on in blocks
MOST = 16_384  # elements of a block
CACHE = 1 << 20  # bytes that the arrays of a block should take together; else blocks have half of the elements
MOST_IN_LOOPS, LEAST = 8192, 2048  # elements of a block on which loops run
STATES = 1 << 22  # bytes of the states of all steps that a cache holds
FEWEST = 4  # operations
FOLDED = frozenset({"sum", "max", "min"})
SUMMED = (np.dtype(np.float64), np.dtype(np.float32))  # NumPy halves other arrays elsewhere


def with_blocks(graph: Graph) -> Graph:
    """The graph with kernels that run on blocks."""
    if graph.largest < SHORTEST and not graph.nested:
        return graph
    nodes = list(walk(graph))
    if not any(v.aval.nbytes >= SHORTEST and is_long(v.aval) for node in nodes for v in node.outputs):
        return graph
    made = {node.out for node in nodes if node.prim.name == "const" and not isinstance(node.attrs["value"], tuple)}
    rules = _Elementwise(made).rules()
    loops = set(lane_loops(graph, rules))
    while True:
        parted, left = with_sums_apart(graph, loops, rules)
        fused = fuse(parted, _Elementwise(made, left).policy())
        apart = {left[body] for node in walk(fused) if _shares_steps(node) for body in _loops(node)}
        if not apart:
            return fused
        loops -= apart


def _loops(node: Node) -> list[Graph]:
    """The bodies of the loops in a kernel."""
    return [loop.body for _, body in node.graphs for inner in body.nodes if (loop := loop_of(inner)) is not None]


def _shares_steps(node: Node) -> bool:
    """Whether a kernel has a loop whose list of arrays another kernel reads: lists have no blocks."""
    return node.prim is kernel and any(v.aval.steps is not None and v.aval.shape for v in (*node.inputs, *node.outputs))


def is_long(aval: Aval) -> bool:
    """Whether a value is an array that is worked on in blocks."""
    return aval.kind == "array" and aval.ndim == 1 and aval.size >= SHORTEST and aval.steps is None


class _Elementwise:
    """What a kernel takes: operations on long arrays and numbers, and the folds of their results."""

    def __init__(self, filled: set[Value], loops: Container[Graph] = ()) -> None:
        self.filled = filled  # constants that are numbers in source
        self.loops = loops  # bodies of loops that work on lanes

    def policy(self) -> Policy:
        return Policy(takes=self.takes, alike=_shape, ends=_folds, fewest=FEWEST, size=longest_block)

    def rules(self) -> LaneRules:
        return LaneRules(self.takes, _folds, is_long, SHORTEST)

    def _has_blocks(self, value: Value) -> bool:
        return value.aval.shape[-1:] >= (SHORTEST,) and value not in self.filled

    def takes(self, node: Node) -> bool:
        if node.prim.name == "const":
            return node.out in self.filled
        if node.prim is step_numbers:
            return not node.inputs
        if (loop := loop_of(node)) is not None:
            return loop.body in self.loops and any(map(self._has_blocks, node.inputs))
        if node.prim.multi:
            return False
        numbers = [i for i, v in enumerate(node.inputs) if v in self.filled and v.aval.shape]
        if not all(node.prim.numpy.broadcasts or i in node.prim.numpy.loose for i in numbers):
            return False  # its source needs an array
        rows = [v.aval for i, v in enumerate(node.inputs) if v.aval.shape and i not in numbers]
        others = [v.aval for v in node.inputs if not v.aval.shape]
        if not rows or any(x.shape != rows[0].shape or not is_long(x) for x in rows):
            return False
        if any(x.steps is not None or x.kind == "generator" for x in others):
            return False
        if _folds(node):
            return not node.attrs["keepdims"] and (node.prim.name != "sum" or rows[0].dtype in SUMMED)
        return node.out.aval.shape == rows[0].shape and _has_a_text(node)


def longest_block(body: Graph) -> int:
    """The most elements in a block of a kernel: fewer where many arrays are alive at once, as the states of loops."""
    loops = [loop for node in body.nodes if (loop := loop_of(node)) is not None]
    if loops:
        states = sum(v.aval.nbytes // v.aval.shape[-1] for loop in loops for v in loop.stacks)
        fitting = 1 << max(STATES // max(states, 1), 1).bit_length() - 1
        return min(max(fitting, LEAST), MOST_IN_LOOPS)
    length = max(v.aval.size for node in body.nodes for v in (*node.inputs, *node.outputs))
    return MOST if place_buffers(body).peak * MOST <= CACHE * length else MOST // 2


def _has_a_text(node: Node) -> bool:
    """Whether the source of an operation holds for any length."""
    if node.prim.name == "cast":
        return node.inputs[0].aval.kind == "array"
    if node.prim is putmask:
        return True
    text = node.prim.numpy
    known = bool(text.ufunc) or (bool(text.code) and isinstance(text.code, str))
    return by_elements(node.prim) and node.prim.alias is None and known


def _folds(node: Node) -> bool:
    return node.prim.name in FOLDED


def _shape(node: Node) -> tuple[int, ...]:
    return next(v.aval.shape[-1:] for v in (*node.inputs, *node.outputs) if v.aval.shape[-1:] >= (SHORTEST,))
