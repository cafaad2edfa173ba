"""Roots, fixed points and minima: the values are those of ``scipy.optimize``, the derivatives implicit ones.

>>> import numpy as np, retrograd as rg
>>> root = lambda a: rg.scipy.brentq(lambda x, a: x * x - a, 0.0, 10.0, a)
>>> round(float(rg.grad(root)(2.0)), 12), round(float(rg.grad(rg.grad(root))(2.0)), 12)
(0.353553390593, -0.088388347648)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.record_body import check_functions
from ..compiler.unknowns import Unknowns, flat, unknowns_of
from ..errors import OptionError
from ..ir.builder import Builder
from ..ir.types import Aval
from ..ops import implicit, slopes
from ..ops.shape import reshape_to
from ..passes.inline import inline_into
from ..tracer.array import Tracer, shadow_of
from ..tracer.outside import trace_here
from ..tracer.trace import unsupported
from .dispatch import Lazy, known, rest_of, stands_for
from .problems import Equations, problem_of, refuse, vector_problem

__all__ = ["brentq", "fixed_point", "least_squares", "minimize", "root"]
__getattr__ = rest_of("scipy.optimize")

OPTIMIZE = Lazy("scipy.optimize")
# What a method takes besides values: a gradient; products with the Hessian, or the Hessian itself.
BY_VALUES = ("nelder-mead", "powell", "cobyla", "cobyqa")
BY_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
BY_HESSIANS = ("dogleg", "trust-exact")
BY_GRADIENTS = ("cg", "bfgs", "l-bfgs-b", "tnc", "slsqp")
TO_THE_BOUND = ("l-bfgs-b", "tnc", "slsqp")  # these end on a bound, and not only near it
# Their code in C goes on after a result that is no number, with the error pending: what it calls then may fail anyhow.
IN_C = ("bisect", "brenth", "brentq", "ridder")
DERIVED = "leave it out: it is derived from the function"
ARGS = "pass them after x0"
CALLBACK = "leave it out, or call SciPy's function outside of traced ones"


def root(f: Callable[..., Any], x0: Any, *args: Any, **scipy_options: Any) -> Any:
    """A solution x of ``f(x, *args) = 0``, by ``scipy.optimize.root``; x has derivatives in the arguments.

    Outside of a trace the result is SciPy's. In a trace it has ``.x`` and ``.fun``, and a solver that does not converge
    is an error. The Jacobian is derived. The captures of ``f`` get derivatives, too.

    Parameters
    ----------
    f : callable
        It takes the unknowns and the arguments, and returns as many numbers as there are unknowns.
    x0 : array or tree
        The first guess, which gets no derivative.
    *args : tree
        Further arguments of ``f``.
    **scipy_options
        ``method``, ``tol`` and ``options``, as for SciPy.

    Returns
    -------
    OptimizeResult
        The solution is ``.x``, a vector or a tree like x0.

    Raises
    ------
    SolutionError
        In a trace, if the solver does not converge; where a derivative is wanted, if the Jacobian is singular.
    ShapeError
        If the numbers of unknowns and equations differ.
    UnsupportedError, OptionError
        For complex unknowns, or a wrong option.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> def crossing(a):
    ...     return rg.scipy.root(lambda x, a: (x[0] ** 2 - a, x[1] - x[0]), np.ones(2), a, tol=1e-12).x
    >>> np.round(rg.jacfwd(crossing)(4.0), 9)
    array([0.25, 0.25])
    """
    check_functions("root", "rg.scipy.root(f, x0, *args)", f)
    refuse("root", scipy_options, {"jac": DERIVED, "args": ARGS, "callback": CALLBACK})
    unknowns = unknowns_of(x0, "root")
    problem = vector_problem("root", f, unknowns, args, len(shadow_of(unknowns.start)))
    method = str(scipy_options.get("method") or "hybr").lower()
    bodies = {"value": problem.graph, "equation": slopes.result_of(problem.graph, 0)}
    if method in ("hybr", "lm"):
        bodies["slope"] = slopes.jacobian_of(problem.graph)
    options = {**scipy_options, "method": method}
    found = problem.solved("root", unknowns.start, bodies, options)
    return _result(found, unknowns, lambda x: {"fun": f(x, *args)})


def _result(found: Any, unknowns: Unknowns, more: Callable[[Any], dict[str, Any]]) -> Any:
    """SciPy's result with the tree of unknowns; in a trace ``more`` gives what else there is."""
    if trace_here() is None:
        found.x = unknowns.tree(np.reshape(found.x, (-1,)) if unknowns.spec is not None else found.x)
        return found
    x = unknowns.tree(found)
    return OPTIMIZE.OptimizeResult(x=x, success=True, **more(x))


