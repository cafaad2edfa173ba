"""Fold also loops of a few operations, whatever they compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

REROLL = "retrograd.passes.reroll"
LIMITS = [f"{REROLL}.reroll.{limit}" for limit in ("FEW", "FEWEST", "NODES")]
LIMITS += [f"{REROLL}.find_repeats.FEWEST", f"{REROLL}.prove_loops.NODES"]


@contextmanager
def loops_from(nodes: int) -> Iterator[None]:
    """A context in which loops of so many operations in all fold."""
    with ExitStack() as stack:
        for limit in (*LIMITS, "retrograd.compiler.rolled.LONG"):
            stack.enter_context(mock.patch(limit, nodes))
        yield
