"""Sequences: what NumPy takes apart as it does lists, such as a ``deque``, a ``UserList``, an object of the user's."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from .array import Tracer, shadow_of
from .creation import NESTED

LEAVES = frozenset({bool, int, float, complex, str, type(None), Tracer})
WHOLE = (str, bytes, bytearray, memoryview, array, range, dict)  # which hold no traced values, or are no sequences
ARRAYS = ("__array__", "__array_interface__", "__array_struct__")


def is_sequence(cls: type) -> bool:
    """Whether NumPy takes objects of a class apart: they have a length and elements, and make no array themselves.

    >>> import collections
    >>> [is_sequence(cls) for cls in (list, collections.deque, collections.UserList, str, dict, set)]
    [True, True, True, False, False, False]
    """
    if issubclass(cls, WHOLE) or not (hasattr(cls, "__getitem__") and hasattr(cls, "__len__")):
        return False
    return not any(hasattr(cls, name) for name in ARRAYS)


def listed(x: Any) -> Any:
    """A sequence as a list, nested ones too, whose elements are asked for once; anything else as it is."""
    kind = type(x)
    if kind in LEAVES or not is_sequence(kind):
        return x
    if not issubclass(kind, (list, tuple)):
        try:
            len(x)
            x = [*x]
        except (KeyError, TypeError):  # NumPy takes it for one object then
            return x
    return x if LEAVES.issuperset(map(type, x)) else [listed(e) for e in x]


def indexed(x: Any) -> Any:
    """The elements of a sequence by their places, as functions ask that look at one after the other.

    >>> class Backwards(list):
    ...     __iter__ = list.__reversed__
    >>> indexed(Backwards([1, 2])), [*Backwards([1, 2])]
    ([1, 2], [2, 1])
    """
    return x if type(x) in (list, tuple) else [x[k] for k in range(len(x))]


def nested(x: Any) -> Any:
    """The elements of a sequence, nested ones as lists; nothing of anything else."""
    if type(x) in LEAVES:  # most of what is asked for
        return ()
    x = listed(x)
    return x if issubclass(type(x), (list, tuple)) else ()


def check_parts(x: Any, dtype: np.dtype[Any]) -> None:
    """Raise NumPy's error for a complex number in a sequence that becomes real: of an array it drops the other part."""
    for part in nested(x) if dtype.kind in "iuf" else ():
        value = shadow_of(part)
        if isinstance(value, (complex, np.complexfloating)):
            np.array([value], dtype)
        elif part is value:
            check_parts(part, dtype)


NESTED.append(nested)
