"""L-BFGS (Nocedal and Wright, chapter 7) with a state of plain arrays, so that it goes on from a file bit by bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .saved_steps import State

Flat = np.ndarray[Any, np.dtype[np.float64]]
Evaluate = Callable[[Flat], tuple[float, Flat]]


class Lbfgs:
    """One step at a time: ``begin(x)`` gives a first state, ``step(state)`` the next one; None where none is better.

    A state has the point, its value and gradient, the value before, and ``history`` pairs of differences at most. The
    line search is that of SciPy, for the strong Wolfe conditions.
    """

    def __init__(self, evaluate: Evaluate, history: int) -> None:
        self._evaluate, self._history = evaluate, history
        self._at: tuple[bytes, float, Flat] = (b"", 0.0, np.zeros(0))

    def begin(self, x: Flat) -> State:
        """The state before the first step."""
        value, gradient = self._value_and_gradient(x)
        pairs = np.zeros((0, x.size))
        return {
            "x": x,
            "value": np.float64(value),  # type: ignore[dict-item]  # a number, which a file holds as an array
            "before": np.float64(np.nan),  # type: ignore[dict-item]  # likewise
            "gradient": gradient,
            "moves": pairs,
            "changes": pairs,
        }

    def step(self, state: State) -> State | None:
        """The state after one step; along the gradient, if the direction that the pairs give leads nowhere."""
        found = self._along(state, self.direction(state))
        if found is None and len(state["moves"]):
            empty = state["moves"][:0]
            found = self._along(state | {"moves": empty, "changes": empty}, -state["gradient"])
        return found

    @staticmethod
    def direction(state: State) -> Flat:
        """Minus the inverse Hessian, as the pairs know it, times the gradient: the two loops."""
        q, pairs = state["gradient"].copy(), list(zip(state["moves"], state["changes"], strict=True))
        weights = []
        for s, y in reversed(pairs):
            a = _dot(s, q) / _dot(s, y)
            q -= a * y
            weights.append(a)
        if pairs:
            s, y = pairs[-1]
            q *= _dot(s, y) / _dot(y, y)
        for (s, y), a in zip(pairs, reversed(weights), strict=True):
            q += (a - _dot(y, q) / _dot(s, y)) * s
        return -q

    def _along(self, state: State, direction: Flat) -> State | None:
        x, gradient = state["x"], state["gradient"]
        slope = _dot(gradient, direction)
        if not (np.isfinite(slope) and slope < 0):
            return None
        reach = self._search(state, direction, slope)
        if reach is None:
            return None
        after = x + reach * direction
        value, new = self._value_and_gradient(after)
        if not value < state["value"]:
            return None
        moves, changes = state["moves"], state["changes"]
        move, change = after - x, new - gradient
        if _dot(move, change) > 1e-12 * _dot(change, change):
            moves = np.concatenate([moves, move[None]])[-self._history :]
            changes = np.concatenate([changes, change[None]])[-self._history :]
        return {
            "x": after,
            "value": np.float64(value),  # type: ignore[dict-item]  # a number, which a file holds as an array
            "before": state["value"],
            "gradient": new,
            "moves": moves,
            "changes": changes,
        }

    def _search(self, state: State, direction: Flat, slope: float) -> float | None:
        """How far to go; the first trial is the whole step, or about as much progress as the last step made."""
        from scipy.optimize import line_search

        before = float(state["before"])
        if len(state["moves"]):
            before = float(state["value"]) - slope / 2.02  # so that the first trial is 1
        elif not np.isfinite(before):
            before = float(state["value"]) + float(np.linalg.norm(state["gradient"])) / 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it found nothing is a result
            reach = line_search(
                self._value,
                self._gradient,
                state["x"],
                direction,
                state["gradient"],
                float(state["value"]),
                before,
            )[0]
        return None if reach is None else float(reach)

    def _value(self, x: Flat) -> float:
        return self._value_and_gradient(x)[0]

    def _gradient(self, x: Flat) -> Flat:
        return self._value_and_gradient(x)[1]

    def _value_and_gradient(self, x: Flat) -> tuple[float, Flat]:
        """Both come from one evaluation; the line search asks for them one after the other."""
        key = x.tobytes()
        if self._at[0] != key:
            self._at = (key, *self._evaluate(x))
        return self._at[1], self._at[2]


def _dot(a: Flat, b: Flat) -> float:
    """A sum of products that no BLAS cuts into pieces by the number of its threads."""
    return float(np.sum(a * b))
