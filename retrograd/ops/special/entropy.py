"""Products with logarithms, relative entropies, and the losses of Huber."""

from __future__ import annotations

from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ..batching import elementwise
from ..complex import abs_, sign
from ..elementary import log, log1p, sqrt
from ..elementwise import eq, function, le, square, to_dtype, where
from ..logic import logical_and
from .declare import special


def _off_double_zero(x: Symbol, y: Symbol) -> Any:
    """``y`` with 1 in place of 0 where x is 0 as well: x/y is then 0, as the function is 0 for each y."""
    return y + to_dtype(logical_and(eq(x, 0), eq(y, 0)), y.dtype)


xlogy: Primitive = special(
    "xlogy",
    push(lambda t, out, x, y: t * log(y)),
    push(lambda t, out, x, y: t * (x / _off_double_zero(x, y))),
)
xlog1py: Primitive = special(
    "xlog1py",
    push(lambda t, out, x, y: t * log1p(y)),
    push(lambda t, out, x, y: t * (x / _off_double_zero(x, y + 1))),
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
rel_entr = special(
    "rel_entr",
    push(lambda t, out, x, y: t * (log_ratio(x, y) + 1)),
    push(lambda t, out, x, y: -(t * (x / _off_double_zero(x, y)))),
)
kl_div = special(
    "kl_div",
    push(lambda t, out, x, y: t * log_ratio(x, y)),
    push(lambda t, out, x, y: t * ((y - x) / _off_double_zero(x, y))),
)


def _huber_push(t: Symbol, out: Symbol, delta: Symbol, r: Symbol) -> Any:
    return t * where(le(abs_(r), delta), r, delta * sign(r))


def _huber_width_push(t: Symbol, out: Symbol, delta: Symbol, r: Symbol) -> Any:
    return t * where(le(abs_(r), delta), 0, abs_(r) - delta)


huber = special("huber", push(_huber_width_push), push(_huber_push))


def _stretch(delta: Symbol, r: Symbol) -> Any:
    """√(1 + (r/δ)²), of which δ² times the excess over 1 is the loss."""
    return sqrt(square(r / delta) + 1)


pseudo_huber = special(
    "pseudo_huber",
    push(lambda t, out, delta, r: t * ((out * 2 - square(r) / _stretch(delta, r)) / delta)),
    push(lambda t, out, delta, r: t * (r / _stretch(delta, r))),
)
