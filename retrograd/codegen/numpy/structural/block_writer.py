"""Statements of kernels: calls of their functions, or of these on block after block of long arrays."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ....ir.graph import Graph, Node, Value
from ....ir.loop_node import loop_of
from ....ir.plan import Plan
from ....ir.texts import literal
from ....ir.types import Aval
from ....ops.shape import owned
from ....ops.structural.in_blocks import largest_block
from ....ops.structural.kernel import kernel
from ..bodies import BodyEmitter
from ..emitter import Scope, emits
from ..in_workspace import WorkspaceEmitter
from ..packing import pack
from ..workspaces import in_results
from .calls import call_body, tuple_of

FOLDS = {"sum": "np.add", "max": "np.maximum", "min": "np.minimum"}


def length_of(values: Iterable[Value]) -> int:
    """The length of the arrays that a kernel parts into blocks, given its operands and results: the longest last axis.

    Arrays that have a number for each step are shorter.
    """
    return max(v.aval.shape[-1] for v in values if v.aval.shape)


def operands_and_results(node: Node) -> tuple[list[Value], list[Value], list[Value], list[Value]]:
    """The operands of a kernel that have a part for each block, and the others; its results, likewise."""
    n = length_of((*node.inputs, *node.outputs))
    return (*_parted(node.inputs, n), *_parted(node.outputs, n))


def _parted(values: Iterable[Value], n: int) -> tuple[list[Value], list[Value]]:
    values = list(values)
    rows = [v for v in values if v.aval.shape[-1:] == (n,)]
    return rows, [v for v in values if v.aval.shape[-1:] != (n,)]


def fold_of(body: Graph, value: Value) -> str:
    """Source of the function that joins what two blocks found; of a loop, what they found in each step."""
    node = body.producer[value]
    loop = loop_of(node)
    return FOLDS[node.prim.name] if loop is None else fold_of(loop.body, loop.body.outputs[node.outputs.index(value)])


class BlockWriter(WorkspaceEmitter):
    """Writes the function of one block.

    It takes parts of the operands, then the parts of the results that it fills, then numbers, and returns its folds.
    ``most`` is the length of the longest block.
    """

    def __init__(self, plan: Plan, scope: Scope, most: int) -> None:
        super().__init__(plan, scope)
        self.most = most
        self.n = length_of((*plan.order.inputs, *plan.order.outputs))
        self.slots: dict[Value, str] = {}
        self.own_length = ""  # source of the length of this block

    def written(self) -> tuple[list[str], list[str]]:
        """Emit the function: its parameters, and the expressions of its results."""
        order = self.plan.order
        rows, others = _parted(order.inputs, self.n)
        arrays, folds = _parted(order.outputs, self.n)
        parts = [self.assign(v) for v in rows]
        self.slots = {v: self.fresh(v.hint) for v in arrays}
        names = [*parts, *self.slots.values(), *(self.assign(v) for v in others)]
        given = in_results(self.plan, [v for v in arrays if v.aval.ndim == 1])
        packed = pack(self.plan, (self.n, self.most), given)
        self.work.update((v, self.slots[result]) for v, result in given.items())
        self.at_work.update(given)
        if packed.places or order.nested:
            self.own_length = self.fresh("n")
            self.line(f"{self.own_length} = {self.length(parts[0], rows[0].aval)}")
            self.lay_out(packed, self.own_length)
        results = dict(zip(order.outputs, self.graph(self.plan), strict=True))
        return names, [tuple_of([results[v] for v in folds])]

    def length(self, row: str, aval: Aval) -> str:
        """Source of the length of a block, given the name of an operand."""
        return f"len({row})" if aval.ndim == 1 else f"len({row}[0])"

    def shape(self, aval: Aval) -> str:
        """Source of the shape of a part."""
        if aval.shape[-1:] != (self.n,):
            return super().shape(aval)
        return self.own_length if aval.ndim == 1 else f"({', '.join([*map(str, aval.shape[:-1]), self.own_length])})"

    def step_rows(self, value: Value) -> str:
        """Source of an array of which each step fills a row."""
        return self.slots.get(value) or super().step_rows(value)

    def constant(self, node: Node) -> str:
        """Source of an array of one number, which a loop begins with."""
        aval = node.out.aval
        return f"np.full({self.shape(aval)}, {literal(node.attrs['value'])}, {literal(aval.dtype)})"

    def _ref(self, value: Value, consts: dict[Value, Node]) -> str:
        plain = value in self.name or not value.aval.shape
        return super()._ref(value, consts) if plain else self.constant(consts[value])

    def _node(self, node: Node, consts: dict[Value, Node]) -> None:
        if node.prim.name == "const":
            self.line(f"{self.assign(node.out)} = {self.constant(node)}")
            return
        slot = self.slots.get(node.outputs[0])
        if slot is None or node.prim.multi or node.prim.numpy.statement:
            super()._node(node, consts)
            for out in node.outputs:
                if out in self.slots and out.aval.ndim == 1 and self.slots[out] != self.name[out]:
                    self.line(f"{self.slots[out]}[:] = {self.name[out]}")
            return
        self.into_slot(node, [self._operand(node, i, consts) for i in range(len(node.inputs))], slot)
        self.name[node.out] = slot

    def into_slot(self, node: Node, operands: list[str], slot: str) -> None:
        """Write an operation whose result goes into its array."""
        text = node.prim.numpy
        if node.prim is owned:
            self.line(f"{slot}[:] = {operands[0]}")
        elif node.prim.into:
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
        make = partial(BlockWriter, most=largest_block(length_of(rows), node.attrs["size"]))
        scope.by_graph[body] = scope.add(emitter.plan.bodies[body], body.name, make).name
    emitter.embed("in_blocks")
    operand, name = dict(zip(node.inputs, ins, strict=True)), dict(zip(node.outputs, outs, strict=True))
    for v in arrays:
        dtype = "" if v.aval.dtype == float else f", {literal(v.aval.dtype)}"
        shape = v.aval.size if v.aval.ndim == 1 else v.aval.shape
        emitter.line(f"{name[v]} = np.empty({shape}{dtype})")
    parts = tuple_of([*(operand[v] for v in rows), *(name[v] for v in arrays)])
    folds = tuple_of([fold_of(body, v) for v in _parted(body.outputs, length_of(rows))[1]])
    found = f"{tuple_of([name[v] for v in numbers])} = " if numbers else ""
    given = f"{parts}, {tuple_of([operand[v] for v in others])}, {folds}"
    emitter.line(f"{found}in_blocks({scope.by_graph[body]}, {length_of(rows)}, {node.attrs['size']}, {given})")
