"""loops_in_blocks: Graph → Graph in which loops that work element by element are apart from the sums of their steps.

A step of such a loop computes each element of its long arrays from the same element alone. So all steps can run on one
block of elements after the other. The sums over elements that the steps make become results of the loop, one number for
each step, and a second loop on numbers goes on with them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import LoopNode, loop_of
from ..ir.primitive import TRANSFORMS
from ..ir.rewrite import Env, copy_nodes, mapped, rebuild, walk
from ..ir.structure import Layout
from ..ir.types import Aval
from .prune import prune

Takes = Callable[[Node], bool]
Parts = tuple[list[Symbol | None], list[Symbol], list[Symbol]]  # carry, arrays, stacks


@dataclass(frozen=True)
class LaneRules:
    """What blocks allow: nodes that a kernel ``takes``, which of these are ``folds``, and which arrays are ``long``.

    A loop has less than ``most_steps`` steps, so that what its steps sum is no long array.
    """

    takes: Takes
    folds: Takes
    long: Callable[[Aval], bool]
    most_steps: int


def lane_loops(graph: Graph, rules: LaneRules) -> list[Node]:
    """The loops of a graph that work element by element, but for sums."""
    loops = ((node, loop_of(node)) for node in walk(graph))
    return [node for node, loop in loops if loop is not None and _Lanes(loop, rules).alone()]


def with_sums_apart(graph: Graph, loops: Container[Node], rules: LaneRules) -> tuple[Graph, dict[Graph, Node]]:
    """The graph with the numbers of these loops in loops of their own; and these loops, by the bodies that are left."""
    left: dict[Graph, Node] = {}

    def parted(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        loop = loop_of(node) if node in loops else None
        if loop is None:
            return None
        body, outs = _Lanes(loop, rules).parted(b, env)
        left[body] = node
        return outs

    return mapped(graph, lambda part: rebuild(part, parted)), left


class _Lanes:
    """A loop, and which values of its body are numbers that depend on all elements."""

    def __init__(self, loop: LoopNode, rules: LaneRules) -> None:
        self.loop, self.rules, self.body = loop, rules, loop.body
        self.summed = self._summed()

    def _summed(self) -> set[Value]:
        """The values that depend on a fold, in this step or an earlier one."""
        carry = self.loop.layout.operands(self.body.inputs)[1]
        found: set[Value] = set()
        while True:
            known = len(found)
            for node in self.body.nodes:
                if self.rules.folds(node) or not found.isdisjoint(node.inputs):
                    found.update(node.outputs)
            found.update(v for v, out in zip(carry, self.body.outputs, strict=False) if out in found)
            if len(found) == known:
                return found

    def alone(self) -> bool:
        """Whether no element depends on another one."""
        loop, values = self.loop, [*self.body.inputs, *self.body.outputs]
        if not 0 < loop.length < self.rules.most_steps or loop.plan is not None or loop.condition is not None:
            return False
        made = {node.out for node in self.body.nodes if node.prim.name == "const"}
        return (
            len({v.aval.shape for v in values if v.aval.shape}) == 1
            and all(v.aval.kind != "generator" and v.aval.steps is None for v in values)
            and all(self.rules.long(v.aval) for v in values if v.aval.shape)
            and all(map(self._fits, self.body.nodes))
            and made.isdisjoint(self.body.outputs)
        )

    def _fits(self, node: Node) -> bool:
        """Whether a node computes elements from elements, a fold of them, or numbers."""
        values = (*node.inputs, *node.outputs)
        if node.prim.name == "const":
            return not node.out.aval.shape or self.rules.takes(node)
        if any(v.aval.shape for v in values):
            return self.rules.takes(node) and self.summed.isdisjoint(node.inputs)
        plain = all(v.aval.steps is None and v.aval.kind != "generator" for v in values)
        return plain and not node.effect and not node.prim.multi and not node.graphs

    def parted(self, b: Builder, env: Env) -> tuple[Graph, list[Symbol]]:
        """Emit the loop on elements and the loop on numbers: the body of the first, and the results of both."""
        carry, arrays, stacks = self.loop.layout.results(self.body.outputs)
        folds = [node.out for node in self.body.nodes if self.rules.folds(node)]
        operands = [env[v] for v in self.loop.operands]
        ours, theirs = _by_kind(v for v in arrays if v not in folds)
        lists, others = _by_kind(stacks)
        wide = [bool(v.aval.shape) for v in carry]
        step = self._body([*self._kept(wide, True), *ours, *folds, *lists], ())
        body, (lanes, rows, listed) = self._loop(b, step, operands, wide, len(ours) + len(folds))

        rest = self._body([*self._kept(wide, False), *theirs, *others], folds)
        operands += rows[len(ours) :]
        _, (numbers, more, further) = self._loop(b, rest, operands, [not f for f in wide], len(theirs))
        carried = [x if f else y for f, x, y in zip(wide, lanes, numbers, strict=True)]
        made = [x for x in carried if x is not None]
        direct = dict(zip(folds, rows[len(ours) :], strict=True))
        return body, [*made, *_merged(arrays, rows, more, direct), *_merged(stacks, listed, further, {})]

    def _kept(self, wide: Sequence[bool], lanes: bool) -> list[Value]:
        """What one of the two loops makes of the carry. The part of the other loop stays as it is.

        Numbers that depend on no sum are part of both.
        """
        old = self.loop.layout.operands(self.body.inputs)[1]
        own = [f or v not in self.summed if lanes else not f for f, v in zip(wide, old, strict=True)]
        return [new if f else v for f, v, new in zip(own, old, self.body.outputs, strict=False)]

    def _body(self, results: Sequence[Value], folds: Sequence[Value]) -> Graph:
        """The nodes that these results need; ``folds`` are further operands of each step."""
        b = Builder()
        env: Env = dict(zip(self.body.inputs, b.inputs_like(self.body.inputs), strict=True))
        for v in folds:
            env[v] = b.coerce(b.input(Aval((), v.aval.dtype, "scalar"), v.hint), v.aval)
        needed, nodes = set(results) - env.keys(), list[Node]()
        for node in reversed(self.body.nodes):
            if not needed.isdisjoint(node.outputs):
                nodes.append(node)
                needed.update(v for v in node.inputs if v not in env)
        copy_nodes(b, reversed(nodes), env)
        return b.graph(self.body.name, [env[v] for v in results])

    def _loop(
        self, b: Builder, step: Graph, operands: Sequence[Symbol], wanted: Sequence[bool], arrays: int
    ) -> tuple[Graph, Parts]:
        """Emit a loop without what its wanted results do not need: its body, and its results."""
        layout, inner = self.loop.layout, Builder()
        inner.where = b.where
        args = [inner.input(x.aval, x.value.hint) for x in operands]
        carry, rows, lists = self.loop.remade(inner, step, args, layout=Layout(layout.consts, layout.carry, arrays))
        results = [*(x for x, f in zip(carry, wanted, strict=True) if f), *rows, *lists]
        part = prune(inner.graph(step.name, results))
        made = iter(TRANSFORMS.inline(b, part, operands))
        kept = [next(made) if f else None for f in wanted]
        body = next((loop.body for node in part.nodes if (loop := loop_of(node)) is not None), step)
        return body, (kept, [next(made) for _ in rows], list(made))


def _by_kind(values: Iterable[Value]) -> tuple[list[Value], list[Value]]:
    """The arrays among values, and the numbers."""
    values = list(values)
    return [v for v in values if v.aval.shape], [v for v in values if not v.aval.shape]


def _merged(values: Sequence[Value], lanes: Iterable[Symbol], numbers: Iterable[Symbol], direct: Env) -> list[Symbol]:
    """The results in their order: those of elements, folds themselves, and numbers."""
    first, second = iter(lanes), iter(numbers)
    return [direct[v] if v in direct else next(first) if v.aval.shape else next(second) for v in values]
