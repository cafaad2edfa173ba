"""Medians and quantiles along one axis; they lie between two order statistics, which get the derivative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, push
from ..ir.types import Aval
from .axes import move_axis
from .batching import Flags, shifted_axis
from .concatenate import concatenate
from .cumulative import along
from .elementwise import cast, eq, gt
from .further_reductions import count
from .index import getitem
from .lane_loops import looped
from .reduce import reduced
from .shape import broadcast_to, reshape_to
from .sort import argsort, copied, take_along

FLOAT = np.dtype(float)
OFFSETS = {
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
ROUNDED = ("lower", "higher", "nearest", "midpoint")
JUMPING = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")
METHODS = ("linear", *ROUNDED, *OFFSETS, *JUMPING)


def position(n: int, q: float, method: str) -> tuple[int, float]:
    """The order statistic of ``n`` just below a quantile, and the fraction of the way from there to the next."""
    if method in JUMPING:
        return _jump(n, n * q - (1.5 if method == "closest_observation" else 1), method)
    if method in OFFSETS:  # Hyndman and Fan, Sample Quantiles in Statistical Packages (1996)
        alpha, beta = OFFSETS[method]
        at = min(max(n * q + (alpha + q * (1 - alpha - beta)) - 1, 0), n - 1)
    else:
        at = (n - 1) * q
    low = min(math.floor(at), n - 1)
    part = at - low
    if method == "midpoint":
        return low, 0.5 if part else 0.0
    if method in ROUNDED:
        up = math.ceil(at) if method == "higher" else round(at) if method == "nearest" else low
        return up, 0.0
    return low, part


def _jump(n: int, at: float, method: str) -> tuple[int, float]:
    """The same for the methods that do not interpolate, definitions 1 to 3 of Hyndman and Fan."""
    low = math.floor(at)
    whole = at == low
    if method != "averaged_inverted_cdf":
        stays = whole and (method == "inverted_cdf" or low % 2 == 1)
        return min(max(low if stays else low + 1, 0), n - 1), 0.0
    if at < 0 or at >= n - 1:
        return (0 if at < 0 else n - 1), 0.0
    return low, 0.5 if whole else 1.0


def _between(low: Symbol, high: Symbol, part: Any) -> Symbol:
    mixed: Symbol = low * (1 - part) + high * part
    return mixed


def _quantile_push(t: Symbol, out: Symbol, x: Symbol, axis: int, q: Any, method: str) -> Symbol:
    order = argsort(x, axis=axis, stable=True)

    def statistic(k: int) -> Symbol:
        found: Symbol = take_along(t, getitem(order, index=along(axis, slice(k, k + 1))), axis=axis)
        return found

    rows = []
    for level in q if isinstance(q, tuple) else (q,):
        k, part = position(x.shape[axis], level, method)
        rows.append(_between(statistic(k), statistic(k + 1), part) if part else statistic(k))
    if not isinstance(q, tuple):
        return reshape_to(rows[0], out.shape)
    return _collected(rows, out)


def _statistics(at: Symbol, order: Symbol, axis: int) -> tuple[Symbol, Symbol, Symbol]:
    """Indices of the order statistics below and above positions known only at run time, and the fraction between."""
    low = cast(at, aval=Aval(at.shape, order.dtype))
    part = at - cast(low, aval=at.aval)
    high = low + cast(gt(part, 0), aval=low.aval)
    below, above = (take_along(order, k, axis=axis) for k in (low, high))
    return below, above, part


def _at_place(t: Symbol, at: Symbol, order: Symbol, axis: int) -> Symbol:
    below, above, part = _statistics(at, order, axis)
    low, high = (take_along(t, k, axis=axis) for k in (below, above))
    return _between(low, high, cast(part, aval=low.aval))


def _nan_quantile_push(t: Symbol, out: Symbol, x: Symbol, axis: int, q: float) -> Symbol:
    """As without NaN, but each line has its own number of elements; NaN are sorted behind them."""
    last = count(eq(x, x), axis=(axis,), keepdims=True) - 1
    at = cast(last, aval=Aval(last.shape, FLOAT)) * q
    return reshape_to(_at_place(t, at, argsort(x, axis=axis, stable=True), axis), out.shape)


def _places(x: Symbol, q: Symbol, axis: int) -> list[Symbol]:
    """The position of each level on the axis, for every line."""
    kept = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    at = reshape_to(q if q.dtype == FLOAT else cast(q, aval=Aval(q.shape, FLOAT, q.aval.kind)), (q.size,))
    rows = (getitem(at, index=(slice(k, k + 1),)) for k in range(q.size))
    return [broadcast_to(reshape_to(row * (x.shape[axis] - 1), (1,) * x.ndim), kept) for row in rows]


def _collected(rows: list[Symbol], out: Symbol) -> Symbol:
    """Join the results of all levels into one array of the shape and dtype of ``out``."""
    if not rows:
        return out.builder.zeros(out.aval)
    flat = [reshape_to(row, (row.size,)) for row in rows]
    joined: Symbol = concatenate(*flat, axis=0) if len(flat) > 1 else flat[0]
    shaped = reshape_to(joined, out.shape)
    return shaped if shaped.dtype == out.dtype else cast(shaped, aval=out.aval)


def _traced_push_x(t: Symbol, out: Symbol, x: Symbol, q: Symbol, axis: int, weak: bool) -> Symbol:
    order = argsort(x, axis=axis, stable=True)
    return _collected([_at_place(t, at, order, axis) for at in _places(x, q, axis)], out)


def _traced_push_q(t: Symbol, out: Symbol, x: Symbol, q: Symbol, axis: int, weak: bool) -> Symbol:
    order = argsort(x, axis=axis, stable=True)
    rows = []
    for at, speed in zip(_places(x, q, axis), _places(x, t, axis), strict=True):
        below, above, _ = _statistics(at, order, axis)
        low, high = (take_along(x, k, axis=axis) for k in (below, above))
        rows.append((high - low) * cast(speed, aval=low.aval))
    return _collected(rows, out)


def _traced_shape(x: Aval, q: Aval, axis: int, weak: bool) -> Aval:
    out = reduced(x, (axis,), False)
    dtype = x.dtype if weak else np.result_type(x.dtype, q.dtype)
    return Aval((*q.shape, *out.shape), dtype, "array" if q.shape else out.kind)


def _traced_code(node: Node) -> str:
    """A number of NumPy's counts like one of Python's or like an array, which depends on NumPy's version."""
    x, q = (v.aval for v in node.inputs)
    if node.attrs["weak"]:
        level = "{1}" if q.kind == "python" else "float({1})"
    else:
        level = "np.asarray({1})" if q.kind == "scalar" and q.dtype != x.dtype else "{1}"
    return f"np.quantile({{0}}, {level}, axis={{axis}})"


