"""The seed of random programs: another one at each run in CI, and the same one by hand; the header of pytest names it.

``CI=1`` draws anew by hand, too, and ``RETROGRAD_SEED=n`` repeats a run.
"""

from __future__ import annotations

import os

# In the environment, so that the workers of pytest-xdist have it, too.
SEED = int(os.environ.setdefault("RETROGRAD_SEED", str(int.from_bytes(os.urandom(3)) if "CI" in os.environ else 0)))


def moved(seeds: range) -> range:
    """These seeds by hand, and others in CI."""
    first = seeds.start + SEED * 1_000_000
    return range(first, first + len(seeds))
