"""Covariances, correlations and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops.shape import reshape
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.creation import fresh, joined
from ..tracer.operands import lifted, shadow_dtype
from ..tracer.table import implements
from ..tracer.trace import unsupported
from ..tracer.tree import map_leaves
from ..tracer.ufuncs import as_operand
from .creation import decided
from .reductions import array_of, as_dtype


def _rows(m: Any, rowvar: bool) -> Any:
    """Variables in rows, observations in columns."""
    m = m if m.ndim == 2 else np.reshape(m, (1, -1))
    return m if rowvar else np.transpose(m)


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    given = [None if v is None else as_operand(v) for v in (m, y, fweights, aweights)]
    shadows = [shadow_of(v) for v in given]
    like = np.cov(shadows[0], shadows[1], rowvar, bias, ddof, shadows[2], shadows[3], dtype=dtype)
    m, y, fweights, aweights = (
        None if v is None else array_of(v, *(w for w in given if isinstance(w, Tracer))) for v in given
    )
    kind = np.asarray(like).dtype
    x = _rows(as_dtype(m, kind), rowvar or m.ndim == 1)
    if not x.shape[0]:
        return np.zeros_like(x, shape=(0, 0))
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if isinstance(w, Tracer) and w.home.runs and np.any(np.real(w) < 0):  # asked at each call
            raise ValueError(f"{name} cannot be negative")
    if y is not None:
        other = _rows(as_dtype(y, kind), True)
        x = np.concatenate([x, other if rowvar or other.shape[0] == 1 else np.transpose(other)], axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = [as_dtype(w, np.dtype(float)) for w in (fweights, aweights) if w is not None]
    if not weights:
        total: Any = x.shape[1]
        free: Any = total - ddof
        centered = weighted = x - np.mean(x, axis=1, keepdims=True)
    else:
        w = weights[0] * weights[1] if len(weights) == 2 else weights[0]
        total = np.sum(w)
        free = total - ddof * (1 if aweights is None else np.sum(w * weights[-1]) / total)
        centered = x - np.sum(x * w, axis=1, keepdims=True) / total
        weighted = centered * w
    product = np.dot(centered, np.conj(np.transpose(weighted)))
    scaled = product / (max(free, 0.0) if isinstance(free, (int, float)) else np.maximum(free, 0.0))
    return np.squeeze(as_dtype(scaled, kind))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.real(np.diagonal(c)))
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        return as_dtype(np.clip(np.real(c), -1, 1) + 1j * np.clip(np.imag(c), -1, 1), c.dtype)
    return np.clip(c, -1, 1)


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """``np.bincount``; traced places are asked for the length of the result, and for whether one is negative."""
    x, weights, minlength = joined(x), joined(weights), decided(minlength)
    like = np.bincount(shadow_of(x), shadow_of(weights), minlength)  # NumPy's own errors
    length, places = len(like), np.asarray(shadow_of(x))
    if isinstance(x, Tracer) and not x.const and x.size:
        x = as_dtype(x, np.dtype(np.int64))  # bools are numbers here
        if not x.home.concrete:
            raise unsupported(
                "np.bincount of places that are known only at run time, in a function compiled for all values,",
                "use np.add.at on np.zeros(n), whose length is given",
            )
        if np.any(x < 0):  # asked at each call; for the examples NumPy has raised it
            raise ValueError("'list' argument must have no negative elements")
        length, places = int(np.maximum(np.max(x) + 1, minlength)), x
    counts = fresh(np.zeros(length, like.dtype))
    np.add.at(counts, places, 1 if weights is None else as_dtype(lifted(weights)[0], like.dtype))
    return counts


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if shadow_dtype(a).kind == "c":
        raise unsupported("np.histogram of complex numbers", "take np.real or np.abs of them")
    if isinstance(bins, str):
        raise unsupported("np.histogram with bins that an estimator chooses", "give the number of bins, or their edges")
    if np.ndim(shadow_of(edges := as_operand(bins))):
        if np.any(edges[1:] < edges[:-1]):  # asked at each call; for the examples NumPy has raised it
            raise ValueError("`bins` must increase monotonically, when an array")
        return edges
    (x,) = lifted(a)
    if range is not None:
        first, last = range
        if first > last or not (np.isfinite(first) & np.isfinite(last)):  # asked at each call, as below
            raise ValueError("max must be larger than min in range parameter, and both must be finite")
    else:
        first, last = (np.min(x), np.max(x)) if x.size else (0.0, 1.0)
        if x.dtype.kind == "f" and not (np.isfinite(first) & np.isfinite(last)):  # asked at each call
            raise ValueError("autodetected range of the numbers is not finite")
    if first == last:
        first, last = first - 0.5, last + 0.5
    kind = np.result_type(shadow_of(first), shadow_of(last), x.dtype)
    return np.linspace(first, last, int(bins) + 1, dtype=kind if kind.kind == "f" else float)


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Counts are piecewise constant and have no derivative; weights have one, and so have edges that data choose."""
    given = [None if v is None else as_operand(v) for v in (a, weights)]
    bins = bins if isinstance(bins, str) else as_operand(bins)
    plain = (shadow_of(bins), map_leaves(shadow_of, range), density, shadow_of(given[1]))
    like = np.histogram(shadow_of(given[0]), *plain)  # NumPy's own error
    x = np.ravel(array_of(given[0], given[1], bins, *(() if range is None else range)))
    edges = histogram_bin_edges(x, bins, range)
    if weights is not None and not np.ndim(shadow_of(bins)):
        counts = as_dtype(_weighted(x, np.ravel(array_of(given[1], x)), edges), shadow_dtype(given[1]))
        return as_dtype(counts / np.diff(edges) / np.sum(counts) if density else counts, like[0].dtype), edges
    order = np.argsort(x)
    row = x[order]
    places = np.concatenate([np.searchsorted(row, edges[:-1], "left"), np.searchsorted(row, edges[-1:], "right")])
    if weights is None:
        counts = np.diff(places)
    else:
        sums = np.cumsum(np.ravel(array_of(given[1], x))[order])
        counts = np.diff(np.concatenate([np.zeros_like(sums, shape=(1,)), sums])[places])
    if density:
        counts = counts / np.diff(edges) / np.sum(counts)
    return as_dtype(counts, like[0].dtype), edges


def _weighted(x: Any, weights: Any, edges: Any) -> Any:
    """The sums of the weights between edges, one weight after another, as NumPy adds where bins are of one width."""
    weights = as_dtype(weights, np.dtype(complex if weights.dtype.kind == "c" else float))
    inside = (x >= edges[0]) & (x <= edges[-1])
    sums = fresh(np.zeros(edges.size - 1, weights.dtype))
    np.add.at(sums, np.searchsorted(edges[1:-1], x, "right"), np.where(inside, weights, 0.0))
    return sums


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    one, several = lifted(element, test_elements)
    np.isin(one.shadow, several.shadow, kind=kind)  # NumPy's own error
    several = np.reshape(several, (-1,))
    found = np.any(np.equal(np.expand_dims(one, -1), several), axis=-1)
    found = np.logical_not(found) if invert else found
    return found if one.ndim else apply(reshape, [found], aval=Aval((), found.dtype))
