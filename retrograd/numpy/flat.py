"""``x.flat``: the elements of a traced array in a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..tracer.array import Tracer, shadow_of
from ..tracer.ufuncs import as_operand, copy
from .shapes import ravel
from .writing import put_flat


class Flat:
    """Stands for ``x.flat`` of a traced array: reads are copies, writes go to the array and repeat short values."""

    def __init__(self, base: Tracer) -> None:
        self.base = base

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(ravel(self.base))

    def __getitem__(self, index: Any) -> Any:
        found = ravel(self.base)[index]
        return copy(found) if np.ndim(found) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        put_flat(self.base, index, value)

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.base.__array__(*args, **options)

    def copy(self) -> Any:
        """A copy of the elements as an array of one axis."""
        return copy(ravel(self.base))


def flat_of(x: Tracer) -> Flat:
    """``x.flat``."""
    return Flat(x)


def set_flat(x: Tracer, value: Any) -> None:
    """``x.flat = value``; of nothing, it leaves the array as it is."""
    if np.size(shadow_of(as_operand(value))):
        put_flat(x, slice(None), value)
