"""Powers, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.types import Aval
from .batching import elementwise
from .elementwise import arithmetic, binary, cast, eq, literal_value, square, to_dtype, unary, where

LN2 = math.log(2)
LN10 = math.log(10)


def off_zero(x: Symbol) -> Any:
    """``x`` with 1 in place of 0, to divide by; cheaper than a choice between two."""
    return x + to_dtype(eq(x, 0), x.dtype)


def _power_base(t: Symbol, out: Symbol, x: Symbol, y: Symbol) -> Any:
    n = literal_value(y)
    if n is None:
        flat = eq(y, 0)
        return t * (y * _raised(x, where(flat, 1, y - 1)))  # y = 0 gives 0 also at x = 0, where x**-1 is infinite
    if n == 0:
        return None
    return t * y if n == 1 else t * (y * x) if n == 2 else t * (y * _raised(x, n - 1))


def _raised(x: Symbol, n: Any) -> Any:
    """x**n in its cheapest form."""
    if not isinstance(n, Symbol) and n in (2, 0.5):
        return square(x) if n == 2 else sqrt(x)
    if x.aval.kind == "python" and (isinstance(n, Symbol) or n < 0):  # Python's own powers of zero raise
        x = cast(x, aval=Aval((), x.dtype, "scalar"))
    return (power if x.aval.kind == "array" else pow_)(x, n)


def _power_exponent(t: Symbol, out: Symbol, x: Symbol, y: Symbol) -> Any:
    return t * (out * log(off_zero(x)))  # at x = 0 the limit for y > 0


power = binary("power", "np.power", push(_power_base), push(_power_exponent), numbers=(1,))
pow_ = primitive(  # the operator between numbers: it is C's pow, which rounds otherwise than the ufunc
    "pow",
    arithmetic,
    "{0} ** {1}",
    op="{0} ** {1}",
    loose=(0, 1),
    cheap=True,
    diff=(push(_power_base), push(_power_exponent)),
    batch=lambda prim, size, args, flags: elementwise(power, size, args, flags),
)
float_power = binary("float_power", "np.float_power", push(_power_base), push(_power_exponent))
sqrt: Primitive = unary("sqrt", "np.sqrt", push(lambda t, out, x: t / (out * 2)))
cbrt = unary("cbrt", "np.cbrt", push(lambda t, out, x: t / (square(out) * 3)))
reciprocal = unary("reciprocal", "np.reciprocal", push(lambda t, out, x: -(t * square(out))))

exp: Primitive = unary("exp", "np.exp", push(lambda t, out, x: t * out))
exp2: Primitive = unary("exp2", "np.exp2", push(lambda t, out, x: t * (out * LN2)))
expm1 = unary("expm1", "np.expm1", push(lambda t, out, x: t * exp(x)))  # out + 1 would be 0 for x < -40
log: Primitive = unary("log", "np.log", push(lambda t, out, x: t / x))
log2 = unary("log2", "np.log2", push(lambda t, out, x: t / (x * LN2)))
log10 = unary("log10", "np.log10", push(lambda t, out, x: t / (x * LN10)))
log1p = unary("log1p", "np.log1p", push(lambda t, out, x: t / (x + 1)))


def _plus_one(x: Symbol) -> Any:
    """x + 1; the sign of an imaginary zero stays, which tells the sides of a branch cut."""
    return x - -1 if x.dtype.kind == "c" else x + 1


def _one_minus_square(x: Symbol) -> Any:
    """1 - x², as a product: exact where x is near 1, and on the right side of the cuts."""
    return (-(x - 1) if x.dtype.kind == "c" else 1 - x) * _plus_one(x)


sin: Primitive = unary("sin", "np.sin", push(lambda t, out, x: t * cos(x)))
cos: Primitive = unary("cos", "np.cos", push(lambda t, out, x: -(t * sin(x))))
tan = unary("tan", "np.tan", push(lambda t, out, x: t * (square(out) + 1)))
arcsin = unary("arcsin", "np.arcsin", push(lambda t, out, x: t / sqrt(_one_minus_square(x))))
arccos = unary("arccos", "np.arccos", push(lambda t, out, x: -(t / sqrt(_one_minus_square(x)))))
arctan = unary("arctan", "np.arctan", push(lambda t, out, x: t / (square(x) + 1)))


def _arctan2_y(t: Symbol, out: Symbol, y: Symbol, x: Symbol) -> Any:
    size = off_zero(hypot(y, x))  # whose square may be too large or too small for a number
    return t * (x / size / size)  # 0 at the origin


def _arctan2_x(t: Symbol, out: Symbol, y: Symbol, x: Symbol) -> Any:
    size = off_zero(hypot(y, x))
    return -(t * (y / size / size))


arctan2: Primitive = binary("arctan2", "np.arctan2", push(_arctan2_y), push(_arctan2_x))
hypot: Primitive = binary(
    "hypot",
    "np.hypot",
    push(lambda t, out, x, y: t * (x / off_zero(out))),
    push(lambda t, out, x, y: t * (y / off_zero(out))),
)
deg2rad: Primitive = unary("deg2rad", "np.deg2rad", pull(lambda ct, x: deg2rad(ct)))
rad2deg: Primitive = unary("rad2deg", "np.rad2deg", pull(lambda ct, x: rad2deg(ct)))


def _arcsinh_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    return t / (sqrt(_plus_one(square(x))) if x.dtype.kind == "c" else hypot(x, 1))


sinh: Primitive = unary("sinh", "np.sinh", push(lambda t, out, x: t * cosh(x)))
cosh: Primitive = unary("cosh", "np.cosh", push(lambda t, out, x: t * sinh(x)))
tanh = unary("tanh", "np.tanh", push(lambda t, out, x: t * (1 - square(out))))
arcsinh = unary("arcsinh", "np.arcsinh", push(_arcsinh_push))
# one root of (x - 1)(x + 1) would take the wrong branch for complex x
arccosh = unary("arccosh", "np.arccosh", push(lambda t, out, x: t / (sqrt(x - 1) * sqrt(_plus_one(x)))))
arctanh = unary("arctanh", "np.arctanh", push(lambda t, out, x: t / ((1 - x) * (x + 1))))
