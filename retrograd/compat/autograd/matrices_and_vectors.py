"""Jacobians as autograd defines them for complex numbers, and products of derivatives with vectors that are trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.adjoints import suits_columns
from ...api.jacobians import jacfwd, rows
from ...api.restricted import by_complex, restricted
from ...errors import ShapeError
from ...tracer.array import shadow_of
from ...tracer.containers import flatten_like
from ...tracer.tree import flatten
from .compiled_operators import Chosen, Function


def jacobian_matrix(argnums: Chosen, fun: Function) -> Function:
    """The Jacobian of ``fun`` as a function: column by column where that is cheaper and every argument is real."""

    def matrix(*args: Any, **kwargs: Any) -> Any:
        real = not _is_complex(argnums, fun, args, kwargs)
        by_columns = real and suits_columns(argnums, False, fun, args, kwargs)
        return (jacfwd(fun, argnums) if by_columns else by_rows(argnums, fun))(*args, **kwargs)

    return matrix


def _is_complex(argnums: Chosen, fun: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    _, leaves, _ = restricted(fun, argnums, args, kwargs)
    return any(np.iscomplexobj(shadow_of(x)) for x in leaves)


def by_rows(argnums: Chosen, fun: Function) -> Function:
    """The Jacobian of ``fun`` as a function, row by row, as ``make_vjp`` gives the rows.

    By a complex argument, the row of a complex result is the gradient of its real part, which is the derivative of a
    holomorphic function. By a real argument, it is the derivative of both parts.
    """
    return rows(argnums, False, fun, _of_real_part)


def _of_real_part(along_one: Any, along_i: Any) -> Any:
    return along_one if np.iscomplexobj(along_one) else by_complex(along_one, along_i)


def hessian_matrix(argnums: Chosen, fun: Function) -> Function:
    """The Jacobian of the Jacobian of ``fun`` as a function."""
    once = by_rows(argnums, fun)

    def matrix(*args: Any, **kwargs: Any) -> Any:
        twice = by_rows(argnums, once) if _is_complex(argnums, fun, args, kwargs) else jacfwd(once, argnums)
        return twice(*args, **kwargs)

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
