"""subgraph: a function that remains a separate graph inside the graphs of its callers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..compiler.compiled import Compiled
from ..compiler.transform import INLINE, Transform
from ..errors import OptionError


def subgraph(function: Callable[..., Any] | None = None, *, inline: Any = INLINE) -> Any:
    """A function that is stored once for each signature, however often other functions call it.

    It is differentiated once for each set of differentiated arguments, and is a function of its own in generated
    source. A function that captures traced values is traced at each call. Called directly, it is compiled as by
    ``rg.jit``.

    Parameters
    ----------
    function : callable, optional
        The function. Without it, the result is a decorator.
    inline : int
        A graph of at most so many nodes is copied into the caller instead; 0 copies none.

    Returns
    -------
    Compiled
        The function with the same arguments and results.

    Raises
    ------
    OptionError
        If ``inline`` is not an integer from 0 on.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.subgraph(inline=0)
    ... def layer(w, x):
    ...     return np.tanh(w @ x)
    >>> loss = lambda w, x: np.sum(layer(w, layer(w, layer(w, x))))
    >>> source = rg.value_and_grad(loss, (0, 1)).source(np.eye(2), np.ones(2))
    >>> source.count("np.tanh(")
    1
    """
    if isinstance(inline, bool) or not isinstance(inline, int) or inline < 0:
        raise OptionError(f"inline={inline!r} is not a number of nodes", remedy="give an integer, 0 or more")
    if function is None:
        return partial(subgraph, inline=inline)
    return Compiled(function, Transform("subgraph", inline=inline))
