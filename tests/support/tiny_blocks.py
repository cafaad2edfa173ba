"""A context in which a few elements are computed in blocks, by threads, transposed and joined, as many are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .limits import other_limits

STACKS = {"LARGE": 8, "AGAIN": 8, "AGAIN_SHORT": 8, "BLOCKS": (8,), "FEWEST_STEPS": 1, "LEAST": -100.0}
LIMITS: dict[str, dict[str, Any]] = {
    "codegen.numpy.at_once": {"WORTH": 8, "LONG": 8, "FEWEST": 2},
    "compiler.block_threads": {"WORTH": -1.0},
    "passes.fewer_rows": {"LARGE": 8, "BLOCK": 24, "FEWEST_STEPS": 1, "LEAST": -100.0},
    "passes.rows_in_blocks": {"LARGE": 8, "MIDDLE": 8, "WORTH": 8, "BLOCK": 1 << 10},
    "passes.stacks_in_blocks": STACKS,
    "passes.stencils_in_blocks": {"LARGE": 8, "FARTHEST": 1, "SAVED": 1},
    "passes.moved_axes": {"LARGE": 2},
    "passes.narrow_stacks": {"LONGER": 1},
    "passes.sums_in_products": {"LEAST": 2, "FEWEST": 1, "SHARE": 100.0},
    "passes.join_parts": {"SHORTEST": 2},
}


def tiny_blocks() -> AbstractContextManager[None]:
    """Whatever is worth it for large arrays alone is done for all."""
    return other_limits(LIMITS)
