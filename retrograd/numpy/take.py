"""Functions that pick elements by number or by condition: take, compress, extract, choose, ix_, meshgrid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..ops import choose as choice
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.creation import fresh
from ..tracer.index_arrays import is_traced
from ..tracer.indexing import get
from ..tracer.operands import Axis, astype, axis_of, into, lifted
from ..tracer.sequences import indexed
from ..tracer.table import implements
from ..tracer.ufuncs import as_operand, copy
from .reductions import as_dtype
from .repeat import at_places, plain
from .shapes import broadcast_to, ravel, reshape


@implements(np.take)
def take(a: Any, indices: Any, axis: Axis = None, out: Any = None, mode: str = "raise") -> Any:
    indices = numbered(indices, "same_kind")
    x = lifted(a, indices)[0]
    if isinstance(indices, np.ndarray) and not indices.size and indices.dtype == float:
        indices = indices.astype(np.intp)  # an empty list
    x = ravel(x) if axis is None or x.ndim == 0 else x
    k = axis_of(x, 0 if axis is None else axis)
    found = get(x, (*(slice(None),) * k, within(indices, x.shape[k], mode)))
    return into(out, copy(found, "C") if isinstance(found, Tracer) else found)


def numbered(given: Any, casting: Any) -> Any:
    """Make places whole numbers, as ``np.take`` and ``np.put`` do: bools are 0 and 1, numbers and lists are truncated.

    Raises NumPy's own TypeError for an array that ``casting`` does not allow.
    """
    found = as_operand(given)
    shadow = shadow_of(found)
    dtype = np.asarray(shadow).dtype
    if dtype.kind == "i":
        return found
    if isinstance(shadow, ndarray) and isinstance(given, (ndarray, Tracer)):
        np.empty(0, dtype).astype(np.intp, casting=casting)
    return astype(found, np.intp)


def within(number: Any, n: int, mode: str) -> Any:
    """Bring indices below ``n``: mode "wrap" begins again, mode "clip" stays at the ends."""
    if mode == "raise":
        return number
    if mode not in {"wrap", "clip"}:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return np.remainder(number, n) if mode == "wrap" else np.minimum(np.maximum(number, 0), n - 1)


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Axis = None, out: Any = None) -> Any:
    (x,) = lifted(a)
    if np.ndim(shadow_of(condition)) != 1:
        raise ValueError("condition must be a 1-d array")
    x = ravel(x) if axis is None or x.ndim == 0 else x
    k = axis_of(x, 0 if axis is None else axis)
    if is_traced(condition):
        return into(out, get(x, (*(slice(None),) * k, *np.nonzero(condition))))
    return into(out, at_places(x, np.compress(shadow_of(condition), np.arange(x.shape[k])), k))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    return compress(np.ravel(as_operand(condition)), np.ravel(as_operand(arr)))


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    choices = [as_operand(x) for x in indexed(choices)]
    number, *found = lifted(a, *choices)
    shadows: Any = [shadow_of(c) for c in choices]
    like = np.choose(number.shadow, shadows, mode=mode)  # type: ignore[call-overload]  # NumPy's own error for a wrong mode
    found = [x if x.dtype == like.dtype else astype(x, like.dtype) for x in found]
    number = astype(number, np.int64) if number.dtype == np.bool_ else number
    operands = (within(number, len(found), mode), *found)
    spread = [x if x.shape == like.shape else broadcast_to(x, like.shape) for x in operands]
    return into(out, apply(choice.choose, spread))


@implements(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    found = []
    for k, given in enumerate(args):
        item = as_operand(given)
        if np.ndim(item) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if np.asarray(shadow_of(item)).dtype == np.bool_:
            (item,) = np.nonzero(plain(item, "a mask of np.ix_"))
        elif not np.size(item) and isinstance(given, (list, tuple)):
            item = np.zeros(0, np.intp)
        found.append(np.reshape(item, (1,) * k + (np.size(shadow_of(item)),) + (1,) * (len(args) - k - 1)))
    return tuple(found)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in {"xy", "ij"}:
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        axes[:2] = [1, 0]
    lines = lifted(*xi)
    found = [reshape(x, (1,) * k + (x.size,) + (1,) * (len(xi) - k - 1)) for k, x in zip(axes, lines, strict=True)]
    if not sparse:
        found = list(np.broadcast_arrays(*found))
    if copy:
        return tuple(x.copy() for x in found)
    return found if sparse else tuple(found)  # as NumPy does


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    return tuple(map(fresh, np.diag_indices_from(np.broadcast_to(np.empty(()), arr.shape))))


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    return tuple(map(fresh, np.tril_indices_from(np.broadcast_to(np.empty(()), arr.shape), k)))


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    return tuple(map(fresh, np.triu_indices_from(np.broadcast_to(np.empty(()), arr.shape), k)))


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    lines = lifted(*multi_index)
    np.ravel_multi_index(tuple(x.shadow for x in lines), dims, mode, order)  # NumPy's own error
    modes = (mode,) * len(lines) if isinstance(mode, str) else mode
    sizes = np.atleast_1d(dims).tolist()
    total: Any = 0
    for x, n, m in list(zip(lines, sizes, modes, strict=True))[:: 1 if order == "C" else -1]:
        total = total * n + within(x, n, m)
    return total


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Any, ...]:
    (rest,) = lifted(indices)
    np.unravel_index(rest.shadow, shape, order)  # NumPy's own error
    rest = as_dtype(rest, np.dtype(np.intp))
    found = []
    for n in np.atleast_1d(shape).tolist()[:: -1 if order == "C" else 1]:
        found.append(np.remainder(rest, n))
        rest = np.floor_divide(rest, n)
    return tuple(found[:: -1 if order == "C" else 1])
