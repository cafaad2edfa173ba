"""A context in which arrays of a few elements are computed in blocks, transposed and joined, as large ones are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

LIMITS: dict[str, dict[str, Any]] = {
    "fewer_rows": {"LARGE": 8, "BLOCK": 24, "FEWEST_STEPS": 1, "LEAST": -100.0},
    "rows_in_blocks": {"LARGE": 8, "MIDDLE": 8, "WORTH": 8, "BLOCK": 1 << 10},
    "stacks_in_blocks": {"LARGE": 8, "AGAIN": 8, "AGAIN_SHORT": 8, "BLOCKS": (8,), "FEWEST_STEPS": 1, "LEAST": -100.0},
    "narrow_stacks": {"LARGE": 2, "LONGER": 1},
    "short_axes": {"LARGE": 2},
    "join_parts": {"SHORTEST": 2},
}


@contextmanager
def tiny_blocks() -> Iterator[None]:
    """Whatever is worth it for large arrays alone is done for all."""
    with ExitStack() as stack:
        for name, limits in LIMITS.items():
            for limit, number in limits.items():
                stack.enter_context(mock.patch(f"retrograd.passes.{name}.{limit}", number))
        yield
