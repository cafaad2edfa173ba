"""map and associative_scan: functions of the slices along a first axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..compiler.record_body import as_arrays, check_functions
from ..compiler.transform import Transform
from ..errors import CarryError, OptionError
from ..ir.types import aval_of
from ..tracer.array import shadow_of
from ..tracer.interception import INTERCEPTION
from ..tracer.outside import trace_here
from ..tracer.tree import flatten, unflatten, written
from .batching import is_axis
from .control import length_of, scan


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply ``f`` to each ``x`` along the first axis of ``xs``, one after the other.

    ``rg.vmap(f)(xs)`` gives the same, all at once.

    Parameters
    ----------
    f : callable
        A function of one argument.
    xs : tree
        Arrays of one length.

    Returns
    -------
    tree
        The results, stacked along a first axis.

    Raises
    ------
    ShapeError
        If the lengths differ.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.map(lambda x: x * x, np.array([1.0, 2.0, 3.0]))
    array([1., 4., 9.])
    """
    check_functions("map", "map(f, xs)", f)
    return scan(lambda _, x: (None, INTERCEPTION.meaning(f)(x)), None, xs)[1]


def associative_scan(f: Callable[[Any, Any], Any], xs: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All partial results ``x0, f(x0, x1), f(f(x0, x1), x2), ...`` along an axis.

    The number of calls of ``f`` grows with the logarithm of the length.

    Parameters
    ----------
    f : callable
        An associative function. It is applied to whole slices along the axis, so it must work elementwise along it, as
        ``np.add`` and batched ``np.matmul`` do.
    xs : tree
        Arrays of one length along the axis.
    reverse : bool
        Whether to begin with the last slices.
    axis : int
        The axis, of each array.

    Returns
    -------
    tree
        The partial results, stacked along the axis.

    Raises
    ------
    CarryError
        If ``f`` changes the structure, shapes or dtypes.
    OptionError
        If ``axis`` does not exist in an array.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.associative_scan(np.maximum, np.array([1.0, 3.0, 2.0, 4.0]))
    array([1., 3., 3., 4.])
    """
    check_functions("associative_scan", "associative_scan(f, xs) with f(a, b)", f)
    if trace_here() is None:
        return Compiled(lambda xs: associative_scan(f, xs, reverse, axis), Transform("associative_scan"))(as_arrays(xs))
    given, spec = flatten(xs)
    for x in given:
        _check_axis(axis, max(np.ndim(x), 1))  # a number has no steps, which `length_of` says
    items = [_first(x, axis) for x in given]
    n = length_of(items, None)

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        found, after = flatten(f(*(unflatten(spec, [_back(x, axis) for x in part]) for part in (a, b))))
        found = [_first(x, axis) for x in found]
        if after != spec or any(_kind(x) != _kind(y) for x, y in zip(found, a, strict=True)):
            raise CarryError(
                f"f takes {written(spec)} of {', '.join(_kind(x) for x in a)} and returns {written(after)} of "
                f"{', '.join(_kind(x) for x in found)}",
                remedy="let f return the structure, shapes and dtypes of its arguments",
            )
        return found

    def sums(parts: list[Any], n: int) -> list[Any]:
        """First the sums of pairs of neighbours; one more application of ``f`` then gives those in between."""
        if n < 2:
            return parts
        odd = sums(combine([x[: n - 1 : 2] for x in parts], [x[1::2] for x in parts]), n // 2)
        even = [x[:1] for x in parts]
        if n > 2:
            later = combine([x[: (n - 1) // 2] for x in odd], [x[2::2] for x in parts])
            even = [np.concatenate([x, y]) for x, y in zip(even, later, strict=True)]
        return [_interleaved(x, y) for x, y in zip(even, odd, strict=True)]

    order = slice(None, None, -1 if reverse else None)
    return unflatten(spec, [_back(x[order], axis) for x in sums([x[order] for x in items], n)])


def _check_axis(axis: Any, ndim: int) -> None:
    if not is_axis(axis) or not -ndim <= axis < ndim:
        raise OptionError(
            f"axis={axis!r} does not exist in an array with {ndim} axes",
            remedy=f"give an int from {-ndim} to {ndim - 1}",
        )


def _first(x: Any, axis: int) -> Any:
    """The array with this axis as its first."""
    return np.moveaxis(x, axis, 0) if axis and np.ndim(x) else x


def _back(x: Any, axis: int) -> Any:
    return np.moveaxis(x, 0, axis) if axis else x


def _kind(x: Any) -> str:
    return str(aval_of(shadow_of(x)))


def _interleaved(even: Any, odd: Any) -> Any:
    """Alternate the rows of both, from the first of ``even`` on; ``even`` may have one row more."""
    n, m = len(odd), len(even)
    pairs = np.stack([even[:n], odd], axis=1)
    rows = np.reshape(pairs, (2 * n, *odd.shape[1:]))
    return rows if m == n else np.concatenate([rows, even[n:]])
