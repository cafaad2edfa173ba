"""Transforms that are composed of others: the traced function calls these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .signature import name_of
from .transform import Transform


@dataclass(frozen=True)
class Composed(Transform):
    """A transform whose ``make(*options, f)`` is a function that calls ``f`` and other transforms of it."""

    make: Callable[..., Callable[..., Any]] = lambda function: function
    options: tuple[Any, ...] = ()

    def build(self, function: Callable[..., Any]) -> Callable[..., Any]:
        built = self.make(*self.options, function)
        built.__name__ = built.__qualname__ = f"{name_of(function)}_{self.label}"
        return built
