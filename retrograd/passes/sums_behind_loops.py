"""sums_behind_loops: Graph → Graph in which sums that a loop adds up over its steps are made once, after the loop.

The gradient with respect to a parameter of many systems is such a sum: each step adds up what all systems contribute.
With an array of contributions as the state, no step depends on more than one element of each array. C then computes all
steps of some systems before it goes on to others. The terms are added in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import LoopNode, loop_of
from ..ir.rewrite import Env, copy_nodes, mapped, rebuild
from ..ops.elementwise import add, literal_value, mul, neg, sub
from ..ops.reduce import sum_
from ..ops.shape import broadcast_to

LONG = 64  # terms


def sums_behind_loops(graph: Graph) -> Graph:
    """The graph, and its bodies, with such sums behind loops whose other states have the shape of their terms."""
    return mapped(graph, lambda g: rebuild(g, _with_sums_behind)) if graph.nested else graph


@dataclass(frozen=True)
class _StepSum:
    """A state that each step changes by a sum of terms, or by a multiple of one."""

    change: Node  # the addition or subtraction
    multiples: list[Node]  # negations and products with numbers, the last one first
    total: Node

    @property
    def terms(self) -> Value:
        return self.total.inputs[0]

    def changed(self, env: Env) -> Symbol:
        """The state with terms of its own, after the step."""
        terms, of = env[self.terms], self.total.out
        for node in reversed(self.multiples):
            factor = next((v for v in node.inputs if v is not of), None)
            terms = -terms if factor is None else terms * broadcast_to(env[factor], terms.shape)
            of = node.out
        found: Symbol = self.change.prim(*(terms if v is of else env[v] for v in self.change.inputs))
        return found


def _with_sums_behind(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    loop = loop_of(node)
    if loop is None or loop.condition is not None or loop.count is not None:
        return None
    _, carry, _ = loop.layout.operands(loop.body.inputs)
    sums = {k: found for k, v in enumerate(carry) if (found := _step_sum(loop.body, v, loop.body.outputs[k]))}
    shapes = {v.aval.shape for k, v in enumerate(carry) if k not in sums} | {s.terms.aval.shape for s in sums.values()}
    return _emitted(b, loop, sums, env) if sums and len(shapes) == 1 else None


def _step_sum(body: Graph, state: Value, new: Value) -> _StepSum | None:
    change = body.producer.get(new)
    if change is None or change.prim not in (add, sub) or not _is_read_once(body, state, change):
        return None
    if (change.prim is sub and change.inputs[0] is not state) or body.uses.get(new) or body.outputs.count(new) > 1:
        return None
    (other,) = [v for v in change.inputs if v is not state]
    reader, multiples = change, list[Node]()
    while (node := body.producer.get(other)) is not None and _is_read_once(body, other, reader):
        if node.prim is sum_:
            terms = node.inputs[0].aval
            long = terms.size >= LONG * max(1, state.aval.size) and terms.dtype == state.aval.dtype
            return _StepSum(change, multiples, node) if long else None
        found = _multiplied(body, node)
        if found is None:
            return None
        multiples.append(node)
        reader, other = node, found
    return None


def _multiplied(body: Graph, node: Node) -> Value | None:
    """What an operation is a multiple of, by a number; None for other operations."""
    if node.prim is neg:
        return node.inputs[0]
    if node.prim is not mul:
        return None
    for v, factor in (node.inputs, node.inputs[::-1]):
        made = body.producer.get(v)
        number = not factor.aval.shape and ((other := body.producer.get(factor)) is None or other.prim is not sum_)
        if number and made is not None and made.prim in (sum_, mul, neg):
            return v
    return None


def _is_read_once(body: Graph, value: Value, reader: Node) -> bool:
    return list(body.uses.get(value, ())) == [reader] and value not in body.outputs and reader.inputs.count(value) == 1


def _emitted(b: Builder, loop: LoopNode, sums: dict[int, _StepSum], env: Env) -> Sequence[Symbol]:
    consts, carry, xs = loop.layout.operands(loop.body.inputs)
    given, starts, rows = loop.layout.operands([env[v] for v in loop.operands])
    inner = Builder()
    inside: Env = {v: inner.input(v.aval, v.hint) for v in consts}
    inside.update((v, inner.input(sums[k].terms.aval if k in sums else v.aval, v.hint)) for k, v in enumerate(carry))
    inside.update((v, inner.input(v.aval, v.hint)) for v in xs)
    changes = {found.change: found for found in sums.values()}
    gone = {node for found in sums.values() for node in (*found.multiples, found.total)}

    def change(_: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        return [changes[node].changed(env)] if node in changes else None

    copy_nodes(inner, [node for node in loop.body.nodes if node not in gone], inside, change)
    body = inner.graph(loop.body.name, [inside[v] for v in loop.body.outputs])
    states = [b.zeros(sums[k].terms.aval) if k in sums else x for k, x in enumerate(starts)]
    operands = [x.value for x in (*given, *states, *rows)]
    made = b.emit(loop.node.prim, operands, loop.attrs(body, loop.layout), [v.hint for v in loop.node.outputs])
    for k, found in sums.items():
        total: Symbol = sum_(made[k], **found.total.attrs)
        made[k] = total if literal_value(starts[k]) == 0 else starts[k] + total
    return made