def _traced_batch(prim: Primitive, size: int, args: Any, flags: Flags, axis: int, weak: bool) -> Any:
    if flags[1]:
        return looped(prim, size, args, flags, axis=axis, weak=weak)
    return move_axis(prim(*args, axis=axis + 1, weak=weak), args[1].ndim, 0)


def _quantile_shape(x: Aval, axis: int, q: Any, method: str) -> Aval:
    out = reduced(x, (axis,), False)
    if not isinstance(q, tuple):
        return out
    picked = method in ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
    return Aval((len(q), *out.shape), x.dtype if picked else np.result_type(x.dtype, float))  # levels are of float64


def _quantile_batch(prim: Primitive, size: int, args: Any, flags: Flags, axis: int, q: Any, method: str) -> Any:
    out = prim(*args, axis=axis + 1, q=q, method=method)
    return move_axis(out, 1, 0) if isinstance(q, tuple) else out


def _quantile_code(node: Node) -> str:
    how = "" if node.attrs["method"] == "linear" else ", method={method}"
    return f"np.quantile({{0}}, {{q}}, axis={{axis}}{how})"


def _lines_shape(x: Aval, axis: int, **_: Any) -> Aval:
    return reduced(x, (axis,), False)


quantile = primitive(
    "quantile",
    _quantile_shape,
    _quantile_code,
    diff=(push(_quantile_push),),
    batch=_quantile_batch,
    scratch=copied,
)
nanquantile = primitive(
    "nanquantile",
    _lines_shape,
    "np.nanquantile({0}, {q}, axis={axis})",
    diff=(push(_nan_quantile_push),),
    batch=shifted_axis,
    scratch=copied,
)
median = primitive(
    "median",
    _lines_shape,
    "np.median({0}, axis={axis})",
    batch=shifted_axis,
    scratch=copied,
    diff=(push(lambda t, out, x, axis: _quantile_push(t, out, x, axis, 0.5, "linear")),),
)
nanmedian = primitive(
    "nanmedian",
    _lines_shape,
    "np.nanmedian({0}, axis={axis})",
    batch=shifted_axis,
    scratch=copied,
    diff=(push(lambda t, out, x, axis: _nan_quantile_push(t, out, x, axis, 0.5)),),
)
# Levels as an operand: known only at run time, a number or a vector. A weak level is a number of Python's: the dtype
# is that of the array, also where each lane has its own level.
quantile_at = primitive(
    "quantile_at",
    _traced_shape,
    _traced_code,
    names="quantile asarray",
    scratch=lambda x, q, **_: x.nbytes,
    diff=(push(_traced_push_x), push(_traced_push_q)),
    batch=_traced_batch,
)
