"""The functions that a generated module may contain word for word, by name: schedules, helpers of primitives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ..errors import InternalError

_DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Embedded:
    """Plain Python that stands in generated modules."""

    text: str = ""

    @cached_property
    def source(self) -> str:
        """The definition of the function."""
        return self.text.strip()

    @property
    def sources(self) -> list[str]:
        """The sources of the functions that this one calls, and its own."""
        return [self.source]


EMBEDDED: dict[str, Embedded] = {}


def embed(text: str) -> str:
    """Register the functions that a text defines; the text."""
    for name in _DEFINED.findall(text):
        register(name, Embedded(text))
    return text


def register(name: str, new: Embedded) -> None:
    """Register a function; InternalError if another one has its name."""
    if EMBEDDED.setdefault(name, new) != new:
        raise InternalError(f"two functions of generated modules are called {name}")
