"""Modules that are first imported by a traced function: a second trace intercepts their names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from . import class_methods, interception
from .record import RECORDERS
from .swallowed import forget_since, refusals
from .trace import CURRENT

T = TypeVar("T")
P = ParamSpec("P")


def importing(trace: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that traces: if it fails, and has loaded modules with substitutes, it traces again."""

    @functools.wraps(trace)
    def traced(*args: P.args, **options: P.kwargs) -> T:
        if CURRENT.get() is not None:
            return trace(*args, **options)
        before, made = _loaded(), refusals()
        try:
            return trace(*args, **options)
        except Exception:
            if _loaded() == before:
                raise
            forget_since(made)
        return trace(*args, **options)

    return traced


def _loaded() -> int:
    """How many of the modules with substitutes are loaded."""
    return sum(name in sys.modules for name in (*interception.PROVIDERS, *class_methods.PROVIDERS))


RECORDERS.append(importing)
