"""Numbers among the static arguments of a call, and tuples of them: they are part of its signature, by value."""

from __future__ import annotations

from typing import Any

from ..tracer.containers import register_container


class Fixed:
    """A number among the arguments that is not traced, or a tuple of such."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


# What a container holds besides its parts belongs to the structure of a call, which tells it from all others.
register_container(Fixed, lambda x: ((), x.value), lambda value, _: value)
