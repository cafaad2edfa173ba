"""Numbers among the static arguments of a call, and tuples of them: they are part of its signature, by value."""

from __future__ import annotations

from operator import ne
from typing import Any

from ..tracer.containers import register_container
from ..tracer.state.exact import exactly


class Fixed:
    """A number among the arguments that is not traced, or a tuple of such."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = _with_one_nan(value)


NANS: dict[Any, Any] = {}  # one of each type and sign


def _with_one_nan(x: Any) -> Any:
    """The value with the same object for each such nan: structures compare by ``==``, and so would never agree."""
    if type(x) is tuple:
        return tuple(map(_with_one_nan, x)) if any(map(ne, x, x)) or tuple in map(type, x) else x
    return NANS.setdefault(exactly(x), x) if ne(x, x) else x


# What a container holds besides its parts belongs to the structure of a call, which tells it from all others.
register_container(Fixed, lambda x: ((), x.value), lambda value, _: value)
