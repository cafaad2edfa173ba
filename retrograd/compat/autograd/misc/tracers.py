"""const_graph: a function that is recorded once, which here is what compilation does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ....api.jit import jit

Function = Callable[..., Any]


def const_graph_unary(fun: Function) -> Function:
    """A function, compiled."""
    made: Function = jit(fun)
    return made


def const_graph(fun: Function, *args: Any, **kwargs: Any) -> Function:
    """A function with its first arguments and some options given, compiled.

    Where Python decides on values, each way is recorded; autograd would go on with the first one.

    >>> import numpy as np
    >>> float(const_graph(lambda a, x: np.sum(a * x), 2.0)(np.ones(3)))
    6.0
    """
    made: Function = jit(partial(fun, *args, **kwargs) if args or kwargs else fun)
    return made
