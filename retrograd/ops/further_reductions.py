"""Counts, extrema and their positions, decisions about all elements, and the root that ends a norm."""

from __future__ import annotations

import math

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import primitive, push
from ..ir.types import Aval
from .batching import elementwise, shifted_axis
from .elementwise import BOOL, cast, eq, function, where
from .reduce import expand, over_all, reduce_code, reduced, reduction, sum_


def _count_shape(x: Aval, axis: tuple[int, ...], keepdims: bool) -> Aval:
    if x.dtype != BOOL:
        raise ValueError(f"count takes bools, not {x}")
    return reduced(Aval(x.shape, np.dtype(np.int64)), axis, keepdims)


def _count_code(node: Node) -> str:
    """The count of a whole array has a function of its own, which is fifty times faster."""
    if over_all(node) and not node.out.aval.shape:
        return "np.int64(np.count_nonzero({0}))"
    return reduce_code(node, "np.add")


# the number of true elements, which is the sum of bools
count = primitive("count", _count_shape, _count_code, batch=shifted_axis)


def _extremum_push(t: Symbol, out: Symbol, x: Symbol, axis: tuple[int, ...], keepdims: bool) -> Symbol:
    """The tangents at the extrema; ties share equally."""
    hit = eq(x, expand(out, x, axis))
    ties = cast(count(hit, axis=axis, keepdims=keepdims), aval=Aval(out.shape, x.dtype, out.aval.kind))
    tangent: Symbol = sum_(t * cast(hit, aval=Aval(x.shape, x.dtype)), axis=axis, keepdims=keepdims) / ties
    return tangent


max_ = reduction("max", "np.maximum", push(_extremum_push))
min_ = reduction("min", "np.minimum", push(_extremum_push))
nanmax = reduction("nanmax", "np.fmax", push(_extremum_push))
nanmin = reduction("nanmin", "np.fmin", push(_extremum_push))


def _root_push(t: Symbol, out: Symbol, x: Symbol) -> Symbol:
    """0 at 0: a norm has its minimum there, and 0 is a subgradient."""
    tangent: Symbol = t / (where(eq(out, 0), math.inf, out) * 2)
    return tangent


# the square root that ends a norm or a standard deviation
root = primitive(
    "root", function, "np.sqrt({0})", takes_out=True, order="K", cheap=True, batch=elementwise, diff=(push(_root_push),)
)


def _decided(x: Aval, axis: tuple[int, ...], keepdims: bool) -> Aval:
    return reduced(Aval(x.shape, BOOL), axis, keepdims)


any_ = reduction("any", "np.logical_or", None, shape=_decided)
all_ = reduction("all", "np.logical_and", None, shape=_decided)


def _arg_shape(x: Aval, axis: int) -> Aval:
    return reduced(Aval(x.shape, np.dtype(np.int64)), (axis,), False)


def _turned(x: Aval, axis: int) -> int:
    """Bytes of the copy in which NumPy searches along an axis that is not the last."""
    return 0 if axis == x.ndim - 1 else x.nbytes


argmax = primitive(
    "argmax", _arg_shape, "np.argmax({0}, axis={axis})", batch=shifted_axis, takes_out=True, scratch=_turned
)
argmin = primitive(
    "argmin", _arg_shape, "np.argmin({0}, axis={axis})", batch=shifted_axis, takes_out=True, scratch=_turned
)
nanargmax = primitive("nanargmax", _arg_shape, "np.nanargmax({0}, axis={axis})", batch=shifted_axis)
nanargmin = primitive("nanargmin", _arg_shape, "np.nanargmin({0}, axis={axis})", batch=shifted_axis)
