"""Folding: long paths of a signature that differ by decisions in a loop run as one loop that chooses.

The folded loop is a conjecture for answers that no trace had. So its code returns no result before these answers
are proved: the first call with them runs the user's function once more on traced values, and its operations must equal
those of the loop. Otherwise the call is handled without folding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import RetrogradError
from ..ir.graph import Graph, Value
from ..ir.types import Aval, aval_of
from ..ops.structural.guard import Miss, guard
from ..ops.structural.host import Host, host
from ..passes.fold_ways.apart import Apart, keep_apart, merged
from ..tracer.around import kept
from ..tracer.record import RECORDERS, Recorded
from ..tracer.surroundings import Captures
from ..tracer.swallowed import forget_since, refusals
from ..tracer.trace import CURRENT, READER
from .compilation import Compilation
from .executable import Executable
from .garbage import paused
from .inside import Callee
from .paths import Paths
from .phases import during
from .signature import Call

if TYPE_CHECKING:
    from ..passes.fold_ways.emit import Folded
    from ..passes.fold_ways.fold_ways import Answers

FOLD_WAYS = "retrograd.passes.fold_ways.fold_ways"  # loaded when ways are folded first
PROVE_WAYS = "retrograd.passes.fold_ways.prove_ways"
LONG, LONGEST = 256, 50_000  # operations of a way between which folding is tried
DECISIONS = 8  # and guards
FIRST_TRIES = 2  # of folding, for one signature, until something has folded: nothing has folded first at a later way
MOST_TRIES = 12
MOST_TOGETHER = 8  # recordings that are folded as one
MOST_FAILED = 8  # ways beyond those proved that are not what was folded, until it is given up
MOST_PROVED = 4096  # sequences of answers that are remembered
BOOL = Aval((), np.dtype(bool), "scalar")


class RecordedApart(Exception):  # noqa: N818 - a signal, not an error
    """A recording whose operations were kept apart, and what it has read."""

    def __init__(self, recorded: Recorded) -> None:
        super().__init__()
        self.recorded = recorded


_WANTED: ContextVar[Recorded | str | None] = ContextVar("retrograd_wanted", default=None)
kept(_WANTED)


def _recording(run: Callable[..., Recorded]) -> Callable[..., Recorded]:
    """Wrap recordings: the next outermost one is a given one, or is made with its operations apart, and that is all."""

    def record(function: Callable[[Sequence[Any]], Any], *options: Any) -> Recorded:
        wanted, reader = _WANTED.get(), READER.get()
        if wanted is None or CURRENT.get() is not None:
            return run(function, *options)
        if isinstance(wanted, Recorded):
            if reader is not None:
                reader.again(wanted.reads)
            return replace(wanted, reads=())

        def apart(tracers: Sequence[Any]) -> Any:
            trace = CURRENT.get()
            assert trace is not None
            keep_apart(trace.builder)
            token = _WANTED.set(None)  # what the function calls is recorded as usual
            try:
                return function(tracers)
            finally:
                _WANTED.reset(token)

        made = run(apart, *options)
        raise RecordedApart(replace(made, reads=() if reader is None else reader.found))

    return record


RECORDERS.append(_recording)


def recorded_apart(compiled: Callee, call: Call) -> Recorded:
    """Run the user's function on traced values; the recording, with its reads and with equal operations apart."""
    token = _WANTED.set("apart")
    try:
        compiled._record(call)
    except RecordedApart as made:
        return made.recorded
    finally:
        _WANTED.reset(token)
    raise AssertionError("a transform that records nothing")


def instead(recorded: Recorded, run: Callable[[], Any]) -> Any:
    """What ``run`` gives where it finds this recording in place of the next one that it would make."""
    token = _WANTED.set(recorded)
    try:
        return run()
    finally:
        _WANTED.reset(token)


class KeptWay(NamedTuple):
    """A recording, and the places of its captures among those of its signature, which may rely on what it has read."""

    recorded: Recorded
    places: list[int]
    relied: bool

    def like(self, other: KeptWay) -> bool:
        """Whether two recordings have inputs and results that correspond."""
        a, b = self.recorded, other.recorded
        return self.places == other.places and bool(a.out_spec == b.out_spec) and a.graph.in_avals == b.graph.in_avals


