"""Complex numbers: parts, conjugates, moduli and signs, which are linear or smooth over the reals only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.types import Aval
from .batching import Flags, elementwise, lanes
from .elementary import off_zero
from .elementwise import arithmetic, to_dtype, unary


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex number; a real dtype itself."""
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
    "real",
    _part,
    "{0}.real",
    alias=0,
    through=lambda v, shape, before: set_real(before(), v),
    cheap=True,
    batch=elementwise,
    diff=(pull(lambda ct, x: to_dtype(ct, x.dtype)),),
)
imag: Primitive = primitive(
    "imag",
    _part,
    "{0}.imag",
    alias=0,
    through=lambda v, shape, before: set_imag(before(), v),
    cheap=True,
    batch=elementwise,
    diff=(pull(lambda ct, x: to_dtype(ct, x.dtype) * -1j),),
)


def _with_part(x: Aval, v: Aval) -> Aval:
    if x.dtype.kind != "c" or v.shape != x.shape or v.dtype != real_dtype(x.dtype):
        raise ValueError(f"{v} is not a part of {x}")
    return Aval(x.shape, x.dtype)


def _with_part_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    return prim(*(lanes(size, x, f) for x, f in zip(args, flags, strict=True)))


def _zeros(x: Symbol) -> Symbol:
    return x.builder.zeros(Aval(x.shape, real_dtype(x.dtype)))


set_real: Primitive = primitive(
    "set_real",
    _with_part,
    statement="{0}.real = {1}",
    writes=0,
    loose=(1,),
    joint=True,
    batch=_with_part_batch,
    diff=(pull(lambda ct, x, v: set_real(ct, _zeros(ct))), pull(lambda ct, x, v: real(ct))),
)
set_imag: Primitive = primitive(
    "set_imag",
    _with_part,
    statement="{0}.imag = {1}",
    writes=0,
    loose=(1,),
    joint=True,
    batch=_with_part_batch,
    diff=(pull(lambda ct, x, v: set_imag(ct, _zeros(ct))), pull(lambda ct, x, v: -imag(ct))),
)

conj: Primitive = unary(
    "conj", "np.conj", pull(lambda ct, x: conj(ct)), code=_conj_code, names="conjugate", shape=arithmetic
)
abs_: Primitive = unary("abs", "np.abs", push(_abs_push), code=_abs_code, shape=_modulus)
sign: Primitive = unary("sign", "np.sign", push(_sign_push))
