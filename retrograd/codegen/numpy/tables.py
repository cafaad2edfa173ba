"""Short expressions for arrays that modules contain: filled ones, counting ones, and matrices of a few diagonals.

An expression is taken if it is exact on any machine and its value has every bit of the array. Other long arrays are
packed: nobody reads thousands of numbers.
"""

from __future__ import annotations

import zlib
from binascii import b2a_base64
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np

from ...ir.embedded import embed
from ...ir.texts import literal
from .emitter import Scope
from .module import DEFINITIONS

LONG = 32  # elements from which an array is not spelled out
DIAGONALS = 7  # how many may differ from zero
EXACT = 2.0**53  # integers below are exact in float64
PACKED = 256  # elements of all arrays without short forms, from which they are packed
UNPACKED = embed('''
def unpacked(text, dtype):
    """The array whose bytes are compressed in a text."""
    return np.frombuffer(zlib.decompress(binascii.a2b_base64(text)), dtype)
''')


def table(array: np.ndarray[Any, Any]) -> str | None:
    """A short expression with the value of an array; None if none is found.

    >>> table(np.eye(50)), table(np.arange(40.0) * 2), table(np.full((9, 9), 0.5))
    ('np.eye(50, 50, 0, np.float64)', 'np.arange(0.0, 80.0, 2.0, dtype=np.float64)', 'np.full((9, 9), 0.5, np.float64)')
    """
    if array.size < LONG:
        return None
    for text, value in _candidates(array):
        if value.dtype == array.dtype and value.shape == array.shape and value.tobytes() == array.tobytes():
            return text
    return None


def _candidates(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    first, dtype = array.flat[0].item(), array.dtype
    yield f"np.full({array.shape}, {literal(first)}, {literal(dtype)})", np.full(array.shape, first, dtype)
    if array.ndim == 1 and dtype.char in "lqd":
        step = array[1].item() - first
        stop = first + step * len(array)
        if step and all(abs(x) < EXACT and x == int(x) for x in (first, step, stop)):
            yield (
                f"np.arange({first}, {stop}, {step}, dtype={literal(dtype)})",
                np.arange(first, stop, step, dtype=dtype),
            )
    if array.ndim == 2 and dtype.kind in "iufc":
        yield from _diagonals(array)


def _diagonals(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """A sum of diagonals, each of one number: elements that are zero in all but one term keep their bits."""
    (rows, columns), (height, width), dtype = np.nonzero(array), array.shape, array.dtype
    offsets = np.unique(columns - rows).tolist()
    if not 0 < len(offsets) <= DIAGONALS:
        return
    terms = []
    value = np.zeros(array.shape, dtype)
    for k in offsets:
        number = array.diagonal(k)[0].item()
        value = value + number * np.eye(height, width, k, dtype)
        factor = "" if number == 1 else f"{literal(number)} * "
        terms.append(f"{factor}np.eye({height}, {width}, {k}, {literal(dtype)})")
    yield " + ".join(terms), value


def definitions(scope: Scope) -> list[str]:
    """The lines that make the arrays of a module. Long ones without a short form are packed together."""
    lines, rest = [], dict[np.dtype[Any], list[str]]()
    for name, array in scope.arrays.items():
        short = table(array)
        if short is not None:
            lines.append(f"{name} = {short}")
        else:
            rest.setdefault(array.dtype, []).append(name)
    for dtype, names in rest.items():
        arrays = [scope.arrays[name] for name in names]
        if sum(array.size for array in arrays) >= PACKED:
            lines += _packed(names, arrays, scope)
            continue
        for name, array in zip(names, arrays, strict=True):
            values = ", ".join(map(literal, array.reshape(-1).tolist()))
            shape = "" if array.ndim == 1 else f".reshape({array.shape})"
            lines.append(f"{name} = np.array([{values}], {literal(dtype)}){shape}")
    return lines


def _packed(names: list[str], arrays: list[np.ndarray[Any, Any]], scope: Scope) -> list[str]:
    """Arrays of one dtype as parts of one array, whose bytes are compressed."""
    scope.helpers[UNPACKED] = None
    scope.modules |= {"binascii": None, "zlib": None}
    whole = np.concatenate([array.reshape(-1) for array in arrays])
    little = whole.astype(whole.dtype.newbyteorder("<"))
    text = f'unpacked("{b2a_base64(zlib.compress(little.tobytes(), 1), newline=False).decode()}", "{little.dtype.str}")'
    ends = ", ".join(map(str, accumulate(array.size for array in arrays[:-1])))
    lines = [f"{', '.join(names)} = {f'np.split({text}, [{ends}])' if len(names) > 1 else text}"]
    return lines + [
        f"{name} = {name}.reshape({array.shape})" for name, array in zip(names, arrays, strict=True) if array.ndim != 1
    ]


DEFINITIONS.append(definitions)
