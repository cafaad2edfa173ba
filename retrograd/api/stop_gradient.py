"""stop_gradient and no_grad: values that count as constants in derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..ops.shape import stop_gradient as stop_primitive
from ..tracer.array import Tracer, apply
from ..tracer.trace import STOPPED
from ..tracer.tree import map_leaves


def stop_gradient(x: Any) -> Any:
    """A value whose derivative is zero.

    Parameters
    ----------
    x : tree
        The value.

    Returns
    -------
    tree
        ``x`` itself.

    Examples
    --------
    >>> import retrograd as rg
    >>> float(rg.grad(lambda x: x * rg.stop_gradient(x))(3.0))
    3.0
    """
    return map_leaves(_stopped, x)


def _stopped(x: Any) -> Any:
    if isinstance(x, Tracer):
        return x if x.const else apply(stop_primitive, [x])
    return x.detach() if hasattr(x, "detach") else x  # an eager tensor knows its history


@contextmanager
def no_grad() -> Iterator[None]:
    """Values that are computed in this block count as constants in derivatives.

    Returns
    -------
    context manager
        It yields nothing.

    Examples
    --------
    >>> import retrograd as rg
    >>> def f(x):
    ...     with rg.no_grad():
    ...         scale = x * 2.0
    ...     return scale * x
    >>> float(rg.grad(f)(3.0))
    6.0
    """
    token = STOPPED.set(True)
    try:
        yield
    finally:
        STOPPED.reset(token)
