"""jit and trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..compiler.compiled import Compiled
from ..compiler.transform import Transform
from ..ir.graph import Graph
from .static import Jit, checked


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    nan_safe: bool = False,
    backend: str | None = None,
) -> Any:
    """Compile a plain NumPy function; the result is called like the function and returns the same arrays.

    Arrays and floats among the arguments are traced. Python ints, bools, strings and other hashable objects are static:
    another value compiles again. Containers (dict, list, tuple, namedtuple, dataclass, None) may nest.

    Parameters
    ----------
    function : callable, optional
        The function. Without it, the result is a decorator.
    static_argnums : int or sequence of int
        Positions of arguments that are static whatever numbers they hold. The function sees plain numbers, and another
        value compiles again. They may hold no arrays and no traced values.
    static_argnames : str or sequence of str
        The same by name.
    nan_safe : bool
        Whether derivatives taken inside the function are computed as by ``rg.grad(f, nan_safe=True)``.
    backend : "numpy" or "native", optional
        Where the compiled code runs, in place of ``rg.config.backend``. In the trace of another function, that
        function decides.

    Returns
    -------
    Compiled
        The function with the same arguments and results.

    Raises
    ------
    UnsupportedError
        If the function uses what cannot be traced.
    TracerError
        If a traced value gets where it cannot be used.
    OptionError, ArgnumsError
        If an option is wrong.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.jit
    ... def norm(x):
    ...     return np.sqrt(np.sum(x * x))
    >>> float(norm(np.array([3.0, 4.0])))
    5.0
    """
    nums, names = checked(static_argnums, static_argnames)
    transform = Transform("jit", nan_safe, backend=backend)
    if nums or names:
        transform = Jit("jit", nan_safe, nums, names, backend=backend)
    return partial(Compiled, transform=transform) if function is None else Compiled(function, transform)


def trace(function: Callable[..., Any]) -> Callable[..., Graph]:
    """The graph of a function as traced, before any pass: ``trace(f)(*examples)``.

    Parameters
    ----------
    function : callable
        The function.

    Returns
    -------
    callable
        It takes examples of the arguments and returns a ``Graph``. The graph holds for their shapes and dtypes, and for
        the values of their static parts.

    Raises
    ------
    UnsupportedError
        If the function uses what cannot be traced.
    TracerError
        If a traced value gets where it cannot be used.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> print(rg.trace(lambda x: np.sin(x) * 2.0)(np.ones(3)))  # doctest: +ELLIPSIS
    graph ...
    """

    def traced(*args: Any, **kwargs: Any) -> Graph:
        return Compiled(function, Transform("trace")).graph(*args, stage="traced", **kwargs)

    return traced
