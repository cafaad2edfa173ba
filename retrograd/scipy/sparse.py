"""Products of constant sparse matrices with traced vectors and matrices: ``A @ x``, ``x @ A``, ``A.dot(x)``.

>>> import numpy as np, retrograd as rg, scipy.sparse
>>> A = scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0]])
>>> rg.grad(lambda x: np.sum(A @ x))(np.ones(2))
array([3., 2.])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from ..ops.sparse import sparse_product
from ..tracer.array import apply
from ..tracer.class_methods import Method, methods
from ..tracer.functions.table import lifted
from ..tracer.trace import unsupported
from ..tracer.ufuncs import astype
from .dispatch import answered, inexact, rest_of

__getattr__ = rest_of("scipy.sparse")


def product(matrix: Any, x: Any) -> Any:
    """``matrix @ x``; the arrays of a CSR or CSC matrix are taken by reference."""
    by_rows = matrix.format != "csc"
    compressed = matrix.tocsr() if by_rows else matrix
    data, indices, starts, x = lifted(inexact(compressed.data), compressed.indices, compressed.indptr, inexact(x))
    if x.ndim not in (1, 2) or matrix.ndim != 2:
        raise ValueError(f"no product of a sparse array of shape {matrix.shape} and an array of shape {x.shape}")
    if x.shape[0] != matrix.shape[1]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={matrix.shape[1]}),(k={x.shape[0]})")
    dtype = np.result_type(data.dtype, x.dtype)
    data, x = (u if u.dtype == dtype else astype(u, dtype) for u in (data, x))
    shape = tuple(int(n) for n in matrix.shape)
    return apply(sparse_product, [data, indices, starts, x], shape=shape, by_rows=by_rows)


def _product_from_left(matrix: Any, x: Any) -> Any:
    return np.transpose(product(matrix.T, np.transpose(x)))


def _refused(name: str) -> Callable[..., Any]:
    def method(matrix: Any, *others: Any) -> Any:
        raise unsupported(
            f"{name} of a sparse matrix and a traced value",
            "multiply with @, or make the matrix dense with toarray()",
        )

    return method


FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
HANDLERS: dict[str, Callable[..., Any]] = {
    "__matmul__": product, "dot": product, "__rmatmul__": _product_from_left,
    **{f"__{name}__": _refused(sign) for name, sign in (("add", "+"), ("sub", "-"), ("truediv", "/"))},
    "multiply": _refused("multiply()"),
}  # fmt: skip


@methods("scipy.sparse")
def _of_sparse(sparse: ModuleType) -> Iterable[Method]:
    for cls in (getattr(sparse, f"{name}_array") for name in FORMATS):
        yield from (Method(cls, name, answered(handler)) for name, handler in HANDLERS.items())
    yield Method(sparse.csr_matrix, "__mul__", answered(product))
    yield Method(sparse.csr_matrix, "__rmul__", answered(_product_from_left))
