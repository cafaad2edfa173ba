"""Kept ways: recordings of one signature that are not compiled, and serve again the calls that go their way.

A tree of their decisions finds the way of a call, which is then interpreted: that takes a fraction of a recording. Ways
that come back are compiled with the others, once what was spent on interpreting them would have paid for that. So a
program that goes many ways, each now and then, is neither recorded again nor compiled in vain. Those are kept that were
used last, up to so many operations. While no way comes back, further ones are not taken into the tree, as a program may
never go a way twice: the first one that comes back is recorded once more, and then all are taken in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..errors import ManyPathsWarning
from ..ir.primitive import TRANSFORMS
from ..ir.runners import PreparedGraph
from ..ops.structural.guard import Miss, guard
from ..tracer.surroundings import Captures
from ..where import warn
from .compilation import Compilation
from .folding import folds, instead
from .garbage import paused
from .inside import Callee
from .owned import owned
from .paths import Paths, answers
from .postponed import Postponed, postponing
from .rolled import rolled_from
from .settings import config
from .tree_of_ways import ConstantArray, KnownWay, TreeOfWays, keepable

MOST = 200_000  # operations of all ways that are kept for one signature
RENT = 32  # operations that are interpreted in the time in which one is compiled
UNMET = 16  # ways after which further ones are not taken into the tree before one has come back
ROLLED = 2000  # nodes from which a recording is searched for loops before it is known to come back


class KeptPath(KnownWay):
    """A way that is interpreted, and how it fares."""

    def __init__(self, way: Compilation) -> None:
        super().__init__(answers(way.recorded.graph))
        self.way = way
        self.size = _size(way)
        self.returns = 0
        self.compiled: Any = None  # the answers under which it is compiled

    @cached_property
    def _prepared(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        derived = self.way.derived
        if isinstance(derived, Postponed):
            return derived.tape
        with paused:
            return PreparedGraph(derived.graph)

    def results(self, leaves: Sequence[Any], present: Mapping[int, Any]) -> Any:
        """The user's result; Miss where the last bits of a decision differ."""
        recorded, derived = self.way.recorded, self.way.derived
        operands = [*leaves, *(c.payload if c.made else present[id(c.payload)] for c in recorded.captures)]
        if recorded.written:
            TRANSFORMS.check_apart(operands, recorded.written)
        return derived.interpreted(owned(self._prepared(operands), operands))


def _size(way: Compilation) -> int:
    nodes = len(way.recorded.graph.nodes)
    return nodes + (2 * nodes if isinstance(way.derived, Postponed) else len(way.derived.graph.nodes))


