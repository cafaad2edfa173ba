"""loop_parts: take a loop that saves residuals apart into bodies that compute them again, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Value
from ...ir.loop_node import LoopNode
from ...ir.structure import Layout
from ...ops.structural.flags import picked
from ...ops.structural.host import repeats
from ...ops.structural.loops import step_of
from ..inline import inline_into
from ..prune import live_inputs, prune


@dataclass(frozen=True, eq=False)
class Taped:
    """The bodies of a loop. ``once`` are lists of results that must not be computed again, and so are saved."""

    whole: LoopNode
    step: Graph  # (consts, carry, x) → (carry, arrays, once)
    tape: Graph  # (consts, carry, x) → (carry, arrays, once, residuals)
    again: Graph  # (consts, carry, x, once) → (carry, residuals)
    residuals: list[Value]  # the stacks that are read, as results of the loop
    once: list[Value]
    kept: list[int]  # the carries that must be kept in order to compute residuals again

    @property
    def parts(self) -> Layout:
        return self.whole.layout


def taken_apart(loop: LoopNode, readers: Iterable[LoopNode]) -> Taped:
    """Take a loop apart for the loops that read its residuals."""
    parts, body = loop.layout, loop.body
    read = {v for reader in readers for v in reader.operands}
    k_out, ys, steps = parts.results(body.outputs)
    stacks = loop.stacks
    used = [s in read for s in stacks]
    residuals = picked(steps, used)
    nodes = tuple(inner for inner in body.nodes if repeats(inner))
    once = [v for inner in body.nodes if not repeats(inner) for v in inner.outputs]
    again = prune(Graph(body.name, (*body.inputs, *once), nodes, (*k_out, *residuals)))
    once = picked(once, live_inputs(again, [True] * len(again.outputs))[len(body.inputs) :])
    lists = [Value(v.aval.stacked(loop.length), v.hint) for v in once]
    again = Graph(body.name, (*body.inputs, *once), again.nodes, again.outputs)
    step = prune(Graph(body.name, body.inputs, body.nodes, (*k_out, *ys, *once)))
    tape = prune(Graph(body.name, body.inputs, body.nodes, (*k_out, *ys, *once, *residuals)))
    return Taped(loop, step, tape, again, picked(stacks, used), lists, _kept(parts, again))


def _kept(parts: Layout, again: Graph) -> list[int]:
    """The carries that residuals depend on, also through later steps, but for carries that never change."""
    used = [False] * parts.carry + [True] * (len(again.outputs) - parts.carry)
    while True:
        live = parts.operands(live_inputs(again, used))[1]
        grown = [*(a or b for a, b in zip(used, live, strict=False)), *used[parts.carry :]]
        if grown == used:
            break
        used = grown
    k_in = parts.operands(again.inputs)[1]
    return [k for k in range(parts.carry) if live[k] and again.outputs[k] is not k_in[k]]


class Again:
    """The bodies that compute the residuals of a loop again, for one of the loops that read them.

    All of them take the same consts and xs; an operand of both loops is one input.
    """

    def __init__(self, loop: Taped, reader: LoopNode) -> None:
        self.loop, self.reader = loop, reader
        self.parts = reader.layout
        self.f_consts, self.f_carry, self.f_xs = loop.parts.operands(loop.whole.operands)
        self.r_consts, self.carry, self.r_xs = self.parts.operands(reader.operands)
        fixed = [v for k, v in enumerate(self.f_carry) if k not in loop.kept]
        read = set(loop.residuals)
        self.consts = list(dict.fromkeys((*self.f_consts, *fixed, *self.r_consts)))
        self.xs = list(dict.fromkeys((*self.f_xs, *loop.once, *(v for v in self.r_xs if v not in read))))

    def advance(self) -> Graph:
        """(consts, states, xs) → states."""
        b = Builder()
        consts, states, xs = self._consts(b), self._states(b), self._steps(b)
        return prune(b.graph(self.loop.step.name, self._again(b, consts, states, xs)[0]))

    def retape(self) -> Graph:
        """(consts, states, xs) → states, residuals."""
        b = Builder()
        consts, states, xs = self._consts(b), self._states(b), self._steps(b)
        moved, residuals = self._again(b, consts, states, xs)
        return prune(b.graph(self.loop.step.name, [*moved, *residuals]))

    def back(self) -> Graph:
        """(consts, states, carry, xs) → carry, arrays, stacks."""
        b = Builder()
        consts, states, carry, xs = self._consts(b), self._states(b), self._carry(b), self._steps(b)
        residuals = self._again(b, consts, states, xs)[1]
        return self._read(b, consts, residuals, carry, xs)

    def first(self) -> Graph:
        """(consts, residuals, carry, xs) → carry, arrays, stacks."""
        b = Builder()
        consts = self._consts(b)
        residuals = [b.input(v.aval.unstacked(), v.hint) for v in self.loop.residuals]
        return self._read(b, consts, residuals, self._carry(b), self._steps(b))

    def along(self) -> Graph:
        """(consts, states, carry, xs) → states, carry, arrays, stacks, for a reader that runs in the same direction."""
        b = Builder()
        consts, states, carry, xs = self._consts(b), self._states(b), self._carry(b), self._steps(b)
        moved, residuals = self._again(b, consts, states, xs)
        read = self._read(b, consts, residuals, carry, xs)
        return Graph(read.name, read.inputs, read.nodes, (*(s.value for s in moved), *read.outputs))

    def _consts(self, b: Builder) -> dict[Value, Symbol]:
        return {v: b.input(v.aval, v.hint) for v in self.consts}

    def _steps(self, b: Builder) -> dict[Value, Symbol]:
        return {v: b.input(step_of(v.aval), v.hint) for v in self.xs}

    def _states(self, b: Builder) -> list[Symbol]:
        carry = self.loop.parts.operands(self.loop.again.inputs)[1]
        return b.inputs_like(carry[k] for k in self.loop.kept)

    def _carry(self, b: Builder) -> list[Symbol]:
        return b.inputs_like(self.parts.operands(self.reader.body.inputs)[1])

    def _again(
        self, b: Builder, consts: dict[Value, Symbol], states: Sequence[Symbol], xs: dict[Value, Symbol]
    ) -> tuple[list[Symbol], list[Symbol]]:
        """The next states, and the residuals of this step."""
        now = dict(zip(self.loop.kept, states, strict=True))
        carry = [now[k] if k in now else consts[v] for k, v in enumerate(self.f_carry)]
        steps = [xs[v] for v in (*self.f_xs, *self.loop.once)]
        found = inline_into(b, self.loop.again, [*(consts[v] for v in self.f_consts), *carry, *steps])
        return [found[k] for k in self.loop.kept], found[len(carry) :]

    def _read(
        self,
        b: Builder,
        consts: dict[Value, Symbol],
        residuals: Sequence[Symbol],
        carry: Sequence[Symbol],
        xs: dict[Value, Symbol],
    ) -> Graph:
        """The step of the reader."""
        known = {**xs, **dict(zip(self.loop.residuals, residuals, strict=True))}
        given = [*(consts[v] for v in self.r_consts), *carry, *(known[v] for v in self.r_xs)]
        body = self.reader.body
        return b.graph(body.name, inline_into(b, body, given))
