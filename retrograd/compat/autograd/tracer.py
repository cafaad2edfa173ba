"""isbox, getval and toposort, as programs ask autograd's tracer. ``Node``, ``trace`` and ``new_box`` are not there.

Derivatives here are graphs of the whole program, so there are no nodes for a program to create.
"""

from __future__ import annotations

from typing import Any

from ...api.stop_gradient import stop_gradient
from .extend import Box, is_traced, notrace_primitive, primitive
from .util import subvals, toposort

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "subvals", "toposort"]


def isbox(x: Any) -> bool:
    """Whether a value is a box of autograd's: never."""
    return isinstance(x, Box)


def getval(x: Any) -> Any:
    """The value itself, which is a constant for every derivative."""
    return stop_gradient(x) if is_traced(x) else x
