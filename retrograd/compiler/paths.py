"""Paths: the traced paths of one signature of a compiled function, and the code that contains them all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import ControlFlowError
from ..ir.builder import attr_key
from ..ir.graph import Graph, Value
from ..ir.primitive import TRANSFORMS
from ..ir.types import aval_of, in_order
from ..ops.structural.guard import Miss, guard, parted
from ..tracer.around import renewed, whole
from ..tracer.array import shadow_of
from ..tracer.record import Recorded
from ..tracer.surroundings import SURROUNDINGS, Captures
from ..tracer.trace import STATEFUL, Capture
from .compilation import INSPECTORS, Compilation
from .executable import Executable
from .garbage import paused
from .inside import Callee
from .settings import Settings, config
from .signature import Call


@dataclass(eq=False)
class Paths:
    """The ways of one signature, as long as what they have read is the same.

    ``check(function, statics)`` gives the present captures, or None if something has changed. ``call(compiled, leaves,
    captures, statics)`` runs the ways; an unknown one is recorded there. Their code is made when a call needs it.
    """

    template: Call
    settings: Settings
    known: dict[Any, Compilation] = field(default_factory=dict)
    executable: Executable | None = None

    def __post_init__(self) -> None:
        self._in_order = all(in_order(x) for x in map(shadow_of, self.template.leaves) if type(x) is np.ndarray)
        self.template = replace(self.template, leaves=[None] * len(self.template.leaves))  # arguments are not kept
        renewed(self)
        self.call: Callable[..., Any] = self.first
        self._relied = SURROUNDINGS[-1].check()
        self.check: Callable[[Any, Sequence[Any]], Captures | None] = lambda function, statics: ()
        self._captures: list[Capture] = []

    def renew_locks(self) -> None:
        """Make the lock under which ways are recorded and compiled."""
        self.lock = threading.RLock()

    @property
    def code(self) -> Executable:
        """The code of all known ways; ControlFlowError where there is none, as calls are interpreted."""
        with self.lock:
            if self.executable is None and self.known:
                self._compile()
        if self.executable is None:
            raise ControlFlowError(
                "the function catches an error that depends on the values of its arguments: such calls are interpreted",
                remedy="decide with an if before the operation that fails",
            )
        return self.executable

    @whole
    def _compile(self) -> None:
        """Compile all known ways as one piece of code."""
        ways, ordered = list(self.known.values()), self._captures
        captures = {id(c.payload): c.payload for c in ordered}
        graphs = [_over(way, captures) for way in ways]
        with paused, config(**self.settings._asdict()):
            merged, forms = INSPECTORS["joined"](ways, graphs) if len(ways) > 1 else (graphs[0], ways)
            inputs = merged.inputs[len(merged.inputs) - len(ordered) :]
            made = {v: c.payload for v, c in zip(inputs, ordered, strict=True) if c.made}
            executable = Executable(merged, made, ordered=self.ordered)
        self.call = self._follower(executable, tuple(captures.values()), [way.assemble for way in forms])
        if self.settings.debug_nans:
            self.call = self._debugged
        self.executable = executable  # last: without it, an interrupted compilation is made again

    def _follower(
        self, executable: Executable, captures: Captures, assemblers: list[Callable[[Sequence[Any]], Any]]
    ) -> Callable[..., Any]:
        single, several = executable.single, len(assemblers) > 1
        run = executable.function
        for kind in STATEFUL:
            run = kind.repeatable(run, captures)
        if written := {k for way in self.known.values() for k in way.recorded.written}:
            run = TRANSFORMS.apart(run, written)
        assemble = assemblers[0]

        def follow(compiled: Callee, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any] = ()) -> Any:
            try:
                result = run(*leaves, *captures)
            except Exception as raised:  # noqa: BLE001 - whatever it is: the function is recorded for it, or it is raised
                executable.annotate(raised)
                faults = [raised]
            else:
                if several:
                    form, *results = result if type(result) is tuple else (result,)
                    return assemblers[form](results)
                return assemble((result,) if single else result)
            return self.elsewhere(compiled, leaves, statics, faults.pop())  # its traceback holds this frame: a cycle

        return follow

    def _debugged(
        self, compiled: Callee, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any] = ()
    ) -> Any:
        way = self.way(compiled, leaves, captures, statics)
        return INSPECTORS["debug_nans"](way, way.arguments(leaves, self.present(captures)))

    def first(self, compiled: Callee, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any] = ()) -> Any:
        """Compile what was recorded, and run it."""
        with self.lock:
            if self.executable is None and self.known:
                self._compile()
        if self.executable is None:
            return self.elsewhere(compiled, leaves, statics)
        return self.call(compiled, leaves, captures, statics)

    def elsewhere(
        self, compiled: Callee, leaves: Sequence[Any], statics: Sequence[Any], fault: Exception | None = None
    ) -> Any:
        """Record the way that these arguments go, which is not compiled or failed there, and give its result.

        What the user's function raises is raised. A way that is known fails as it did, or is interpreted where
        only the last bits of a decision differed.
        """
        with self.lock:
            way, new = self.recorded(compiled, leaves, statics)
            captures = self.check(compiled._user, statics) if new else None
        if captures is not None:
            return self.call(compiled, leaves, captures, statics)
        known = not new and answers(way.recorded.graph) in self.known
        if fault is not None and known and not isinstance(fault, Miss) and not way.recorded.tainted:
            raise fault
        return interpreted(way, leaves)

    def recorded(self, compiled: Callee, leaves: Sequence[Any], statics: Sequence[Any]) -> tuple[Compilation, bool]:
        """The way of these arguments, and whether it is a further one to compile."""
        call = self.template.with_values(leaves, statics)
        recorded, derived = compiled._record(call)
        reads, recorded = recorded.reads, replace(recorded, reads=())
        key = answers(recorded.graph)
        way = Compilation(repr(compiled), self.template, recorded, derived, self.settings, self)
        placed = self._placed(compiled, statics, recorded)
        if placed is None or recorded.tainted or key in self.known:
            return way, False
        kept = replace(way, recorded=placed)
        self.join(compiled, statics, INSPECTORS["joining"](compiled, statics, self, key, kept, reads))
        return way, key in self.known

    def _placed(self, compiled: Callee, statics: Sequence[Any], recorded: Recorded) -> Recorded | None:
        """The recording with the captures of former ways where those are the same places.

        None if that cannot be told: an array has moved, or two places hold one that held two.
        """
        if not self.known:
            return recorded
        present = self.check(compiled._user, statics)
        at = {id(x): c for x, c in zip(present or (), self._captures, strict=False)}
        former = {id(c.payload) for c in self._captures}
        if present is None or len(at) < len(present):
            return None
        if any(id(c.payload) in former and id(c.payload) not in at for c in recorded.captures):
            return None
        return replace(recorded, captures=tuple([at.get(id(c.payload), c) for c in recorded.captures]))

    def join(self, compiled: Callee, statics: Sequence[Any], ways: Sequence[tuple[Any, Compilation, Any]]) -> None:
        """Take in further ways, with their answers and their reads; a call that needs their code has it compiled."""
        for answered, each, read in ways:
            self.known[answered] = each
            union = {id(c.payload): c for known in self.known.values() for c in known.recorded.captures}
            captures = sorted(union.values(), key=lambda c: c.made)  # what the user holds first
            self._relied.rely_on(read, compiled._user, statics, tuple(c.payload for c in captures))
            self.executable, self.call = None, self.first
            self._captures, self.check = captures, self._relied.run

    @property
    def ordered(self) -> bool:
        """Whether the arrays that come in are C-ordered."""
        return self._in_order and all(in_order(c.shadow) for c in self._captures if isinstance(c.shadow, np.ndarray))

    @property
    def size(self) -> int:
        """The bytes of the arrays that are kept for it."""
        return sum(int(getattr(c.payload, "nbytes", 0)) for c in self._captures)

    def changed(self, function: Any, statics: Sequence[Any]) -> str:
        """What has changed of what was read, in words."""
        return self._relied.changed(function, statics)

    def present(self, captures: Captures) -> dict[int, Any]:
        """What takes the place of each captured object now."""
        return {id(c.payload): now for c, now in zip(self._captures, captures, strict=True)}

    def way(self, compiled: Callee, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any]) -> Compilation:
        """The way that these arguments go."""
        for way in self.known.values():
            try:
                if len(self.known) > 1 or answers(way.recorded.graph):
                    way.results(leaves, self.present(captures))
            except Miss:
                continue
            return way
        with self.lock:
            way = self.recorded(compiled, leaves, statics)[0]
            return self.known.get(answers(way.recorded.graph), way)


class Once:
    """A way that holds for one call: the function changes what it reads, or reads what cannot be watched."""

    def __init__(self, way: Compilation) -> None:
        self._way = way

    def call(self, compiled: Callee, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any] = ()) -> Any:
        """The result of what was recorded for this very call."""
        return interpreted(self._way, leaves)

    def way(self, compiled: Callee, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any]) -> Compilation:
        """What was recorded for this very call."""
        return self._way


class Found(NamedTuple):
    """The paths of a call, their captures now, and the call as they take it."""

    paths: Paths | Once
    captures: Captures
    call: Call

    @property
    def operands(self) -> tuple[list[Any], Captures, list[Any]]:
        """What the paths take."""
        return self.call.values(), self.captures, self.call.statics()


Finder = Callable[[Any, Call], Found]
FINDERS: list[Finder] = [lambda compiled, call: compiled.found(call)]  # the last that was registered finds paths


def interpreted(way: Compilation, leaves: Sequence[Any]) -> Any:
    """The result of a way that was recorded just now."""
    if way.recorded.written:
        TRANSFORMS.check_apart(way.arguments(leaves), way.recorded.written)
    try:
        return way.interpret(leaves)
    except Miss as miss:
        raise parted(miss.where) from None


def answers(graph: Graph) -> Any:
    """The answers that a recording's guards expect, which identify a path: functions trace alike up to a decision."""
    return graph.once(
        "answers", lambda: tuple([attr_key(node.attrs["expected"]) for node in graph.nodes if node.prim is guard])
    )


def _over(path: Compilation, captures: dict[int, Any]) -> Graph:
    """The path's graph with the captures of all paths as its trailing inputs."""
    graph = path.graph
    n = len(graph.inputs) - len(path.recorded.captures)
    if [id(c.payload) for c in path.recorded.captures] == [*captures]:
        return graph
    own = {id(c.payload): v for c, v in zip(path.recorded.captures, graph.inputs[n:], strict=True)}
    trailing = tuple(own.get(key) or Value(aval_of(payload)) for key, payload in captures.items())
    return Graph(graph.name, (*graph.inputs[:n], *trailing), graph.nodes, graph.outputs)
