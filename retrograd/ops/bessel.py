"""sinc and i0: Bessel functions of order 0, spherical and modified, with derivatives that hold at 0."""

from __future__ import annotations

import math
from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, push
from ..ir.texts import literal
from ..ir.types import Aval
from .batching import elementwise
from .complex import abs_
from .elementary import cos, off_zero
from .elementwise import arithmetic, function, lt, square, where

SERIES = 0.25  # |x| below which (cos πx - sinc x)/x cancels, and this series of it, divided by x, is exact to rounding
TERMS = [(-1) ** k * 2 * k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(9, 0, -1)]


def _polynomial_shape(x: Aval, coefficients: tuple[float, ...]) -> Aval:
    return arithmetic(x)


def _polynomial_code(node: Node) -> str:
    """Horner's scheme, the highest coefficient first."""
    first, second, *others = map(literal, node.attrs["coefficients"])
    text = f"{first} * {{0}} + {second}"
    for c in others:
        text = f"({text}) * {{0}} + {c}"
    return text


def _polynomial_push(t: Symbol, out: Symbol, x: Symbol, coefficients: tuple[float, ...]) -> Any:
    n = len(coefficients) - 1
    slope = tuple(c * (n - k) for k, c in enumerate(coefficients[:-1]))
    return t * (polynomial(x, coefficients=slope) if n > 1 else slope[0])


polynomial: Primitive = primitive(
    "polynomial", _polynomial_shape, _polynomial_code, batch=elementwise, cheap=True, diff=(push(_polynomial_push),)
)


def _sinc_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    far = (cos(x * math.pi) - out) / off_zero(x)
    close = lt(abs_(x), SERIES)
    inside = where(close, x, 0)  # the series would overflow outside
    near = polynomial(square(inside), coefficients=tuple(TERMS)) * inside
    return t * where(close, near, far)


sinc: Primitive = primitive(
    "sinc",
    function,
    "np.sinc({0})",
    batch=elementwise,
    cheap=True,
    scratch=lambda x: 2 * x.nbytes,
    diff=(push(_sinc_push),),
)

# The integral of exp(x cos θ) cos(nθ) over a half-circle: the midpoint rule with 128 points is exact to rounding
# wherever the result is finite, and the halves of the circle combine to cosh or sinh.
BESSEL_I = """
def bessel_i(x, n):
    angle = (np.arange(64) + 0.5) * (np.pi / 128)
    wave = [np.cosh, np.sinh][n % 2]
    terms = wave(np.multiply.outer(np.asarray(x), np.cos(angle)))
    return np.asarray(terms @ (np.cos(n * angle) / 64), np.asarray(x).dtype)
"""


def _array(x: Aval, n: int = 0) -> Aval:
    return Aval(x.shape, x.dtype)


def _bessel_i_push(t: Symbol, out: Symbol, x: Symbol, n: int) -> Any:
    return t * ((bessel_i(x, n=abs(n - 1)) + bessel_i(x, n=n + 1)) * 0.5)


bessel_i: Primitive = primitive(
    "bessel_i",
    _array,
    "bessel_i({0}, {n})",
    helper=BESSEL_I,
    batch=elementwise,
    diff=(push(_bessel_i_push),),
    scratch=lambda x, n: 128 * x.nbytes,
)
i0 = primitive(
    "i0",
    _array,
    "np.i0({0})",
    batch=elementwise,
    cheap=True,
    scratch=lambda x: 9 * x.nbytes,
    diff=(push(lambda t, out, x: t * bessel_i(x, n=1)),),
)
