"""The random draws of bodies, which are moved before the loop or branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import UnsupportedError
from ..ir.builder import Symbol, attr_key
from ..ir.evaluate import run_node
from ..ops.index import getitem
from ..passes.hoist_draws import StepDraws, drawn_in, hoist_draws
from ..tracer.generators import capture_generator, example_of
from ..tracer.record import Recorded
from ..tracer.trace import Capture, Trace
from ..where import user_site

Drawn = dict[int, tuple[StepDraws, Capture]]  # what a body draws, by the identity of the generator


def drawn_before(trace: Trace, recorded: Recorded, at: int, steps: int) -> tuple[Recorded, list[tuple[Symbol, Any]]]:
    """A body without its draws, which become inputs from position ``at`` on; and the numbers of all its steps."""
    drawn = _drawn_by(recorded)
    if not drawn:
        return recorded, []
    return _without(recorded, list(drawn.values()), at), _drawn_for(trace, drawn, steps)


def drawn_alike(
    label: str, trace: Trace, bodies: Sequence[Recorded], at: int
) -> tuple[list[Recorded], list[tuple[Symbol, Any]]]:
    """Branches without their draws, which become inputs from position ``at`` on; and the numbers, drawn before.

    UnsupportedError unless all branches draw alike: else the state of a generator would depend on the choice.
    """
    each = [_drawn_by(recorded) for recorded in bodies]
    if not any(each):
        return list(bodies), []
    alike = [{key: attr_key(tuple(one.items)) for key, (one, _) in drawn.items()} for drawn in each]
    if any(items != alike[0] for items in alike):
        raise UnsupportedError(
            f"the branches of a {label} draw different random numbers",
            where=user_site()[0],
            remedy="draw before the branch and pass the numbers, or choose between results with np.where",
        )
    given = [(getitem(symbol, index=(0,)), example[0]) for symbol, example in _drawn_for(trace, each[0], 1)]
    return [_without(r, [drawn[key] for key in each[0]], at) for r, drawn in zip(bodies, each, strict=True)], given


def _drawn_by(recorded: Recorded) -> Drawn:
    """What a recording draws, by the identity of the generator."""
    n = len(recorded.graph.inputs) - len(recorded.captures)
    of = dict(zip(recorded.graph.inputs[n:], recorded.captures, strict=True))
    return {id(of[one.generator].payload): (one, of[one.generator]) for one in drawn_in(recorded.graph)}


def _drawn_for(trace: Trace, drawn: Drawn, steps: int) -> list[tuple[Symbol, Any]]:
    """The numbers of all steps, as arrays with a row for each."""
    given: list[tuple[Symbol, Any]] = []
    for one, capture in drawn.values():
        trace.builder.where = user_site()[0]
        numbers = one.emit(capture_generator(trace, capture.payload), steps)
        node = trace.builder.made[numbers[0].value]
        given += zip(numbers, run_node(node, [example_of(trace, capture.payload)]), strict=True)
    return given


def _without(recorded: Recorded, drawn: Sequence[tuple[StepDraws, Capture]], at: int) -> Recorded:
    """The recording with what it draws as inputs from position ``at`` on."""
    gone = {id(capture) for _, capture in drawn}
    graph = hoist_draws(recorded.graph, [one for one, _ in drawn], at)
    return replace(recorded, graph=graph, captures=tuple(c for c in recorded.captures if id(c) not in gone))
