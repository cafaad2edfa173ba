"""Steps of a descent: what a method has to say, and the optimisers of rg.optim as methods, on vectors in pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..eager import optim
from .vectors import Named, Vector, Vectors, named


class DescentState(NamedTuple):
    """The state of a descent: some numbers, and pieces of named vectors, of which ``x`` is the point."""

    numbers: dict[str, float]
    vectors: Sequence[Any]


class DescentStep(NamedTuple):
    """The state after a step, a value with the largest entry of its gradient, and why there is none further."""

    state: DescentState
    value: float
    largest: float
    why: str = ""


class DescentMethod(Protocol):
    """A way to descend."""

    def begin(self, start: Sequence[Any]) -> DescentState:
        """The state before the first step, from pieces with ``x``."""

    def step(self, state: DescentState, done: int) -> DescentStep:
        """The next state, after so many steps."""


class Optimising:
    """An optimiser as a method. Value and gradient are those of the point that a step leaves.

    ``batch(done)`` gives the shards of a step, or None for all.
    """

    def __init__(
        self, vectors: Vectors, optimiser: optim.Optimiser, batch: Callable[[int], Sequence[int] | None]
    ) -> None:
        self._vectors, self._optimiser, self._batch = vectors, optimiser, batch

    def begin(self, start: Sequence[Any]) -> DescentState:
        return DescentState({}, self._vectors.each(_with_slots, start, optimiser=self._optimiser))

    def step(self, state: DescentState, done: int) -> DescentStep:
        only = self._batch(done)
        found = self._vectors.gradient(self._vectors.each(named, state.vectors, name="x"), only)
        after = self._vectors.each(_updated, state.vectors, found.slope, optimiser=self._optimiser, done=done)
        return DescentStep(DescentState({}, after), found.value, found.largest if only is None else np.inf)


def by_entries(optimiser: optim.Optimiser) -> bool:
    """Whether an optimiser is known to treat each entry alone, so that it may work on pieces: ours do."""
    return getattr(optimiser.rule, "__module__", "") == optim.__name__


def _with_slots(piece: Named, optimiser: optim.Optimiser) -> Named:
    return piece | {slot: x for slot, x in optimiser.init(piece["x"]).items() if slot != "step"}


def _updated(piece: Named, gradient: Vector, optimiser: optim.Optimiser, done: int) -> Named:
    slots = {slot: piece[slot] for slot in optimiser.slots}
    x, after = optimiser.update(gradient, {"step": float(done), **slots}, piece["x"])
    return {"x": x, **{slot: after[slot] for slot in optimiser.slots}}
