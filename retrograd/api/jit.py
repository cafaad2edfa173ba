"""jit and trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..compiler.compiled import Compiled
from ..compiler.transform import Transform
from ..ir.graph import Graph
from .static import CompiledWithStatics, Jit, checked


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    nan_safe: bool = False,
) -> Any:
    """Compile a plain NumPy function; the result is called like the function and returns the same arrays.

    Arrays and floats among the arguments are traced; Python ints, bools, strings and other hashable objects are
    static: another value compiles again. Containers (dict, list, tuple, namedtuple, dataclass, None) may nest. With
    ``nan_safe``, derivatives taken inside the function are computed as by ``rg.grad(f, nan_safe=True)``.

    The arguments that ``static_argnums`` and ``static_argnames`` name are static whatever numbers they hold: the
    function sees plain numbers, and another value compiles again. They may hold no arrays and no traced values.

    Raises UnsupportedError and TracerError for code that cannot be traced, OptionError, ArgnumsError.

    >>> import numpy as np, retrograd as rg
    >>> @rg.jit
    ... def norm(x):
    ...     return np.sqrt(np.sum(x * x))
    >>> float(norm(np.array([3.0, 4.0])))
    5.0
    """
    nums, names = checked(static_argnums, static_argnames)
    if function is None:
        return partial(jit, static_argnums=nums, static_argnames=names, nan_safe=nan_safe)
    if nums or names:
        return CompiledWithStatics(function, Jit("jit", nan_safe, nums, names))
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
