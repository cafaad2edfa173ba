"""adjoint, cotangent_space, hvp and jacobian: derivatives as functions of points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..compiler.composed import Composed
from ..compiler.members import as_member
from ..compiler.signature import Argnums, is_traced, take_apart, wanted
from ..compiler.transform import Transform
from ..errors import NonDifferentiableError, OptionError
from ..ir.types import Aval, aval_of
from ..tracer.array import shadow_of
from ..tracer.containers import flatten_like
from ..tracer.tree import Spec, flatten, nondiff_leaves, unflatten
from .along_tangents import jvp
from .at_a_point import split_aux, vjp
from .gradients import grad
from .jacobians import directions, jacfwd, jacrev
from .restricted import checked_argnums
from .sparse import SparseJacobian, without_aux


def adjoint(function: Callable[..., Any]) -> Callable[..., Callable[[Any], Any]]:
    """The adjoint of a function, as a function of points and cotangents: ``adjoint(f)(*primals)(ct)``.

    Adjoints compose against the direction of functions: ``adjoint(g∘f)(x) = adjoint(f)(x) ∘ adjoint(g)(f(x))``.

    Parameters
    ----------
    function : callable
        The function to differentiate.

    Returns
    -------
    callable
        It takes the primals and returns a function of the cotangent. That function returns one cotangent for one
        primal, and a tuple for several.

    Raises
    ------
    ShapeError, TreeError
        If a cotangent does not belong to the output.
    NonDifferentiableError
        If a primal holds no floating-point numbers.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.adjoint(np.sin)(np.array([0.0, np.pi]))(np.array([1.0, 1.0]))
    array([ 1., -1.])
    """

    def at(*primals: Any) -> Callable[[Any], Any]:
        _, pullback = vjp(function, *primals)

        def pull(ct: Any) -> Any:
            cts = pullback(ct)
            return cts[0] if len(primals) == 1 else cts

        return pull

    return at


class CotangentSpace:
    """The cotangents at a point: trees with its structure, shapes and dtypes; None for a leaf without cotangents."""

    def __init__(self, point: Any) -> None:
        leaves, self._point = flatten(point)
        self._avals: list[Aval | None] = [
            None if fixed else _cotangent_aval(x) for x, fixed in zip(leaves, nondiff_leaves(self._point), strict=True)
        ]
        self._spec = flatten(self.zero())[1]
        if not self._spec.num_leaves:
            raise NonDifferentiableError(
                f"{point!r:.80} contains no floating-point value, so it has no cotangents",
                remedy="pass floating-point numbers: 1.0 instead of 1, x.astype(float)",
            )

    @property
    def spec(self) -> Spec:
        """The structure of the cotangents."""
        return self._spec

    @property
    def dimension(self) -> int:
        """The number of basis vectors."""
        return sum(aval.size for aval in self._avals if aval is not None)

    def zero(self) -> Any:
        """The zero cotangent."""
        return unflatten(self._point, self._zeros())

    def _zeros(self) -> list[Any]:
        return [None if a is None else np.zeros(a.shape, a.dtype)[()] for a in self._avals]

    def basis(self) -> Iterator[Any]:
        """The unit cotangents, in the order of the leaves and their elements."""
        for k, aval in enumerate(self._avals):
            for i in range(0 if aval is None else aval.size):
                assert aval is not None
                unit = np.zeros(aval.size, aval.dtype)
                unit[i] = 1
                leaves = self._zeros()
                leaves[k] = unit.reshape(aval.shape)[()]
                yield unflatten(self._point, leaves)

    def check(self, ct: Any) -> Any:
        """Check that a cotangent belongs to the space.

        Parameters
        ----------
        ct : tree
            The cotangent.

        Returns
        -------
        tree
            The cotangent with the dtypes of the space.

        Raises
        ------
        ShapeError, TreeError
            If it is not a member.
        """
        leaves = flatten_like(self._spec, ct, "the cotangent")
        avals = [a for a in self._avals if a is not None]
        members = [as_member(x, a, "the cotangent") for x, a in zip(leaves, avals, strict=True)]
        return unflatten(self._spec, members)


def _cotangent_aval(x: Any) -> Aval | None:
    """The aval of a leaf with cotangents; None for any other."""
    aval = aval_of(shadow_of(x)) if is_traced(x) else None
    return aval if aval is not None and aval.inexact else None


def cotangent_space(point: Any) -> CotangentSpace:
    """The space of cotangents at a point.

    Parameters
    ----------
    point : tree
        Arrays and numbers; its floating-point leaves span the space.

    Returns
    -------
    CotangentSpace
        It has ``zero()``, ``basis()``, ``check(ct)`` and ``dimension``.

    Raises
    ------
    NonDifferentiableError
        If the point has no floating-point numbers.

    Examples
    --------
    >>> import retrograd as rg
    >>> space = rg.cotangent_space({"x": 1.0, "y": 2.0})
    >>> [{name: float(v) for name, v in unit.items()} for unit in space.basis()]
    [{'x': 1.0, 'y': 0.0}, {'x': 0.0, 'y': 1.0}]
    """
    return CotangentSpace(point)


def hvp(function: Callable[..., Any], *, backend: str | None = None) -> Any:
    """The product of the Hessian with a vector; ``derivative_docstrings`` has its parameters."""
    return Compiled(function, Composed("hvp", make=_product, backend=backend))


def _product(function: Callable[..., Any]) -> Callable[..., Any]:
    def product(x: Any, v: Any) -> Any:
        return jvp(grad(function), (x,), (v,))[1]

    return product


def jacobian(
    function: Callable[..., Any] | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    mode: str = "auto",
    sparse: bool = False,
    backend: str | None = None,
) -> Any:
    """The Jacobian by the cheaper mode, or sparse; ``derivative_docstrings`` has its parameters."""
    argnums = checked_argnums("jacobian", argnums)
    if function is None:
        return partial(jacobian, argnums=argnums, has_aux=has_aux, mode=mode, sparse=sparse, backend=backend)
    if mode not in ("auto", "fwd", "rev"):
        raise OptionError(f"mode={mode!r} is not a mode", remedy="use 'auto', 'fwd' or 'rev'")
    if sparse:
        without_aux(has_aux)
        return SparseJacobian(function, argnums, mode, "jacobian", backend)
    if mode != "auto":
        return (jacfwd if mode == "fwd" else jacrev)(function, argnums, has_aux=has_aux, backend=backend)
    return Compiled(function, Composed("jacobian", make=_cheaper, options=(argnums, has_aux), backend=backend))


def _cheaper(argnums: Argnums, has_aux: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    def matrix(*args: Any, **kwargs: Any) -> Any:
        mode = jacfwd if suits_columns(argnums, has_aux, function, args, kwargs) else jacrev
        return mode(function, argnums, has_aux=has_aux)(*args, **kwargs)

    return matrix


def suits_columns(argnums: Argnums, has_aux: bool, function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Whether a Jacobian has no more columns than rows, each complex number counted twice."""
    call = take_apart(function, args, kwargs)
    chosen = wanted(call, function, argnums)
    recorded = Transform("jacobian").record(function, call)[0]
    variables = (aval_of(shadow_of(x)) for x, on in zip(call.values(), chosen.active, strict=True) if on)
    results = recorded.graph.out_avals[: split_aux(recorded, has_aux)[1]]
    return sum(map(directions, variables)) <= sum(map(directions, results))
