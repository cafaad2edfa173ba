"""The period of a trace: the steps and nodes that each iteration of a Python loop repeats, and their sources.

Nodes have positions, but for numbers: those of the first iteration that is only compared begin with 0, recorded ones
are negative. A place is the number of one result of a node: ``WIDTH`` times the position, and the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...ir.builder import attrs_key
from ...ir.graph import Node, Value
from ..array import Tracer
from .steps import Made, NumPyCall, PlainOperand, Unlike

WIDTH = 1 << 20  # results of a node
COPIES = 4  # that are recorded
TRIES = 64  # distances that are tried as the period
AGAIN = 32  # steps, and an eighth of all at most, that tell a long iteration when they come again

Source = int | Value  # the place of a value less that of its iteration, or a value from before the loop


class NextCall:
    """What the next step must be, and where its operands come from: places less that of the iteration, or objects.

    ``pair`` is given for operators of two operands, results of other steps or numbers, with one number as the result:
    the places or numbers of the operands, and the place of the result.
    """

    __slots__ = ("form", "key", "makes", "pair", "sources", "what")

    def __init__(
        self, step: NumPyCall, sources: Sequence[Any], makes: Sequence[tuple[Source, Made]], shared: Container[Any]
    ) -> None:
        self.what, self.key, self.form = step.what, step.key, step.form
        self.sources, self.makes = tuple(sources), tuple(makes)
        self.pair: tuple[Any, Any, Any] | None = None
        if len(step.pair) == 2 and None not in step.pair and self.form is None:
            given = iter(sources)
            first, second = (next(given) if x is Tracer else x for x in step.pair)
            (place, made), *_ = makes
            own = type(place) is int and place >= 0 and place not in shared and made.viewed is None
            if own and isinstance(made.kind, type) and all(type(x) in (int, PlainOperand) for x in (first, second)):
                self.pair = first, second, place


class Iteration:
    """One iteration: its steps, its nodes with the sources of their operands, and what was recorded before it.

    ``place`` has the places of recorded values, ``ends`` the positions of the steps of the last recorded iteration and
    of its end, and ``shared`` the results of nodes that several steps give to the program.
    """

    def __init__(self, steps: Sequence[NumPyCall], nodes: Sequence[Node], period: int) -> None:
        counting = [0]
        for node in nodes:
            counting.append(counting[-1] + (node.prim.name != "const"))
        recorded = [node for node in nodes if node.prim.name != "const"]
        begins = [counting[step.start] - len(recorded) for step in steps[-2 * period :]]
        self.recorded = recorded
        self.ends = [*begins[-period:], 0]  # of the steps of the last recorded iteration
        self.length = -begins[-period]
        self.span = self.length * WIDTH
        if not self.length or [b - self.length for b in begins[-period:]] != begins[:period]:
            raise Unlike
        self.place = self._places()
        self.nodes = recorded[-self.length :]
        if any(node.effect or len(node.outputs) > WIDTH for node in self.nodes):
            raise Unlike
        self.sources = [tuple(self._same(q, self.length)) for q in range(-self.length, 0)]
        for q in range(-2 * self.length, -self.length):
            if tuple(self._same(q, self.length)) != self.sources[q + self.length]:
                raise Unlike
        makes = [self._makes(steps[k - period], steps[k]) for k in range(-period, 0)]
        places = [place for step in makes for place, _ in step if isinstance(place, int)]
        slots = Counter([place % self.span for place in places])
        self.shared = frozenset(slot for slot, n in slots.items() if n > 1 or slot not in places)  # several steps make
        self.steps = [self._wanted(steps[k - period], steps[k], makes[k]) for k in range(-period, 0)]
        self._leave_out_constants()

    def _leave_out_constants(self) -> None:
        """Let nodes have no position that compute what is the same for all iterations, and only that."""
        constants = {v for sources in (*self.sources, *(step.sources for step in self.steps)) for v in _values(sources)}
        kept: list[Node] = []
        needed: set[Value] = set()  # by nodes that have positions
        read: set[Value] = set()
        for node in reversed(self.recorded):
            only = any(v in read for v in node.outputs) and not any(v in needed for v in node.outputs)
            read.update(node.inputs)
            if not only and constants.isdisjoint(node.outputs):
                kept.append(node)
                needed.update(node.inputs)
        if len(kept) < len(self.recorded):
            self.recorded = kept[::-1]
            self.place = self._places()

    def _places(self) -> dict[Value, int]:
        at = enumerate(self.recorded, -len(self.recorded))
        return {v: q * WIDTH + k for q, node in at for k, v in enumerate(node.outputs)}

    def node(self, q: int) -> Node:
        """The recorded node at a position."""
        return self.recorded[len(self.recorded) + q]

    def _same(self, q: int, back: int) -> Iterator[Source]:
        """The sources of the operands of a node, which must be like the one an iteration before."""
        node, before = self.node(q), self.node(q - back)
        if kind(node) != kind(before):
            raise Unlike
        base = (q // self.length) * self.span
        for v, w in zip(node.inputs, before.inputs, strict=True):
            yield self._source(v, w, base)

    def _source(self, v: Value, w: Value, base: int) -> Source:
        """The source of an operand ``v``, which was ``w`` an iteration before."""
        if v is w:
            return v
        if v not in self.place or self.place.get(w) != self.place[v] - self.span:
            raise Unlike
        return self.place[v] - base

    def _wanted(self, before: NumPyCall, step: NumPyCall, makes: Sequence[tuple[Source, Made]]) -> NextCall:
        """What the step must be in further iterations."""
        if before.what != step.what or before.key != step.key or before.form != step.form:
            raise Unlike
        sources = []
        for a, b in zip(step.sources, before.sources, strict=True):
            if isinstance(a, Value) and isinstance(b, Value):
                sources.append(self._source(a, b, -self.span))
            elif a is b or (type(a) is type(b) and not isinstance(a, (Value, np.ndarray)) and a == b):
                sources.append(a)
            else:
                raise Unlike
        return NextCall(step, sources, makes, self.shared)

    def _makes(self, before: NumPyCall, step: NumPyCall) -> list[tuple[Source, Made]]:
        """The places of what a step makes, which must be like what it made an iteration before."""
        pairs = list(zip(step.makes, before.makes, strict=True))
        if any((now.kind, now.viewed) != (then.kind, then.viewed) for now, then in pairs):
            raise Unlike
        return [(self._source(now.value, then.value, -self.span), now) for now, then in pairs]


def _values(sources: Sequence[Any]) -> Iterator[Value]:
    return (s for s in sources if isinstance(s, Value))


def kind(node: Node) -> Any:
    """Equal for nodes that compute the same of their operands."""
    ins, outs = tuple([v.aval for v in node.inputs]), tuple([v.aval for v in node.outputs])
    return node.prim, node.replica, attrs_key(node.attrs), ins, outs


def repeated(steps: Sequence[NumPyCall | None], nodes: Sequence[Node]) -> Iteration | None:
    """The iteration that the last steps repeat, if they are at least half of all steps."""
    last = next((k for k in range(len(steps) - 1, -1, -1) if steps[k] is None), -1)
    tail = [step for step in steps[last + 1 :] if step is not None]
    known: dict[Any, int] = {}
    codes = np.array([known.setdefault(step.code, len(known)) for step in tail], np.int64)
    n = len(codes)
    some = codes[n - n // COPIES :]  # these hold each step of a period that is short enough
    at = np.flatnonzero(codes == some[np.argmin(np.bincount(codes)[some])]) if some.size else some
    for p in (at[-1:] - at[:-1])[::-1][:TRIES].tolist():
        if COPIES * p > n:
            break
        same = codes[p:] == codes[:-p]
        runs = n if same.all() else int(np.argmin(same[::-1])) + p
        if runs >= COPIES * p and 2 * runs >= len(steps):
            with suppress(Unlike):
                return Iteration(tail[n - runs :], nodes, p)
    return None


def may_repeat(steps: Sequence[NumPyCall | None]) -> bool:
    """Whether the last steps came before, as in the second of two long iterations."""
    codes = [step and step.code for step in steps]
    n = min(AGAIN, len(codes) // 8)
    last = codes[len(codes) - n :]
    return any(codes[k : k + n] == last for k in range(len(codes) - n) if codes[k] == last[0])
