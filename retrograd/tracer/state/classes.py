"""Classes of objects, by how their state is read."""

from __future__ import annotations

import array
import collections
from types import BuiltinFunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, MethodWrapperType
from typing import Any

import numpy as np

# Objects without state.
PLAIN = frozenset(
    {int, float, complex, str, bytes, bool, type(None), type(Ellipsis), range, np.ufunc}
    | {t for t in np.sctypeDict.values() if t is not np.object_}
)
CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque, MappingProxyType)
AROUND = (collections.UserList, collections.UserDict)  # a list or a dict, their attribute ``data``
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
BUFFERS = (bytearray, memoryview, array.array)
BUILTIN = (BuiltinFunctionType, MethodWrapperType)
SLOTS = (MemberDescriptorType, GetSetDescriptorType)


def is_a(x: Any, classes: type | tuple[type, ...]) -> bool:
    """Whether an object is of one of the classes, by its type alone: a proxy's ``__class__`` may raise or pretend."""
    return issubclass(type(x), classes)


def is_stateless(x: Any) -> bool:
    """Whether a value is an object without state, or a slice of such ones."""
    return type(x) in PLAIN or (type(x) is slice and PLAIN.issuperset(map(type, (x.start, x.stop, x.step))))


def attributes_of(x: Any) -> Any:
    """The dictionary of an object's attributes; None if it has none, or is a proxy that does not reach its object."""
    try:
        return getattr(x, "__dict__", None)
    except Exception:  # noqa: BLE001 - a proxy may raise anything
        return None
