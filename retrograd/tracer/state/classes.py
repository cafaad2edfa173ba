"""Classes of objects, by how their state is read."""

from __future__ import annotations

import array
import collections
from types import BuiltinFunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, MethodWrapperType

import numpy as np

# Objects without state.
PLAIN = frozenset(
    {int, float, complex, str, bytes, bool, type(None), type(Ellipsis), slice, range, np.ufunc}
    | {t for t in np.sctypeDict.values() if t is not np.object_}
)
CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque, MappingProxyType)
AROUND = (collections.UserList, collections.UserDict)  # a list or a dict, their attribute ``data``
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
BUFFERS = (bytearray, memoryview, array.array)
BUILTIN = (BuiltinFunctionType, MethodWrapperType)
SLOTS = (MemberDescriptorType, GetSetDescriptorType)
