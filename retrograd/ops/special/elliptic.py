"""Complete elliptic integrals, the dilogarithm, Lambert's and Faddeeva's functions."""

from __future__ import annotations

import math
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ...ir.types import Aval
from ..batching import elementwise
from ..complex import abs_, real_dtype
from ..elementary import exp, log
from ..elementwise import function, lt, to_dtype, where
from .declare import special
from .hypergeometric import hyp2f1

NEAR = 0.1  # |m| below which the closed forms cancel, and hypergeometric series take over


def _off(m: Symbol) -> Any:
    """``m`` where the closed form applies, and a harmless number elsewhere."""
    return where(lt(abs_(m), NEAR), 0.5, m)


def _in(m: Symbol) -> Any:
    """``m`` where the series applies, and 0 elsewhere, where the series might be infinite."""
    return where(lt(abs_(m), NEAR), m, 0)


def _ellipk_push(t: Symbol, out: Symbol, m: Symbol) -> Any:
    """(E - (1 - m) K)/(2m (1 - m)), DLMF 19.4.1; near 0 by 19.5.1 and 15.5.1."""
    n = _off(m)
    far = (ellipe(n) / (1 - n) - ellipk(n)) / (n * 2)
    return t * where(lt(abs_(m), NEAR), hyp2f1(1.5, 1.5, 2, _in(m)) * (math.pi / 8), far)


def _ellipe_push(t: Symbol, out: Symbol, m: Symbol) -> Any:
    """(E - K)/(2m), DLMF 19.4.2; near 0 by 19.5.2 and 15.5.1."""
    n = _off(m)
    far = (ellipe(n) - ellipk(n)) / (n * 2)
    return t * where(lt(abs_(m), NEAR), hyp2f1(0.5, 1.5, 2, _in(m)) * (-math.pi / 8), far)


ellipk: Primitive = special("ellipk", push(_ellipk_push))
ellipe: Primitive = special("ellipe", push(_ellipe_push))


def _spence_push(t: Symbol, out: Symbol, z: Symbol) -> Any:
    """Li₂(1 - z) has the slope log z/(1 - z), and near 1 by a hypergeometric function, DLMF 25.12.2 and 15.4.1."""
    left = 1 - z
    near = lt(abs_(left), 0.5)
    off, one = where(near, 2, z), 1
    if z.dtype.kind == "c":
        one = to_dtype(near, real_dtype(z.dtype)) * 0 + 1
    return t * where(near, -hyp2f1(one, one, one + 1, where(near, left, 0)), log(off) / (1 - off))


spence = special("spence", push(_spence_push))
# w(z) = exp(-z²) erfc(-iz), DLMF 7.10.2: from |z| = 1 on the relative error grows like |z|²
wofz = special("wofz", push(lambda t, out, z: t * (2j / math.sqrt(math.pi) - z * out * 2)))


def _lambertw_shape(z: Aval, branch: int) -> Aval:
    if z.dtype.char != "D":
        raise ValueError(f"{z} is not complex in double precision")
    return function(z)


# the inverse of w e^w, DLMF 4.13.4
lambertw: Primitive = primitive(
    "lambertw",
    _lambertw_shape,
    "scipy.special.lambertw({0}, {branch})",
    batch=elementwise,
    diff=(push(lambda t, out, z, branch: t * (exp(-out) / (out + 1))),),
)