def _stopped_by_tracers(name: str) -> Callable[..., Any]:
    """SciPy's own solver, which in a trace ends where its function first gives a traced value."""

    def solver(f: Callable[..., Any], *args: Any, **options: Any) -> Any:
        def number(*x: Any) -> Any:
            found = f(*x)
            return float(found) if isinstance(found, Tracer) else found

        return getattr(OPTIMIZE, name)(number, *args, **options)

    return stands_for(f"scipy.optimize.{name}", closures=True)(solver)


for _name in IN_C:
    _stopped_by_tracers(_name)


def brentq(f: Callable[..., Any], a: Any, b: Any, *args: Any, **scipy_options: Any) -> Any:
    """The number x between a and b with ``f(x, *args) = 0``, by ``scipy.optimize.brentq``.

    Parameters
    ----------
    f : callable
        A function of one number and the arguments. Its captures get derivatives, too.
    a, b : float
        The ends of the interval, which get no derivatives.
    *args : tree
        Further arguments of ``f``.
    **scipy_options
        ``xtol``, ``rtol`` and ``maxiter``, as for SciPy.

    Returns
    -------
    float
        The solution.

    Raises
    ------
    SolutionError
        In a trace, if f has one sign at both ends.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> kepler = lambda m, e: rg.scipy.brentq(lambda x: x - e * np.sin(x) - m, 0.0, np.pi)
    >>> rg.check_grads(kepler, (1.0, 0.3), order=2)
    """
    check_functions("brentq", "rg.scipy.brentq(f, a, b, *args)", f)
    refuse(
        "brentq", scipy_options, {"full_output": "leave it out", "disp": "leave it out", "args": "pass them after b"}
    )
    start = flat((a, b), "brentq")
    problem = problem_of(f, float(shadow_of(start)[0]), args, Equations("brentq", numbers=1, alone=True))
    graph = problem.graph
    inner = Builder()
    x = inner.input(Aval((1,), np.dtype(float)), "x")
    number = inner.coerce(reshape_to(x, ()), graph.inputs[0].aval)
    (left,) = inline_into(inner, graph, [number, *inner.inputs_like(graph.inputs[1:])])
    equation = inner.graph(graph.name, [reshape_to(left, (1,))])
    found = problem.solved("brentq", start, {"value": graph, "equation": equation}, scipy_options)
    return found if trace_here() is None else found[0]


def fixed_point(f: Callable[..., Any], x0: Any, *args: Any, **scipy_options: Any) -> Any:
    """A solution x of ``f(x, *args) = x``, by ``scipy.optimize.fixed_point``.

    Parameters
    ----------
    f : callable
        It takes and returns x. Its captures get derivatives, too.
    x0 : array or tree
        The first guess, which gets no derivative.
    *args : tree
        Further arguments of ``f``.
    **scipy_options
        ``xtol``, ``maxiter`` and ``method``, as for SciPy.

    Returns
    -------
    array or tree
        The solution, a tree like x0.

    Raises
    ------
    SolutionError
        In a trace, if the iteration does not converge; where a derivative is wanted, if it is not determined.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> settled = lambda a: rg.scipy.fixed_point(lambda x: np.cos(a * x), 0.5, xtol=1e-12)
    >>> rg.check_grads(settled, (1.0,), order=2)
    """
    check_functions("fixed_point", "rg.scipy.fixed_point(f, x0, *args)", f)
    refuse("fixed_point", scipy_options, {"args": ARGS})
    unknowns = unknowns_of(x0, "fixed_point", vectors=False)
    problem = vector_problem("fixed_point", f, unknowns, args, len(shadow_of(unknowns.start)))
    b = Builder()
    given = b.inputs_like(problem.graph.inputs)
    (after,) = inline_into(b, problem.graph, given)
    equation = b.graph(problem.graph.name, [given[0] - after])
    bodies = {"value": problem.graph, "equation": equation}
    return unknowns.tree(problem.solved("fixed_point", unknowns.start, bodies, scipy_options))


