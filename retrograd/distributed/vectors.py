"""Long vectors cut into pieces, and what is done with each piece where it lies: in this process, or on workers.

The pieces change no bit: what is done to single entries does not depend on its neighbours, and products are summed in a
fixed tree over chunks, of which each piece has a power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .pinned import one_blas_thread
from .reduction import tree_sum

CHUNK = 1 << 13  # entries whose products are summed at once
SHORTEST = 1 << 17  # entries of a piece

Vector = np.ndarray[Any, Any]
Named = dict[str, Vector]  # pieces of several vectors, with the same entries
Reader = Callable[[int, int], Named]  # the vectors from one entry to another


class LossAt(NamedTuple):
    """A value, the largest entry of the gradient, and the pieces of the gradient."""

    value: float
    largest: float
    slope: Sequence[Any]


class Vectors(Protocol):
    """Where vectors lie, and their operations. Operands are sequences of pieces, whatever these are."""

    elsewhere: bool  # whether they may be lost

    def placed(self, read: Reader) -> Sequence[Any]:
        """Pieces of vectors that this process can read."""

    def each(self, function: Callable[..., Any], *operands: Sequence[Any], **numbers: Any) -> Sequence[Any]:
        """What a function makes of each piece."""

    def total(self, function: Callable[..., Vector], *operands: Sequence[Any]) -> Vector:
        """The sum of what a function, which sums over chunks, makes of each piece."""

    def gradient(self, point: Sequence[Any], only: Sequence[int] | None = None) -> LossAt:
        """The loss at a point."""

    def collected(self, operand: Sequence[Any]) -> Iterator[Any]:
        """The pieces, one after the other, in this process."""

    def again(self, attempt: Callable[[], Any]) -> Any:
        """An attempt, repeated while pieces are lost under it."""


class InThisProcess:
    """Vectors in one piece; ``evaluate(point, only)`` is the loss."""

    elsewhere = False

    def __init__(self, size: int, evaluate: Callable[[Vector, Sequence[int] | None], LossAt]) -> None:
        self._size, self._evaluate = size, evaluate

    def placed(self, read: Reader) -> Sequence[Any]:
        return [read(0, self._size)]

    def each(self, function: Callable[..., Any], *operands: Sequence[Any], **numbers: Any) -> Sequence[Any]:
        return [function(*(pieces[0] for pieces in operands), **numbers)]

    def total(self, function: Callable[..., Vector], *operands: Sequence[Any]) -> Vector:
        return of_piece(function, [pieces[0] for pieces in operands])

    def gradient(self, point: Sequence[Any], only: Sequence[int] | None = None) -> LossAt:
        return self._evaluate(point[0], only)

    def collected(self, operand: Sequence[Any]) -> Iterator[Any]:
        return iter(operand)

    def again(self, attempt: Callable[[], Any]) -> Any:
        return attempt()


def of_piece(function: Callable[..., Vector], operands: Sequence[Any]) -> Vector:
    """A sum over the chunks of a piece; BLAS adds up in the same order everywhere."""
    with one_blas_thread():
        return function(*operands)


def products(rows: Sequence[Vector], columns: Sequence[Vector] | None = None) -> Vector:
    """The matrix of the inner products of vectors, in the fixed tree.

    >>> products([np.array([1.0, 2.0]), np.array([0.0, 3.0])])
    array([[5., 6.],
           [6., 9.]])
    """
    return np.asarray(tree_sum(_chunks(rows, rows if columns is None else columns)))


def _chunks(rows: Sequence[Vector], columns: Sequence[Vector]) -> Iterator[Vector]:
    for k in range(0, max(rows[0].size, 1), CHUNK):
        left = np.stack([x[k : k + CHUNK] for x in rows])
        right = left if columns is rows else np.stack([x[k : k + CHUNK] for x in columns])
        yield left @ right.T


def bounds(size: int, most: int, shortest: int = SHORTEST) -> list[tuple[int, int]]:
    """Where at most so many pieces begin and end; all but the last have the same power of two of chunks.

    >>> bounds(1_000_000, 3)
    [(0, 524288), (524288, 1000000)]
    """
    length = shortest
    while -(-size // length) > max(most, 1):
        length *= 2
    return [(k, min(k + length, size)) for k in range(0, max(size, 1), length)]


def named(piece: Named, name: str) -> Vector:
    """One of several vectors."""
    return piece[name]
