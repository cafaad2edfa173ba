"""Loops whose steps compute each element from the same element of other arrays: all steps of some elements go first."""

from __future__ import annotations

from ...ir.graph import Node
from ...ir.loop_node import LoopNode
from .c_texts import is_elementwise
from .in_parts import ALIGNED, LEAST
from .prices import work_of

LEAST_LANES = 256  # elements of a part: with fewer, steps read and write too little of each page of their lists
LANES = 1024  # ... of many parts: their states stay in the cache
FEWEST, MOST = 4, 32  # parts, of which the first one runs alone


def lanes_of(loop: LoopNode) -> int:
    """The elements of the states; 0 if a step needs several of an array, or if all steps are not worth parts."""
    body = loop.body
    if loop.condition is not None or loop.count is not None or loop.plan is not None or loop.length < 2:
        return 0
    shapes = {v.aval.shape for v in body.outputs}
    shape = shapes.pop() if len(shapes) == 1 else ()
    _, carry, xs = loop.layout.operands(body.inputs)
    if (
        len(shape) != 1
        or any(v.aval.shape != shape for v in carry)
        or not set(body.outputs).isdisjoint(body.inputs[: loop.layout.consts])
    ):
        return 0
    if any(v.aval.shape not in ((), shape) for v in xs) or not all(_is_local(node, shape) for node in body.nodes):
        return 0
    (n,) = shape
    work = sum(1 + work_of(node) for node in body.nodes if node.out.aval.shape)
    return n if n > (FEWEST - 1) * LEAST_LANES and work * n * loop.length >= LEAST else 0


def lanes_of_part(n: int) -> int:
    """The elements of a part."""
    parts = min(MOST, max(FEWEST, n // LANES))
    return ALIGNED * -(-n // (ALIGNED * parts))


def _is_local(node: Node, shape: tuple[int, ...]) -> bool:
    """Whether an element of a result needs the same element of operands alone, or numbers."""
    if node.prim.multi or node.effect or node.out.aval.shape not in ((), shape):
        return False
    if node.prim.name == "getitem":
        return len(node.inputs) == 1 and node.out.aval.shape == () and node.inputs[0].aval.shape != shape
    return is_elementwise(node) and all(v.aval.shape in ((), shape) for v in node.inputs)