def minimize(f: Callable[..., Any], x0: Any, *args: Any, **scipy_options: Any) -> Any:
    """The x that minimizes ``f(x, *args)``, by ``scipy.optimize.minimize``; x and the minimum have derivatives.

    Gradients are derived, and so are products with the Hessian where the method takes them. Derivatives of the solution
    are as exact as the minimum: set ``tol=``, or a method with Hessians.

    Parameters
    ----------
    f : callable
        It takes the unknowns and the arguments, and returns one number.
    x0 : array or tree
        The first guess, which gets no derivative.
    *args : tree
        Further arguments of ``f``.
    **scipy_options
        ``method``, ``tol``, ``options``, and ``bounds``, which holds pairs for the vector of unknowns. Unknowns on a
        bound that holds them have no derivative.

    Returns
    -------
    OptimizeResult
        The solution is ``.x`` and the minimum ``.fun``.

    Raises
    ------
    SolutionError
        In a trace, if the solver does not converge; where a derivative is wanted, if the Hessian is singular.
    UnsupportedError
        For constraints, and for bounds with a method that only comes near them.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> x, y = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]]), np.array([1.0, 0.0, 2.0])
    >>> ridge = lambda w, c: np.sum((x @ w - y) ** 2) + c * np.sum(w * w)
    >>> fitted = lambda c: rg.scipy.minimize(ridge, np.zeros(2), c, tol=1e-10).x
    >>> exact = lambda c: np.linalg.solve(x.T @ x + c * np.eye(2), x.T @ y)
    >>> np.allclose(rg.jacfwd(fitted)(0.5), rg.jacfwd(exact)(0.5), rtol=1e-8)
    True
    """
    check_functions("minimize", "rg.scipy.minimize(f, x0, *args)", f)
    refused = dict.fromkeys(("jac", "hess", "hessp"), DERIVED) | {"args": ARGS, "callback": CALLBACK}
    refused["constraints"] = "substitute variables, or add a penalty: derivatives under constraints are not known"
    refuse("minimize", scipy_options, refused)
    unknowns = unknowns_of(x0, "minimize")
    n = len(shadow_of(unknowns.start))
    options = {name: value for name, value in scipy_options.items() if name != "constraints"}
    low, high = _bounds(options.get("bounds"), n)
    if options.get("bounds") is not None:
        options["bounds"] = tuple(zip(low, high, strict=True))
    bounded = any(math.isfinite(x) for x in (*low, *high))
    method = str(options.get("method") or ("L-BFGS-B" if bounded else "BFGS")).lower()
    if method not in (*BY_VALUES, *BY_GRADIENTS, *BY_PRODUCTS, *BY_HESSIANS):
        raise unsupported(f"rg.scipy.minimize with method={method!r}", "choose one of SciPy's methods by its name")
    if bounded and method not in TO_THE_BOUND and trace_here() is not None:
        raise unsupported(f"bounds with method={method!r}", f"choose one of {', '.join(TO_THE_BOUND)}")
    options["method"] = method
    problem = vector_problem("minimize", f, unknowns, args, 1, alone=True)
    both = slopes.gradient_of(problem.graph)
    gradient = slopes.result_of(both, 1)
    bodies = {"value": problem.graph} if method in BY_VALUES else {"slope": both}
    if method in BY_PRODUCTS:
        bodies["product"] = slopes.product_of(gradient)
    if method in BY_HESSIANS:
        bodies["product"] = slopes.jacobian_of(gradient)
    bodies["equation"] = implicit.stationary(gradient, low, high) if bounded else gradient
    found = problem.solved("minimize", unknowns.start, bodies, options, symmetric=not bounded)
    return _result(found, unknowns, lambda x: {"fun": f(x, *args)})


