"""The tables of NumPy functions, methods and attributes that are traced by compositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
REMEDIES: dict[Any, str] = {}  # of functions that are not traced
METHODS: dict[str, Any] = {}  # methods and attributes of traced arrays
UFUNC_METHODS: dict[str, Callable[..., Any]] = {}  # reduce and the like, and __call__ with options


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function stands for these NumPy functions when an argument is traced."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.update((f, handler) for f in functions)
        return handler

    return register
