"""Permutations that exchange or move one axis."""

from __future__ import annotations

from ..ir.builder import Symbol
from .shape import permute


def swap(x: Symbol) -> Symbol:
    """The last two axes exchanged."""
    n = x.ndim
    swapped: Symbol = permute(x, axes=(*range(n - 2), n - 1, n - 2))
    return swapped


def move_axis(x: Symbol, source: int, target: int) -> Symbol:
    """One axis moved, the others in their order."""
    if source == target:
        return x
    axes = [a for a in range(x.ndim) if a != source]
    axes.insert(target, source)
    moved: Symbol = permute(x, axes=tuple(axes))
    return moved
