"""eval_shape: the shapes and dtypes of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..compiler.settings import config
from ..compiler.signature import name_of, take_apart
from ..tracer.array import Tracer
from ..tracer.record import record
from ..tracer.tree import map_leaves, unflatten


class ShapeDtype:
    """The shape and dtype of an array, without its numbers."""

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtype) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ShapeDtype({self.shape}, {self.dtype})"


def eval_shape(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results of a call, without compiling it.

    The function is traced on zeros. Loops such as ``rg.scan`` run two steps only; other operations run once on arrays
    of full size.

    Parameters
    ----------
    function : callable
        The function.
    *args, **kwargs : tree
        Its arguments. In place of arrays they may hold any objects with ``shape`` and ``dtype``, such as results of
        this function.

    Returns
    -------
    tree
        The structure of the results, with a ``ShapeDtype`` in place of each array. Results other than numbers are
        returned as they are.

    Raises
    ------
    ControlFlowError
        If Python decides by a traced value.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.eval_shape(lambda a, b: {"product": a @ b, "n": len(b)}, np.ones((2, 3)), np.ones((3, 4), np.float32))
    {'product': ShapeDtype((2, 4), float64), 'n': ShapeDtype((), int64)}
    """
    args, kwargs = map_leaves(example_of, (args, kwargs))
    call = take_apart(function, args, kwargs)
    run, name = partial(call.applied, function), name_of(function)
    with np.errstate(all="ignore"):
        recorded = record(run, name, call.values(), call.hints, concrete=False, max_nodes=config.max_nodes)
    found = iter(recorded.graph.out_avals)
    count = len(recorded.graph.outputs) + len(recorded.statics)
    shapes = [recorded.statics[i] if i in recorded.statics else _shape(next(found)) for i in range(count)]
    return unflatten(recorded.out_spec, shapes)


def _shape(aval: Any) -> ShapeDtype:
    return ShapeDtype(aval.shape, aval.dtype)


def example_of(x: Any) -> Any:
    """The example for an argument: zeros for what has a shape and a dtype alone."""
    if isinstance(x, (np.ndarray, np.generic, Tracer)) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
        return x
    return np.zeros(x.shape, x.dtype)
