"""A loop as passes see it, whatever its primitive is: its parts, and the same loop with other parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from .builder import Builder, Symbol
from .graph import Graph, Node, Value
from .structure import Layout, Structure

Made = tuple[list[Symbol], list[Symbol], list[Symbol]]  # carry, arrays, stacks


@dataclass(frozen=True, eq=False)
class LoopNode:
    """A node whose first body is ``(consts, carry, x_t) -> (carry, arrays, stacks)``, and runs once for each step.

    A second body is its condition on ``(consts, carry)``. The attribute ``memory`` is its plan for the stacks; with
    ``reverse`` the last row comes first.
    """

    node: Node
    structure: Structure

    @property
    def body(self) -> Graph:
        return self.structure.body(self.node)

    @property
    def condition(self) -> Graph | None:
        """The body that decides whether there is a further step; None if the number of steps is given."""
        return self.structure.condition(self.node)

    @property
    def length(self) -> int:
        """The number of steps; -1 if it is found at run time."""
        return self.structure.times(self.node, self.structure.bodies[0])

    @property
    def reverse(self) -> bool:
        return bool(self.node.attrs.get("reverse", False))

    @property
    def plan(self) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self.node.attrs.get("memory")
        return found

    @property
    def layout(self) -> Layout:
        """The groups of its results, and of its operands without the number of steps."""
        sizes = {name: len(values) for name, values in {**self._operands, **self._results}.items()}
        return Layout(sizes["consts"], sizes["carry"], sizes.get("arrays", 0))

    @property
    def count(self) -> Value | None:
        """The operand that gives the number of steps, if there is one."""
        return next(iter(self._operands.get("count", ())), None)

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands without the number of steps."""
        return self.node.inputs if self.count is None else self.node.inputs[1:]

    @property
    def stacks(self) -> list[Value]:
        """The lists of the residuals that its steps saved."""
        return self._results["stacks"]

    @cached_property
    def _operands(self) -> dict[str, list[Value]]:
        return self.structure.of_operands(self.node, self.node.inputs)

    @cached_property
    def _results(self) -> dict[str, list[Value]]:
        return self.structure.of_results(self.node, self.node.outputs)

    def attrs(self, body: Graph, layout: Layout, condition: Graph | None = None) -> dict[str, Any]:
        """The attributes of the same loop with another body and other groups of operands."""
        step, *decide = (part.name for part in self.structure.bodies)
        bodies = {step: body, **({} if condition is None else dict.fromkeys(decide, condition))}
        sizes = {"consts": layout.consts, "carry": layout.carry, "arrays": layout.arrays}
        return self.structure.attrs(self.node, **bodies, **sizes)

    def remade(
        self,
        b: Builder,
        body: Graph,
        operands: Sequence[Symbol],
        count: Symbol | None = None,
        *,
        layout: Layout | None = None,
        condition: Graph | None = None,
        plan: tuple[Any, ...] | None = None,
    ) -> Made:
        """Emit the same loop with another body and this plan; its results as carry, arrays and stacks.

        ``count`` is the number of steps if the loop takes one. The layout and the condition stay as they are unless
        they are given.
        """
        layout = layout or self.layout
        attrs = self.attrs(body, layout, condition)
        attrs.pop("memory", None)
        if plan is not None:
            attrs["memory"] = plan
        given = operands if count is None else [count, *operands]
        return layout.results(b.emit(self.node.prim, [x.value for x in given], attrs, [v.hint for v in body.outputs]))

    def shortened(self, length: int) -> Node:
        """The same node with another number of steps, if that is an attribute."""
        times = self.structure.bodies[0].times
        return replace(self.node, attrs={**self.node.attrs, times: length}) if isinstance(times, str) else self.node


def loop_of(node: Node) -> LoopNode | None:
    """The node as a loop that may save residuals; None for any other node."""
    structure = node.prim.structure
    return LoopNode(node, structure) if structure is not None and structure.loop else None


def shared_bodies(graph: Graph) -> set[Graph]:
    """The bodies that several nodes of a graph have."""
    bodies = Counter(body for node in graph.nested for _, body in node.graphs)
    return {body for body, times in bodies.items() if times > 1}
