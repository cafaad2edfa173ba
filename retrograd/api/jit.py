"""jit and trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..compiler.compiled import Compiled
from ..compiler.transform import Transform
from ..ir.graph import Graph


def jit(function: Callable[..., Any] | None = None, *, nan_safe: bool = False) -> Any:
    """Compile a plain NumPy function; the result is called like the function and returns the same arrays.

    Arrays and floats among the arguments are traced; Python ints, bools, strings and other hashable objects are
    static: another value compiles again. Containers (dict, list, tuple, namedtuple, dataclass, None) may nest. With
    ``nan_safe``, derivatives taken inside the function are computed as by ``rg.grad(f, nan_safe=True)``. Raises
    UnsupportedError and TracerError for code that cannot be traced.

    >>> import numpy as np, retrograd as rg
    >>> @rg.jit
    ... def norm(x):
    ...     return np.sqrt(np.sum(x * x))
    >>> float(norm(np.array([3.0, 4.0])))
    5.0
    """
    if function is None:
        return partial(jit, nan_safe=nan_safe)
    return Compiled(function, Transform("jit", nan_safe))


def trace(function: Callable[..., Any]) -> Callable[..., Graph]:
    """``trace(f)(*examples)`` is the graph of ``f`` as recorded, before any pass.

    The graph holds for the shapes and dtypes of the examples, and for the values of their static parts.

    >>> import numpy as np, retrograd as rg
    >>> print(rg.trace(lambda x: np.sin(x) * 2.0)(np.ones(3)))  # doctest: +ELLIPSIS
    graph ...
    """

    def traced(*args: Any, **kwargs: Any) -> Graph:
        return Compiled(function, Transform("trace")).graph(*args, stage="traced", **kwargs)

    return traced
