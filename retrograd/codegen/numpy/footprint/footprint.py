"""The memory that generated code takes, found by running the same statements on blocks that only have a size.

The text has the names, loops, schedules and deletions of the generated module. Each operation is replaced by a
block of as many bytes as the result has. Python's own reference counts then say what is live at every moment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from types import CodeType
from typing import Any, TypeVar

from ....errors import InternalError
from ....ir.footprint import Course
from ....ir.graph import Node, Value
from ....ir.plan import Plan
from ..emitter import Definition
from ..module import return_statement
from .meter import Above, Allocation, Arrays, CourseMeter, Meter, SizedDict, SizedList, States
from .sizes import InFull, Numbered, Sizes
from .thinned import thinned


@dataclass(frozen=True)
class Simulation:
    """The memory of the generated module for a plan, inputs not counted.

    If the data choose between paths, this is the largest memory among several assumed courses of the choices. Raises
    ``Undecided`` if the data decide how much is kept.
    """

    plan: Plan

    def peak(self, limit: float = inf) -> int:
        """The most bytes of arrays that a call holds at once; beyond ``limit`` the simulation stops."""
        return _largest(_Script(self.plan, Sizes), partial(Meter, limit=limit)).peak

    def course(self) -> Course:
        """The course of memory through all steps."""
        script = _Script(self.plan, InFull)
        history, labels = _largest(script, CourseMeter), script.scope.labels
        known: list[tuple[int, Value | None, Node | None]]
        known = [(n, *labels[k]) if k >= 0 else (n, None, None) for n, k in history.at_peak]
        return Course(history.peak, history.course, known)


M = TypeVar("M", bound=Meter)
LAST = sys.maxsize  # the last path of any choice


def _largest(script: _Script, meter: Callable[[Mapping[int, int], int], M]) -> M:
    """The run with the largest peak found: each choice in turn takes every path, and stays with the largest.

    Of equal peaks, take the run with more live bytes in total: a further choice may add to it.
    """

    def run(chosen: Mapping[int, int], rest: int) -> M:
        return script.run(meter(chosen, rest))

    most = run({}, 0)
    if not most.met:
        return most
    most = max(most, run({}, LAST), key=_weight)
    todo = list(most.met)
    for choice in todo:
        taken, ways = most.met.get(choice, (0, 0))
        for way in range(ways):
            if way != taken and most.peak <= most.limit:
                chosen = {known: at for known, (at, _) in most.met.items()}
                most = max(most, run({**chosen, choice: way}, most.rest), key=_weight)
        todo += [other for other in most.met if other not in todo]
    return most


def _weight(meter: Meter) -> tuple[int, int]:
    return meter.peak, meter.total


class _Script:
    """The text for a plan, which runs on meters."""

    def __init__(self, plan: Plan, emitter: type[Sizes]) -> None:
        self.scope = Numbered(emitter)
        self.main = self.scope.add(plan, plan.order.name)
        self.text = "\n\n".join([*self.scope.helpers, *map(_source, self.scope.functions)])
        self.code: CodeType = compile(self.text, "<memory>", "exec")

    def run(self, meter: M) -> M:
        """The meter after a run."""
        names: dict[str, Any] = {
            "np": Arrays(meter),
            "__block": meter.new,
            "__nothing": Allocation(meter, 0, -1),
            "__way": meter.way,
            "__thinned": partial(thinned, live=lambda: meter.live),
            "__states": partial(States, meter),
            "__list": partial(SizedList, meter),
            "__dict": partial(SizedDict, meter),
        }
        try:
            exec(self.code, names)  # noqa: S102 - the source is ours
            with suppress(Above):
                names[self.main.name](*(meter.new(0) for _ in self.main.parameters))
        except (AttributeError, TypeError, ValueError, KeyError, IndexError) as fault:
            raise InternalError(f"the memory of {self.main.name} cannot be found: {fault!r}\n{self.text}") from fault
        return meter


def _source(function: Definition) -> str:
    header = f"def {function.name}({', '.join(function.parameters)}):"
    lines = ["    " * line.depth + line.text for line in function.lines]
    return "\n".join([header, *lines, "    " + return_statement(function.results or [])])
