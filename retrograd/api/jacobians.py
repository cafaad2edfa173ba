"""jacfwd, jacrev and hessian."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..compiler.composed import Composed
from ..compiler.signature import Argnums
from ..errors import NonDifferentiableError, OptionError
from ..ir.types import Aval, aval_of
from ..tracer.array import NUMBERS, Tracer, shadow_of
from ..tracer.tree import Spec, flatten, unflatten
from .along_tangents import jvp, linearize
from .at_a_point import vjp
from .batching import over_basis
from .gradients import grad
from .restricted import by_complex, checked_argnums, restricted
from .sparse import SparseJacobian, without_aux

Combined = Callable[[Any, Any], Any]


def directions(aval: Aval) -> int:
    """How many derivatives a Jacobian takes along a variable, or of a result: two for each complex number."""
    return aval.size * (2 if aval.dtype.kind == "c" else 1)


def _along_units(linear: Callable[[Any], Any], x: Any, combined: Combined = by_complex) -> tuple[list[Any], Spec]:
    """The leaves of a function of tangents or cotangents like ``x`` for all unit arrays, along a leading axis.

    Derivatives along 1 and along i are ``combined`` to those by complex numbers.
    """
    aval = aval_of(shadow_of(x))
    n = aval.size
    units = np.eye(n, dtype=aval.dtype).reshape(n, *aval.shape)
    if directions(aval) == n:
        return flatten(over_basis(linear)(units))
    found, spec = flatten(over_basis(linear)(np.concatenate([units, 1j * units])))
    return [combined(y[:n], y[n:]) for y in found], spec


def _inexact(column: Any, like: Aval) -> Any:
    """The derivatives of a result along all directions of a variable: zeros for integers and bools."""
    if type(column) is int:  # of more than 64 bits
        return np.zeros(like.size, like.dtype)
    _check_result(column)
    return column if np.issubdtype(column.dtype, np.inexact) else np.zeros(column.shape, like.dtype)


def _check_result(x: Any) -> None:
    """NonDifferentiableError for a result of the function that is no array and no number."""
    if not isinstance(x, (Tracer, np.ndarray, *NUMBERS)) or isinstance(x, np.character):
        raise NonDifferentiableError(
            f"the function returns an object of type {type(x).__name__}, which has no derivative",
            remedy="return it beside the result, with has_aux=True",
        )


def _zeros(x: Any) -> Any:
    _check_result(x)
    if type(x) is int:
        return 0
    aval = aval_of(shadow_of(x))
    return np.zeros(aval.shape, aval.dtype)[()]


def jacfwd(
    function: Callable[..., Any] | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    backend: str | None = None,
) -> Any:
    """The Jacobian, column by column in forward mode; ``derivative_docstrings`` has its parameters."""
    argnums = checked_argnums("jacfwd", argnums)
    made = Composed("jacfwd", make=_columns, options=(argnums, has_aux), backend=backend)
    return partial(Compiled, transform=made) if function is None else Compiled(function, made)


def _columns(argnums: Argnums, has_aux: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        f, leaves, tree = restricted(function, argnums, args, kwargs)
        along, aux = _along(f, leaves, has_aux)
        columns: list[list[Any]] = []
        spec = flatten(None)[1]
        for i, x in enumerate(leaves):
            rest = [_zeros(y) for y in leaves]

            def push(v: Any, i: int = i, rest: list[Any] = rest) -> Any:
                return along([*rest[:i], v, *rest[i + 1 :]])

            outs, spec = _along_units(push, x)
            like = aval_of(shadow_of(x))
            outs = [_inexact(o, like) for o in outs]
            columns.append([np.reshape(np.moveaxis(o, 0, -1), (*o.shape[1:], *like.shape)) for o in outs])
        found = unflatten(spec, [tree([column[k] for column in columns]) for k in range(len(columns[0]))])
        return (found, aux) if has_aux else found

    return jacobian


def _along(f: Callable[..., Any], leaves: list[Any], has_aux: bool) -> tuple[Callable[[list[Any]], Any], Any]:
    """The derivative at the leaves as a function of their tangents, and what the function returns beside its output."""
    if not has_aux:
        return lambda tangents: jvp(f, leaves, tangents)[1], None
    out, linear = linearize(f, *leaves)
    if type(out) is not tuple or len(out) != 2:
        raise OptionError(
            f"with has_aux=True the function returns a pair (output, aux), not {flatten(out)[1]}",
            remedy="return output, aux",
        )
    return lambda tangents: linear(*tangents)[0], out[1]


def jacrev(
    function: Callable[..., Any] | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    backend: str | None = None,
) -> Any:
    """The Jacobian, row by row in reverse mode; ``derivative_docstrings`` has its parameters."""
    argnums = checked_argnums("jacrev", argnums)
    made = Composed("jacrev", make=rows, options=(argnums, has_aux), backend=backend)
    return partial(Compiled, transform=made) if function is None else Compiled(function, made)


def rows(
    argnums: Argnums, has_aux: bool, function: Callable[..., Any], combined: Combined = by_complex
) -> Callable[..., Any]:
    """The Jacobian as a function, row by row; ``combined`` makes derivatives of complex results from those of parts."""

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        f, leaves, tree = restricted(function, argnums, args, kwargs)
        out, pullback, *aux = vjp(f, *leaves, has_aux=has_aux)
        outs, spec = flatten(out)
        blocks = []
        for i, y in enumerate(outs):
            rest = [_zeros(o) for o in outs]

            def pull(ct: Any, i: int = i, rest: list[Any] = rest) -> Any:
                return pullback(unflatten(spec, [*rest[:i], ct, *rest[i + 1 :]]))

            pulled = _along_units(pull, y, combined)[0]
            shape = np.shape(shadow_of(y))
            blocks.append(tree([np.reshape(r, (*shape, *r.shape[1:])) for r in pulled]))
        found = unflatten(spec, blocks)
        return (found, *aux) if has_aux else found

    return jacobian


def hessian(
    function: Callable[..., Any] | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    sparse: bool = False,
    backend: str | None = None,
) -> Any:
    """The matrix of second derivatives; ``derivative_docstrings`` has its parameters."""
    argnums = checked_argnums("hessian", argnums)
    if function is None:
        return partial(hessian, argnums=argnums, has_aux=has_aux, sparse=sparse, backend=backend)
    if sparse:
        without_aux(has_aux)
        return SparseJacobian(real_gradient(function, argnums), argnums, "fwd", "hessian", backend)
    return Compiled(function, Composed("hessian", make=_second, options=(argnums, has_aux), backend=backend))


def _second(argnums: Argnums, has_aux: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    return _columns(argnums, has_aux, real_gradient(function, argnums, has_aux))


def real_gradient(function: Callable[..., Any], argnums: Argnums, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient, whose own derivative is wanted: that by complex numbers is more than one number."""
    slope = grad(function, argnums, has_aux=has_aux)

    def real(*args: Any, **kwargs: Any) -> Any:
        leaves = restricted(function, argnums, args, kwargs)[1]
        complexes = [aval for aval in map(aval_of, map(shadow_of, leaves)) if aval.dtype.kind == "c"]
        if complexes:
            raise NonDifferentiableError(
                f"the Hessian by {complexes[0]}: the second derivative by z = a + 1j * b is several numbers",
                remedy="take it by a and b, as in rg.hessian(lambda a, b: f(a + 1j * b), argnums=(0, 1))",
            )
        return slope(*args, **kwargs)

    return real
