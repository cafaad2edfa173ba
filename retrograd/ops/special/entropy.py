"""Products with logarithms, relative entropies, and the losses of Huber."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ..batching import elementwise
from ..complex import abs_, sign
from ..elementary import hypot, log, log1p
from ..elementwise import eq, function, le, literal_value, square, to_dtype, where
from ..extrema import minimum
from ..logic import logical_and
from .declare import special


def off_double_zero(x: Symbol, y: Symbol) -> Any:
    """``y`` with 1 in place of 0 where x is 0 as well: x/y is then 0, as the function is 0 for each y."""
    return y + to_dtype(logical_and(eq(x, 0), eq(y, 0)), y.dtype)


xlogy: Primitive = special(
    "xlogy",
    push(lambda t, out, x, y: t * log(y)),
    push(lambda t, out, x, y: t * (x / off_double_zero(x, y))),
)
xlog1py: Primitive = special(
    "xlog1py",
    push(lambda t, out, x, y: t * log1p(y)),
    push(lambda t, out, x, y: t * (x / off_double_zero(x, y + 1))),
)

# log(x/y) without overflow, and without cancellation where x and y nearly agree
LOG_RATIO = """
def log_ratio(x, y):
    near = np.abs(x - y) < y * 0.5
    offset = np.where(near, (x - y) / np.where(near, y, 1), 0)
    return np.where(near, np.log1p(offset), np.log(x) - np.log(y))[()]
"""
log_ratio: Primitive = primitive(
    "log_ratio",
    function,
    "log_ratio({0}, {1})",
    helper=LOG_RATIO,
    batch=elementwise,
    diff=(push(lambda t, out, x, y: t / x), push(lambda t, out, x, y: -(t / y))),
)

entr = special("entr", push(lambda t, out, x: -(t * (log(x) + 1))))


def _log_ratio(x: Symbol, y: Symbol) -> Any:
    """log(x/y), and -1 where both are 0: there x log(x/y), whose slope has 1 more, counts as the constant 0."""
    nothing = logical_and(eq(x, 0), eq(y, 0))
    return where(nothing, -1, log_ratio(where(nothing, 1, x), where(nothing, 1, y)))


# (y - x)/y: the derivative of the quotient, by y, would lose digits where y is large
relative_gap: Primitive = primitive(
    "relative_gap",
    function,
    "np.divide({1} - {0}, {1})",
    batch=elementwise,
    cheap=True,
    diff=(push(lambda t, out, x, y: -(t / y)), push(lambda t, out, x, y: t * (x / y / y))),
)


def at_most_largest(x: Symbol) -> Any:
    """The largest number in place of infinity, for quotients that have a limit there."""
    largest, number = float(np.finfo(x.dtype).max), literal_value(x)
    return x if isinstance(number, float) and number <= largest else minimum(x, largest)


rel_entr = special(
    "rel_entr",
    push(lambda t, out, x, y: t * (_log_ratio(x, y) + 1)),
    push(lambda t, out, x, y: -(t * (x / off_double_zero(x, y)))),
)
kl_div = special(
    "kl_div",
    push(lambda t, out, x, y: t * _log_ratio(x, y)),
    push(lambda t, out, x, y: t * relative_gap(x, at_most_largest(off_double_zero(x, y)))),
)


def _huber_push(t: Symbol, out: Symbol, delta: Symbol, r: Symbol) -> Any:
    return t * where(le(abs_(r), delta), r, delta * sign(r))


def _huber_width_push(t: Symbol, out: Symbol, delta: Symbol, r: Symbol) -> Any:
    return t * where(le(abs_(r), delta), 0, abs_(r) - delta)


huber = special("huber", push(_huber_width_push), push(_huber_push))


def _ratio_cubed(delta: Symbol, r: Symbol) -> Any:
    """u³/(1 + u²)^(3/2) for u = r/δ."""
    u = r / delta
    ratio = u / hypot(u, 1)
    return square(ratio) * ratio


def _flatness(delta: Symbol, r: Symbol) -> Any:
    """(1 + u²)^(-3/2) for u = r/δ."""
    size = hypot(r / delta, 1)
    return 1 / size / size / size


def _width_twice(delta: Symbol, r: Symbol) -> Any:
    """-(S - 1)² (2S + 1)/S³ for S = √(1 + u²) and u = r/δ; S - 1 is u²/(S + 1)."""
    u = r / delta
    size = hypot(u, 1)
    return square(u / size * (u / (size + 1))) * (1 / size + 2)


# The loss is δ² (S - 1) for S = √(1 + u²) and u = r/δ. Its derivatives by r and δ are r/S and δ (S - 1)²/S; those of
# these are written without differences, which would cancel.
pseudo_huber_pull: Primitive = primitive(
    "pseudo_huber_pull",
    function,
    "{1} / np.hypot(np.divide({1}, {0}), 1.0)",
    batch=elementwise,
    diff=(
        push(lambda t, out, delta, r: t * _ratio_cubed(delta, r)),
        push(lambda t, out, delta, r: t * _flatness(delta, r)),
    ),
)

BY_WIDTH = """
def pseudo_huber_by_width(delta, r):
    u = np.divide(r, delta)
    size = np.hypot(u, 1)
    excess = u * (u / (size + 1))
    return delta * excess * (excess / size)
"""
pseudo_huber_by_width: Primitive = primitive(
    "pseudo_huber_by_width",
    function,
    "pseudo_huber_by_width({0}, {1})",
    helper=BY_WIDTH,
    batch=elementwise,
    diff=(
        push(lambda t, out, delta, r: -(t * _width_twice(delta, r))),
        push(lambda t, out, delta, r: t * _ratio_cubed(delta, r)),
    ),
)
pseudo_huber = special(
    "pseudo_huber",
    push(lambda t, out, delta, r: t * pseudo_huber_by_width(delta, r)),
    push(lambda t, out, delta, r: t * pseudo_huber_pull(delta, r)),
)
