"""Indices of elements, and the arrays of C that they point into."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.graph import Value

TYPES = {  # of C, by NumPy's
    "f8": "double",
    "f4": "float",
    "i8": "int64_t",
    "b1": "_Bool",
    "c16": "double _Complex",
    "c8": "float _Complex",
}


class AxisIndex(NamedTuple):
    """``scale · var + off``: the position along one axis, for a variable of a loop; without a variable a number."""

    var: str | None
    off: int = 0
    scale: int = 1

    def moved(self, by: int) -> AxisIndex:
        """The index of an element further on."""
        return AxisIndex(self.var, self.off + by, self.scale)

    def strided(self, start: int, step: int) -> AxisIndex:
        """The index in the whole for an index into ``whole[start::step]``."""
        return AxisIndex(self.var, self.off * step + start, self.scale * step)

    def __str__(self) -> str:
        if self.var is None:
            return str(self.off)
        text = self.var if self.scale == 1 else f"{self.scale} * {self.var}"
        return text if self.off == 0 else f"({text} {'+' if self.off > 0 else '-'} {abs(self.off)})"


Indices = tuple[AxisIndex, ...]


def at(n: int) -> AxisIndex:
    """The index of a known element."""
    return AxisIndex(None, n, 0)


def everywhere(shape: Sequence[int]) -> list[Indices]:
    """The indices of all elements of a small array, in C order."""
    return [tuple(at(int(i)) for i in k) for k in np.ndindex(*shape)]


def extents(value: Value) -> tuple[int, ...]:
    """The shape of a value; a list of steps is an array with one axis more."""
    return (*(value.aval.steps or ()), *value.aval.shape)


def count(value: Value) -> int:
    """The number of elements."""
    return math.prod(extents(value))


def c_type(dtype: np.dtype[Any]) -> str:
    """The type of an element in C."""
    return TYPES[dtype.str[1:]]


def number(value: Any, dtype: np.dtype[Any]) -> str:
    """A number as C."""
    if dtype.kind == "b":
        return "1" if value else "0"
    if dtype.kind == "i":
        n = int(value)
        return "INT64_MIN" if n == -(2**63) else f"INT64_C({n})" if abs(n) >= 2**31 else str(n) if n >= 0 else f"({n})"
    if dtype.kind == "c":
        real, z = np.dtype(f"f{dtype.itemsize // 2}"), complex(value)
        parts = [number(x, real) for x in (z.real, z.imag)]
        return f"__builtin_complex({', '.join(f'({c_type(real)}){x}' if 'N' in x else x for x in parts)})"
    x = float(value)
    suffix = "f" if dtype.itemsize == 4 else ""
    if math.isnan(x):
        return "NAN"
    if math.isinf(x):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    return f"{x!r}{suffix}" if math.copysign(1.0, x) > 0 else f"({x!r}{suffix})"


class CArray:
    """Storage of a value: a pointer and the strides of its axes, in elements; a stride of 0 holds one row at a time."""

    def __init__(
        self, name: str, shape: Sequence[int], dtype: np.dtype[Any], strides: Sequence[int] | None = None
    ) -> None:
        self.name, self.shape, self.dtype = name, tuple(shape), dtype
        self.strides = tuple(strides) if strides is not None else packed(self.shape)

    @property
    def whole(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return self.strides == packed(self.shape)

    def at(self, index: Indices) -> str:
        """The source of an element."""
        offset, terms = 0, []
        for i, stride, n in zip(index, self.strides, self.shape, strict=True):
            if stride == 0 or n == 1:
                continue
            offset += i.off * stride
            if i.var is not None:
                k = i.scale * stride
                terms.append(i.var if k == 1 else f"{k} * {i.var}")
        if offset or not terms:
            terms.append(str(offset))
        return f"{self.name}[{' + '.join(terms)}]".replace("+ -", "- ")

    def read(self, index: Indices) -> str:
        """The source of what an element is: a choice by bools that are read is not vectorised."""
        text = self.at(index)
        if self.dtype.kind != "b" or not text.endswith("]"):
            return text
        return f"((const signed char *){self.name}){text[len(self.name) :]} != 0"


class CNumber(CArray):
    """Storage of one element: a variable."""

    def __init__(self, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        super().__init__(f"&{name}", shape, dtype)

    def at(self, index: Indices) -> str:
        """The source of the element."""
        return self.name[1:]


def packed(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array in C order, in elements."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def full(index: tuple[Any, ...], ndim: int) -> list[Any]:
    """A basic index with a slice for each axis that it leaves out."""
    items = list(index)
    missing = ndim - sum(i is not None and i is not Ellipsis for i in items)
    where = items.index(Ellipsis) if Ellipsis in items else len(items)
    items[where : where + (Ellipsis in items)] = [slice(None)] * missing
    return items


def in_whole(
    items: Sequence[Any], shape: Sequence[int], index: Indices, decided: Callable[[Any, int], AxisIndex]
) -> Indices:
    """Where in an array an element of the part lies that ``items`` select.

    ``index`` has its places along slices and new axes; ``decided`` finds those along other axes.
    """
    rest, sizes = iter(index), iter(shape)
    found: list[AxisIndex] = []
    for item in items:
        if item is None:
            next(rest)
            continue
        n = next(sizes)
        if isinstance(item, slice):
            start, _, step = item.indices(n)
            found.append(next(rest).strided(start, step))
        else:
            found.append(decided(item, n))
    return tuple(found)
