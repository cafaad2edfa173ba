"""The memory that generated code takes, found by running the same statements on blocks that only have a size.

The text has the names, loops, schedules and deletions of the generated module; each operation is replaced by a block of
as many bytes as its result has. Python's own reference counts then say what lives at every moment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from types import CodeType
from typing import Any, TypeVar

from ....errors import InternalError
from ....ir.graph import Node, Value
from ....ir.layouts import copies
from ....ir.loop_node import loop_of
from ....ir.plan import Plan
from ....ir.structure import condition_of
from ....ir.target import Course, Undecided
from ....ops.structural.guard import exit_if, guard
from ....ops.structural.host import host
from ....ops.structural.stack import absent, step_numbers
from ....ops.structural.throw import throw_if
from ..emitter import EMITTERS, Definition, Emitter, Scope
from ..module import return_statement
from .meter import Above, Allocation, Arrays, CourseMeter, Meter, States
from .thinned import STEADY, thinned


class _Sizes(Emitter):
    """Writes blocks in place of operations."""

    short = True  # with short loops in place of long ones that take no more memory

    def __init__(self, plan: Plan, scope: Scope) -> None:
        super().__init__(plan, scope)
        assert isinstance(scope, _Numbered)
        self.labels, self.choices = scope.labels, scope.choices

    def _block(self, value: Value, node: Node) -> str:
        size, scratch = value.aval.nbytes if value.aval.kind == "array" else 0, _scratch(node)
        if self.short and not size and not scratch:
            return "__nothing"
        self.labels.append((value, node))
        return f"__block({size}, {scratch}, {len(self.labels) - 1})"

    def _node(self, node: Node, made: dict[Value, Node]) -> None:
        prim = node.prim
        if prim is guard or prim is throw_if:  # where the call goes on
            return
        loop = loop_of(node)
        if self.short and loop is not None and loop.length > STEADY and not _stacks(node):
            node = loop.shortened(STEADY)
        if prim is exit_if:
            node = replace(node, attrs={**node.attrs, "kind": "bool", "expected": True, "lanes": False})
        if prim is step_numbers or prim is absent:
            self.line(f"{self.assign(node.out)} = __nothing")
            return
        if prim is host or (prim.multi and prim not in EMITTERS):
            for out in node.outputs:
                self.line(f"{self.assign(out)} = {self._block(out, node)}")
            return
        super()._node(node, made)

    def _operand(self, node: Node, i: int, made: dict[Value, Node]) -> str:
        """An operand's name; in place of what chooses, the way that is assumed, the same wherever that chooses."""
        ways = node.prim.structure.chooses(node, i) if node.prim.structure is not None else 0
        if ways:
            choice = self.choices.setdefault(node.inputs[i], len(self.choices))
            return f"__way({choice}, {ways})"
        return super()._operand(node, i, made)

    def steps(self, start: str, stop: str) -> str:
        """Steps that keep nothing: some are as good as all."""
        return f"range({start}, min({stop}, {start} + {STEADY}))" if self.short else super().steps(start, stop)

    def actions(self, node: Node, schedule: str) -> str:
        """Those that take no more memory than others before are left out."""
        plain = not ("retape" in node.attrs or node.attrs.get("disk") or _stacks(node))
        return f"__thinned({schedule})" if self.short and plain else super().actions(node, schedule)

    def opened(self, node: Node, source: str) -> str:
        """States of the sizes of the carries that are kept, which may be views or arguments when they are written."""
        avals = [node.outputs[k].aval for k in node.attrs["kept"]]
        return f"__states({[aval.nbytes if aval.kind == 'array' else 0 for aval in avals]})"

    def number(self, node: Node, name: str) -> str:
        """As many steps as it takes until memory grows no more."""
        return str(_enough(node))

    @contextmanager
    def loop(self, node: Node, arguments: Sequence[str]) -> Iterator[None]:
        """The same number of steps, whatever the condition says."""
        with self.block(f"for {self.fresh('step')} in range({_enough(node)}):"):
            self.inline(condition_of(node), arguments, bound=len(arguments))
            yield

    def _expression(self, node: Node, operands: list[str]) -> str:
        prim, out = node.prim, node.out
        if out.aval.steps is not None:
            return prim.numpy.render(node, operands)
        if (storage := self.storage(out)) is not None:
            return storage
        view = prim.alias is not None and out.aval.kind == "array" and out not in self.plan.copies
        if view and prim.alias is not None and not copies(node, self.plan.order.producer):
            base = operands[prim.alias]
            return base if base.isidentifier() else "__block(0)"
        return self._block(out, node)

    def _write(self, node: Node, operands: list[str], made: dict[Value, Node]) -> None:
        out = node.out
        if out in self.plan.into:
            self.name[out] = self.name[node.inputs[node.prim.writes or 0]]
            self.line(f"__block(0, {_scratch(node)})")
        else:
            self.line(f"{self.assign(out)} = {self._block(out, node)}")

    def _ref(self, value: Value, made: dict[Value, Node]) -> str:
        return self.name[value] if value in self.name else self._block(value, made[value])


