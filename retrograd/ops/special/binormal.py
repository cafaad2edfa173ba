"""The distribution function of two correlated normal variables."""

from __future__ import annotations

import math
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ..batching import elementwise
from ..elementary import exp, sqrt
from ..elementwise import function, lt, square, where
from ..extrema import maximum, minimum
from .normal import ROOT_TWO_PI, ndtr

FAR = 40.0  # the normal density is 0 from here on

# SciPy's distribution of vectors with unit variances, for all points with one correlation at a time
BINORMAL = """
def binormal(h, k, r):
    h, k, r = np.broadcast_arrays(h, k, r)
    found = np.full(r.shape, np.nan)
    for one in np.unique(r[np.abs(r) <= 1.0]):
        at = r == one
        points = np.stack([h[at], k[at]], axis=-1)
        cov = np.array([[1.0, one], [one, 1.0]])
        found[at] = scipy.stats.multivariate_normal.cdf(points, cov=cov, allow_singular=True)
    return found.astype(r.dtype)[()]
"""


def _near(x: Symbol) -> Any:
    """``x`` without infinities."""
    return maximum(minimum(x, FAR), -FAR)


def _beside(t: Symbol, h: Symbol, k: Symbol, r: Symbol) -> Any:
    """φ(h) Φ((k - r h)/√(1 - r²)): the density of one variable, and the distribution of the other one given it."""
    h, k = _near(h), _near(k)
    given = ndtr((k - r * h) / sqrt((1 - r) * (1 + r)))
    return t * (exp(square(h) * -0.5) / ROOT_TWO_PI * given)


def _density(t: Symbol, out: Symbol, h: Symbol, k: Symbol, r: Symbol) -> Any:
    """The density of both, which is the slope by the correlation (Plackett); near r = ±1 nothing cancels."""
    h, k = _near(h), _near(k)
    negative = lt(r, 0)
    apart, product = where(negative, h + k, h - k), where(negative, -(h * k), h * k)
    size = where(negative, 1 - r, 1 + r)
    both = (1 - r) * (1 + r)
    return t * (exp(-(square(apart) / (both * 2) + product / size)) / (sqrt(both) * (2 * math.pi)))


binormal: Primitive = primitive(
    "binormal",
    function,
    "binormal({0}, {1}, {2})",
    helper=BINORMAL,
    loose=(0, 1, 2),
    batch=elementwise,
    diff=(
        push(lambda t, out, h, k, r: _beside(t, h, k, r)),
        push(lambda t, out, h, k, r: _beside(t, k, h, r)),
        push(_density),
    ),
)
