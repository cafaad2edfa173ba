"""Shared parts of the primitives of checkpointed loops: groups of operands, and schedules in attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.embedded_functions import function_of
from ...ir.types import Aval


@dataclass(frozen=True)
class Parts:
    """Lists of given lengths, one after the other, and a rest."""

    sizes: tuple[int, ...]

    def of(self, items: Sequence[Any]) -> list[list[Any]]:
        """The items, divided into these lists."""
        found, at = [], 0
        for size in self.sizes:
            found.append(list(items[at : at + size]))
            at += size
        return [*found, list(items[at:])]


OPAQUE = Aval((), np.dtype(np.int64), "python")  # stands for a disk, or for a dictionary of residuals by step


DISK = "retrograd.ops.structural.disk"  # loaded where states are kept on disk first

# Schedules in attributes: ("name", arguments...) calls an embedded function. KEPT stands for the numbers of the kept
# states, COUNT for the number of steps where it is found at run time.

KEPT = "kept"
COUNT = "count"


def schedule_of(text: Any, kept: Any = (), count: int = 0) -> Any:
    """The schedule itself."""
    if isinstance(text, tuple) and text and isinstance(text[0], str):
        arguments = [schedule_of(x, kept, count) for x in text[1:]]
        placer = range if text[0] == "range" else function_of(text[0])
        return placer(*arguments)
    return {KEPT: kept, COUNT: count}.get(text, text) if isinstance(text, str) else text
