"""Long vectors cut into pieces, and what is done with each piece where it lies: in this process, or on workers.

The pieces change no bit: what is done to an entry does not depend on its neighbours, and products are summed in a fixed
tree over chunks, of which each piece has whole ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .pinned import one_blas_thread
from .reduction import TreeSum

CHUNK = 1 << 13  # entries whose products are summed at once
SHORTEST = 1 << 17  # entries of a piece


Vector = np.ndarray[Any, Any]
Named = dict[str, Vector]  # pieces of several vectors, with the same entries
Reader = Callable[[int, int], Named]  # the vectors from one entry to another
Chunks = Callable[..., Iterator[Vector]]  # what each chunk of a piece gives


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

    def total(self, function: Chunks, *operands: Sequence[Any]) -> Vector:
        """The sum of what a function makes of all chunks of all pieces."""

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

    def total(self, function: Chunks, *operands: Sequence[Any]) -> Vector:
        return joined_sums([sums_of_piece(function, 0, [pieces[0] for pieces in operands])])

    def gradient(self, point: Sequence[Any], only: Sequence[int] | None = None) -> LossAt:
        return self._evaluate(point[0], only)

    def collected(self, operand: Sequence[Any]) -> Iterator[Any]:
        return iter(operand)

    def again(self, attempt: Callable[[], Any]) -> Any:
        return attempt()


Sums = list[tuple[int, Vector]]  # the parts of a TreeSum


def sums_of_piece(function: Chunks, first: int, operands: Sequence[Any]) -> Sums:
    """The sums over the chunks of a piece that begins at this entry. BLAS adds up in the same order everywhere."""
    found = TreeSum(first=first // CHUNK)
    with one_blas_thread():
        for term in function(*operands):
            found.take(term)
    return found.parts


def joined_sums(pieces: Sequence[Sums]) -> Vector:
    """The sum over all chunks, from the sums of all pieces in order."""
    found = TreeSum()
    for size, term in itertools.chain(*pieces):
        found.take(term, size)
    return np.asarray(found.total())


def products(rows: Sequence[Vector], columns: Sequence[Vector] | None = None) -> Iterator[Vector]:
    """For each chunk, the matrix of the inner products of vectors.

    >>> [*products([np.array([1.0, 2.0]), np.array([0.0, 3.0])])]
    [array([[5., 6.],
           [6., 9.]])]
    """
    for k in range(0, max(rows[0].size, 1), CHUNK):
        left = np.stack([x[k : k + CHUNK] for x in rows])
        right = left if columns is None else np.stack([x[k : k + CHUNK] for x in columns])
        yield left @ right.T


def bounds(size: int, most: int, shortest: int = SHORTEST) -> list[tuple[int, int]]:
    """Where at most so many pieces begin and end, of about the same length.

    >>> bounds(1_000_000, 3)
    [(0, 335872), (335872, 671744), (671744, 1000000)]
    """
    count = max(min(most, size // shortest), 1)
    length = max(-(-size // (count * CHUNK)), 1) * CHUNK
    return [(k, min(k + length, size)) for k in range(0, max(size, 1), length)]


def named(piece: Named, name: str) -> Vector:
    """One of several vectors."""
    return piece[name]
