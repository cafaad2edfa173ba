"""disjoint: whether two basic indices of one array name no element in common, as far as their text tells."""

from __future__ import annotations

from typing import Any

Index = tuple[Any, ...]


def disjoint(a: Index, b: Index, shape: tuple[int, ...]) -> bool:
    """True if on some axis the ranges of the indices lie apart; False also where it is not known.

    >>> disjoint((0,), (slice(1, None),), (3, 2)), disjoint((slice(None), 0), (slice(1, 2),), (3, 2))
    (True, False)
    """
    if not (_plain(a) and _plain(b)):
        return False
    for i, j, n in zip(a, b, shape, strict=False):
        p, q = _range(i, n), _range(j, n)
        if not p or not q or max(p) < min(q) or max(q) < min(p):
            return True
    return False


def _plain(index: Index) -> bool:
    return all(isinstance(i, (int, slice)) and not isinstance(i, bool) for i in index)


def _range(index: Any, n: int) -> range:
    return range(index % n, index % n + 1) if isinstance(index, int) else range(*index.indices(n))
