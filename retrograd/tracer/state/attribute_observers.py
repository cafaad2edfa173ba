"""The observers of the attributes that the user's code reads."""

from __future__ import annotations

from typing import Any

from ..array import Tracer
from ..interception import StandIn
from ..trace import CURRENT, READER
from .attributes import attribute
from .called import AT_ONCE
from .observer import Observer
from .reader import StateReader
from .stand_ins import get_attribute

OF_STAND_INS = frozenset(vars(StandIn(len, len)))


class Attribute(Observer):
    """``x.name``."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        obj, value = given
        if type(obj) is Tracer or (reader := READER.get()) is None:
            return value
        key = (reader.number, id(type(obj)), id(obj), id(value))  # one that was made inside may have another's place
        if key == self._last:
            return value if type(value) in AT_ONCE else reader.seen(value)
        if not reader.busy and CURRENT.get() is not None:
            self._last = key
        return Observer.__getitem__(self, given)

    def passive(self, given: Any) -> Any:
        return given[1]

    def active(self, reader: StateReader, given: Any) -> Any:
        return attribute(reader, given[0], self.name, given[1])


class OwnAttribute(Attribute):
    """``x.name`` for a name that traced values, or stand-ins, have, and what they stand for may not have."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        obj, value = given
        if type(obj) is Tracer:
            return value if hasattr(obj.shadow, self.name) else get_attribute(obj, self.name)
        if type(obj) is StandIn and READER.get() is not None:
            return get_attribute(obj, self.name)
        return Attribute.__getitem__(self, given)


def attribute_called(name: str) -> Attribute:
    """The observer of the attributes with a name."""
    return (OwnAttribute if hasattr(Tracer, name) or name in OF_STAND_INS else Attribute)(name)
