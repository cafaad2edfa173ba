"""Functions that join, split and repeat arrays: concatenate, stack, block, split, tile, roll, insert, delete."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..ops import concatenate as ops
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.operands import Axis, astype, axes_of, into, lifted
from ..tracer.sequences import indexed
from ..tracer.table import implements
from ..tracer.ufuncs import as_operand
from .shapes import atleast_1d, atleast_2d, atleast_3d, expand_dims, moveaxis, ravel, reshape


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    given = [as_operand(x) for x in indexed(arrays)]  # Python's numbers count less than arrays
    joined = np.concatenate([shadow_of(x) for x in given], axis, dtype=dtype, casting=casting or "same_kind")
    parts = lifted(*given)
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    axis = operator.index(axis)
    parts = [x if x.dtype == joined.dtype else astype(x, joined.dtype) for x in parts]
    return into(out, apply(ops.concatenate, parts, axis=axis % joined.ndim))


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = lifted(*arrays)
    stacked = np.stack([shadow_of(x) for x in parts], axis, dtype=dtype, casting=casting or "same_kind")
    if stacked.ndim > 1:
        parts = [expand_dims(x, axis % stacked.ndim) for x in parts]
        return concatenate(parts, axis % stacked.ndim, out, dtype=dtype, casting=casting)
    parts = [x if x.dtype == stacked.dtype else astype(x, stacked.dtype) for x in parts]
    return into(out, apply(ops.array, parts))


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    return concatenate([atleast_2d(x) for x in lifted(*tup)], 0, dtype=dtype, casting=casting)


for _name in ("row_stack",):  # an old name, which NumPy deprecates
    if hasattr(np, _name):
        implements(getattr(np, _name))(vstack)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [atleast_1d(x) for x in lifted(*tup)]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    return concatenate([atleast_3d(x) for x in lifted(*tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    return concatenate([x if x.ndim > 1 else reshape(x, (-1, 1)) for x in lifted(*tup)], 1)


@implements(np.append)
def append(arr: Any, values: Any, axis: Axis = None) -> Any:
    return concatenate(lifted(arr, values), axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    arrays = _operands(arrays)
    depth, ndim = _depth(arrays)
    return _block(arrays, iter(lifted(*_leaves(arrays))), depth, max(depth, ndim), 0)


def _operands(arrays: Any) -> Any:
    if isinstance(arrays, list):
        return [_operands(x) for x in arrays]
    return arrays if isinstance(arrays, tuple) else as_operand(arrays)


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for x in arrays for leaf in _leaves(x)] if isinstance(arrays, list) else [arrays]


def _depth(arrays: Any) -> tuple[int, int]:
    """The depth of nested lists, and the largest number of axes of an array inside."""
    if isinstance(arrays, tuple):
        raise TypeError("np.block takes lists: a tuple would be ambiguous")
    if not isinstance(arrays, list):
        return 0, int(np.ndim(shadow_of(arrays)))
    found = [_depth(x) for x in arrays]
    if not found or len({d for d, _ in found}) > 1:
        raise ValueError("List depths are mismatched, or a list is empty")
    return found[0][0] + 1, max(n for _, n in found)


def _block(arrays: Any, leaves: Iterator[Any], depth: int, ndim: int, level: int) -> Any:
    if isinstance(arrays, list):
        return concatenate([_block(x, leaves, depth, ndim, level + 1) for x in arrays], level - depth)
    x = next(leaves)
    x = reshape(x, (1,) * (ndim - x.ndim) + x.shape)
    return x if depth else np.copy(x)


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _split(ary, np.array_split(np.arange(ary.shape[axis]), _sections(indices_or_sections)), axis)


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _split(ary, np.split(np.arange(ary.shape[axis]), _sections(indices_or_sections)), axis)


def _sections(given: Any) -> Any:
    """Places to split at, or the number of parts; traced ones are asked for their values."""
    if isinstance(given, Tracer):
        return [operator.index(k) for k in given] if given.ndim else int(given)
    return [k if k is None else operator.index(k) for k in given] if isinstance(given, (list, tuple)) else given


def _split(x: Any, groups: Sequence[Any], axis: int) -> list[Any]:
    """Views of the parts at the given positions."""
    (k,) = axes_of(x, axis)
    lead = (slice(None),) * k
    return [x[(*lead, slice(g[0], g[-1] + 1) if g.size else slice(0, 0))] for g in groups]


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    if ary.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    if ary.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(x, axis, 0))
