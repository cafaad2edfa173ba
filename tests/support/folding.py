"""Fold also loops of a few operations, whatever they compute."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .limits import other_limits

LIMITS = {
    "compiler.rolled": ["LONG"],
    "passes.reroll.find_repeats": ["FEWEST"],
    "passes.reroll.prove_loops": ["NODES"],
    "passes.reroll.reroll": ["FEW", "FEWEST", "NODES"],
}


def loops_from(nodes: int) -> AbstractContextManager[None]:
    """A context in which loops of so many operations in all fold."""
    return other_limits({module: dict.fromkeys(names, nodes) for module, names in LIMITS.items()})
