"""find_sparsity: for each result of a graph, find the elements of one input that its elements may depend on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..ir.evaluate import run_node
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import LoopNode, loop_of
from .inline import body_in_place
from .sparsity_rules import ADDING, PLACING, SAME_ZEROS, STACKED, Matrix, Pattern, SparsityRules

MOST_NODES = 20_000  # of the steps of a loop; with more, all steps count as one


def find_sparsity(graph: Graph, active: int, args: Sequence[Any]) -> list[Matrix]:
    """For each result a matrix of one row per element of it and one column per element of input ``active``.

    A stored entry means that there may be a derivative. Integers among ``args`` are indices, and other constants are
    zero in some places: the pattern holds for these values and places only. The results of a primitive without a rule
    depend on all elements of its operands.
    """
    from scipy.sparse import csr_array, eye_array  # scipy is an extra

    known = [None if k == active else _known_of(v, x) for k, (v, x) in enumerate(zip(graph.inputs, args, strict=True))]
    numbers: Hashable = tuple(None if x is None else np.asarray(x).tobytes() for x in known)

    def found() -> list[Matrix]:
        n = graph.inputs[active].aval.size
        patterns: list[Pattern] = [None] * len(graph.inputs)
        patterns[active] = eye_array(n, dtype=np.int8, format="csr")
        outs, _ = _Analysis(n).run(graph, patterns, known)
        sizes = [v.aval.size for v in graph.outputs]
        return [csr_array((m, n), dtype=np.int8) if p is None else p for p, m in zip(outs, sizes, strict=True)]

    return graph.once(("sparsity", active, numbers), found)


def _known_of(v: Value, x: Any) -> Any:
    """What is known of a constant: of integers their values, of other numbers which of them may differ from zero."""
    if v.aval.dtype.kind in "iub":
        return x
    return np.not_equal(x, 0) if v.aval.inexact and v.aval.steps is None else None


class _Analysis(SparsityRules):
    """Patterns with respect to ``n`` elements, node by node, and what is known of values that depend on none of them.

    Of integers the value is known, of other numbers which of them may differ from zero; None stands for no knowledge.
    """

    def run(self, graph: Graph, patterns: Sequence[Pattern], known: Sequence[Any]) -> tuple[list[Pattern], list[Any]]:
        of: dict[Value, Pattern] = dict(zip(graph.inputs, patterns, strict=True))
        value: dict[Value, Any] = dict(zip(graph.inputs, known, strict=True))
        for node in graph.nodes:
            before = [of[v] for v in node.inputs]
            given = [value[v] for v in node.inputs]
            patterns, after = self.node(node, before, given)
            of.update(zip(node.outputs, patterns, strict=True))
            if after is None:
                constant = all(p is None for p in before)
                after = self.constant(node, given) if constant else [None] * len(node.outputs)
            value.update(zip(node.outputs, after, strict=True))
        return [of[v] for v in graph.outputs], [value[v] for v in graph.outputs]

    def constant(self, node: Node, known: list[Any]) -> list[Any]:
        """What is known of the results of a node that depends on none of the elements."""
        name, nothing = node.prim.name, [None] * len(node.outputs)
        if node.prim.run is not None or node.prim.effect:
            return nothing
        whole = all(x is not None for x in known)
        if whole and not any(v.aval.inexact for v in node.inputs):
            if all(v.aval.dtype.kind in "iub" or v.aval.inexact for v in node.outputs):
                return [_known_of(v, x) for v, x in zip(node.outputs, run_node(node, known), strict=True)]
            return nothing
        if not node.outputs[0].aval.inexact:
            return nothing
        if name == "mul":
            shape = node.out.aval.shape
            masks = [np.broadcast_to(True if x is None else x, shape) for x in known]
            return [np.logical_and(*masks)]
        if name in SAME_ZEROS and node.inputs[0].aval.inexact:
            return known[:1]
        if name in PLACING and whole:
            numbers = [np.asarray(x, int) if v.aval.inexact else x for v, x in zip(node.inputs, known, strict=True)]
            return [np.not_equal(run_node(node, numbers)[0], 0)]
        return nothing

    def node(self, node: Node, patterns: list[Pattern], known: list[Any]) -> tuple[list[Pattern], list[Any] | None]:
        """The patterns of the results of a node; of one with bodies also what is known of the results."""
        prim, name = node.prim, node.prim.name
        if (body := body_in_place(node)) is not None:
            return self.run(body, patterns, known)
        if (loop := loop_of(node)) is not None:
            return self.loop(loop, patterns, known)
        if prim.structure is not None and (branches := prim.structure.branches(node)):
            return self.choice(node, branches, patterns, known), None
        if prim.diff:
            patterns = [None if prim.derivative(i) is None else p for i, p in enumerate(patterns)]
        if all(p is None for p in patterns) or not any(v.aval.inexact for v in node.outputs):
            return [None] * len(node.outputs), None
        if node.outputs[0].aval.steps is not None and (name == "stack_add" or name in SAME_ZEROS):
            return [self.joined(patterns, node.out)], None
        if name in STACKED:
            return [self.stacked(node, patterns, v) if v.aval.inexact else None for v in node.outputs], None
        rule = self.rule(node)
        if name == "where" and known[0] is not None:
            rule = self.placed
        indices = [x for v, x in zip(node.inputs, known, strict=True) if not v.aval.inexact]
        needs = name in PLACING | set(ADDING) | {"sparse_product"}
        if rule is None or (needs and any(x is None for x in indices)):
            return [self.full(patterns, v) if v.aval.inexact else None for v in node.outputs], None
        return [rule(node, patterns, known)], None

    def choice(self, node: Node, branches: Sequence[Graph], patterns: list[Pattern], known: list[Any]) -> list[Pattern]:
        """The results of any of the branches; which it is has no derivative."""
        found = [self.run(branch, patterns[1:], known[1:])[0] for branch in branches]
        return [self.joined(parts, v) for parts, v in zip(zip(*found, strict=True), node.outputs, strict=True)]

    def joined(self, patterns: Sequence[Pattern], v: Value) -> Pattern:
        """The union of patterns of one value; None if there are none."""
        found = [p for p in patterns if p is not None]
        if v.aval.steps is None or not found:
            return self.union(found, v.aval.size) if found else None
        step = Value(v.aval.unstacked())
        if any(len(p) != len(found[0]) for p in found):
            return [self.joined(list(chain(*found)), step)]
        return [self.joined(parts, step) for parts in zip(*found, strict=True)]

    def full(self, patterns: Sequence[Pattern], v: Value) -> Pattern:
        """All that the operands depend on, for each element; a list of steps has it for all steps at once."""
        found: Pattern = self.everything(patterns, v.aval.size)
        for _ in v.aval.steps or ():
            found = [found]
        return found

    def loop(self, loop: LoopNode, patterns: list[Pattern], known: list[Any]) -> tuple[list[Pattern], list[Any]]:
        """Step by step if the steps are few and their number is known; else as if each step were any of them."""
        body, length, layout = loop.body, loop.length, loop.layout
        if loop.count is not None:
            length = -1 if known[0] is None else max(int(known[0]), 0)
            patterns, known = patterns[1:], known[1:]
        if length >= 0 and length * len(body.nodes) <= MOST_NODES:
            return self.steps(loop, length, patterns, known)
        consts, carry, xs = layout.operands(patterns)
        fixed, _, _ = layout.operands(known)
        unknown: list[Any] = [None] * (len(known) - len(fixed))
        rows = [self.any_row(p, v, max(length, 1)) for p, v in zip(xs, layout.operands(body.inputs)[2], strict=True)]
        while True:
            found, _ = self.run(body, [*consts, *carry, *rows], [*fixed, *unknown])
            after = [self.joined(pair, v) for *pair, v in zip(carry, found, body.outputs, strict=False)]
            if [_entries(p) for p in carry] == [_entries(p) for p in after]:
                break
            carry = after
        _, each, saved = layout.results(found)
        arrays = [None if p is None else p[np.tile(np.arange(p.shape[0]), length)] for p in each]
        stacks = [None if p is None else [p] for p in saved]
        return [*carry, *arrays, *stacks], [None] * len(loop.node.outputs)

    def steps(
        self, loop: LoopNode, length: int, patterns: list[Pattern], known: list[Any]
    ) -> tuple[list[Pattern], list[Any]]:
        body, layout = loop.body, loop.layout
        consts, carry, xs = layout.operands(patterns)
        fixed, values, rows = layout.operands(known)
        more = len(body.outputs) - layout.carry
        collected: list[list[Pattern]] = [[None] * length for _ in range(more)]
        told: list[list[Any]] = [[None] * length for _ in range(more)]
        for t in range(length)[::-1] if loop.reverse else range(length):
            step = [_row(p, t, length) for p in xs]
            found, after = self.run(body, [*consts, *carry, *step], [*fixed, *values, *(_at(x, t) for x in rows)])
            carry, values = found[: layout.carry], after[: layout.carry]
            for k in range(more):
                collected[k][t], told[k][t] = found[layout.carry + k], after[layout.carry + k]
        n, outs = layout.arrays, loop.node.outputs[layout.carry :]
        arrays = [self.rows(parts, v.aval.size) for parts, v in zip(collected[:n], outs, strict=False)]
        stacks = [None if all(p is None for p in parts) else parts for parts in collected[n:]]
        lists = [None if any(x is None for x in parts) else parts for parts in told[n:]]
        return [*carry, *arrays, *stacks], [*values, *(None for _ in arrays), *lists]

    def rows(self, parts: Sequence[Pattern], size: int) -> Pattern:
        """The patterns of the rows of an array, one below the other."""
        from scipy.sparse import vstack  # scipy is an extra

        if all(p is None for p in parts):
            return None
        none = self.empty(size // len(parts))
        return vstack([none if p is None else p for p in parts], format="csr")

    def any_row(self, p: Pattern, v: Value, length: int) -> Pattern:
        """The union of the rows of an array along its first axis, or of a list; each of them is as ``v``."""
        if p is None or isinstance(p, list):
            return self.joined(p or (), v)
        size = p.shape[0] // length
        return self.gathered(np.tile(np.arange(size), length), size, p)


def _entries(p: Pattern) -> Any:
    """A number of entries, for a list those of its steps; it changes whenever a union grows."""
    if isinstance(p, list):
        return [_entries(part) for part in p]
    return -1 if p is None else int(p.nnz)


def _row(p: Pattern, t: int, length: int) -> Pattern:
    """The pattern of row ``t`` of an array of so many rows, or of step ``t`` of a list."""
    if p is None or isinstance(p, list):
        return None if p is None else p[t if len(p) > 1 else 0]
    size = p.shape[0] // length
    return p[t * size : (t + 1) * size]


def _at(x: Any, t: int) -> Any:
    return None if x is None else x[t]
