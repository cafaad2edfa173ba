"""A context in which limits of modules have other numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock


@contextmanager
def other_limits(limits: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Numbers by module of the package and by name."""
    with ExitStack() as stack:
        for module, numbers in limits.items():
            for name, number in numbers.items():
                stack.enter_context(mock.patch(f"retrograd.{module}.{name}", number))
        yield
