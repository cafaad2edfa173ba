"""integer_ranges: whether 64 bits hold all integers of a graph, since NumPy's wrap where Python's grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....ir.graph import Graph, Node, Value
from ....ir.loop_node import LoopNode, loop_of
from ....ops.structural.stack import step_numbers

Range = tuple[int, int]
INT = np.dtype(np.int64)
WORD: Range = (-(1 << 63), (1 << 63) - 1)
MOST_STEPS = 1 << 50  # a loop of more would take years
DEEPEST = 20  # operations between a carry and its next value
CALM = frozenset({"cast", "stop_gradient", "named"})


def in_64_bits(graph: Graph) -> bool:
    """Whether no result of NumPy's integers in a graph, and in its bodies, can leave 64 bits.

    Results are those of sums, differences and products. What a carry changes by in a step, times the steps, bounds it.
    """
    return _Ranges({}).hold(graph)


class _Ranges:
    """What is known of integers: the least and the greatest that a value, or an item of a list, may be."""

    def __init__(self, known: dict[Value, Range]) -> None:
        self.known = known
        self._changes: dict[tuple[Value, Value], Range | None] = {}

    def of(self, value: Value) -> Range | None:
        """The range of a value; None for Python's integers without bounds."""
        if value.aval.dtype == bool:
            return 0, 1
        return self.known.get(value, None if value.aval.kind == "python" else WORD)

    def hold(self, graph: Graph, strictly: bool = True) -> bool:
        """Find the ranges of a graph; False if 64 bits may not hold one of NumPy's integers.

        If not ``strictly``, such integers count as any of 64 bits, and what is in bodies is not looked at.
        """
        for node in graph.nodes:
            if node.prim.structure is not None:
                if strictly and not self._bodies_hold(node):
                    return False
            elif len(node.outputs) == 1 and node.out.aval.dtype == INT:
                found = self._made(node)
                beyond = found is None or found[0] < WORD[0] or found[1] > WORD[1]
                if beyond and node.out.aval.kind != "python":
                    if strictly:
                        return False
                    found = WORD
                self._enter(node.out, found)
        return True

    def _made(self, node: Node) -> Range | None:
        if node.prim.name == "const":
            return (number := int(node.attrs["value"])), number
        if node.prim is step_numbers:
            (n, *_) = node.out.aval.steps or (1,)
            return 0, max(n if n >= 0 else MOST_STEPS, 1) - 1
        ranges = [self.of(v) for v in node.inputs]
        bounded = [r for r in ranges if r is not None]
        if len(bounded) < len(ranges):
            return None
        if node.prim.name in CALM:
            return bounded[0]
        combine = COMBINE.get(node.prim.name)
        return None if combine is None else combine(*bounded)

    def _enter(self, value: Value, found: Range | None) -> None:
        self.known.pop(value, None)
        if found is not None and value.aval.dtype == INT:
            self.known[value] = found

    def _enter_operands(self, body: Graph, node: Node, sources: Sequence[int | None], outside: _Ranges) -> None:
        """Take over what is known outside of the operands that feed a body."""
        for value, place in zip(body.inputs, sources, strict=True):
            self._enter(value, None if place is None else outside.of(node.inputs[place]))

    def _bodies_hold(self, node: Node) -> bool:
        structure, loop = node.prim.structure, loop_of(node)
        assert structure is not None
        carried = None if loop is None else self._carried(loop)
        for body, graph in structure.parts(node):
            self._enter_operands(graph, node, structure.sources(node, body, graph), self)
            if carried is not None:
                for value, found in zip(structure.of_inputs(node, body, graph.inputs)["carry"], carried, strict=True):
                    self._enter(value, found)
            if not self.hold(graph):
                return False
        return True

    def _carried(self, loop: LoopNode) -> list[Range | None]:
        """What the carries may be in all steps."""
        body, layout = loop.body, loop.layout
        consts, carry, xs = layout.operands(body.inputs)
        given, first, rows = layout.operands(loop.operands)
        loosely = _Ranges(dict(self.known))
        for value, operand in zip([*consts, *xs], [*given, *rows], strict=True):
            loosely._enter(value, self.of(operand))
        for value in carry:
            loosely._enter(value, WORD)
        loosely.hold(body, strictly=False)
        steps = loop.length if loop.length >= 0 else MOST_STEPS
        after = [
            loosely.change(body, new, old) for new, old in zip(layout.results(body.outputs)[0], carry, strict=True)
        ]
        return [_grown(self.of(v), change, steps) for v, change in zip(first, after, strict=True)]

    def change(self, graph: Graph, new: Value, old: Value, depth: int = DEEPEST) -> Range | None:
        """The range of the difference of two values; None if they are not seen to differ by what does not grow."""
        if (new, old) not in self._changes:
            self._changes[new, old] = self._found_change(graph, new, old, depth)
        return self._changes[new, old]

    def _found_change(self, graph: Graph, new: Value, old: Value, depth: int) -> Range | None:
        if new is old:
            return 0, 0
        node = graph.producer.get(new)
        if node is None or not depth:
            return None
        if node.prim.name in ("add", "sub"):
            a, b = node.inputs
            for kept, other in ((a, b), (b, a)) if node.prim.name == "add" else ((a, b),):
                before, by = self.change(graph, kept, old, depth - 1), self.of(other)
                if before is not None and by is not None:
                    return COMBINE[node.prim.name](before, by)
        return self._change_in_branches(node, new, old, depth - 1)

    def _change_in_branches(self, node: Node, new: Value, old: Value, depth: int) -> Range | None:
        structure = node.prim.structure
        if structure is None or not structure.branches(node) or old not in node.inputs:
            return None
        found: list[Range | None] = []
        for body, graph in structure.parts(node):
            sources = structure.sources(node, body, graph)
            within = _Ranges({})
            within._enter_operands(graph, node, sources, self)
            within.hold(graph, strictly=False)
            result = graph.outputs[structure.targets(node, body, graph).index(node.outputs.index(new))]
            olds = [v for v, place in zip(graph.inputs, sources, strict=True) if place == node.inputs.index(old)]
            found += [within.change(graph, result, olds[0], depth) if olds else None]
        return _joined(found)


def _grown(first: Range | None, change: Range | None, steps: int) -> Range | None:
    """The range of a carry after any number of steps; any integer of 64 bits if it is not seen to stay in these."""
    if first is None or change is None:
        return WORD
    low, high = first[0] + steps * min(change[0], 0), first[1] + steps * max(change[1], 0)
    return (low, high) if WORD[0] <= low and high <= WORD[1] else WORD


def _joined(ranges: Sequence[Range | None]) -> Range | None:
    known = [r for r in ranges if r is not None]
    return (min(a for a, _ in known), max(b for _, b in known)) if known and len(known) == len(ranges) else None


def _product(x: Range, y: Range) -> Range:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


COMBINE: dict[str, Callable[..., Range]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "mul": _product,
    "neg": lambda x: (-x[1], -x[0]),
}
