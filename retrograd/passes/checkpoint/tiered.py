"""Two tiers of slots, in memory and on disk, where writing and reading a state on disk cost something.

A dynamic program over the first decision for n steps with free slots in both tiers, in the manner of G. Aupy,
J. Herrmann, P. Hovland and Y. Robert (SIAM J. Sci. Comput. 38, 2016), where a state may be dropped from disk early,
and may be in memory and on disk at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...errors import InternalError, OptionError
from ...ir.schedule import Step

Table = np.ndarray[Any, Any]
LARGEST = 2_000_000_000  # elementary operations of the dynamic program: some seconds


class Tables(NamedTuple):
    """Least costs by (n, free in memory, free on disk): from a working state, and from one that is on disk too."""

    plain: Table
    backed: Table


@lru_cache(maxsize=4)
def _tables(n: int, ram: int, disk: int, write: float, read: float) -> Tables:
    if n * n * (ram + 1) * (disk + 1) > LARGEST:
        raise OptionError(
            f"a tiered schedule of {n} steps in {ram} + {disk} slots takes too long to find",
            remedy="give fewer slots on disk, or put an inner loop into each step",
        )
    plain = np.full((n + 1, ram + 1, disk + 1), np.inf)
    backed = np.full((n + 1, ram + 1, disk + 1), np.inf)
    plain[:2] = backed[:2] = 0
    for k in range(2, n + 1):
        far = np.arange(1.0, k)[:, None, None]
        later, earlier, kept = plain[k - 1 : 0 : -1], plain[1:k], backed[1:k]
        freed = np.concatenate([earlier[:, :, 1:], np.full((k - 1, ram + 1, 1), np.inf)], axis=2)
        backed[k] = (far + later + read + np.minimum(kept, freed)).min(axis=0)
        if ram:
            backed[k, 1:] = np.minimum(backed[k, 1:], (far + later[:, :-1] + kept[:, 1:]).min(axis=0))
            plain[k, 1:] = (far + later[:, :-1] + earlier[:, 1:]).min(axis=0)
        if disk:
            plain[k, :, 1:] = np.minimum(plain[k, :, 1:], write + backed[k, :, :-1])
    return Tables(plain, backed)


def tiered_cost(n: int, ram: int, disk: int, write: float = 1.0, read: float = 1.0) -> float:
    """The least cost of advances, writes and reads that reverses n steps; an advance costs 1."""
    found = float(_tables(n, ram, disk, write, read).plain[n, ram, disk])
    if not np.isfinite(found):
        raise InternalError(f"{n} steps cannot be reversed in {ram} + {disk} slots")
    return found


def tiered(n: int, ram: int, disk: int, write: float = 1.0, read: float = 1.0) -> Iterator[Step]:
    """A schedule of least cost."""
    tiered_cost(n, ram, disk, write, read)
    if n:
        yield from _Walk(_tables(n, ram, disk, write, read), write, read).plain(0, n, ram, disk)


class _Walk:
    def __init__(self, tables: Tables, write: float, read: float) -> None:
        self.tables, self.write, self.read = tables, write, read

    def plain(self, at: int, n: int, ram: int, disk: int) -> Iterator[Step]:
        """From a working state that is kept nowhere."""
        table = self.tables.plain
        if n == 1:
            yield ("back", at, at + 1)
            return
        best = table[n, ram, disk]
        for far in range(1, n) if ram else ():
            if far + table[n - far, ram - 1, disk] + table[far, ram, disk] == best:
                yield ("save", at, at)
                yield ("advance", at, at + far)
                yield from self.plain(at + far, n - far, ram - 1, disk)
                yield ("load", at, at)
                yield ("drop", at, at)
                yield from self.plain(at, far, ram, disk)
                return
        yield ("store", at, at)
        yield from self.backed(at, n, ram, disk - 1)

    def backed(self, at: int, n: int, ram: int, disk: int) -> Iterator[Step]:
        """From a working state that is on disk, too."""
        plain, backed = self.tables
        if n == 1:
            yield ("discard", at, at)
            yield ("back", at, at + 1)
            return
        best = backed[n, ram, disk]
        for far in range(1, n):
            early = ram and far + plain[n - far, ram - 1, disk] + backed[far, ram, disk] == best
            again = plain[far, ram, disk + 1] if disk + 1 < plain.shape[2] else np.inf
            if not early and far + plain[n - far, ram, disk] + self.read + min(backed[far, ram, disk], again) != best:
                continue
            if early:
                yield ("save", at, at)
            yield ("advance", at, at + far)
            yield from self.plain(at + far, n - far, ram - bool(early), disk)
            if early:
                yield ("load", at, at)
                yield ("drop", at, at)
                yield from self.backed(at, far, ram, disk)
            elif backed[far, ram, disk] <= again:
                yield ("fetch", at, at)
                yield from self.backed(at, far, ram, disk)
            else:
                yield ("fetch", at, at)
                yield ("discard", at, at)
                yield from self.plain(at, far, ram, disk + 1)
            return
