"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import linear
from ..array import apply, shadow_of
from ..trace import unsupported
from ..ufuncs import COMPOSED, as_operand, astype
from .shapes import broadcast_to, reshape
from .table import implements, only_default, shadow_dtype


def matmul(a: Any, b: Any) -> Any:
    """``np.matmul``: a ufunc, but not an elementwise one."""
    a, b = as_operand(a), as_operand(b)
    result = np.result_type(shadow_dtype(a), shadow_dtype(b))
    a, b = (x if shadow_dtype(x) == result else astype(x, result) for x in (a, b))
    m, n = np.ndim(shadow_of(a)), np.ndim(shadow_of(b))
    if not (m and n):
        raise ValueError("matmul: Input operand does not have enough dimensions")
    if max(m, n) > 2 or min(m, n) == 2:
        return _stacked_matmul(a, b, m, n)
    return apply(linear.matmul, [a, b])


COMPOSED[np.matmul] = matmul


def _stacked_matmul(a: Any, b: Any, m: int, n: int) -> Any:
    np.matmul(shadow_of(a), shadow_of(b))  # NumPy's own error where the shapes do not fit
    if m <= 2 and n <= 2:
        return apply(linear.matmul, [a, b])
    if m > 2 and n == 2:
        flat = matmul(reshape(a, (-1, a.shape[-1])), b)
        return reshape(flat, (*a.shape[:-1], b.shape[-1]))
    if m == 1:
        out = _stacked_matmul(reshape(a, (1, -1)), b, 2, n)
        return reshape(out, (*out.shape[:-2], out.shape[-1]))
    if n == 1:
        out = matmul(a, reshape(b, (-1, 1)))
        return reshape(out, out.shape[:-1])
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    return apply(linear.matmul, [a, b])


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    only_default("dot", out=(out, None))
    m, n = np.ndim(shadow_of(a)), np.ndim(shadow_of(b))
    if m == 0 or n == 0:
        return np.multiply(a, b)
    if n <= 2:
        return matmul(a, b)
    raise unsupported("np.dot with an operand of three or more axes", "use np.matmul or np.tensordot")
