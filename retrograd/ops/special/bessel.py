"""Bessel functions as ``scipy.special`` names them; the derivatives by order have no closed form.

The derivatives are those of DLMF 10.6.1 and 10.29.1, with the neighbours in order, so that they hold at 0 as well.
Scaled functions subtract a neighbour from the function itself, so their relative error grows like |x| times epsilon.
"""

from __future__ import annotations

from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, push
from ..complex import sign
from ..elementwise import to_dtype
from .declare import of_parameters, real_only, special


def _of_order(name: str, rule: Any) -> Primitive:
    """``rule`` takes real orders: integers are cast, for the neighbours may be negative."""

    def slope(t: Symbol, out: Symbol, v: Symbol, x: Symbol) -> Any:
        return t * rule(out, to_dtype(v, x.dtype) if v.dtype.kind == "i" else v, x)

    return special(name, Unknown(f"the order of scipy.special.{name}"), push(slope), shape=of_parameters)


def _scaled(name: str, rule: Any) -> Primitive:
    def slope(out: Symbol, v: Symbol, x: Symbol) -> Any:
        real_only(x, name)
        return rule(out, v, x)

    return _of_order(name, slope)


jv: Primitive = _of_order("jv", lambda out, v, x: (jv(v - 1, x) - jv(v + 1, x)) * 0.5)
yv: Primitive = _of_order("yv", lambda out, v, x: (yv(v - 1, x) - yv(v + 1, x)) * 0.5)
iv: Primitive = _of_order("iv", lambda out, v, x: (iv(v - 1, x) + iv(v + 1, x)) * 0.5)
kv: Primitive = _of_order("kv", lambda out, v, x: (kv(v - 1, x) + kv(v + 1, x)) * -0.5)
yn = _of_order("yn", lambda out, v, x: (yv(v - 1, x) - yv(v + 1, x)) * 0.5)
kn = _of_order("kn", lambda out, v, x: (kv(v - 1, x) + kv(v + 1, x)) * -0.5)
ive: Primitive = _scaled("ive", lambda out, v, x: (ive(v - 1, x) + ive(v + 1, x)) * 0.5 - sign(x) * out)
kve: Primitive = _scaled("kve", lambda out, v, x: out - (kve(v - 1, x) + kve(v + 1, x)) * 0.5)

j0: Primitive = special("j0", push(lambda t, out, x: -(t * j1(x))))
j1: Primitive = special("j1", push(lambda t, out, x: t * ((j0(x) - jv(2, x)) * 0.5)))
y0: Primitive = special("y0", push(lambda t, out, x: -(t * y1(x))))
y1: Primitive = special("y1", push(lambda t, out, x: t * (y0(x) - out / x)))
i0: Primitive = special("special_i0", push(lambda t, out, x: t * i1(x)), ufunc="i0")
i1: Primitive = special("i1", push(lambda t, out, x: t * ((i0(x) + iv(2, x)) * 0.5)))
i0e: Primitive = special("i0e", push(lambda t, out, x: t * (i1e(x) - sign(x) * out)))
i1e: Primitive = special("i1e", push(lambda t, out, x: t * ((i0e(x) + ive(2, x)) * 0.5 - sign(x) * out)))
k0: Primitive = special("k0", push(lambda t, out, x: -(t * k1(x))))
k1: Primitive = special("k1", push(lambda t, out, x: -(t * (k0(x) + out / x))))
k0e: Primitive = special("k0e", push(lambda t, out, x: t * (out - k1e(x))))
k1e: Primitive = special("k1e", push(lambda t, out, x: t * (out - k0e(x) - out / x)))
