"""The type of a value: its shape, its dtype and whether NumPy sees an array, a NumPy scalar or a Python number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy import generic, ndarray  # a name of the module is looked up by substitution in a trace

Kind = Literal["array", "scalar", "python", "generator"]

_NAMES = ["b8", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128"]
_CODES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
DTYPE_NAMES: dict[np.dtype[Any], str] = dict(zip(map(np.dtype, _CODES), _NAMES, strict=True))
DTYPES: dict[str, np.dtype[Any]] = {name: dtype for dtype, name in DTYPE_NAMES.items()}
PYTHON_NAMES: dict[str, str] = {"?": "bool", "l": "int", "q": "int", "d": "float", "D": "complex"}
PYTHON_DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(bool),
    "int": np.dtype(np.int64),
    "float": np.dtype(np.float64),
    "complex": np.dtype(np.complex128),
}


@dataclass(frozen=True, slots=True)
class Aval:
    """The abstract value: everything known before running.

    ``kind`` tells an array (also a 0-d one) from a NumPy scalar and from a Python number, since they round and print
    differently. ``steps`` is None for a single value; ``(n,)`` makes it a list of n values, ``(n, m)`` a list of lists,
    and a length of -1 is known only at run time. Loops hold their residuals in such lists.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kind: Kind = "array"
    steps: tuple[int, ...] | None = None
    nbytes: int = field(init=False, repr=False, compare=False)  # of the data; of one step, if their number is unknown
    _hash: int = field(init=False, repr=False, compare=False)  # of ints alone: pickles take it to other processes

    def __post_init__(self) -> None:
        object.__setattr__(self, "nbytes", math.prod((*self.shape, self.dtype.itemsize, *map(abs, self.steps or ()))))
        object.__setattr__(self, "_hash", hash((self.shape, self.nbytes, ord(self.dtype.kind), ord(self.kind[0]))))

    def __hash__(self) -> int:
        return self._hash

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def inexact(self) -> bool:
        """Whether a derivative with respect to it makes sense: real or complex floating point."""
        return self.dtype.kind in "fc"

    def stacked(self, length: int) -> Aval:
        """A list of ``length`` such values."""
        return replace(self, steps=(length, *(self.steps or ())))

    def unstacked(self) -> Aval:
        """One step of a list."""
        if not self.steps:
            raise ValueError(f"{self} is not a list of steps")
        return replace(self, steps=self.steps[1:] or None)

    def __str__(self) -> str:
        if self.kind == "python":
            name = PYTHON_NAMES[self.dtype.char]
        elif self.kind == "scalar":
            name = DTYPE_NAMES[self.dtype]
        elif self.kind == "generator":
            name = "rng"
        else:
            name = f"{DTYPE_NAMES[self.dtype]}[{','.join(map(str, self.shape))}]"
        return name + "".join("*?" if n < 0 else f"*{n}" for n in self.steps or ())


# The avals of numbers by type; the types of NumPy scalars are added as they are met.
_of_numbers: dict[type, Aval] = {
    kind: Aval((), PYTHON_DTYPES[kind.__name__], "python") for kind in (bool, int, float, complex)
}


GENERATOR = Aval((), np.dtype(np.uint64), "generator")  # a source of random numbers, by reference


def in_order(x: np.ndarray[Any, Any]) -> bool:
    """Whether an array is as NumPy makes it, so that its shape tells how it lies in memory."""
    return x.ndim < 2 or bool(x.flags.c_contiguous)


def aval_of(value: object) -> Aval:
    """The aval of a concrete array, NumPy scalar or Python number; TypeError for anything else."""
    known = _of_numbers.get(type(value))
    if known is not None:
        return known
    if isinstance(value, ndarray):
        return _of_array(value.shape, value.dtype)
    if isinstance(value, generic):
        found = _of_numbers[type(value)] = _checked(Aval((), value.dtype, "scalar"))
        return found
    if isinstance(value, (bool, int, float, complex)):
        return next(_of_numbers[kind] for kind in (bool, int, float, complex) if isinstance(value, kind))
    if isinstance(value, list) and value:
        return aval_of(value[0]).stacked(len(value))
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return GENERATOR
    raise TypeError(f"{type(value).__name__} is neither an array nor a number")


@lru_cache(maxsize=8192)
def _of_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Aval:
    return _checked(Aval(shape, dtype))


def _checked(aval: Aval) -> Aval:
    if aval.dtype not in DTYPE_NAMES:
        raise TypeError(f"arrays of dtype {aval.dtype} cannot be traced")
    return aval
