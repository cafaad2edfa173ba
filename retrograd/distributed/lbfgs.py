"""L-BFGS (Nocedal and Wright, chapter 7) on vectors in pieces, with a state that goes on from a file bit by bit.

The direction is a combination of the vectors of the state. Its weights follow from their inner products alone (Chen,
Wang and Zhou, Large-scale L-BFGS using MapReduce, 2014), so that a step needs two rounds over the pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .descent_steps import DescentState, DescentStep
from .vectors import LossAt, Named, Vector, Vectors, named, products
from .wolfe import Trial, search


class Lbfgs:
    """The method: a state has the point, its gradient, and at most ``history`` pairs of moves and changes of gradient.

    Its numbers are the value at the point, the value before, and the largest entry of the gradient.
    """

    def __init__(self, vectors: Vectors, history: int) -> None:
        self._vectors, self._history = vectors, history

    def begin(self, start: Sequence[Any]) -> DescentState:
        """The state before the first step, from pieces with ``x``."""
        found = self._vectors.gradient(self._vectors.each(named, start, name="x"))
        numbers = {"value": found.value, "before": np.nan, "largest": found.largest}
        return DescentState(numbers, self._vectors.each(_with_gradient, start, found.slope))

    def step(self, state: DescentState, done: int) -> DescentStep:
        """The next state; along the gradient, if the direction that the pairs give leads nowhere."""
        gram = self._vectors.total(_gram, state.vectors)
        found = self._along(state, gram)
        if found is None and len(gram) > 1:
            bare = DescentState(state.numbers, self._vectors.each(_without_pairs, state.vectors))
            found = self._along(bare, gram[-1:, -1:])
        if found is None:
            why = "no step makes the value smaller"
            return DescentStep(state, state.numbers["value"], state.numbers["largest"], why)
        return DescentStep(found, found.numbers["value"], found.numbers["largest"])

    def _along(self, state: DescentState, gram: Vector) -> DescentState | None:
        weights, value = weights_of(gram), state.numbers["value"]
        slope = float(np.sum(gram[-1] * weights))
        if not (np.isfinite(slope) and slope < 0):
            return None
        first = 1.0
        if len(gram) == 1:  # without pairs, about as much progress as the last step made
            progress = state.numbers["before"] - value
            first = min(1.0, 2.02 * progress / -slope if progress > 0 else 1.0 / np.sqrt(-slope))
        line = _Ray(self._vectors, state, self._vectors.each(_combined, state.vectors, weights=weights))
        reach = search(line.trial, Trial(0.0, value, slope), first)
        if reach is None:
            return None
        there = line.at(reach)
        if not there.found.value < value:
            return None
        history = self._history if there.curved > 1e-12 * there.square else None
        return DescentState(
            {"value": there.found.value, "before": value, "largest": there.found.largest},
            self._vectors.each(_moved_to, state.vectors, there.point, there.found.slope, history=history),
        )


class _RayPoint(NamedTuple):
    """A point on a line, the loss there, and its slope along the line.

    ``curved`` is the product of the way there with the change of the gradient, ``square`` of the change with itself.
    """

    point: Sequence[Any]
    found: LossAt
    slope: float
    curved: float
    square: float


class _Ray:
    """The loss along a direction; the last point is kept, since it is where most searches end."""

    def __init__(self, vectors: Vectors, state: DescentState, direction: Sequence[Any]) -> None:
        self._vectors, self._state, self._direction = vectors, state.vectors, direction
        self._known: tuple[float, _RayPoint] | None = None

    def at(self, reach: float) -> _RayPoint:
        """The point so far away."""
        if self._known is None or self._known[0] != reach:
            point = self._vectors.each(_point, self._state, self._direction, reach=reach)
            found = self._vectors.gradient(point)
            judged = self._vectors.total(_judged, self._state, self._direction, point, found.slope)
            (slope, _, _), (_, curved, square) = judged.tolist()
            self._known = reach, _RayPoint(point, found, slope, curved, square)
        return self._known[1]

    def trial(self, reach: float) -> Trial:
        """What the search wants to know of it."""
        place = self.at(reach)
        return Trial(reach, place.found.value, place.slope)


def weights_of(gram: Vector) -> Vector:
    """Minus the inverse Hessian, as the pairs know it, times the gradient: the two loops, on inner products.

    ``gram`` has those of the moves, the changes and the gradient; the direction is the sum of these with the weights.
    """
    pairs = len(gram) // 2
    q, weights = np.zeros(len(gram)), np.zeros(pairs)
    q[-1] = 1.0
    for i in reversed(range(pairs)):
        weights[i] = np.sum(gram[i] * q) / gram[i, pairs + i]
        q[pairs + i] -= weights[i]
    if pairs:
        q *= gram[pairs - 1, 2 * pairs - 1] / gram[2 * pairs - 1, 2 * pairs - 1]
    for i in range(pairs):
        q[i] += weights[i] - np.sum(gram[pairs + i] * q) / gram[i, pairs + i]
    return -q


def _basis(piece: Named) -> list[Vector]:
    """The moves, the changes and the gradient."""
    return [*_numbered(piece, "move"), *_numbered(piece, "change"), piece["gradient"]]


def _numbered(piece: Named, name: str) -> list[Vector]:
    return [piece[f"{name} {k}"] for k in range((len(piece) - 2) // 2)]


def _gram(piece: Named) -> Iterator[Vector]:
    return products(_basis(piece))


def _combined(piece: Named, weights: Vector) -> Vector:
    found = np.zeros_like(piece["gradient"])
    for weight, vector in zip(weights.tolist(), _basis(piece), strict=True):
        found += weight * vector
    return found


def _point(piece: Named, direction: Vector, reach: float) -> Vector:
    moved: Vector = piece["x"] + reach * direction
    return moved


def _judged(piece: Named, direction: Vector, point: Vector, gradient: Vector) -> Iterator[Vector]:
    """The products of the gradient and its change with the direction, the way to the point, and the change."""
    change = gradient - piece["gradient"]
    return products([gradient, change], [direction, point - piece["x"], change])


def _with_gradient(piece: Named, gradient: Vector) -> Named:
    return piece | {"gradient": gradient}


def _without_pairs(piece: Named) -> Named:
    return {"x": piece["x"], "gradient": piece["gradient"]}


def _moved_to(piece: Named, point: Vector, gradient: Vector, history: int | None) -> Named:
    """The next state; with a further pair, unless ``history`` is None."""
    moves, changes = _numbered(piece, "move"), _numbered(piece, "change")
    if history is not None:
        moves = [*moves, point - piece["x"]][-history:]
        changes = [*changes, gradient - piece["gradient"]][-history:]
    pairs = {f"move {k}": s for k, s in enumerate(moves)} | {f"change {k}": y for k, y in enumerate(changes)}
    return {"x": point, "gradient": gradient, **pairs}
