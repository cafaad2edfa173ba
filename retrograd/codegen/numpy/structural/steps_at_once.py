"""Statements of loops whose steps need nothing of each other: a function of some of the steps, for threads to share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....ir.graph import Node
from ....ir.loop_node import LoopNode
from ....ir.plan import Plan
from ..bodies import BodyEmitter
from ..emitter import Emitter, Scope
from ..in_workspace import WorkspaceEmitter
from ..packing import pack
from ..workspaces import rows_of_arrays
from .calls import tuple_of

Make = Callable[[Plan, Scope], Emitter]


class StepsWriter(WorkspaceEmitter):
    """Writes the function of some steps of a loop.

    It takes the first step and the one behind the last, the operands of the loop, and the arrays of which each step
    fills a row.
    """

    def __init__(self, plan: Plan, scope: Scope, loop: LoopNode) -> None:
        super().__init__(plan, scope)
        self.of = loop

    def written(self) -> tuple[list[str], None]:
        """Emit the function: its parameters; it returns nothing."""
        order = self.plan.order
        start, stop, t = self.fresh("start"), self.fresh("stop"), self.fresh("t")
        consts, _, rows = self.of.layout.operands(order.inputs)
        given = [self.assign(v) for v in consts]
        operands = [self.fresh(v.hint) for v in rows]
        arrays = [self.fresh(v.hint) for v in order.outputs]
        self.lay_out(pack(self.plan))
        filled = rows_of_arrays(self.of, self.plan)
        self.work.update((value, f"{arrays[k]}[{t}]") for value, k in filled.items())
        self.where = self.of.node.where
        with self.block(f"for {t} in {self.steps(start, stop)}:"):
            for v, name in zip(rows, operands, strict=True):
                self.line(f"{self.assign(v)} = {name}[{t}]")
            results = self.graph(self.plan)
            for k, result in enumerate(results):
                if k not in filled.values():
                    self.line(f"{arrays[k]}[{t}] = {result}")
            self.drop(results, order, self.plan)
        return [start, stop, *given, *operands, *arrays], None


def write_steps(emitter: BodyEmitter, node: Node, arrays: Sequence[str], make: Make) -> str:
    """Write new arrays of all steps, and the function of some of them; its name."""
    for name, value in zip(arrays, node.outputs, strict=True):
        emitter.line(f"{name} = {emitter.step_rows(value)}")
    body = node.graphs[0][1]
    return emitter.scope.add(emitter.plan.bodies[body], f"{emitter.plan.order.name}_steps", make).name


def call_steps(emitter: BodyEmitter, node: Node, loop: LoopNode, ins: list[str], outs: list[str]) -> None:
    """Write a loop as a call of the function of its steps."""
    emitter.embed("in_steps")
    name = write_steps(emitter, node, outs, lambda plan, scope: StepsWriter(plan, scope, loop))
    emitter.line(f"in_steps({name}, {loop.length}, {tuple_of([*ins, *outs])})")
