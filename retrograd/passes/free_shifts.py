"""free_shifts: what a softmax or a logarithm of a sum of exponentials subtracts from its scores, and what cancels.

Programs subtract the largest score before they take exponentials, so that none overflows. The result does not depend on
what is subtracted: its tangent may be zero, so that no derivative goes through the maximum. This saves a third of the
operations in the gradient of a softmax, and the rounding of terms that cancel.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Graph, Node, Value
from ..ops.elementary import exp, log
from ..ops.elementwise import add, div, sub
from ..ops.index import getitem
from ..ops.reduce import sum_
from ..ops.shape import broadcast, reshape
from .jvp import STILL

Shape = tuple[int, ...]
ALL = slice(None)


def free_shifts(graph: Graph) -> set[Value]:
    """The values of a graph that cancel wherever they are read."""
    if not any(node.prim is exp for node in graph.nodes):
        return set()
    return _Shifts(graph).found()


class _Shifts:
    """Notes which readings of a shift, and of what is computed with it, belong to a softmax or a log-sum-exp.

    With scores x, a shift s and sums along axes on which s does not depend, these are exp(x - s) / Σ exp(x - s),
    (x - s) - log Σ exp(x - s), and log Σ exp(x - s) + s. A shift cancels if there are no other readings.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.made, self.outputs = graph, graph.producer, set(graph.outputs)
        self.parts: dict[Value, set[Value]] = {}  # of each shift: what is computed with it, up to where it cancels
        self.fit: set[tuple[Value, Node]] = set()

    def found(self) -> set[Value]:
        for node in self.graph.nodes:
            if node.prim is sum_:
                self._sum(node)
        return {shift for shift, parts in self.parts.items() if all(map(self._is_fit, (shift, *parts)))}

    def _sum(self, total: Node) -> None:
        power = self.made.get(total.inputs[0])
        scores = self.made.get(power.inputs[0]) if power is not None and power.prim is exp else None
        if power is None or scores is None or scores.prim is not sub:
            return
        shift, lengths = self._form(scores.inputs[1])
        parts = self.parts.setdefault(shift, set())
        parts |= {scores.out, power.out, total.out}
        axes = total.attrs["axis"]
        alone = shift in self.made and self._form(scores.inputs[0])[0] is not shift
        if not alone or any(lengths[a] != 1 for a in axes):
            return
        self.fit |= {(shift, scores), (scores.out, power), (power.out, total)}
        kept = tuple(1 if a in axes else n for a, n in enumerate(scores.out.aval.shape))
        for node, form in self._read_by(total.out):
            if node.prim is div and node.inputs == (power.out, form) and self._form(form) == (total.out, kept):
                self.fit |= {(total.out, node), (power.out, node)}
            elif node.prim is log and self._form(form) == (total.out, form.aval.shape):
                self.fit.add((total.out, node))
                parts.add(node.out)
                self._logarithm(node.out, scores.out, kept, shift, lengths, axes)

    def _logarithm(
        self, logarithm: Value, scores: Value, kept: Shape, shift: Value, lengths: Shape, axes: Shape
    ) -> None:
        left = [tuple(n for a, n in enumerate(shape) if a not in axes) for shape in (kept, lengths)]
        for node, form in self._read_by(logarithm):
            if node.prim is sub and node.inputs == (scores, form) and self._form(form) == (logarithm, kept):
                self.fit |= {(logarithm, node), (scores, node)}
            elif node.prim is add:
                other = node.inputs[node.inputs[0] is form]
                of_shift, shape = self._form(other)
                fits = of_shift is shift and [form.aval.shape, shape] in ([kept, lengths], left)
                if fits and self._form(form) == (logarithm, form.aval.shape):
                    self.fit |= {(logarithm, node), (shift, node)}

    def _is_fit(self, value: Value) -> bool:
        hidden = self.outputs.isdisjoint(self._forms(value))
        return hidden and all((value, node) in self.fit for node, _ in self._read_by(value))

    def _read_by(self, value: Value) -> Iterator[tuple[Node, Value]]:
        """Who reads a value, and in which form."""
        for form in self._forms(value):
            for node in self.graph.uses.get(form, ()):
                if node.prim is not broadcast and not _moves(node):
                    yield node, form

    def _forms(self, value: Value) -> Iterator[Value]:
        yield value
        for node in self.graph.uses.get(value, ()):
            if node.prim is broadcast or _moves(node):
                yield from self._forms(node.out)

    def _form(self, value: Value) -> tuple[Value, Shape]:
        """The value that is shown here, and its shape in front of broadcasting, with all axes."""
        ndim = value.aval.ndim
        while (node := self.made.get(value)) is not None and node.prim is broadcast:
            value = node.inputs[0]
        lengths = (1,) * (ndim - value.aval.ndim) + value.aval.shape
        while (node := self.made.get(value)) is not None and _moves(node):
            value = node.inputs[0]
        return value, lengths


def _moves(node: Node) -> bool:
    """Whether a node only adds and drops axes of length one: the others keep their order."""
    if node.prim is getitem:
        known = len(node.inputs) == 1 and all(i in (None, ALL, 0) for i in node.attrs["index"])
    else:
        known = node.prim is reshape
    return known and _long(node.inputs[0]) == _long(node.out)


def _long(value: Value) -> list[int]:
    return [n for n in value.aval.shape if n != 1]


STILL.append(free_shifts)
