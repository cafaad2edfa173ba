"""Choices of one of several graphs, and which loops have a number of steps that is found at run time."""

from __future__ import annotations

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import LoopNode
from ...ir.structure import Runs

LARGEST = 2**20  # by what a counter may grow in a step: it ends long before int64 does


def is_choice(node: Node) -> bool:
    """Whether a node runs one of its bodies."""
    structure = node.prim.structure
    return structure is not None and structure.bodies[0].runs is Runs.ONE_OF


def parts_of_choice(node: Node) -> tuple[Value, list[Value], list[Graph]]:
    """What decides, the operands of the branches, and the branches; a bool chooses the second for true."""
    structure = node.prim.structure
    assert structure is not None
    operands = structure.of_operands(node, node.inputs)
    return operands["choice"][0], operands["consts"], [body for _, body in node.graphs]


def counts(loop: LoopNode, out: Value) -> bool:
    """Whether a result of a loop counts its steps: an int64 can hold it, though Python's ints have no end."""
    outputs, body = loop.node.outputs, loop.body
    k = outputs.index(out)
    if k >= loop.layout.carry:
        return False
    made = body.producer.get(body.outputs[k])
    if made is None or made.prim.name != "add" or body.inputs[loop.layout.consts + k] is not made.inputs[0]:
        return False
    by = body.producer.get(made.inputs[1])
    return by is not None and by.prim.name == "const" and abs(by.attrs["value"]) <= LARGEST
