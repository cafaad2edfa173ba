"""Products of matrices and vectors; each is a contraction of labelled axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops import linear
from ..ops import shape as shapes
from ..tracer.array import Tracer, apply
from ..tracer.operands import into, lifted, shadow_dtype
from ..tracer.table import METHODS, implements
from ..tracer.trace import unsupported
from ..tracer.ufunc_options import call
from ..tracer.ufuncs import COMPOSED, call_ufunc
from .contraction import common, contract, stretched
from .shapes import broadcast_to, moveaxis, ravel, reshape


def _stacks(ufunc: Any, a: Any, core_a: str, b: Any, core_b: str, core: str) -> Any:
    """A product over the last axes, which letters name; the axes before them are stacks, and broadcast."""
    m, n = a.ndim - len(core_a), b.ndim - len(core_b)
    k, l = (x.shape[j + c.index("k")] if j >= 0 else -1 for x, j, c in ((a, m, core_a), (b, n, core_b)))
    if min(m, n) < 0 or k != l:
        ufunc(a.shadow, b.shadow)  # NumPy's own error
    if m == n == 0:
        return apply(linear.matmul, [a, b])
    np.broadcast_shapes(a.shape[:m], b.shape[:n])
    lead = [(j,) for j in range(max(m, n), 0, -1)]  # axes of stacks, by their positions from the right
    la, lb = (*lead[len(lead) - m :], *core_a), (*lead[len(lead) - n :], *core_b)
    (a, la), (b, lb) = stretched([(a, la), (b, lb)])
    return contract(a, la, b, lb, (*lead, *core))


def _operands(ufunc: Any, a: Any, b: Any, dtype: Any, casting: Any) -> list[Any]:
    """The operands with the dtype of their product, or with the given ``dtype`` of the computation."""
    a, b = lifted(a, b)
    if dtype is not None or casting != "same_kind":
        ufunc.resolve_dtypes((a.dtype, b.dtype, None), signature=(None, None, dtype), casting=casting)  # NumPy's error
    return common(a, b, dtype=dtype)


def matmul(a: Any, b: Any, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """``np.matmul``: a ufunc, but not an elementwise one."""
    a, b = _operands(np.matmul, a, b, dtype, casting)
    core_a, core_b = "k" if a.ndim == 1 else "ik", "k" if b.ndim == 1 else "kj"
    return _stacks(np.matmul, a, core_a, b, core_b, core_a[:-1] + core_b[1:])


def vecdot(a: Any, b: Any, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """``np.vecdot``: the first operand is conjugated."""
    a, b = _operands(np.vecdot, a, b, dtype, casting)
    return _stacks(np.vecdot, _conjugate(a), "k", b, "k", "")


def matvec(a: Any, b: Any, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """``np.matvec``."""
    a, b = _operands(np.matvec, a, b, dtype, casting)
    return _stacks(np.matvec, a, "ik", b, "k", "i")


def vecmat(a: Any, b: Any, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """``np.vecmat``: the first operand is conjugated."""
    a, b = _operands(np.vecmat, a, b, dtype, casting)
    return _stacks(np.vecmat, _conjugate(a), "k", b, "kj", "j")


def _conjugate(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


COMPOSED[np.matmul] = matmul
for _name, _handler in (("vecdot", vecdot), ("matvec", matvec), ("vecmat", vecmat)):
    if hasattr(np, _name):  # the last two came with NumPy 2.2
        COMPOSED[getattr(np, _name)] = _handler


@implements(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    return matmul(x1, x2)


@implements(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x1, x2 = lifted(x1, x2)
    return vecdot(moveaxis(x1, axis, -1), moveaxis(x2, axis, -1))


def _of_kind(b: Any, a: Any) -> Any:
    """The second factor: an empty list has the dtype of the first one."""
    return np.zeros(0, shadow_dtype(a)) if isinstance(b, list) and not b else b


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = common(*lifted(a, _of_kind(b, a)))
    if not (a.ndim and b.ndim):
        found = into(out, _scaled(a, b))
        return found if out is None or found.ndim else found[()]
    last = b.ndim - (1 if b.ndim == 1 else 2)
    if a.shape[-1] != b.shape[last]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    found = into(out, _tensor_product(a, [a.ndim - 1], b, [last]))
    return found if out is None or found.ndim else found[()]


def _scaled(a: Any, b: Any) -> Any:
    """A number times an array; NumPy adds floating-point products to zeros, so no result is -0.0."""
    product = np.multiply(a, b)
    return (product + 0.0).copy() if product.size > 1 and product.dtype.char in "fd" else product


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    a, b = common(*lifted(a, _of_kind(b, a)))
    if not (a.ndim and b.ndim):
        return _scaled(a, b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    return _tensor_product(a, [a.ndim - 1], b, [b.ndim - 1])


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    a, b = common(*lifted(a, _of_kind(b, a)))
    return dot(ravel(_conjugate(a)), ravel(b))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    a, b = common(*lifted(a, b))
    return into(out, contract(ravel(a), ("i",), ravel(b), ("j",), ("i", "j")))


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    x1, x2 = lifted(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("Input arrays must be one-dimensional")
    return outer(x1, x2)


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = common(*lifted(a, b))
    if isinstance(axes, Tracer) and not axes.ndim:
        axes = int(axes)  # the number of axes is asked for here
    if isinstance(axes, (int, np.integer)):
        over_a, over_b = list(range(-int(axes), 0)), list(range(int(axes)))
    else:
        over_a, over_b = (list(np.atleast_1d(x)) for x in axes)
    if len(over_a) != len(over_b) or any(a.shape[i] != b.shape[j] for i, j in zip(over_a, over_b, strict=True)):
        raise ValueError("shape-mismatch for sum")
    over_a, over_b = ([int(k) % x.ndim for k in over] for x, over in ((a, over_a), (b, over_b)))
    found = _tensor_product(a, over_a, b, over_b)
    return found if found.ndim else apply(shapes.reshape, [found], aval=Aval((), found.dtype))


def _tensor_product(a: Any, over_a: Sequence[int], b: Any, over_b: Sequence[int]) -> Any:
    """Sum over pairs of axes; the result has the other axes of ``a``, then those of ``b``."""
    la: list[Any] = [("a", k) for k in range(a.ndim)]
    lb: list[Any] = [("b", k) for k in range(b.ndim)]
    for i, j in zip(over_a, over_b, strict=True):
        lb[j] = la[i]
    out = (*(l for l in la if l not in lb), *(l for l in lb if l not in la))
    return contract(a, tuple(la), b, tuple(lb), out)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    a, b = common(*lifted(a, b))
    n = max(a.ndim, b.ndim)
    a, b = (reshape(x, (1,) * (n - x.ndim) + x.shape) if n else x for x in (a, b))
    la, lb = (tuple((name, k) for k in range(n)) for name in "ab")
    product = contract(a, la, b, lb, tuple(l for pair in zip(la, lb, strict=True) for l in pair))
    return reshape(product, tuple(p * q for p, q in zip(a.shape, b.shape, strict=True))) if n else product


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = common(*lifted(a, b))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        np.cross(a.shadow, b.shadow)  # NumPy's own error
        raise unsupported("np.cross of vectors of length 2", "append a zero to them")
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = (x if x.shape == shape else broadcast_to(x, shape) for x in (a, b))
    return moveaxis(apply(linear.cross, [a, b]), -1, axisc)


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x1, x2 = lifted(x1, x2)
    if not (x1.ndim and x2.ndim) or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        np.linalg.cross(x1.shadow, x2.shadow, axis=axis)  # NumPy's own error
    return cross(x1, x2, axis=axis)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    chain = common(*lifted(*arrays))
    if len(chain) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(chain) == 2:
        return dot(*chain, out)
    if any(x.ndim != 2 for x in chain[1:-1]) or any(x.ndim not in (1, 2) for x in (chain[0], chain[-1])):
        raise np.linalg.LinAlgError("arrays must be 2-dimensional; the first and the last may be vectors")
    columns = 1 if chain[-1].ndim == 1 else chain[-1].shape[1]
    lengths = (1 if chain[0].ndim == 1 else chain[0].shape[0], *(x.shape[-1] for x in chain[:-1]), columns)

    @cache
    def best(i: int, j: int) -> tuple[int, int]:
        """The least number of multiplications for a part of the chain, and the factor after which to divide it."""
        if i == j:
            return 0, i
        return min(
            (best(i, k)[0] + best(k + 1, j)[0] + lengths[i] * lengths[k + 1] * lengths[j + 1], k) for k in range(i, j)
        )

    def product(i: int, j: int) -> Any:
        k = best(i, j)[1]
        return chain[i] if i == j else matmul(product(i, k), product(k + 1, j))

    return into(out, product(0, len(chain) - 1))


def _times(self: Any, other: Any) -> Any:
    """``x @ y``; a sparse matrix is not an operand of a ufunc, and answers by its reflected product."""
    if not hasattr(type(other), "__array_ufunc__") and getattr(type(other), "__array_priority__", 0) > 0:
        return NotImplemented
    return call_ufunc(np.matmul, [self, other])


METHODS.update(
    {
        "__matmul__": _times,
        "__rmatmul__": lambda self, other: call_ufunc(np.matmul, [other, self]),
        "__imatmul__": lambda self, other: call(np.matmul, self, other, out=(self,)),
    }
)
