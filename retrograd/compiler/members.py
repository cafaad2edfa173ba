"""Tangents and cotangents from users, checked against the values that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.types import Aval
from ..ops.elementwise import cast
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.containers import flatten_like
from ..tracer.record import Recorded
from ..tracer.trace import traceable
from ..tracer.tree import Spec

LIKE = ("python", "scalar", "array")  # kinds of values, each like a NumPy array in more than the ones before


def as_member(x: Any, aval: Aval, what: str) -> Any:
    """A tangent or cotangent for a value of this aval: its shape must be equal, its dtype is converted."""
    try:
        found = traceable(shadow_of(x))
    except TypeError:
        raise ShapeError(
            f"{what}: a {type(x).__name__} is not an array of numbers",
            remedy=f"pass an array of shape {aval.shape}",
        ) from None
    if found.shape != aval.shape or (found.dtype.kind == "c" and aval.dtype.kind != "c"):
        raise ShapeError(
            f"{what}: {found} is given, but the value it belongs to is {aval}",
            remedy=f"pass an array of shape {aval.shape} and a dtype that becomes {aval.dtype}",
        )
    if isinstance(x, Tracer):
        if LIKE.index(found.kind) < LIKE.index(aval.kind):  # a number, which lacks what the value can do
            return apply(cast, [x], aval=aval)
        return x if found.dtype == aval.dtype else x.astype(aval.dtype)
    if aval.kind == "array":
        return np.asarray(x, aval.dtype)
    return aval.dtype.type(x) if aval.kind == "scalar" else np.asarray(x, aval.dtype).item()


def members(spec: Spec, tree: Any, avals: Sequence[Aval | None], what: str) -> list[Any]:
    """The leaves of a tangent or cotangent that belong to values of these avals; None if there is none."""
    leaves = flatten_like(spec, tree, what)
    return [as_member(x, a, what) for x, a in zip(leaves, avals, strict=True) if a is not None]


def leaf_avals(recorded: Recorded, head: Spec) -> list[Aval | None]:
    """The aval of each leaf of the output; None if the leaf has no cotangent."""
    rest = iter(recorded.graph.out_avals)
    avals = [None if i in recorded.statics else next(rest) for i in range(head.num_leaves)]
    return [a if a is not None and a.inexact else None for a in avals]
