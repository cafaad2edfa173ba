"""Mixed checkpointing: a slot holds a state to restart from, or the residuals of one step, which need no restart.

J. Maddison, On the implementation of checkpointing with high-level algorithmic differentiation,
arXiv 2305.09568: a dynamic program over the first decision. Here the residuals of one step take ``tape`` slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import InternalError, OptionError
from ...ir.embedded_functions import embedded
from ...ir.schedule import Step

LARGEST = 1_000_000_000  # elementary operations of the dynamic program: some seconds
Table = np.ndarray[Any, Any]


@lru_cache(maxsize=8)
def _table(n: int, slots: int, tape: int) -> tuple[Table, Table]:
    """The least steps for each (slots, n), and the first decision: how far to advance, or 0 to keep the residuals."""
    if n * n * slots > LARGEST:
        raise OptionError(
            f"a mixed schedule of {n} steps in {slots} slots takes too long to find",
            remedy="give fewer slots, or Snapshots(slots) without mixed=True",
        )
    cost = np.full((slots + 1, n + 1), np.inf)
    choice = np.zeros((slots + 1, n + 1), np.int64)
    cost[:, 0], cost[:, 1:2] = 0, 1
    for s in range(1, slots + 1):
        for k in range(2, n + 1):
            saved = np.arange(1, k) + cost[s, 1:k] + cost[s - 1, k - 1 : 0 : -1]
            far = int(np.argmin(saved))
            taped = 1 + cost[s - tape, k - 1] if s >= tape else np.inf
            cost[s, k], choice[s, k] = (taped, 0) if taped <= saved[far] else (saved[far], far + 1)
    return cost, choice


def mixed_steps(n: int, slots: int, tape: int = 1) -> int:
    """The least number of forward steps, taped ones included, that reverses n steps.

    >>> mixed_steps(100, 10)
    237
    """
    found = _table(n, slots, tape)[0][slots, n]
    if not np.isfinite(found):
        raise InternalError(f"{n} steps cannot be reversed in {slots} slots")
    return int(found)


def mixed(n: int, slots: int, tape: int = 1) -> Iterator[Step]:
    """A schedule with the least number of forward steps."""
    mixed_steps(n, slots, tape)
    choice = _table(n, slots, tape)[1]
    todo: list[tuple[Step | int, int, int, bool]] = [(0, n, slots, False)]
    while todo:
        at, k, s, kept = todo.pop()
        if isinstance(at, tuple):
            yield at
        elif k == 1:
            yield ("back", at, at + 1)
        elif k > 1 and choice[s, k] == 0:
            yield ("tape", at, at + 1)
            todo += [(("reverse", at, at + 1), 0, 0, False), (at + 1, k - 1, s - tape, False)]
        elif k > 1:
            far = int(choice[s, k])
            if not kept:
                yield ("save", at, at)
            yield ("advance", at, at + far)
            stays = far > 1 and choice[s, far] > 0  # as the other steps begin from this state, too
            todo.append((at, far, s, stays))
            if not stays:
                todo.append((("drop", at, at), 0, 0, False))
            todo += [(("load", at, at), 0, 0, False), (at + far, k - far, s - 1, False)]


@embedded()
def scheduled(text: str) -> Iterator[Step]:
    """The actions that a text lists: ``"save 0 0, advance 0 3"``."""
    for item in text.split(", ") if text else ():
        verb, i, j = item.split()
        yield (verb, int(i), int(j))  # type: ignore[misc]  # the texts of this package have verbs there
