"""Replacements of some builtins in traced code."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..array import Tracer
from ..python_numbers import LOOK_ALIKES
from ..trace import READER
from .attributes import global_variable, lacks
from .classes import is_a
from .finished import Finished


def type_of(x: Any, *rest: Any, **options: Any) -> Any:
    """``type``: of a traced value, what NumPy would answer."""
    return type(x.shadow) if is_a(x, (Tracer, Finished)) else type(x, *rest, **options)


def has_attribute(x: Any, name: str) -> bool:
    """``hasattr``: of a traced value, what NumPy would answer."""
    if is_a(x, (Tracer, Finished)):
        return hasattr(x.shadow, name)
    found = hasattr(x, name)
    reader = READER.get()
    if reader is not None and reader.sees(x):
        reader.note(x, "has", name, found)
    elif reader is not None and is_a(x, ModuleType):
        global_variable(reader, vars(x), name)
    elif reader is not None and not found:
        lacks(reader, x, name)
    return found


STAND_INS: dict[Any, Any] = {
    type: type_of,
    hasattr: has_attribute,
    float: LOOK_ALIKES["float"],
    complex: LOOK_ALIKES["complex"],
}