def _bounds(bounds: Any, n: int) -> tuple[list[float], list[float]]:
    """Lower and upper bounds; infinite where there are none."""
    if bounds is None:
        return [-np.inf] * n, [np.inf] * n
    if hasattr(bounds, "lb"):
        pairs = list(zip(*(np.broadcast_to(np.asarray(x, float), (n,)) for x in (bounds.lb, bounds.ub)), strict=True))
    else:
        pairs = list(bounds)
    if not all(known(x) for pair in pairs for x in pair):
        raise unsupported("traced bounds", "give plain numbers, or scale the unknowns: x = low + (high - low) * u")
    if len(pairs) != n:
        raise OptionError(f"{len(pairs)} bounds for {n} unknowns", remedy="give a pair (low, high) for each unknown")
    low = [-np.inf if a is None else float(shadow_of(a)) for a, _ in pairs]
    return low, [np.inf if b is None else float(shadow_of(b)) for _, b in pairs]


def _paired(bounds: Any, n: int) -> Any:
    """The bounds of ``scipy.optimize.least_squares``, low and high, as a pair for each unknown."""
    if bounds is None or hasattr(bounds, "lb"):
        return bounds
    low, high = bounds
    if not all(map(known, (low, high))):
        raise unsupported("traced bounds", "give plain numbers, or scale the unknowns: x = low + (high - low) * u")
    return list(zip(*(np.broadcast_to(np.asarray(shadow_of(x), float), (n,)) for x in (low, high)), strict=True))


def least_squares(f: Callable[..., Any], x0: Any, *args: Any, **scipy_options: Any) -> Any:
    """The x that minimizes the sum of squares of ``f(x, *args)``, by ``scipy.optimize.least_squares``.

    Derivatives are those of the minimum, with the curvature of the residuals.

    Parameters
    ----------
    f : callable
        It takes the unknowns and the arguments, and returns the residuals.
    x0 : array or tree
        The first guess, which gets no derivative.
    *args : tree
        Further arguments of ``f``.
    **scipy_options
        ``method``, ``xtol``, ``ftol``, ``gtol``, and ``bounds``: a pair of numbers or vectors, low and high. With
        bounds the method is ``dogbox``, unless another one is given.

    Returns
    -------
    OptimizeResult
        In a trace it has ``.x``, the residuals ``.fun``, and ``.cost``.

    Raises
    ------
    SolutionError
        In a trace, if the solver does not converge; where a derivative is wanted, if the Hessian is singular.
    UnsupportedError
        For robust losses, and in a trace for bounds with a method that only comes near them.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> t = np.linspace(0.0, 1.0, 8)
    >>> def rate(y):
    ...     return rg.scipy.least_squares(lambda k: np.exp(-k * t) - y, 1.0, xtol=1e-15, ftol=1e-15, gtol=1e-15).x[0]
    >>> rg.check_grads(rate, (np.exp(-1.7 * t) + 0.01 * t,), order=2)
    """
    check_functions("least_squares", "rg.scipy.least_squares(f, x0, *args)", f)
    robust = None if scipy_options.get("loss") in (None, "linear") else "minimize a sum of losses by rg.scipy.minimize"
    refused = {"args": ARGS, "kwargs": ARGS, "jac": DERIVED, "jac_sparsity": DERIVED, "callback": CALLBACK}
    refuse("least_squares", scipy_options, refused | ({} if robust is None else {"loss": robust}))
    unknowns = unknowns_of(x0, "least_squares")
    n = len(shadow_of(unknowns.start))
    low, high = _bounds(_paired(scipy_options.get("bounds"), n), n)
    options, bounded = dict(scipy_options), any(math.isfinite(x) for x in (*low, *high))
    if bounded:
        options |= {"bounds": (low, high), "method": options.get("method") or "dogbox"}
    if bounded and options["method"] != "dogbox" and trace_here() is not None:
        raise unsupported(f"bounds with method={options['method']!r}", "choose dogbox")
    problem = vector_problem("least_squares", f, unknowns, args, None)
    graph = problem.graph
    b = Builder()
    given = b.inputs_like(graph.inputs)
    (left,) = inline_into(b, graph, given)
    equation = b.graph(f"{graph.name}_normal", inline_into(b, slopes.pulled(graph), [left, *given]))
    equation = implicit.stationary(equation, low, high) if bounded else equation
    bodies = {"value": graph, "slope": slopes.jacobian_of(graph), "equation": equation}
    found = problem.solved("least_squares", unknowns.start, bodies, options, symmetric=not bounded)

    def more(x: Any) -> dict[str, Any]:
        left = flat(f(x, *args), "least_squares")
        return {"fun": left, "cost": 0.5 * np.sum(left * left)}

    return _result(found, unknowns, more)
