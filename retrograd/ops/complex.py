"""Complex numbers: parts, conjugates, moduli and signs, which are linear or smooth over the reals only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.types import Aval
from .batching import elementwise
from .elementwise import arithmetic, to_dtype, unary
from .functions import off_zero


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex number; itself for a real one."""
    return np.empty((), dtype).real.dtype


def _part(x: Aval) -> Aval:
    if x.dtype.kind != "c":
        raise ValueError(f"{x} is not complex")
    return Aval(x.shape, real_dtype(x.dtype), x.kind)


def _modulus(x: Aval) -> Aval:
    out = arithmetic(x)
    return Aval(out.shape, real_dtype(x.dtype), out.kind)


def _abs_code(node: Node) -> str:
    return "abs({0})" if node.inputs[0].aval.kind == "python" else "np.abs({0})"


def _conj_code(node: Node) -> str:
    return "{0}.conjugate()" if node.inputs[0].aval.kind == "python" else "np.conj({0})"


def _abs_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    return t * sign(x) if x.dtype.kind != "c" else real(t * conj(sign(x)))


def _sign_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    """On complex numbers x/|x|, the tangent is the part of t across x, over |x|."""
    if x.dtype.kind != "c":
        return None
    return to_dtype(imag(t * conj(out)), x.dtype) * (out * 1j / to_dtype(off_zero(abs_(x)), x.dtype))


real: Primitive = primitive(
    "real", _part, "{0}.real", alias=0, cheap=True, batch=elementwise,
    diff=(pull(lambda ct, x: to_dtype(ct, x.dtype)),),
)  # fmt: skip
imag: Primitive = primitive(
    "imag", _part, "{0}.imag", alias=0, cheap=True, batch=elementwise,
    diff=(pull(lambda ct, x: to_dtype(ct, x.dtype) * -1j),),
)  # fmt: skip
conj: Primitive = unary("conj", "np.conj", pull(lambda ct, x: conj(ct)), code=_conj_code, shape=arithmetic)
abs_: Primitive = unary("abs", "np.abs", push(_abs_push), code=_abs_code, shape=_modulus)
sign: Primitive = unary("sign", "np.sign", push(_sign_push))
