"""Jacobians as autograd defines them for complex numbers, and products of derivatives with vectors that are trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.at_a_point import vjp
from ...api.batching import over_basis
from ...api.jacobians import jacfwd
from ...api.restricted import restricted
from ...compiler.signature import take_apart, wanted
from ...compiler.transform import Transform
from ...errors import ShapeError
from ...tracer.array import shadow_of
from ...tracer.containers import flatten_like
from ...tracer.tree import flatten, unflatten
from .compiled_operators import Chosen, Function

RECORDED = Transform("jacobian")


def jacobian_matrix(argnums: Chosen, fun: Function) -> Function:
    """The Jacobian of ``fun`` as a function: column by column where that is cheaper and every argument is real."""

    def matrix(*args: Any, **kwargs: Any) -> Any:
        by_columns = jacfwd(fun, argnums) if _suits_columns(argnums, fun, args, kwargs) else by_rows(argnums, fun)
        return by_columns(*args, **kwargs)

    return matrix


def _suits_columns(argnums: Chosen, fun: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    call = take_apart(fun, args, kwargs)
    chosen = wanted(call, fun, argnums)
    leaves = [shadow_of(x) for x, on in zip(call.values(), chosen.active, strict=True) if on]
    if any(map(np.iscomplexobj, leaves)):
        return False
    avals = RECORDED.record(fun, call)[0].graph.out_avals
    return sum(map(np.size, leaves)) <= sum(aval.size * _parts(aval.dtype) for aval in avals)


def _parts(dtype: np.dtype[Any]) -> int:
    """How many real numbers an entry is."""
    return 1 + (dtype.kind == "c")


def by_rows(argnums: Chosen, fun: Function) -> Function:
    """The Jacobian of ``fun`` as a function, row by row, as ``make_vjp`` gives the rows.

    By a complex argument, the row of a complex result is the gradient of its real part, which is the derivative of a
    holomorphic function. By a real argument, it is the derivative of both parts.
    """

    def matrix(*args: Any, **kwargs: Any) -> Any:
        f, leaves, tree = restricted(fun, argnums, args, kwargs)
        out, pullback = vjp(f, *leaves)
        outs, spec = flatten(out)
        blocks = []
        for i, y in enumerate(outs):
            rest = [_zeros(o) for o in outs]

            def pull(ct: Any, i: int = i, rest: list[Any] = rest) -> Any:
                return pullback(unflatten(spec, [*rest[:i], ct, *rest[i + 1 :]]))

            blocks.append(tree(_block(over_basis(pull), _zeros(y), leaves)))
        return unflatten(spec, blocks)

    return matrix


def _zeros(x: Any) -> Any:
    return np.zeros_like(shadow_of(x))[()]


def _block(pull: Callable[[Any], Any], zeros: Any, leaves: list[Any]) -> list[Any]:
    """The rows of one result, by each argument."""
    shape, dtype = zeros.shape, zeros.dtype
    units = np.eye(zeros.size, dtype=dtype).reshape(zeros.size, *shape)
    rows = list(pull(units))
    if dtype.kind == "c" and not all(np.iscomplexobj(shadow_of(x)) for x in leaves):
        turned = pull(1j * units)  # a real argument hears only of the real part of ct · derivative
        rows = [
            r if np.iscomplexobj(shadow_of(x)) else r - 1j * s for r, s, x in zip(rows, turned, leaves, strict=True)
        ]
    return [np.reshape(r, (*shape, *np.shape(shadow_of(r))[1:])) for r in rows]


def hessian_matrix(argnums: Chosen, fun: Function) -> Function:
    """The Jacobian of the Jacobian of ``fun`` as a function."""
    rows = by_rows(argnums, fun)

    def matrix(*args: Any, **kwargs: Any) -> Any:
        _, leaves, _ = restricted(fun, argnums, args, kwargs)
        is_complex = any(np.iscomplexobj(shadow_of(x)) for x in leaves)
        return (by_rows(argnums, rows) if is_complex else jacfwd(rows, argnums))(*args, **kwargs)

    return matrix


def paired(product: Callable[[Any, Any], Any], vector: Any, found: Any) -> Any:
    """``product(part of vector, part of found)``, summed over the leaves of two trees of one structure."""
    leaves, spec = flatten(found)
    if flatten(vector)[1].is_leaf():
        return product(vector, found)
    parts = zip(flatten_like(spec, vector_like(found, vector), "the vector"), leaves, strict=True)
    products = [product(v, x) for v, x in parts]
    return sum(products[1:], products[0]) if products else 0.0


def vector_like(point: Any, vector: Any) -> Any:
    """A vector at a point, with tuples and lists as the point has them, and arrays for lists of numbers.

    >>> vector_like((np.zeros(2), [1.0]), [[1.0, 2.0], (3.0,)])
    (array([1., 2.]), [3.0])
    """
    kind = type(point)
    if flatten(point)[1].is_leaf():
        return _as_array(vector)
    if kind is dict and type(vector) is dict and point.keys() == vector.keys():
        return {key: vector_like(point[key], v) for key, v in vector.items()}
    if kind in (list, tuple) and type(vector) in (list, tuple) and len(point) == len(vector):
        return kind(map(vector_like, point, vector))
    return vector


def _as_array(x: Any) -> Any:
    """A list of numbers or of lists, as an array; anything else as it is."""
    if type(x) not in (list, tuple) or not x:
        return x
    items = [_as_array(item) for item in x]
    if len({np.shape(shadow_of(item)) for item in items}) > 1:
        raise ShapeError("the vector is a list of items of different shapes", remedy="pass an array")
    return np.stack(items)
