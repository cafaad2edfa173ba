"""Checkpoint schedules as plain data, and the model machine that replays and validates them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..errors import InternalError

Verb = Literal["advance", "save", "load", "drop", "back"]


class Action(NamedTuple):
    """One step of a schedule over states 0 ... n of a loop of n steps.

    ``advance i j`` runs the plain steps i ... j-1 from the working state; ``save i`` keeps the working state
    i in a slot; ``load i`` makes the kept state i the working one; ``drop i`` frees its slot; ``back i j``
    runs step i (j is i+1) with its residuals and at once its adjoint.
    """

    verb: Verb
    i: int
    j: int


Schedule = tuple[Action, ...]


@dataclass
class Machine:
    """Replays a schedule for ``n`` steps with at most ``slots`` kept states, and counts.

    Raises ``InternalError`` at the first action that a real run could not carry out.
    """

    n: int
    slots: int
    working: int | None = 0
    kept: set[int] = field(default_factory=set)
    adjoint: int = -1  # the state whose cotangent is known; -1 stands for n, before the first back
    advances: int = 0
    peak: int = 0

    def run(self, schedule: Iterable[Action]) -> Machine:
        """Replay all actions, then check that every step was reversed and nothing is left stored."""
        self.adjoint = self.n
        for action in schedule:
            getattr(self, f"_{action.verb}")(action.i, action.j)
        if self.adjoint != 0:
            raise InternalError(f"the schedule stops at state {self.adjoint}, not at 0")
        if self.kept:
            raise InternalError(f"states {sorted(self.kept)} are left stored")
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
        self.peak = max(self.peak, len(self.kept))
        self._expect(len(self.kept) <= self.slots, f"{len(self.kept)} states in {self.slots} slots")

    def _load(self, i: int, _: int) -> None:
        self._expect(i in self.kept, f"load {i}, which is not kept")
        self.working = i

    def _drop(self, i: int, _: int) -> None:
        self._expect(i in self.kept, f"drop {i}, which is not kept")
        self.kept.remove(i)

    def _back(self, i: int, j: int) -> None:
        self._expect(self.working == i and j == i + 1 == self.adjoint, f"back {i} with adjoint {self.adjoint}")
        self.working, self.adjoint = None, i


def keep_everything(n: int) -> Schedule:
    """The schedule without recomputation: every state is kept. Needs n slots."""
    forward = [a for i in range(n) for a in (Action("save", i, i), Action("advance", i, i + 1))]
    backward = [
        a for i in reversed(range(n)) for a in (Action("load", i, i), Action("drop", i, i), Action("back", i, i + 1))
    ]
    return (*forward[:-1], *backward)
