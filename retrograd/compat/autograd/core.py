"""make_vjp and make_jvp of functions of one argument, as programs import them from autograd's core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import differential_operators as operators
from .extend import (
    Box,
    SparseObject,
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    vspace,
)
from .tracer import getval, isbox
from .util import func, subval, toposort

__all__ = [
    "Box",
    "SparseObject",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "func",
    "getval",
    "isbox",
    "make_jvp",
    "make_vjp",
    "primitive",
    "subval",
    "toposort",
    "vspace",
]


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """The pullback at ``x``, and the value there."""
    pair: tuple[Callable[[Any], Any], Any] = operators.make_vjp(fun)(x)
    return pair


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """The function from directions to the value at ``x`` and the derivative along them."""
    push: Callable[[Any], tuple[Any, Any]] = operators.make_jvp(fun)(x)
    return push