def _key(answers: Sequence[Any]) -> bytes:
    """A sequence of answers, to remember."""
    return b"".join([np.ascontiguousarray(x).tobytes() for x in answers])


@dataclass(eq=False)
class Fold:
    """Ways as one loop that chooses, its code, and the sequences of answers for which it is proved."""

    folded: Folded
    ways: list[KeptWay]
    proved: dict[bytes, None] = field(default_factory=dict)
    call: Callable[..., Any] | None = None

    def holds(self, *answers: Any) -> list[bool]:
        """Whether a sequence of answers is proved."""
        return [_key(answers) in self.proved]

    def prove(self, answers: Answers) -> bool:
        """Remember that a sequence of answers is proved; False if it was known."""
        key = _key(answers)
        known = key in self.proved
        self.proved[key] = None
        if len(self.proved) > MOST_PROVED:
            del self.proved[next(iter(self.proved))]
        return not known

    def graph(self) -> Graph:
        """The recording to compile: it misses where the answers are not proved."""
        b, graph = Apart(), self.folded.graph
        b.share_inputs(graph)
        for node in graph.nodes:
            b.keep(node)
        n = len(graph.outputs) - self.folded.choices
        name = Host(self.holds, [BOOL])
        (proved,) = b.emit(host, graph.outputs[n:], {"name": name})
        b.emit(guard, [proved.value], {"kind": "bool", "expected": True, "lanes": False})
        return Graph(graph.name, graph.inputs, tuple(b.nodes), graph.outputs[:n])


