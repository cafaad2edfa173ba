"""Products of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .axes import swap
from .batching import Flags, elementwise, lanes
from .shape import broadcast_to, reshape_to


def _matmul_shape(a: Aval, b: Aval) -> Aval:
    """Vectors with vectors or matrices; else equal leading axes."""
    if a.dtype != b.dtype:
        raise ValueError(f"dtypes of {a} and {b} differ")
    if not (a.ndim and b.ndim) or a.shape[-1] != b.shape[0 if b.ndim == 1 else -2]:
        raise ValueError(f"{a} @ {b} does not fit")
    if a.ndim == 1 or b.ndim == 1:
        if max(a.ndim, b.ndim) > 2:
            raise ValueError(f"{a} @ {b}: a vector meets a vector or a matrix only")
        shape = (*a.shape[:-1], *b.shape[1:]) if b.ndim == 2 else a.shape[:-1]
        return Aval(shape, a.dtype, "array" if shape else "scalar")
    if a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"leading axes of {a} and {b} differ")
    return Aval((*a.shape[:-1], b.shape[-1]), a.dtype)


def outer(x: Symbol, y: Symbol) -> Symbol:
    """The matrix of products of two vectors."""
    shape = (x.size, y.size)
    product: Symbol = broadcast_to(reshape_to(x, (x.size, 1)), shape) * broadcast_to(reshape_to(y, (1, y.size)), shape)
    return product


def _pull_a(ct: Symbol, a: Any, b: Symbol) -> Any:
    if a.ndim == 1 and b.ndim == 1:
        return broadcast_to(ct, b.shape) * b
    if b.ndim == 1:
        return outer(ct, b)
    return b @ ct if a.ndim == 1 else ct @ swap(b)


def _pull_b(ct: Symbol, a: Symbol, b: Any) -> Any:
    if a.ndim == 1 and b.ndim == 1:
        return broadcast_to(ct, a.shape) * a
    if a.ndim == 1:
        return outer(a, ct)
    return ct @ a if b.ndim == 1 else swap(a) @ ct


def _matmul_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    a, b = args
    vector_a, vector_b = (x.ndim - flag == 1 for x, flag in zip(args, flags, strict=True))
    if flags[0] and not flags[1] and b.ndim <= 2:  # a stack times one matrix is one larger matrix product
        flat = reshape_to(a, (math.prod(a.shape[:-1]), a.shape[-1])) if a.ndim > 2 else a
        out = flat @ b
        return reshape_to(out, (*a.shape[:-1], *b.shape[1:])) if a.ndim > 2 else out
    if not flags[0] and vector_b and a.ndim <= 2:
        return b @ (a if vector_a else swap(a))
    if vector_a and vector_b:
        return _dots(a, b)
    if vector_a:
        a = reshape_to(a, (*a.shape[:-1], 1, a.shape[-1]))
    if vector_b:
        b = reshape_to(b, (*b.shape, 1))
    out = lanes(size, a, flags[0]) @ lanes(size, b, flags[1])
    kept = out.shape[:-1] if vector_b else (size, *out.shape[2:]) if vector_a else out.shape
    return reshape_to(out, kept)


def _dots(a: Symbol, b: Symbol) -> Any:
    """The product of each row with a row; vecdot would conjugate complex ones."""
    if a.dtype.kind != "c":
        return vecdot(a, b)
    out = reshape_to(a, (*a.shape[:-1], 1, a.shape[-1])) @ reshape_to(b, (*b.shape, 1))
    return reshape_to(out, a.shape[:-1])


matmul = primitive(
    "matmul",
    _matmul_shape,
    "{0} @ {1}",
    op="{0} @ {1}",
    ufunc="np.matmul",
    order="C",
    diff=(pull(_pull_a), pull(_pull_b)),
    batch=_matmul_batch,
)


dot = primitive("dot", _matmul_shape, "{0}.dot({1})", final=True)  # what `with_dots` makes of two vectors


def _outer_product_shape(a: Aval, b: Aval) -> Aval:
    if a.ndim != 1 or b.ndim != 1 or a.dtype != b.dtype or a.dtype.kind != "f":
        raise ValueError(f"{a} and {b} are not two vectors of the same real numbers")
    return Aval((*a.shape, *b.shape), a.dtype)


def _outer_product_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    a, b = (lanes(size, x, flag) for x, flag in zip(args, flags, strict=True))
    shape = (*a.shape, b.shape[-1])
    return broadcast_to(reshape_to(a, (*a.shape, 1)), shape) * broadcast_to(
        reshape_to(b, (size, 1, b.shape[-1])), shape
    )


# NumPy gives this product to its BLAS in `dot` alone, which takes half of the time of `multiply` and `outer`
outer_product: Primitive = primitive(
    "outer_product",
    _outer_product_shape,
    "np.dot({0}[:, None], {1}[None])",
    order="C",
    batch=_outer_product_batch,
    diff=(pull(lambda ct, a, b: ct @ b), pull(lambda ct, a, b: a @ ct)),
)


def _vecdot_shape(a: Aval, b: Aval) -> Aval:
    if a.shape != b.shape or a.dtype != b.dtype or not a.ndim or a.dtype.kind == "c":
        raise ValueError(f"{a} and {b} are not equal stacks of real vectors")
    return Aval(a.shape[:-1], a.dtype, "array" if a.ndim > 1 else "scalar")


def _each_times(ct: Symbol, x: Symbol) -> Any:
    return broadcast_to(reshape_to(ct, (*ct.shape, 1)), x.shape) * x


vecdot: Primitive = primitive(
    "vecdot",
    _vecdot_shape,
    "np.vecdot({0}, {1})",
    takes_out=True,
    batch=elementwise,
    diff=(pull(lambda ct, a, b: _each_times(ct, b)), pull(lambda ct, a, b: _each_times(ct, a))),
)


def _cross_shape(a: Aval, b: Aval) -> Aval:
    if a.shape != b.shape or a.dtype != b.dtype or a.shape[-1:] != (3,):
        raise ValueError(f"{a} and {b} are not equal stacks of vectors of length 3")
    return Aval(a.shape, a.dtype)


cross: Primitive = primitive(
    "cross",
    _cross_shape,
    "np.cross({0}, {1})",
    batch=elementwise,
    scratch=lambda a, b: 5 * a.nbytes // 2,
    diff=(pull(lambda ct, a, b: cross(b, ct)), pull(lambda ct, a, b: cross(ct, a))),
)
