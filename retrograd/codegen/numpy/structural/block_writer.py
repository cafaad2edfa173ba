"""Statements of kernels: calls of their functions, or of these on block after block of long arrays."""

from __future__ import annotations

from functools import partial

from ....ir.graph import Node, Value
from ....ir.plan import Plan
from ....ir.texts import literal
from ....ops.structural.in_blocks import largest_block
from ....ops.structural.kernel import kernel
from ..bodies import BodyEmitter
from ..emitter import Scope, emits
from ..in_workspace import WorkspaceEmitter
from ..packing import pack
from .calls import call_body, tuple_of

FOLDS = {"sum": "np.add", "max": "np.maximum", "min": "np.minimum"}


def operands_and_results(node: Node) -> tuple[list[Value], list[Value], list[Value], list[Value]]:
    """The operands of a kernel that have a part for each block, and the others; its results, likewise."""
    rows, others = _parted(node.inputs)
    arrays, numbers = _parted(node.outputs)
    return rows, others, arrays, numbers


def _parted(values: tuple[Value, ...]) -> tuple[list[Value], list[Value]]:
    return [v for v in values if v.aval.shape], [v for v in values if not v.aval.shape]


class BlockWriter(WorkspaceEmitter):
    """Writes the function of one block.

    It takes parts of the operands, then the parts of the results that it fills, then numbers, and returns its folds.
    ``most`` is the length of the longest block.
    """

    def __init__(self, plan: Plan, scope: Scope, most: int) -> None:
        super().__init__(plan, scope)
        self.most = most
        self.slots: dict[Value, str] = {}

    def written(self) -> tuple[list[str], list[str]]:
        """Emit the function: its parameters, and the expressions of its results."""
        order = self.plan.order
        rows, others = _parted(order.inputs)
        arrays, folds = _parted(order.outputs)
        parts = [self.assign(v) for v in rows]
        self.slots = {v: self.fresh(v.hint) for v in arrays}
        names = [*parts, *self.slots.values(), *(self.assign(v) for v in others)]
        packed = pack(self.plan, self.most)
        if packed.places:
            length = self.fresh("n")
            self.line(f"{length} = {self.length(parts[0])}")
            self.lay_out(packed, length)
        results = dict(zip(order.outputs, self.graph(self.plan), strict=True))
        return names, [tuple_of([results[v] for v in folds])]

    def length(self, row: str) -> str:
        """Source of the length of a block, given the name of an operand."""
        return f"len({row})"

    def _node(self, node: Node, consts: dict[Value, Node]) -> None:
        slot = self.slots.get(node.outputs[0])
        if slot is None:
            super()._node(node, consts)
            return
        self.into_slot(node, [self._operand(node, i, consts) for i in range(len(node.inputs))], slot)
        self.name[node.out] = slot

    def into_slot(self, node: Node, operands: list[str], slot: str) -> None:
        """Write an operation whose result goes into its array."""
        text = node.prim.numpy
        if node.prim.into:
            call = f"{text.ufunc}({', '.join(operands)})" if text.ufunc else text.render(node, operands)
            self.line(f"{call[:-1]}, out={slot})")
        else:
            self.line(f"{slot}[:] = {text.render(node, operands, text.op)}")


@emits(kernel)
def _kernel(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    if not node.attrs.get("size"):
        call_body(emitter, node, ins, outs)
        return
    scope, body = emitter.scope, node.attrs["body"]
    rows, others, arrays, numbers = operands_and_results(node)
    if body not in scope.by_graph:
        make = partial(BlockWriter, most=largest_block(rows[0].aval.size, node.attrs["size"]))
        scope.by_graph[body] = scope.add(emitter.plan.bodies[body], body.name, make).name
    emitter.embed("in_blocks")
    operand, name = dict(zip(node.inputs, ins, strict=True)), dict(zip(node.outputs, outs, strict=True))
    for v in arrays:
        dtype = "" if v.aval.dtype == float else f", {literal(v.aval.dtype)}"
        emitter.line(f"{name[v]} = np.empty({v.aval.size}{dtype})")
    parts = tuple_of([*(operand[v] for v in rows), *(name[v] for v in arrays)])
    folds = tuple_of([FOLDS[body.producer[v].prim.name] for v in body.outputs if not v.aval.shape])
    found = f"{tuple_of([name[v] for v in numbers])} = " if numbers else ""
    given = f"{parts}, {tuple_of([operand[v] for v in others])}, {folds}"
    emitter.line(f"{found}in_blocks({scope.by_graph[body]}, {node.attrs['size']}, {given})")