class KeptWays:
    """The kept ways of one signature; they stand in front of what records."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.ways: dict[Any, KeptPath] = {}  # by their answers; those used last come last
        self.size = 0  # operations of these
        self.spent = self.back = 0  # that were interpreted, and of ways that came back, since ways were compiled
        self._told = False
        self._tree = TreeOfWays()
        self._later: dict[Any, Callable[[], bool]] = {}  # what takes ways into the tree that are not there
        self._some_came_back = False
        self._record = paths.elsewhere
        self._put_off: tuple[Compilation, tuple[Any, ...]] | None = None  # the first way and its reads, until it is run
        self._fresh = False  # it is run now
        vars(paths).update(kept_ways=self, elsewhere=self.elsewhere)

    def put_off(self, way: Compilation, reads: tuple[Any, ...]) -> None:
        """Put off compiling the first way until it comes back, or until compiling others pays."""
        self._put_off = way, reads
        vars(self.paths)["first"] = self.first

    @property
    def waits(self) -> bool:
        """Whether compiling is put off."""
        return "first" in vars(self.paths)

    def first(self, compiled: Callee, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any] = ()) -> Any:
        """The result while nothing is compiled."""
        paths = self.paths
        with paths.lock:
            if self._put_off is not None:
                (way, reads), self._put_off = self._put_off, None
                self._fresh = self.keep(compiled, statics, way, reads)
                if not self._fresh:
                    self._wait_no_longer()
            elif len(paths.known) > 1:
                self._wait_no_longer()
            waits = self.waits
        if waits:
            return self.elsewhere(compiled, leaves, statics)
        return paths.call(compiled, leaves, captures, statics)

    def _wait_no_longer(self) -> None:
        """From now on, calls are served by code."""
        if vars(self.paths).pop("first", None) is not None and self.paths.executable is None:
            self.paths.call = self.paths.first

    def _leave_to_the_loop(self) -> None:
        """Let what was folded serve the first way, too: it is proved for that way when it comes back."""
        del vars(self.paths)["first"]
        for answered in self.paths.known:
            if answered in self.ways:
                self._remove(answered)

    def _remove(self, answered: Any) -> None:
        """Let a way go."""
        gone = self.ways.pop(answered)
        self.size -= gone.size
        if self._later.pop(answered, None) is None:
            self._tree.remove(gone)

    def _take_in(self) -> None:
        """Take all ways into the tree, from now on each at once; those that do not fit to the others go."""
        self._some_came_back = True
        for answered, take in self._later.items():
            if not take():
                self.size -= self.ways.pop(answered).size
        self._later.clear()

    def _first_again(self, found: KeptPath) -> bool:
        """Whether a way is the first one, and comes back, so that it is compiled now."""
        if not self.waits or found.answers not in self.paths.known or self.paths.executable is not None:
            return False
        fresh, self._fresh = self._fresh, False
        if not fresh:
            self._wait_no_longer()
        return not fresh

    def elsewhere(
        self, compiled: Callee, leaves: Sequence[Any], statics: Sequence[Any], fault: Exception | None = None
    ) -> Any:
        """The result for arguments that no code serves: of a kept way, or of one that is recorded now."""
        paths = self.paths
        if fault is None or isinstance(fault, Miss):
            with paths.lock:
                if self.waits and folds(paths):
                    self._leave_to_the_loop()
                captures = paths.check(compiled._user, statics)
                present = paths.present(captures or ())
                found = None if captures is None else self._found(leaves, present)
                again = found is not None and self._first_again(found)
                if found is not None and not again:
                    self._use(compiled, leaves, statics, found)
            if again:
                return paths.call(compiled, leaves, captures, statics)
            if found is not None:
                with suppress(Exception):  # whatever it is: where the call is recorded, the user sees it
                    return found.results(leaves, present)
        with rolled_from(ROLLED), postponing():
            return self._record(compiled, leaves, statics, fault)

    def _found(self, leaves: Sequence[Any], present: Mapping[int, Any]) -> KeptPath | None:
        """The kept way of these arguments."""
        try:
            with np.errstate(all="ignore"):
                found = self._tree.find({**dict(enumerate(leaves)), **{("outside", k): x for k, x in present.items()}})
        except Exception:  # noqa: BLE001 - the function raises it, too, where it is recorded
            return None
        assert found is None or isinstance(found, KeptPath)
        return found

    def _use(self, compiled: Callee, leaves: Sequence[Any], statics: Sequence[Any], found: KeptPath) -> None:
        """Note that a way came back; compile those that did, if that pays."""
        self.ways[found.answers] = self.ways.pop(found.answers)
        if found.compiled in self.paths.known or found.answers in self.paths.known:  # by the last bits, or not yet
            return
        self._take_in()
        if len(self.paths.known) >= config.max_traces and not self._told:
            self._told = True
            last = [node.where for node in found.way.recorded.graph.nodes if node.prim is guard][-1]
            warn(
                f"{compiled!r} has {len(self.paths.known)} compiled paths. Other paths come back, and are interpreted. "
                f"Last decision: {last}. Use rg.while_loop or rg.cond, or increase rg.config.max_traces",
                ManyPathsWarning,
            )
        self.back += 0 if found.returns else found.size
        found.returns += 1
        self.spent += found.size
        if self.spent >= RENT * (self.back + sum(map(_size, self.paths.known.values()))):
            back = [way for way in self.ways.values() if way.returns and way.compiled not in self.paths.known]
            self._compile(compiled, leaves, statics, back)
            self.spent = self.back = 0

    def _compile(
        self, compiled: Callee, leaves: Sequence[Any], statics: Sequence[Any], back: Sequence[KeptPath]
    ) -> None:
        """Join the ways that came back most often to those that are compiled; of too many, the oldest go."""
        paths, most = self.paths, config.max_traces
        self._wait_no_longer()
        chosen = sorted(back, key=lambda way: way.returns)[-most:]
        gone = [*paths.known][: max(0, len(paths.known) + len(chosen) - most)]
        call, joining = paths.template.with_values(leaves, statics), []
        for kept in chosen:
            recorded, derived = instead(kept.way.recorded, partial(compiled._record, call))
            kept.compiled = answers(recorded.graph)
            way = Compilation(repr(compiled), paths.template, recorded, derived, paths.settings, paths)
            joining.append((kept.compiled, way, ()))
        for key in gone:
            del paths.known[key]
        paths.join(compiled, statics, joining)
        for kept in self.ways.values():
            kept.returns = 0

    def keep(self, compiled: Callee, statics: Sequence[Any], way: Compilation, reads: tuple[Any, ...]) -> bool:
        """Keep a way that was recorded just now; False if it can only be recorded again, or compiled."""
        paths, recorded = self.paths, way.recorded
        if way.settings.debug_nans or not keepable(recorded.graph):
            return False
        former = {id(c.payload) for c in paths._captures}
        if not all(isinstance(c.payload, np.ndarray) if c.made else id(c.payload) in former for c in recorded.captures):
            return False
        if not all(read.holds() for read in reads):
            return False
        captures = recorded.captures
        kept = KeptPath(replace(way, recorded=replace(recorded, shadows=())))
        if kept.answers in self._later:
            self._take_in()
            return kept.answers in self.ways
        outside = [ConstantArray(c.payload) if c.made else ("outside", id(c.payload)) for c in captures]
        given = [*range(len(recorded.graph.inputs) - len(captures)), *outside]
        take = partial(self._tree.add, kept, recorded.graph, given)
        if kept.answers in self.ways:
            return False
        if len(self.ways) >= UNMET and not self._some_came_back:
            self._later[kept.answers] = take
        elif not take():
            return False
        self.ways[kept.answers] = kept
        self.size += kept.size
        while self.size > MOST and len(self.ways) > 1:
            self._remove(next(iter(self.ways)))
        paths._relied.rely_on(reads, compiled._user, statics, tuple(c.payload for c in paths._captures))
        paths.check = paths._relied.run
        return True


def kept_ways(paths: Paths) -> KeptWays:
    """The kept ways of a signature."""
    found: KeptWays | None = vars(paths).get("kept_ways")
    return KeptWays(paths) if found is None else found
