"""The memory that an operation takes for itself, beside its operands and results."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ....ir.graph import Node
from ....ir.modules import resolve
from ..absorb import WEAK

PART = 8192  # elements that a ufunc casts at a time: NumPy's size of buffers


def scratch_of(node: Node, number: int = 1, most: int = PART) -> int:
    """The bytes of workspace of an operation; ``number`` blocks of at most so many elements are cast at a time."""
    rule = node.prim.scratch
    found: int = rule(*(v.aval for v in node.inputs), **node.attrs) if rule else 0
    return found + number * _cast_buffers(node, most)


def _cast_buffers(node: Node, most: int) -> int:
    """The bytes of a ufunc's buffers for arrays of at most that many elements, each cast to the type of the loop.

    An array that is no longer than a buffer is cast as a whole. A product of matrices casts any array as a whole.
    """
    if not node.prim.numpy.ufunc:
        return 0
    avals = [v.aval for v in node.inputs]
    strong = (WEAK.get(aval.dtype.kind) if aval.kind == "python" else aval.dtype for aval in avals)
    types = _loop(node.prim.numpy.ufunc, tuple(strong))
    read = [(v.aval, dtype) for v, dtype in zip(node.inputs, types, strict=False)]
    cast = [(aval, dtype) for aval, dtype in read if aval.kind == "array" and aval.shape and aval.dtype != dtype]
    part = min(node.outputs[0].aval.size, most, PART)
    whole = not node.prim.numpy.broadcasts
    return sum(int(aval.size if whole else part) * int(dtype.itemsize) for aval, dtype in cast)


@lru_cache(maxsize=4096)
def _loop(ufunc: str, dtypes: tuple[Any, ...]) -> Any:
    """The types between which a ufunc computes; none if it does not take these."""
    try:
        return resolve(ufunc).resolve_dtypes((*dtypes, None))
    except TypeError:
        return ()
