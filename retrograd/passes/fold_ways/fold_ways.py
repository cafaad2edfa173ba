"""fold_ways: traces of one function → one graph with a loop that chooses, where their steps differ by decisions.

The graph is proved to equal each of these traces. For other answers it is a conjecture: it returns the answers of its
branches, and ``follow`` proves it for a further trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.graph import Graph
from .emit import Folded, choices, emitted
from .overlay import steps_from
from .prove_ways import follow
from .variables import Variables
from .words import Unfoldable, words_of

NODES = 128  # loops with fewer operations in all are left

Answers = list[np.ndarray[Any, Any]]


def fold_ways(recordings: Sequence[Graph]) -> tuple[Folded, list[Answers]] | None:
    """The recordings as one graph, and the answers of its choices in each; None if they do not fold."""
    try:
        words = words_of(recordings)
    except Unfoldable:
        return None
    for head in words.heads():
        try:
            steps = steps_from(words, head)
            if not choices(steps.body) or sum(b - a for a, b in steps.spans.values()) < NODES:
                continue
            folded = emitted(Variables(steps))
        except (Unfoldable, InternalError, ValueError):
            continue
        answers = [follow(folded, recording) for recording in recordings]
        if None not in answers:
            return folded, [each for each in answers if each is not None]
    return None
