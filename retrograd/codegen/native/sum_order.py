"""The order of sums, which is NumPy's: so a batch, a part and NumPy itself have the same bits.

NumPy adds up the elements along the last axes in one go: eight sums beside each other, and halves of what is longer
(N. J. Higham, The accuracy of floating point summation, 1993). Along other axes it adds one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Node
from .indices import c_type

LEAF = 16  # terms of a sum that runs beside others, from which on there are halves
BLOCK = 128  # ... for which C has space


def has_order(node: Node) -> bool:
    """Whether a node is a sum whose bits depend on its order."""
    return node.prim.name == "sum" and node.out.aval.dtype.kind in "fc"


def run_start(shape: Sequence[int], axes: Sequence[int]) -> int | None:
    """The first of the last axes, along which elements are added up in one go; None if the last one stays."""
    first = None
    for a in reversed(range(len(shape))):
        if shape[a] != 1:
            if a not in axes:
                break
            first = a
    return first


def unit(dtype: np.dtype[Any]) -> int:
    """The sums that run beside each other."""
    return 4 if dtype.kind == "c" else 8


def zero(dtype: np.dtype[Any]) -> str:
    """What is added to sums, so that none is -0.0: without a cast, C adds nothing to the imaginary part."""
    return f"({c_type(dtype)})0" if dtype.kind == "c" else "0"


def added(terms: Sequence[str], dtype: np.dtype[Any]) -> str:
    """The sum of a few terms that are added up in one go."""
    beside = unit(dtype)
    if len(terms) < beside:
        return " + ".join(terms)
    whole = len(terms) // beside * beside
    sums = [f"({' + '.join(terms[k:whole:beside])})" for k in range(beside)]
    while len(sums) > 1:
        sums = [f"({a} + {b})" for a, b in zip(sums[::2], sums[1::2], strict=True)]
    return " + ".join([*sums, *terms[whole:]])


def added_in_order(node: Node, terms: Sequence[str]) -> str:
    """A sum of at most a few terms, in C order: runs in one go, and one run after the other."""
    shape, axes = node.inputs[0].aval.shape, node.attrs["axis"]
    first = run_start(shape, axes)
    run = 1 if first is None else math.prod(shape[first:])
    runs = [added(terms[k : k + run], node.out.aval.dtype) for k in range(0, len(terms), run)]
    return " + ".join([zero(node.out.aval.dtype), *(f"({text})" if run > 1 else text for text in runs)])


def kept_terms(each: int, n: int, beside: int, most: int, whole: bool) -> int:
    """What a part with ``each`` of n terms keeps: sums of blocks, and the terms of blocks that it has not whole.

    Blocks have at most ``most`` terms; ``whole`` if parts begin where blocks do.
    """
    if whole:
        return (each + most) // (most // 2) + 1
    found = 0
    for first in range(0, n, each):
        end = min(first + each, n)
        start, stop = _block(n, first, beside, most)
        terms = min(stop, end) - first if start < first else 0
        start, stop = _block(n, end - 1, beside, most)
        found = max(found, terms + (end - start if stop > end and start >= first else 0))
    return min(each, found + each // (most // 2) + 1)


def _block(n: int, p: int, beside: int, most: int) -> tuple[int, int]:
    """The block that has the term p of n."""
    start = 0
    while n > most:
        half = n // 2 - n // 2 % beside
        start, n = (start, half) if p < start + half else (start + half, n - half)
    return start, start + n
