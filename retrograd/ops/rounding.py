"""Rounding, remainders, signs, and the parts of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.types import Aval
from .batching import elementwise
from .complex import sign
from .elementwise import binary, function, result, same_shape, to_dtype, unary
from .logic import truth

INT32 = np.dtype(np.int32)  # of exponents


def _round_shape(x: Aval, decimals: int) -> Aval:
    return function(x)


def _isclose_shape(x: Aval, y: Aval, rtol: float, atol: float, equal_nan: bool) -> Aval:
    return truth(x, y)


def _nan_to_num_shape(x: Aval, nan: float, posinf: float | None, neginf: float | None) -> Aval:
    return function(x)


def _ldexp_shape(x: Aval, n: Aval) -> Aval:
    aval = result(same_shape(x, n), x.dtype, (x, n))
    return Aval((), x.dtype, "scalar") if aval.kind == "python" else aval


def _exponent_shape(x: Aval) -> Aval:
    aval = function(x)
    return Aval(aval.shape, INT32, aval.kind)


def _fmod_y(t: Symbol, out: Symbol, x: Symbol, y: Symbol) -> Any:
    return -(t * rint((x - out) / y))  # trunc(x / y) may be one too many where x / y rounds up


floor = unary("floor", "np.floor")
ceil = unary("ceil", "np.ceil")
trunc = unary("trunc", "np.trunc")
rint: Primitive = unary("rint", "np.rint")
round_ = primitive(
    "round", _round_shape, "np.round({0}, {decimals})", takes_out=True, order="K", batch=elementwise, cheap=True
)

floor_divide: Primitive = binary("floor_divide", "np.floor_divide", op="{0} // {1}")
remainder = binary(
    "remainder",
    "np.remainder",
    push(lambda t, out, x, y: t),
    push(lambda t, out, x, y: -(t * floor_divide(x, y))),
    op="{0} % {1}",
)
fmod = binary("fmod", "np.fmod", push(lambda t, out, x, y: t), push(_fmod_y))

isfinite: Primitive = unary("isfinite", "np.isfinite", shape=truth)
isinf = unary("isinf", "np.isinf", shape=truth)
isnan = unary("isnan", "np.isnan", shape=truth)
signbit = unary("signbit", "np.signbit", shape=truth)
isclose = primitive(
    "isclose",
    _isclose_shape,
    "np.isclose({0}, {1}, {rtol}, {atol}, {equal_nan})",
    loose=(0, 1),
    batch=elementwise,
    cheap=True,
    scratch=lambda x, *_, **__: 2 * x.nbytes,
)
nan_to_num = primitive(
    "nan_to_num",
    _nan_to_num_shape,
    "np.nan_to_num({0}, True, {nan}, {posinf}, {neginf})",
    batch=elementwise,
    cheap=True,
    scratch=lambda x, **_: x.nbytes,
    diff=(push(lambda t, out, x, **_: t * to_dtype(isfinite(x), x.dtype)),),
)

copysign: Primitive = binary("copysign", "np.copysign", push(lambda t, out, x, y: t * (sign(x) * copysign(1, y))))
nextafter = binary("nextafter", "np.nextafter", push(lambda t, out, x, y: t))
spacing = unary("spacing", "np.spacing")
ldexp: Primitive = binary("ldexp", "np.ldexp", pull(lambda ct, x, n: ldexp(ct, n)), shape=_ldexp_shape)
exponent: Primitive = primitive("exponent", _exponent_shape, "np.frexp({0})[1]", batch=elementwise, cheap=True)
mantissa = primitive(
    "mantissa",
    function,
    "np.frexp({0})[0]",
    batch=elementwise,
    cheap=True,
    diff=(push(lambda t, out, x: ldexp(t, -exponent(x))),),
)
fraction = primitive(
    "fraction", function, "np.modf({0})[0]", batch=elementwise, cheap=True, diff=(push(lambda t, out, x: t),)
)