def _stacks(node: Node) -> bool:
    return any(v.aval.steps is not None for v in node.outputs)


def _enough(node: Node) -> int:
    """Steps of a loop of unknown length after which the next ones take no more memory, all slots for states being full.

    Raises ``Undecided`` where each step takes more.
    """
    match node.attrs.get("room") or node.attrs.get("way"):
        case ("online_room", int(slots)) if not node.attrs["lists"]:
            return STEADY * (slots + 1)
        case ("binomial", _, _, int(slots)) if not _stacks(node):
            return STEADY * (slots + 1)
        case None if not _stacks(node):
            return STEADY
    raise Undecided


class _InFull(_Sizes):
    """The same, in as many steps as there are."""

    short = False


class _Numbered(Scope):
    """A scope that numbers the results for which there are blocks, and what the data choose by."""

    def __init__(self, emitter: type[Emitter]) -> None:
        super().__init__(emitter)
        self.labels: list[tuple[Value, Node]] = []
        self.choices: dict[Value, int] = {}


def _scratch(node: Node) -> int:
    rule = node.prim.scratch
    found: int = rule(*(v.aval for v in node.inputs), **node.attrs) if rule else 0
    return found


@dataclass(frozen=True)
class Simulation:
    """The memory of the generated module for a plan, inputs not counted.

    Where the data choose between ways, it is the largest for some courses of such choices. ``Undecided`` is raised
    where the data decide how much is kept.
    """

    plan: Plan

    def peak(self, limit: float = inf) -> int:
        """The most bytes of arrays that a call holds at once; beyond ``limit`` it is not followed."""
        return _largest(_Script(self.plan, _Sizes), partial(Meter, limit=limit)).peak

    def course(self) -> Course:
        """The course of memory through all steps."""
        script = _Script(self.plan, _InFull)
        history, labels = _largest(script, CourseMeter), script.scope.labels
        known: list[tuple[int, Value | None, Node | None]]
        known = [(n, *labels[k]) if k >= 0 else (n, None, None) for n, k in history.at_peak]
        return Course(history.peak, history.course, known)


M = TypeVar("M", bound=Meter)
LAST = sys.maxsize  # of the ways of any choice


def _largest(script: _Script, meter: Callable[[Mapping[int, int], int], M]) -> M:
    """The run with the largest peak that is found when each choice in turn goes every way, and stays with the largest.

    Of equal peaks it is the one of which more lives all the time: a further choice may add to it.
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

    def __init__(self, plan: Plan, emitter: type[_Sizes]) -> None:
        self.scope = _Numbered(emitter)
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
    return "\n".join([header, *lines, "    " + return_statement(function.results)])
