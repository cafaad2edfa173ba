"""A schedule in two tiers: the states that are kept longest go to disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...ir.schedule import Step, placer


@placer()
def tiering(steps: Iterable[Step], states: Iterable[int], disk: int) -> Iterator[Step]:
    """The steps, with the first ``disk`` of the kept states on disk; ``states`` are kept at the start.

    Kept states are a stack in every binomial schedule: only the last one is loaded and dropped.
    """
    kept = list(states)
    for verb, i, j in steps:
        if verb == "save":
            kept.append(i)
        if len(kept) > disk or verb in ("advance", "back"):
            yield (verb, i, j)
        elif verb == "save":
            yield ("store", i, j)
        elif verb == "load":
            yield ("fetch", i, j)
        else:
            yield ("discard", i, j)
        if verb == "drop":
            kept.pop()
