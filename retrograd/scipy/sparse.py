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

from ..ir.primitive import Primitive
from ..ops.sparse import sparse_product, sparse_solve
from ..tracer.array import apply, shadow_of
from ..tracer.class_methods import Method, methods
from ..tracer.operands import lifted
from ..tracer.state.attributes import attribute
from ..tracer.trace import READER, unsupported
from .dispatch import Lazy, answered, cast, inexact, rest_of, stands_for

scipy_sparse = Lazy("scipy.sparse")
__getattr__ = rest_of("scipy.sparse")


def _applied(prim: Primitive, matrix: Any, x: Any, least: Any = np.float32) -> Any:
    """A primitive of a matrix, whose arrays are taken by reference, and a dense operand."""
    data, indices, starts = _arrays(matrix)
    data, indices, starts, x = lifted(inexact(data), indices, starts, inexact(x))
    if x.ndim not in (1, 2) or matrix.ndim not in (1, 2):
        raise ValueError(f"no product of a sparse array of shape {matrix.shape} and an array of shape {x.shape}")
    if x.shape[0] != matrix.shape[-1]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={matrix.shape[-1]}),(k={x.shape[0]})")
    dtype = np.result_type(data.dtype, x.dtype, least)
    data, x = cast([data, x], dtype)
    shape = (1, *matrix.shape)[-2:]  # a vector has the arrays of a row
    found = apply(prim, [data, indices, starts, x], shape=tuple(map(int, shape)), by_rows=matrix.format != "csc")
    return found if matrix.ndim == 2 else found[0]


def _arrays(matrix: Any) -> list[Any]:
    """The arrays of a matrix in compressed form; of one from outside they are read at each call, or compared."""
    reader, compressed = READER.get(), matrix.format in ("csr", "csc")
    if reader is not None and reader.sees(matrix) and not compressed:
        reader.whole(matrix)
    found = matrix if compressed else (matrix if matrix.ndim == 2 else matrix.reshape(1, -1)).tocsr()
    arrays = {name: getattr(found, name) for name in ("data", "indices", "indptr")}
    if reader is None or not reader.sees(found):
        return [*arrays.values()]
    attribute(reader, found, "shape", found.shape)
    return [attribute(reader, found, name, array) for name, array in arrays.items()]


def product(matrix: Any, x: Any) -> Any:
    """``matrix @ x``."""
    return _applied(sparse_product, matrix, x)


@stands_for("scipy.sparse.linalg.spsolve")
def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """The solution for a constant matrix; it is factorized at each call."""
    if permc_spec is not None or not scipy_sparse.issparse(A):
        raise unsupported("scipy.sparse.linalg.spsolve of a dense matrix, or with permc_spec=", "use np.linalg.solve")
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"matrix must be square (has shape {A.shape})")
    column = np.ndim(shadow_of(b)) == 2 and np.shape(shadow_of(b))[1] == 1  # for SciPy it is a vector
    return _applied(sparse_solve, A, np.reshape(b, -1) if column else b, np.float64)


def _product_from_left(matrix: Any, x: Any) -> Any:
    reader = READER.get()
    transposed = matrix.T if reader is None else attribute(reader, matrix, "T", matrix.T)
    return np.transpose(product(transposed, np.transpose(x)))


def _refused(name: str) -> Callable[..., Any]:
    def method(matrix: Any, *others: Any) -> Any:
        raise unsupported(
            f"{name} of a sparse matrix and a traced value",
            "multiply with @, or make the matrix dense with toarray()",
        )

    return method


def _times(matrix: Any, x: Any) -> Any:
    """``matrix.dot(x)``, and ``matrix * x`` of SciPy's matrices: a product, except with a number."""
    return product(matrix, x) if np.ndim(shadow_of(x)) else _refused("multiply()")(matrix, x)


def _times_from_left(matrix: Any, x: Any) -> Any:
    return _product_from_left(matrix, x) if np.ndim(shadow_of(x)) else _times(matrix, x)


FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
HANDLERS: dict[str, Callable[..., Any]] = {
    "__matmul__": product,
    "dot": _times,
    "__rmatmul__": _product_from_left,
    **{f"__{name}__": _refused(sign) for name, sign in (("add", "+"), ("sub", "-"), ("truediv", "/"))},
    "multiply": _refused("multiply()"),
}


@methods("scipy.sparse")
def _of_sparse(sparse: ModuleType) -> Iterable[Method]:
    for cls in (getattr(sparse, f"{name}_array") for name in FORMATS):
        yield from (Method(cls, name, answered(handler)) for name, handler in HANDLERS.items())
    yield Method(sparse.csr_matrix, "__mul__", answered(_times))
    yield Method(sparse.csr_matrix, "__rmul__", answered(_times_from_left))
