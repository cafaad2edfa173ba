"""The lower and the upper triangle of matrices."""

from __future__ import annotations

from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .batching import elementwise


def _triangle_shape(x: Aval, k: int) -> Aval:
    if x.ndim < 2:
        raise ValueError(f"{x} is not a matrix")
    return Aval(x.shape, x.dtype)


def _mask(x: Aval, k: int) -> int:
    return x.shape[-2] * x.shape[-1]


tril: Primitive = primitive(
    "tril",
    _triangle_shape,
    "np.tril({0}, {k})",
    batch=elementwise,
    order="A",
    scratch=_mask,
    diff=(pull(lambda ct, x, k: tril(ct, k=k)),),
)
triu: Primitive = primitive(
    "triu",
    _triangle_shape,
    "np.triu({0}, {k})",
    batch=elementwise,
    order="A",
    scratch=_mask,
    diff=(pull(lambda ct, x, k: triu(ct, k=k)),),
)
