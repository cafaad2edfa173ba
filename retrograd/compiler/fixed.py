"""Numbers among the static arguments of a call: they are part of its signature, by value."""

from __future__ import annotations

from typing import Any

from ..tracer.containers import register_container


class Fixed:
    """A number among the arguments that is not traced; two are equal if types and digits are."""

    def __init__(self, value: Any) -> None:
        self.value = value
        plain = type(value).__module__ in ("builtins", "numpy")
        self._key = (type(value), repr(value) if plain else id(value))  # a class of the user's may say anything

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


register_container(Fixed, lambda x: ((), x), lambda fixed, _: fixed.value)  # so it belongs to the structure of a call
