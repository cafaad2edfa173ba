"""VSpace: the vectors at a point, which are trees of its structure and shapes. SparseObject: one, still unmade."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import NonDifferentiableError
from ...tracer.array import shadow_of
from ...tracer.containers import flatten_like
from ...tracer.tree import flatten, unflatten


class VSpace:
    """The space of vectors at a point: an array, a number, or a list, tuple or dict of these.

    Integers count as floats. A complex number is two real ones: the basis holds 1 and 1j for it, ``ones`` is 1 + 1j,
    and the inner product is real.
    """

    def __init__(self, value: Any) -> None:
        leaves, self._spec = flatten(value)
        self._value = unflatten(self._spec, range(len(leaves)))  # the structure, for `shape`
        self._leaves = [(np.shape(x), _dtype(x)) for x in map(shadow_of, leaves)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VSpace) and (self._spec, self._leaves) == (other._spec, other._leaves)

    def __hash__(self) -> int:
        return hash((self._spec, tuple(self._leaves)))

    def __repr__(self) -> str:
        return f"VSpace({', '.join(f'{dtype}{list(shape)}' for shape, dtype in self._leaves)})"

    @property
    def shape(self) -> Any:
        """The shape of an array; of a container the spaces of its items, in a container."""
        if self._spec.is_leaf():
            return self._leaves[0][0]
        value = self._value
        zeros = self.zeros()
        if isinstance(value, dict):
            return {key: VSpace(zeros[key]) for key in value}
        return type(value)(VSpace(item) for item in zeros)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of all entries."""
        return np.result_type(*(dtype for _, dtype in self._leaves))

    @property
    def ndim(self) -> int:
        """The number of dimensions of an array."""
        return len(self.shape)

    @property
    def iscomplex(self) -> bool:
        """Whether there are complex numbers."""
        return any(dtype.kind == "c" for _, dtype in self._leaves)

    @property
    def size(self) -> int:
        """The number of real numbers in a vector."""
        return sum(int(np.prod(shape)) * (1 + (dtype.kind == "c")) for shape, dtype in self._leaves)

    def zeros(self) -> Any:
        """The zero vector."""
        return self._made([np.zeros(*leaf) for leaf in self._leaves])

    def ones(self) -> Any:
        """The vector of ones."""
        return self._made([np.full(shape, _one(dtype), dtype) for shape, dtype in self._leaves])

    def randn(self) -> Any:
        """A vector of standard normal numbers, from NumPy's global generator."""
        return self._made([_normal(*leaf) for leaf in self._leaves])

    def standard_basis(self) -> Iterator[Any]:
        """The unit vectors, one after the other."""
        for k, (shape, dtype) in enumerate(self._leaves):
            for at in np.ndindex(*shape):
                for unit in (1.0, 1.0j)[: 1 + (dtype.kind == "c")]:
                    leaves = [np.zeros(*leaf) for leaf in self._leaves]
                    leaves[k][at] = unit
                    yield self._made(leaves)

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors."""
        return self._made([a + b for a, b in zip(self._flat(x), self._flat(y), strict=True)])

    def mut_add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors, of which the first may be None for zero; neither is written into."""
        return self.add(self.zeros() if x is None else x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """A vector times a number."""
        return self._made([v * a for v in self._flat(x)])

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The sum of products; of complex numbers the real part, with the first one conjugated."""
        parts = zip(self._flat(x), self._flat(y), self._leaves, strict=True)
        return sum(_product(a, b, dtype) for a, b, (_, dtype) in parts)

    def covector(self, x: Any) -> Any:
        """The cotangent that pairs with vectors as the inner product with ``x`` does: its conjugate."""
        return self._made(
            [np.conj(v) if d.kind == "c" else v for v, (_, d) in zip(self._flat(x), self._leaves, strict=True)]
        )

    def _flat(self, x: Any) -> list[Any]:
        return list(flatten_like(self._spec, x, "a vector"))

    def _made(self, leaves: list[Any]) -> Any:
        return unflatten(self._spec, leaves)


def vspace(value: Any) -> VSpace:
    """The space of vectors at a point. Raises NonDifferentiableError where there is none.

    >>> import numpy as np
    >>> from retrograd.compat.autograd.extend import vspace
    >>> space = vspace({"w": np.zeros((2, 3)), "b": 1.0})
    >>> space.size
    7
    >>> float(space.inner_prod(space.ones(), space.ones()))
    7.0
    """
    return VSpace(value)


class SparseObject:
    """A cotangent that a rule returns without making it: ``mut_add(v)`` adds it to a vector of the space ``vs``.

    >>> import numpy as np
    >>> def add_one(v):
    ...     v[1] += 1.0
    ...     return v
    >>> SparseObject(vspace(np.zeros(3)), add_one).mut_add(np.zeros(3))
    array([0., 1., 0.])
    """

    def __init__(self, vs: VSpace, mut_add: Callable[[Any], Any]) -> None:
        self.vs, self.mut_add = vs, mut_add


def _dtype(x: Any) -> np.dtype[Any]:
    dtype = np.asarray(x).dtype
    if dtype.kind in "iu":
        return np.dtype(float)
    if dtype.kind not in "fc":
        raise NonDifferentiableError(
            f"there is no vector space for a value of type {type(x).__name__}",
            remedy="pass numbers, arrays, and lists, tuples and dicts of them",
        )
    return dtype


def _one(dtype: np.dtype[Any]) -> complex:
    return 1.0 + 1.0j if dtype.kind == "c" else 1.0


def _normal(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    drawn = np.asarray(np.random.standard_normal(shape))  # noqa: NPY002 - seeded by np.random.seed, as in autograd
    if dtype.kind == "c":
        drawn = drawn + 1.0j * np.random.standard_normal(shape)  # noqa: NPY002 - as above
    return drawn.astype(dtype)


def _product(x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
    return np.real(np.sum(np.conj(x) * y)) if dtype.kind == "c" else np.sum(x * y)
