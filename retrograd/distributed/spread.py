"""Vectors in pieces on the workers of a cluster: no process holds an optimiser's state as a whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .cluster_engine import ClusterEngine, itself
from .engines import Counts
from .kernels import by_value
from .on_worker import Partial
from .parcels import Raveled
from .sharded import Sharded
from .shards import nbytes_of
from .vectors import Chunks, LossAt, Reader, Vector, joined_sums, sums_of_piece


class OnWorkers:
    """Vectors whose pieces are futures. What is lost with a worker is for ``again`` to begin anew.

    A step leaves the pieces where they are. Workers exchange the point, which each needs as a whole to compute
    gradients, and the parts of the summed gradient. Values and inner products come to this process.
    """

    elsewhere = True

    def __init__(
        self,
        f: Sharded,
        engine: ClusterEngine,
        cut: Sequence[tuple[int, int]],
        kind: np.dtype[Any],
        unravel: Callable[[Any], Any],
    ) -> None:
        self._f, self._engine, self._cut, self._kind = f, engine, cut, kind
        self._back = by_value(unravel)
        self._counts = Counts()

    def placed(self, read: Reader) -> Sequence[Any]:
        self._engine.awaited(self._engine.submit("begin", 0, itself, None), self._counts)  # there is a worker
        return [self._engine.scattered("state", read(first, last), self._counts) for first, last in self._cut]

    def each(self, function: Callable[..., Any], *operands: Sequence[Any], **numbers: Any) -> Sequence[Any]:
        return [
            self._engine.submit("step", k, _with_numbers, function, numbers, *pieces)
            for k, pieces in enumerate(zip(*operands, strict=True))
        ]

    def total(self, function: Chunks, *operands: Sequence[Any]) -> Vector:
        parts = [
            self._engine.submit("dot", k, sums_of_piece, function, first, list(pieces))
            for k, ((first, _), *pieces) in enumerate(zip(self._cut, *operands, strict=True))
        ]
        found: Vector = self._engine.awaited(self._engine.submit("dot", 0, joined_sums, parts), self._counts)
        return found

    def gradient(self, point: Sequence[Any], only: Sequence[int] | None = None) -> LossAt:
        engine, chosen, start = self._engine, self._f.chosen(only), time.perf_counter()
        counts = Counts(retries=self._counts.retries, given_up=self._counts.given_up)
        divisor = len(chosen) if self._f.mean else 1
        given = engine.submit("parameters", 0, put_together, self._back, list(point))
        root = engine.tree(given, chosen, "", counts)
        slope = [
            engine.submit("cut", k, part_of, root, first, last, self._kind, divisor)
            for k, (first, last) in enumerate(self._cut)
        ]
        found: Partial = engine.awaited(engine.submit("value", 0, summary, root, divisor), counts)
        counts.received += nbytes_of(found.leaves)
        self._f.tell(len(chosen), counts, found.tally, time.perf_counter() - start)
        value, largest = found.leaves
        return LossAt(value, largest, slope)

    def collected(self, operand: Sequence[Any]) -> Iterator[Any]:
        return (self._engine.awaited(piece, self._counts, keep=True) for piece in operand)

    def again(self, attempt: Callable[[], Any]) -> Any:
        return self._engine.again(attempt, self._counts)


def _with_numbers(function: Callable[..., Any], numbers: dict[str, Any], *pieces: Any) -> Any:
    """A task: what a function makes of a piece."""
    return function(*pieces, **numbers)


def put_together(back: bytes, pieces: Sequence[Vector]) -> Raveled:
    """A task: the parameters of a step."""
    return Raveled(np.concatenate(pieces), back)


def part_of(root: Partial, first: int, last: int, kind: np.dtype[Any], divisor: int) -> Vector:
    """A task: the gradient from one entry to another, of the sum that also has the value in front."""
    found, at = np.empty(last - first, kind), 0
    for leaf in root.leaves[1:]:
        flat = np.reshape(leaf, -1)
        low, high = max(first, at), min(last, at + flat.size)
        if low < high:
            found[low - first : high - first] = flat[low - at : high - at] / divisor
        at += flat.size
    return found


def summary(root: Partial, divisor: int) -> Partial:
    """A task: the value, and the largest entry of the gradient."""
    value, *slopes = root.leaves
    largest = np.max([float(np.max(np.abs(x), initial=0.0) / divisor) for x in slopes])
    return root._replace(leaves=(float(value / divisor), float(largest)))
