"""Postponed derivatives: a recording that may not come back is a tape, and is differentiated once that is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.primitive import TRANSFORMS
from ..ops.structural.guard import guard
from ..tracer.around import kept
from ..tracer.record import Recorded
from ..tracer.trace import CURRENT
from .compilation import INSPECTORS, Derived
from .garbage import paused
from .owned import owned
from .recording import form_of
from .settings import config
from .signature import Call
from .tapes import Tape, tapeable


class TapedDerivative(NamedTuple):
    """A tape, and how its results become the user's."""

    tape: Tape
    assemble: Callable[..., Any]


DECISIONS = 8  # of a way that may not come back
TAPED: dict[type, Callable[..., TapedDerivative | None]] = {}  # how transforms are tapes
_POSTPONES: ContextVar[bool] = ContextVar("retrograd_postpones", default=False)
kept(_POSTPONES)


class Postponed(Derived):
    """A derivative that is a tape until someone asks for its graph."""

    def __init__(self, tape: Tape, assemble: Callable[..., Any], form: Any, make: Callable[[], Derived]) -> None:
        vars(self).update(tape=tape, assemble=assemble, form=form, make=make)

    tape: Tape
    make: Callable[[], Derived]

    @cached_property
    def _made(self) -> Derived:
        with paused:
            return self.make()

    @property
    def graph(self) -> Graph:
        return self._made.graph

    @property
    def graphs(self) -> Any:
        return self._made.graphs

    @property
    def lin(self) -> Any:
        return self._made.lin


@contextmanager
def postponing() -> Iterator[None]:
    """A context in which recordings are not expected to come back."""
    token = _POSTPONES.set(True)
    try:
        yield
    finally:
        _POSTPONES.reset(token)


def decides_often(graph: Graph) -> bool:
    """Whether the way of a recording may not come back."""
    return sum(node.prim is guard for node in graph.nodes) >= DECISIONS


@TRANSFORMS.register("derived")
def derived(transform: Any, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
    """What a transform makes of a recording, now or later."""
    graph = recorded.graph
    found, tape = None, TAPED.get(type(transform))
    outermost = CURRENT.get() is None and not recorded.written
    if tape is not None and outermost and (_POSTPONES.get() or decides_often(graph)) and tapeable(graph):
        found = tape(transform, function, recorded, call)
    if found is not None and found.tape.depends:
        make = partial(_later, transform, function, recorded, _without_values(call))
        return Postponed(*found, form_of(recorded), make)
    return transform.derive(function, recorded, call)  # type: ignore[no-any-return]  # by its own declaration


def _later(transform: Any, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
    """The derivative after the trace has ended, for the target of the transform."""
    with config(backend=transform.settings().backend):
        made: Derived = transform.derive(function, recorded, call)
    return made


def interpreted(derived: Derived, operands: Sequence[Any]) -> list[Any]:
    """The results of a derivative, by plain interpretation."""
    if isinstance(derived, Postponed):
        return owned(derived.tape(operands), operands)
    return owned(evaluate(derived.graph, operands), operands)


INSPECTORS["interpreted"] = interpreted


def _without_values(call: Call) -> Call:
    """The same call with arrays that take no memory."""
    leaves = [np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, np.ndarray) else x for x in call.leaves]
    return replace(call, leaves=leaves)
