"""Held: the memory layout shared by a traced value and its replacement after the trace."""

from __future__ import annotations

from typing import Any


class Held:
    """One layout for two classes, so that a value of one may become one of the other where it is."""

    __slots__ = ("__weakref__", "home", "op", "parent", "shadow", "storage", "symbol", "version", "viewed", "where")

    home: Any
    parent: Any
    shadow: Any
    storage: Any
    where: Any

    @property
    def const(self) -> bool:
        """Whether only plain numbers went into it, so that the example value is its value."""
        return self.storage.symbol is None
