"""The seed of random programs, always the same one; the header of pytest names it.

``RETROGRAD_SEED=n`` draws others, here and by hypothesis. A run that refuses a change draws nothing anew: what it
found might be the fault of another one.
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("RETROGRAD_SEED", "0"))


def moved(seeds: range) -> range:
    """Seeds that belong to ``SEED``; for 0 these themselves."""
    first = seeds.start + SEED * 1_000_000
    return range(first, first + len(seeds))
