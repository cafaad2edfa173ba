"""Medians and quantiles along one axis: between two order statistics, through which the derivative goes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, push
from ..ir.types import Aval
from .batching import Flags, shifted_axis
from .cumulative import along
from .elementwise import cast, eq, gt
from .index import getitem
from .reduce import count, reduced
from .shape import concatenate, move_axis, reshape_to
from .sort import argsort, copied, take_along

OFFSETS = {
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
ROUNDED = ("lower", "higher", "nearest", "midpoint")
METHODS = ("linear", *ROUNDED, *OFFSETS)


def position(n: int, q: float, method: str) -> tuple[int, float]:
    """Which order statistic of ``n`` is just below a quantile, and how far it is from there to the next."""
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
    rows = [reshape_to(row, (1, *out.shape[1:])) for row in rows]
    joined: Symbol = concatenate(*rows, axis=0) if len(rows) > 1 else rows[0]
    return cast(joined, aval=out.aval) if joined.dtype != out.dtype else joined


def _nan_quantile_push(t: Symbol, out: Symbol, x: Symbol, axis: int, q: float) -> Symbol:
    """As without NaN, but each line has its own number of elements; NaN are sorted behind them."""
    order = argsort(x, axis=axis, stable=True)
    last = count(eq(x, x), axis=(axis,), keepdims=True) - 1
    wide = Aval(last.shape, np.dtype(float))
    at = cast(last, aval=wide) * q
    low = cast(at, aval=last.aval)
    part = at - cast(low, aval=wide)
    high = low + cast(gt(part, 0), aval=last.aval)
    at_low, at_high = (take_along(t, take_along(order, k, axis=axis), axis=axis) for k in (low, high))
    return reshape_to(_between(at_low, at_high, cast(part, aval=at_low.aval)), out.shape)


def _quantile_shape(x: Aval, axis: int, q: Any, method: str) -> Aval:
    out = reduced(x, (axis,), False)
    if not isinstance(q, tuple):
        return out
    return Aval((len(q), *out.shape), np.result_type(x.dtype, float))  # several levels are an array of float64


def _quantile_batch(prim: Primitive, size: int, args: Any, flags: Flags, axis: int, q: Any, method: str) -> Any:
    out = prim(*args, axis=axis + 1, q=q, method=method)
    return move_axis(out, 1, 0) if isinstance(q, tuple) else out


def _quantile_code(node: Node) -> str:
    how = "" if node.attrs["method"] == "linear" else ", method={method}"
    return f"np.quantile({{0}}, {{q}}, axis={{axis}}{how})"


def _lines_shape(x: Aval, axis: int, **_: Any) -> Aval:
    return reduced(x, (axis,), False)


quantile = primitive(
    "quantile", _quantile_shape, _quantile_code, diff=(push(_quantile_push),), batch=_quantile_batch,
    scratch=copied,
)  # fmt: skip
nanquantile = primitive(
    "nanquantile", _lines_shape, "np.nanquantile({0}, {q}, axis={axis})", diff=(push(_nan_quantile_push),),
    batch=shifted_axis, scratch=copied,
)  # fmt: skip
median = primitive(
    "median", _lines_shape, "np.median({0}, axis={axis})", batch=shifted_axis, scratch=copied,
    diff=(push(lambda t, out, x, axis: _quantile_push(t, out, x, axis, 0.5, "linear")),),
)  # fmt: skip
nanmedian = primitive(
    "nanmedian", _lines_shape, "np.nanmedian({0}, axis={axis})", batch=shifted_axis, scratch=copied,
    diff=(push(lambda t, out, x, axis: _nan_quantile_push(t, out, x, axis, 0.5)),),
)  # fmt: skip
