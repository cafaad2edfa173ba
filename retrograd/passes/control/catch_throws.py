"""catch: f(x...) → y... that may throw becomes f'(x...) → thrown, payload..., y... that does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ShapeError, TreeError, UnsupportedError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import LoopNode, loop_of
from ...ir.structure import Layout
from ...ir.types import Aval
from ...ops.elementwise import BOOL
from ...ops.structural.cond import make_cond
from ...ops.structural.throw import throw_if
from ..inline import body_in_place, inline_into

TRUTH = Aval((), BOOL, "scalar")


@dataclass(frozen=True)
class Caught:
    """``graph`` returns whether the function threw, the payload, and the results.

    Results that were not computed are zero. ``form`` describes the tree of the payload.
    """

    graph: Graph
    form: str
    payload: tuple[Aval, ...]


def catch(graph: Graph, tag: int) -> Caught | None:
    """Turn every ``throw_if`` with this tag into a choice between the payload and the rest; None if there is none.

    This includes branches and bodies of loops; after a throw the remaining steps of a loop do nothing.
    """
    places = list(_throws(graph, tag))
    if not places:
        return None
    form, where = places[0].attrs["form"], places[0].where
    for other in places[1:]:
        if other.attrs["form"] != form:
            raise TreeError(
                f"this throw has another structure than the one at {where}: {_shown(other)} and {_shown(places[0])}",
                where=other.where,
                remedy="throw the same containers everywhere in one try_catch",
            )
    payload = tuple(_agreed(avals, places) for avals in zip(*(n.inputs[1:] for n in places), strict=True))
    return Caught(_Catcher(tag, payload).graph(graph), form, payload)


def _shown(node: Node) -> str:
    text: str = node.attrs["form"].format(*(v.aval for v in node.inputs[1:]))
    return text


def _throws(graph: Graph, tag: int) -> Any:
    for node in graph.nodes:
        if node.prim is throw_if and node.attrs["tag"] == tag:
            yield node
        for _, body in node.graphs:
            yield from _throws(body, tag)


def _agreed(values: Sequence[Value], places: Sequence[Node]) -> Aval:
    """The type that a part of the payload has at all throws."""
    first = values[0].aval
    for value, node in zip(values, places, strict=True):
        if (value.aval.shape, value.aval.dtype) != (first.shape, first.dtype):
            raise ShapeError(
                f"{value.aval} is thrown here, but {first} at {places[0].where}",
                where=node.where,
                remedy="throw equal shapes and dtypes everywhere in one try_catch",
            )
    return first if first.shape else Aval((), first.dtype, "scalar")


@dataclass(frozen=True)
class _Catcher:
    tag: int
    payload: tuple[Aval, ...]

    def graph(self, graph: Graph) -> Graph:
        b = Builder()
        env = dict(zip(graph.inputs, b.inputs_like(graph.inputs), strict=True))
        return b.graph(graph.name, self.rest(b, graph, 0, env))

    def throws(self, node: Node) -> bool:
        return (node.prim is throw_if and node.attrs["tag"] == self.tag) or any(
            self.throws(inner) for _, body in node.graphs for inner in body.nodes
        )

    def rest(self, b: Builder, graph: Graph, start: int, env: dict[Value, Symbol]) -> list[Symbol]:
        """Emit the nodes from ``start`` on; whether they throw, the payload, and the results of the graph."""
        for i in range(start, len(graph.nodes)):
            node = graph.nodes[i]
            ins = [b.coerce(env[v], v.aval) for v in node.inputs] if any(node.graphs) else [env[v] for v in node.inputs]
            b.where = node.where
            if not self.throws(node):
                outs = b.copy_node(node, [x.value for x in ins])
                env.update(zip(node.outputs, outs, strict=True))
            elif node.prim is throw_if:
                payload = [b.coerce(x, a) for x, a in zip(ins[1:], self.payload, strict=True)]
                return self.either(b, graph, i + 1, env, ins[0], payload)
            else:
                thrown, payload, outs = self.inside(b, node, ins)
                env.update(zip(node.outputs, outs, strict=True))
                return self.either(b, graph, i + 1, env, thrown, payload)
        outs = [b.coerce(env[v], v.aval) for v in graph.outputs]
        return [b.constant(False, TRUTH), *(b.zeros(a) for a in self.payload), *outs]

    def either(
        self, b: Builder, graph: Graph, start: int, env: dict[Value, Symbol], thrown: Symbol, payload: list[Symbol]
    ) -> list[Symbol]:
        """The payload if ``thrown``, else the nodes from ``start`` on."""
        last = not any(map(self.throws, graph.nodes[start:]))  # then it is known by now whether the graph throws
        known_by_now = 1 + len(payload) if last else 0
        later = {v for node in graph.nodes[start:] for v in node.inputs} | set(graph.outputs)
        passed = [v for v in env if v in later]
        after = Builder()
        known = after.inputs_like(env[v].value for v in passed)
        after.inputs += [Value(x.aval) for x in payload]
        found = self.rest(after, graph, start, dict(zip(passed, known, strict=True)))
        rest = after.graph("rest", found[known_by_now:])
        ended = Builder()
        ended.inputs_like(env[v].value for v in passed)
        given = ended.inputs_like(x.value for x in payload)
        zeros = [ended.zeros(v.aval) for v in graph.outputs]
        end = ended.graph("thrown", [ended.constant(True, TRUTH), *given, *zeros][known_by_now:])
        made = make_cond(b, thrown, [rest, end], [*(env[v] for v in passed), *payload])
        return [b.coerce(thrown, TRUTH), *payload, *made] if last else made

    def inside(self, b: Builder, node: Node, ins: list[Symbol]) -> tuple[Symbol, list[Symbol], list[Symbol]]:
        """Emit a node that throws inside as a node that does not: whether it threw, the payload, and its results."""
        structure, k = node.prim.structure, len(self.payload)
        branches = [self.graph(g) for g in structure.branches(node)] if structure is not None else []
        if (loop := loop_of(node)) is not None:
            return self.loop(b, loop, ins)
        if branches:
            found = make_cond(b, ins[0], branches, ins[1:])
        elif (body := body_in_place(node)) is not None:
            found = inline_into(b, self.graph(body), ins)
        else:
            raise UnsupportedError(
                f"a throw inside {node.prim.name} cannot be caught",
                where=node.where,
                remedy="throw outside of rg.checkpoint, functions with a custom derivative and conditions of loops",
            )
        return found[0], found[1 : k + 1], found[k + 1 :]

    def loop(self, b: Builder, loop: LoopNode, ins: list[Symbol]) -> tuple[Symbol, list[Symbol], list[Symbol]]:
        """A loop that also carries whether it threw, and the payload; after a throw its carry stays as it is."""
        parts = loop.layout
        count, operands = (None, ins) if loop.count is None else (ins[0], ins[1:])
        step = self.step(loop.body, parts)
        state = [b.constant(False, TRUTH), *(b.zeros(a) for a in self.payload)]
        c, carry, xs = parts.operands(operands)
        wide = Layout(parts.consts, parts.carry + len(state), parts.arrays)
        going = None if loop.condition is None else self.going(loop.condition, parts, step)
        given = [*c, *carry, *state, *xs]
        last, arrays, stacks = loop.remade(b, step, given, count, layout=wide, condition=going, plan=loop.plan)
        n = parts.carry
        return last[n], last[n + 1 :], [*last[:n], *arrays, *stacks]

    def step(self, body: Graph, parts: Layout) -> Graph:
        """The body over (consts, carry and state, xs)."""
        b, k = Builder(), len(self.payload)
        c_in, k_in, x_in = parts.operands(body.inputs)
        c, carry = b.inputs_like(c_in), b.inputs_like(k_in)
        thrown, payload, xs = b.input(TRUTH, "thrown"), [b.input(a) for a in self.payload], b.inputs_like(x_in)
        go = self.graph(body)
        after = Builder()
        operands = after.inputs_like(go.inputs)
        after.inputs += [Value(a) for a in self.payload]
        found = inline_into(after, go, operands)
        more = after.graph(go.name, [after.coerce(x, v.aval) for x, v in zip(found, go.outputs, strict=True)])
        ended = Builder()
        kept = parts.operands(ended.inputs_like(go.inputs))[1]
        state = [ended.input(a) for a in self.payload]
        zeros = [ended.zeros(v.aval) for v in body.outputs[parts.carry :]]
        stay = ended.graph("stay", [ended.constant(True, TRUTH), *state, *kept, *zeros])
        made = make_cond(b, thrown, [more, stay], [*c, *carry, *xs, *payload])
        n = 1 + k
        return b.graph(body.name, [*made[n : n + parts.carry], *made[:n], *made[n + parts.carry :]])

    def going(self, cond: Graph, parts: Layout, step: Graph) -> Graph:
        """The condition of a while loop, which also ends if the body threw."""
        if any(self.throws(node) for node in cond.nodes):
            raise UnsupportedError(
                "a throw in the condition of a loop cannot be caught",
                where=cond.nodes[-1].where,
                remedy="throw in the body, and let the condition read a flag in the carry",
            )
        b, n = Builder(), parts.consts + parts.carry
        inputs = b.inputs_like(step.inputs)
        stop = Builder()
        stop.inputs_like(cond.inputs)
        ended = stop.graph("thrown", [stop.constant(False, cond.out_avals[0])])
        return b.graph(cond.name, make_cond(b, inputs[n], [cond, ended], inputs[:n]))