class Folding:
    """What is folded of one signature; it stands in front of its paths."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.fold: Fold | None = None
        self.last: list[KeptWay] = []  # that did not fold yet
        self.tries = self.failed = self.met = 0

    @property
    def given_up(self) -> bool:
        """Whether nothing is folded, and nothing will be."""
        return self.fold is None and self.tries >= FIRST_TRIES

    def elsewhere(
        self, compiled: Callee, leaves: Sequence[Any], statics: Sequence[Any], fault: Exception | None = None
    ) -> Any:
        """The result for arguments that no code serves.

        Their way is recorded. If it is what was folded, the folded code serves them from now on. Else it is folded with
        others, or is served as ways are that do not fold.
        """
        paths = self.paths
        if self.given_up:
            return Paths.elsewhere(paths, compiled, leaves, statics, fault)
        with paths.lock:
            call, recorded = paths.template.with_values(leaves, statics), None
            captures = self._back(compiled, statics)
            if captures is None:
                recorded = recorded_apart(compiled, call)
                captures = self._served(compiled, recorded, call, fault)
            folded = None if self.fold is None else self.fold.call
        if captures is not None and folded is not None:
            return folded(compiled, leaves, captures, statics)
        if recorded is None:  # another thread has given the fold up
            return Paths.elsewhere(paths, compiled, leaves, statics, fault)
        usual = replace(recorded, graph=merged(recorded.graph))
        return instead(usual, lambda: Paths.elsewhere(paths, compiled, leaves, statics, fault))

    def _back(self, compiled: Callee, statics: Sequence[Any]) -> Captures | None:
        """The captures, if it was other code that did not serve the call, compiled meanwhile for someone to see."""
        if self.fold is None or self.paths.call is self.fold.call:
            return None
        assert self.fold.call is not None
        self.paths.call = self.fold.call
        captures: Captures | None = self.paths.check(compiled._user, statics)
        return captures

    def _served(self, compiled: Callee, recorded: Recorded, call: Call, fault: Exception | None) -> Captures | None:
        """The captures, if what is folded does what was recorded, and that was not known."""
        paths, statics = self.paths, call.statics()
        if fault is not None and not isinstance(fault, Miss):
            return None
        if recorded.tainted or recorded.written or recorded.statics or not all(r.holds() for r in recorded.reads):
            return None
        present = paths.check(compiled._user, statics)
        at = {id(x): k for k, x in enumerate(present or ())}
        if present is None or len(at) < len(present):  # two places hold one array
            return None
        if any(c.made or id(c.payload) not in at for c in recorded.captures):
            return None
        kept = replace(recorded, reads=(), shadows=())  # what is the user's is not kept
        way = KeptWay(kept, [at[id(c.payload)] for c in recorded.captures], True)
        answers = self._followed(way)
        if answers is not None and self.fold is not None:
            if not self.fold.prove(answers):  # then its code decides otherwise, by the last bits
                return None
        elif not self._folds(compiled, way, call):
            return None
        paths._relied.rely_on(recorded.reads, compiled._user, statics, tuple(c.payload for c in paths._captures))
        paths.check = paths._relied.run
        captures: Captures | None = paths.check(compiled._user, statics)
        return captures

    def _followed(self, way: KeptWay) -> Answers | None:
        """The answers of a recording, if it is what was folded."""
        if self.fold is None or not way.like(self.fold.ways[0]):
            return None
        answers: Answers | None = import_module(PROVE_WAYS).follow(self.fold.folded, way.recorded.graph)
        return answers

    def _folds(self, compiled: Callee, way: KeptWay, call: Call) -> bool:
        """Whether the recording folds, with former ones or alone; that is compiled."""
        fold = self.fold
        if fold is not None:
            self.failed += 1
            if self.failed > MOST_FAILED + len(fold.proved):
                self._give_up()
                return False
        former = [other for other in (self.last if fold is None else fold.ways) if other.like(way)]
        if self.tries >= MOST_TRIES or len(former) >= MOST_TOGETHER or (fold is not None and not former):
            return False
        self.met += 1
        if fold is None and self.met < 1 << self.tries:
            return False
        self.tries += 1
        made = _made([*former, way])
        if made is None and fold is None and len(former) == 1:
            made = _made([way])
        if made is None or not self._compile(made, compiled, call):
            if fold is None:
                self.last = [*self.last, way._replace(relied=False)][-2:]
            return False
        self.fold, self.last = made, []
        assert made.call is not None
        self.paths.call = made.call
        return True

    def _compile(self, fold: Fold, compiled: Callee, call: Call) -> bool:
        """Compile what was folded; False where the transform has no use for it."""
        paths = self.paths
        first = fold.ways[0]
        whole, before = replace(first.recorded, graph=fold.graph()), refusals()
        try:
            recorded, derived = instead(whole, lambda: compiled._record(call))
            way = Compilation(repr(compiled), paths.template, recorded, derived, paths.settings, paths)
            with paused:
                executable = Executable(_over(way.graph, first.places, paths), ordered=paths.ordered)
        except RetrogradError:  # such as a transform that cannot batch it
            forget_since(before)
            return False
        captures = tuple(c.payload for c in paths._captures)
        fold.call = paths._follower(executable, captures, [way.assemble])
        return True

    def _give_up(self) -> None:
        self.fold, self.tries = None, MOST_TRIES
        self.paths.executable, self.paths.call = None, self.paths.first


def _made(ways: list[KeptWay]) -> Fold | None:
    """Ways folded. That is proved for those on whose reads the signature relies."""
    try:
        with paused, during("folding", ways[0].recorded.graph.name):
            found = import_module(FOLD_WAYS).fold_ways([way.recorded.graph for way in ways])
    except Exception:  # noqa: BLE001 - a guess that fails is none; tests call the pass itself
        return None
    if found is None:
        return None
    made = Fold(found[0], ways)
    for way, answers in zip(ways, found[1], strict=True):
        if way.relied:
            made.prove(answers)
    return made


def _over(graph: Graph, places: Sequence[int], paths: Paths) -> Graph:
    """The graph with all captures of the signature as its last inputs."""
    n = len(graph.inputs) - len(places)
    own = dict(zip(places, graph.inputs[n:], strict=True))
    trailing = [own.get(k) or Value(aval_of(c.payload)) for k, c in enumerate(paths._captures)]
    return Graph(graph.name, (*graph.inputs[:n], *trailing), graph.nodes, graph.outputs)


def consider(paths: Paths, way: Compilation) -> None:
    """Fold further ways of a signature if its first one is long and decides often."""
    nodes, recorded = way.recorded.graph.nodes, way.recorded
    decisions = sum(node.prim is guard for node in nodes)
    arrays = all(isinstance(c.payload, np.ndarray) for c in recorded.captures)
    if LONG <= len(nodes) <= LONGEST and decisions >= DECISIONS and arrays and not paths.settings.debug_nans:
        folding = Folding(paths)
        vars(paths).update(folding=folding, elsewhere=folding.elsewhere)


def folds(paths: Paths) -> bool:
    """Whether the ways of a signature run as what was folded of them."""
    folding: Folding | None = vars(paths).get("folding")
    return folding is not None and folding.fold is not None
