"""Unknowns of equations: trees of numbers that solvers see as one vector in double precision."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..errors import OptionError
from ..tracer.array import Tracer, shadow_of
from ..tracer.operands import as_array
from ..tracer.trace import unsupported
from ..tracer.tree import Spec, flatten, unflatten


class Unknowns(NamedTuple):
    """The vector ``start``, and the tree that the user's function sees; without ``spec`` it sees the vector."""

    start: Any
    shapes: list[tuple[int, ...]]
    spec: Spec | None

    def tree(self, vector: Any) -> Any:
        """The tree of a vector."""
        if self.spec is None:
            return vector
        leaves, at = [], 0
        for shape in self.shapes:
            n = math.prod(shape)
            leaves.append(np.reshape(vector[at : at + n], shape) if shape else vector[at])
            at += n
        return unflatten(self.spec, leaves)


def flat(tree: Any, what: str) -> Any:
    """All numbers of a tree as one vector; UnsupportedError for complex numbers."""
    parts = [_real(x, what) for x in flatten(tree)[0]]
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)


def _real(x: Any, what: str) -> Any:
    if not isinstance(shadow_of(x), (np.ndarray, np.generic, bool, int, float, complex)):
        raise OptionError(f"{what}: {type(x).__name__} is not a number", remedy="use arrays and numbers only")
    x = as_array(x) if isinstance(x, Tracer) else np.asarray(x)
    if x.dtype.kind == "c":
        raise unsupported(f"{what} of complex numbers", "take real and imaginary parts as unknowns of their own")
    x = np.reshape(x, (-1,))
    return x if x.dtype == np.float64 else x.astype(np.float64)


def unknowns_of(x0: Any, what: str, vectors: bool = True) -> Unknowns:
    """The unknowns of a start; with ``vectors`` a number and a sequence of numbers is a vector, as SciPy has it."""
    leaves, spec = flatten(x0)
    start = flat(x0, what)
    shapes = [np.shape(shadow_of(x)) for x in leaves]
    numbers = isinstance(x0, (list, tuple)) and all(shape == () for shape in shapes)
    vector = vectors and (numbers or (spec.is_leaf() and len(shapes[0]) < 2))
    return Unknowns(start, shapes, None if vector else spec)
