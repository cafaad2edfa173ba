"""Checkpoint schedules as plain data, and the model machine that validates them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..errors import InternalError

Verb = Literal["advance", "save", "load", "drop", "back", "tape", "reverse", "store", "fetch", "discard"]
Step = tuple[Verb, int, int]


class Action(NamedTuple):
    """One step of a schedule over states 0 ... n of a loop of n steps.

    ``advance i j`` runs the plain steps i ... j-1 from the working state; ``save i`` keeps the working state
    i in a slot; ``load i`` makes the kept state i the working one; ``drop i`` frees its slot; ``back i j``
    runs step i (j is i+1) with its residuals and at once its adjoint. ``tape i j`` runs step i and keeps its
    residuals in a slot, ``reverse i j`` runs its adjoint from them and frees the slot. ``store``, ``fetch`` and
    ``discard`` are save, load and drop on disk.
    """

    verb: Verb
    i: int
    j: int


Schedule = Sequence[Step]


@dataclass
class Machine:
    """Replays a schedule for ``n`` steps with at most ``slots`` kept states, and counts.

    A kept state takes one slot, a kept tape ``tapes`` of them; ``disk`` is the number of slots there. Raises
    ``InternalError`` at the first action that a real run could not carry out.
    """

    n: int
    slots: int
    disk: int = 0
    tapes: int = 1
    working: int | None = 0
    kept: set[int] = field(default_factory=set)
    taped: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    adjoint: int = -1  # the state whose cotangent is known; -1 stands for n, before the first back
    advances: int = 0
    tape_steps: int = 0
    peak: int = 0

    def run(self, schedule: Iterable[Step]) -> Machine:
        """Replay all actions, then check that every step was reversed and nothing is left stored."""
        self.adjoint = self.n
        for verb, i, j in schedule:
            getattr(self, f"_{verb}")(i, j)
        if self.adjoint != 0:
            raise InternalError(f"the schedule stops at state {self.adjoint}, not at 0")
        for left in (self.kept, self.taped, self.stored):
            if left:
                raise InternalError(f"states {sorted(left)} are left stored")
        return self

    def _expect(self, ok: bool, what: str) -> None:
        if not ok:
            raise InternalError(f"bad schedule: {what}")

    def _advance(self, i: int, j: int) -> None:
        self._expect(self.working == i and i < j <= self.n, f"advance {i} {j} from state {self.working}")
        self.working = j
        self.advances += j - i

    def _save(self, i: int, _: int) -> None:
        self._expect(self.working == i and i not in self.kept, f"save {i} at state {self.working}")
        self.kept.add(i)
        self._weigh()

    def _weigh(self) -> None:
        weight = len(self.kept) + len(self.taped) * self.tapes
        self.peak = max(self.peak, weight)
        self._expect(weight <= self.slots, f"{weight} states in {self.slots} slots")

    def _load(self, i: int, _: int) -> None:
        self._expect(i in self.kept, f"load {i}, which is not kept")
        self.working = i

    def _drop(self, i: int, _: int) -> None:
        self._expect(i in self.kept, f"drop {i}, which is not kept")
        self.kept.remove(i)

    def _back(self, i: int, j: int) -> None:
        self._expect(self.working == i and j == i + 1 == self.adjoint, f"back {i} with adjoint {self.adjoint}")
        self.working, self.adjoint = None, i
        self.tape_steps += 1

    def _tape(self, i: int, j: int) -> None:
        self._expect(self.working == i and j == i + 1 <= self.n, f"tape {i} at state {self.working}")
        self.taped.add(i)
        self.working = j
        self.tape_steps += 1
        self._weigh()

    def _reverse(self, i: int, j: int) -> None:
        self._expect(i in self.taped and j == i + 1 == self.adjoint, f"reverse {i} with adjoint {self.adjoint}")
        self.taped.remove(i)
        self.working, self.adjoint = None, i

    def _store(self, i: int, _: int) -> None:
        self._expect(self.working == i and i not in self.stored, f"store {i} at state {self.working}")
        self.stored.add(i)
        self._expect(len(self.stored) <= self.disk, f"{len(self.stored)} states in {self.disk} slots on disk")

    def _fetch(self, i: int, _: int) -> None:
        self._expect(i in self.stored, f"fetch {i}, which is not stored")
        self.working = i

    def _discard(self, i: int, _: int) -> None:
        self._expect(i in self.stored, f"discard {i}, which is not stored")
        self.stored.remove(i)
