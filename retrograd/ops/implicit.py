"""Solutions of equations and minima: the values are a solver's, the derivatives those of the implicit function theorem.

If E(x, p...) = 0, then ẋ = -A⁻¹ ∂E/∂p ṗ with A = ∂E/∂x. Up to ``DENSE`` unknowns A is a matrix, and the equations are
solved by factorization; for more they are solved by Krylov methods on products with A and Aᵀ, and A is never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..errors import SolutionError, UnsupportedError
from ..ir.builder import Builder, Symbol
from ..ir.embedded import embed
from ..ir.graph import Graph, Node
from ..ir.modules import load
from ..ir.primitive import REGISTRY, TRANSFORMS, JvpMode, Primitive, primitive
from ..ir.structure import Body, Group, Runs, Structure
from ..ir.target import PROVIDERS
from ..ir.types import Aval
from .batching import elementwise
from .lane_loops import looped
from .linalg.solutions import solve
from .shape import broadcast_to, reshape_to, stop_gradient
from .slopes import jacobian_of, pulled, pushed
from .structural.call import ONCE

REAL = np.dtype(float)
DENSE = 256  # unknowns: of more the Jacobian is never formed
SOLVERS = ("root", "brentq", "fixed_point", "minimize", "least_squares")
BY_VALUES = {"nelder-mead": 4, "powell": 2, "cobyla": 16, "cobyqa": 16}
BY_SLOPES = {"hybr": 3, "lm": 5, "bfgs": 8, "slsqp": 12, "dogleg": 3, "trust-exact": 6, "trust-krylov": 6}
MATRICES = BY_VALUES | BY_SLOPES  # how many SciPy's methods hold at once, measured with SciPy 1.17
VECTORS = 64  # and at most how many vectors, but for the bases of Krylov methods

UNSOLVED = embed("""
def unsolved(message):
    raise RuntimeError(message)
""")
SEARCH = embed("""
def search(solver, start, parameters, value, slope, product, options):
    def alone(function):
        return lambda *args: np.array(function(*args))
    def value_and_slope(*args):
        found, gradient = slope(*args)
        return found, np.array(gradient)
    given = {name: dict(x) if name == 'options' else x for name, x in options}
    if solver == 'brentq':
        return scipy.optimize.brentq(value, start[0], start[1], parameters, **given)
    if solver == 'fixed_point':
        return scipy.optimize.fixed_point(alone(value), start, parameters, **given)
    if solver == 'least_squares':
        return scipy.optimize.least_squares(alone(value), start, alone(slope), args=parameters, **given)
    if solver == 'root':
        return scipy.optimize.root(alone(value), start, parameters, jac=slope and alone(slope), **given)
    if product is not None:
        given['hess' if given['method'] in ('dogleg', 'trust-exact') else 'hessp'] = alone(product)
    if slope is not None:
        return scipy.optimize.minimize(value_and_slope, start, parameters, jac=True, **given)
    return scipy.optimize.minimize(alone(value), start, parameters, **given)
""")
SOLVED = embed("""
def solved(solver, start, parameters, value, slope, product, options):
    if solver == 'brentq':
        ends = [value(start[0], *parameters), value(start[1], *parameters)]
        if not ends[0] * ends[1] <= 0.0:
            unsolved(f'scipy.optimize.brentq: the function is {ends[0]} and {ends[1]} at the ends of the interval')
    if solver in ('brentq', 'fixed_point'):
        try:
            found = search(solver, start, parameters, value, slope, product, options)
        except RuntimeError as fault:
            unsolved(f'scipy.optimize.{solver}: {fault}')
        return np.reshape(np.array(found, float), -1)
    found = search(solver, start, parameters, value, slope, product, options)
    near = False
    if solver == 'minimize' and found.status == 2 and 'jac' in found and 'bounds' not in dict(options):
        near = np.max(np.abs(found.jac)) <= 1e-5
    if solver == 'root' and slope is not None and len(found.x):
        size = np.max(np.abs(found.x))
        try:
            step = np.max(np.abs(np.linalg.solve(slope(found.x, *parameters), value(found.x, *parameters))))
        except np.linalg.LinAlgError:
            step = 0.0 if found.success else np.inf
        if step > 1e-4 * (1.0 + size):
            unsolved(f'scipy.optimize.root: it stopped away from a root. {found.message}')
        near = step <= 1e-10 * size
    if not (found.success or near) or not np.all(np.isfinite(found.x)):
        unsolved(f'scipy.optimize.{solver}: {found.message}')
    return np.reshape(np.array(found.x, float), -1)
""")
CERTIFIED = embed("""
def certified(matrix, near):
    rows = np.max(np.abs(matrix), axis=-1, keepdims=True)
    flat = rows == 0.0
    scaled = matrix / np.where(flat, 1.0, rows)
    columns = np.max(np.abs(scaled), axis=-2, keepdims=True)
    flat = flat.any(axis=(-2, -1)) | (columns == 0.0).any(axis=(-2, -1))
    columns = np.where(columns == 0.0, 1.0, columns)
    scaled = scaled / columns
    if scaled.size and np.all(np.isfinite(scaled)):
        regular = np.where(flat[..., None, None], np.eye(matrix.shape[-1]), scaled)
        if np.any(flat) or np.any(np.linalg.cond(regular, 1) > 0.1 / np.finfo(float).eps):
            unsolved('the Jacobian of the equations is singular at the solution, which has no derivative there')
        moved = np.abs(near - matrix) / np.where(rows == 0.0, 1.0, rows) / columns
        if not np.all(moved <= 0.25):
            unsolved('the Jacobian of the equations changes within one Newton step from the solution: '
                     'it is singular there, or the solution is not accurate')
    return np.ones(matrix.shape[:-2])[()]
""")
KRYLOV = embed("""
def solve_krylov(product, right, parameters, symmetric):
    size = np.max(np.abs(right))
    if not np.isfinite(size):
        return np.full_like(right, np.nan)
    def times(v):
        return np.array(product(np.reshape(v, -1), *parameters))
    operator = scipy.sparse.linalg.LinearOperator((len(right), len(right)), times, dtype=right.dtype)
    if symmetric:
        found, _ = scipy.sparse.linalg.cg(operator, right, rtol=1e-13, atol=0.0)
    else:
        found, _ = scipy.sparse.linalg.gmres(operator, right, rtol=1e-13, atol=0.0, restart=min(len(right), 200))
    if not np.max(np.abs(times(found) - right)) <= 1e-9 * size:
        unsolved('the linear equations of the derivative are not solved: the Jacobian is singular, or nearly so')
    return found
""")


def raise_unsolved(message: str) -> None:
    """Raise the named error for an equation without a solution, or a solution without a derivative."""
    raise SolutionError(
        " ".join(message.split()),
        remedy="start closer to the solution, allow more steps, or scale the unknowns; "
        "a derivative needs a regular Jacobian and a converged solution",
    )


PROVIDERS.append(lambda graph: {"unsolved": raise_unsolved})


PARTS = {  # of the generated source: the text, and the modules of SciPy that it needs
    "search": (SEARCH, ("scipy.optimize",)),
    "solved": (SEARCH + SOLVED, ("scipy.optimize",)),
    "certified": (CERTIFIED, ()),
    "solve_krylov": (KRYLOV, ("scipy.sparse.linalg",)),
}


@cache
def helper(name: str) -> Callable[..., Any]:
    """A function of generated source, for the interpreter and for plain calls. UnsupportedError without its SciPy."""
    source, needed = PARTS[name]
    scope: dict[str, Any] = {"np": np, "unsolved": raise_unsolved, "__name__": __name__}
    for part in needed:
        try:
            scope["scipy"] = load(part)
        except ModuleNotFoundError:
            what = f"a derivative for more than {DENSE} unknowns" if name == "solve_krylov" else "a solver of rg.scipy"
            raise UnsupportedError(
                f"{what} needs SciPy, which is not installed", remedy="python -m pip install scipy"
            ) from None
    exec(source, scope)  # noqa: S102 - the source stands above
    found: Callable[..., Any] = scope[name]
    return found


# --- certified: (A, A') → 1.0; it raises unless A is regular and near A', the Jacobian one Newton step further


def _certified_shape(a: Aval, near: Aval) -> Aval:
    if a != near or a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype != REAL:
        raise ValueError(f"{a} and {near} are not equal stacks of square matrices in double precision")
    return Aval(a.shape[:-2], REAL, "array" if a.ndim > 2 else "scalar")


certified: Primitive = primitive(
    "certified",
    _certified_shape,
    run=lambda _, node, a, near: helper("certified")(a, near),
    scratch=lambda a, near: 6 * a.nbytes,
    batch=elementwise,
    diff=(None, None),
)


# --- solve_krylov: (r, x, p...) → A⁻¹ r, linear in r


def _krylov_shape(right: Aval, *given: Aval, forward: Graph, backward: Graph, symmetric: bool) -> Aval:
    for graph in (forward, backward):
        if graph.in_avals != (right, *given) or graph.out_avals != (right,):
            raise ValueError(f"{graph.name} gives no product with {right}")
    return right


def _krylov_run(evaluate: Any, node: Node, right: Any, *given: Any) -> Any:
    def product(*args: Any) -> Any:
        return evaluate(node.attrs["forward"], args)[0]

    return helper("solve_krylov")(product, right, given, node.attrs["symmetric"])


def _krylov_jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    (found,) = b.copy_node(node, [x.value for x in args])
    right, *rest = tans
    if any(t is not None for t in rest):
        _, (moved,) = TRANSFORMS.jvp(b, node.attrs["forward"], [found, *args[1:]], [None, *rest], mode)
        if moved is not None:
            right = -moved if right is None else right - moved
    if right is None:
        return [found], [None]
    right = b.coerce(right, args[0].aval)
    (tangent,) = b.emit(solve_krylov, [x.value for x in (right, *args[1:])], node.attrs)
    return [found], [tangent]


def _krylov_transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    (ct,) = cts
    if ct is None:
        return [None] * len(operands)
    attrs = {**node.attrs, "forward": node.attrs["backward"], "backward": node.attrs["forward"]}
    (found,) = b.emit(solve_krylov, [x.value for x in (ct, *operands[1:])], attrs)
    return [found, *(None for _ in operands[1:])]


solve_krylov: Primitive = primitive(
    "solve_krylov",
    _krylov_shape,
    run=_krylov_run,
    scratch=lambda right, *given, **_: (VECTORS + 2 * min(right.size, 200)) * right.nbytes,
    jvp=_krylov_jvp,
    transpose=_krylov_transpose,
    batch=looped,
    structure=Structure(
        bodies=(
            Body("forward", Runs.STEPS, ("direction", "consts"), ("moved",), times=lambda _: -1),
            Body("backward", Runs.NEVER),
        ),
        operands=(Group("right", 1), Group("consts")),
        inner=(Group("direction", 1), Group("moved", 1)),
    ),
)


# --- the derivative of a solution


def _regular(b: Builder, equation: Graph, x: Symbol, given: Sequence[Symbol]) -> Symbol:
    """The Jacobian at a solution, certified."""
    jacobian = jacobian_of(equation)
    (a,) = TRANSFORMS.inline(b, jacobian, [x, *given])
    still = [stop_gradient(v) if v.aval.inexact else v for v in (x, *given)]
    (left,) = TRANSFORMS.inline(b, equation, still)
    fixed = stop_gradient(a)
    first = _times_number(fixed, certified(fixed, fixed))
    step = solve(first, left)
    (near,) = TRANSFORMS.inline(b, jacobian, [still[0] - step, *still[1:]])
    return _times_number(a, certified(fixed, near))


def _times_number(matrix: Symbol, number: Symbol) -> Symbol:
    product: Symbol = matrix * broadcast_to(reshape_to(number, (1, 1)), matrix.shape)
    return product


def _tangent(
    b: Builder, equation: Graph, x: Symbol, given: Sequence[Symbol], tans: Sequence[Any], mode: JvpMode, symmetric: bool
) -> Symbol | None:
    """The tangent of x, by one solution of linear equations."""
    if not x.size or all(t is None for t in tans):
        return None
    _, (moved,) = TRANSFORMS.jvp(b, equation, [x, *given], [None, *tans], mode)
    if moved is None:
        return None
    moved = b.coerce(moved, x.aval)
    if x.size <= DENSE:
        return -solve(_regular(b, equation, x, given), moved)  # type: ignore[no-any-return]  # untyped operators
    helper("solve_krylov")  # without SciPy, say so now
    attrs = {"forward": pushed(equation), "backward": pulled(equation), "symmetric": symmetric}
    (found,) = b.emit(solve_krylov, [v.value for v in (moved, x, *given)], attrs)
    return -found  # type: ignore[no-any-return]  # as above


def _fits(x: Aval, given: Sequence[Aval], equation: Graph) -> bool:
    return x.ndim == 1 and x.dtype == REAL and equation.in_avals == (x, *given) and equation.out_avals == (x,)


# --- solution: (start, p...) → x, by a solver of SciPy


def _solution_shape(
    start: Aval, *given: Aval, solver: str, equation: Graph, options: Any, symmetric: bool, **bodies: Graph
) -> Aval:
    x = equation.in_avals[0]
    if start.ndim != 1 or start.dtype != REAL or solver not in SOLVERS or not _fits(x, given, equation):
        raise ValueError(f"{equation.name} is not an equation for unknowns like {start}")
    return x


def _solution_run(evaluate: Any, node: Node, start: Any, *given: Any) -> Any:
    def called(name: str) -> Callable[..., Any] | None:
        body = node.attrs.get(name)
        if body is None:
            return None
        single = len(body.outputs) == 1
        return lambda *args: evaluate(body, args)[0] if single else tuple(evaluate(body, args))

    bodies = [called(name) for name in ("value", "slope", "product")]
    return helper("solved")(node.attrs["solver"], start, given, *bodies, node.attrs["options"])


def _solution_bytes(start: Aval, *given: Aval, solver: str, equation: Graph, options: Any, **bodies: Any) -> int:
    """About what the solver holds itself."""
    x, method = equation.in_avals[0], dict(options).get("method")
    if solver == "least_squares":
        slope: Graph = bodies["slope"]
        return 11 * slope.out_avals[0].nbytes
    return (VECTORS + MATRICES.get(str(method), 0) * x.size) * x.nbytes


def _solution_jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    (x,) = b.copy_node(node, [v.value for v in args])
    equation, symmetric = node.attrs["equation"], node.attrs["symmetric"]
    return [x], [_tangent(b, equation, x, args[1:], tans[1:], mode, symmetric)]


solution: Primitive = primitive(
    "solution",
    _solution_shape,
    run=_solution_run,
    scratch=_solution_bytes,
    jvp=_solution_jvp,
    batch=looped,
    structure=Structure(
        bodies=(
            Body("value", Runs.STEPS, ("at", "consts"), ("found",), times=lambda _: -1),
            Body("slope", Runs.STEPS, ("at", "consts"), ("slopes",), times=lambda _: -1),
            Body("product", Runs.STEPS, ("at", "direction", "consts"), ("moved",), times=lambda _: -1),
            Body("equation", Runs.NEVER),
        ),
        operands=(Group("start", 1), Group("consts")),
        inner=(Group("at", 1), Group("direction", 1), Group("found", 1), Group("slopes"), Group("moved", 1)),
    ),
)


# --- implicit: (p...) → x, by a solver of the user's own; the first part of the operands goes to the solver alone


def _implicit_shape(*given: Aval, body: Graph, equation: Graph) -> Aval:
    if body.in_avals != given or len(body.outputs) != 1 or not _fits(body.out_avals[0], given, equation):
        raise ValueError(f"{equation.name} is not an equation for the result of {body.name}")
    return body.out_avals[0]


def _implicit_jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    (x,) = b.copy_node(node, [v.value for v in args])
    return [x], [_tangent(b, node.attrs["equation"], x, args, tans, mode, symmetric=False)]


implicit: Primitive = primitive(
    "implicit",
    _implicit_shape,
    run=lambda evaluate, node, *args: evaluate(node.attrs["body"], args)[0],
    lower=lambda b, node, args: TRANSFORMS.inline(b, TRANSFORMS.lower(node.attrs["body"]), args),
    jvp=_implicit_jvp,
    batch=looped,
    structure=Structure(bodies=(ONCE, Body("equation", Runs.NEVER))),
)


def stationary(gradient: Graph, low: Sequence[float], high: Sequence[float]) -> Graph:
    """The equation of a minimum within bounds: the gradient where x is free, and the distance to a bound that holds it.

    A bound holds if x is on it, to 1e-9 of its size, and the value falls beyond it. Where the value neither falls nor
    rises there, x has no derivative, but one for each side: then the equation is 0 = 0, whose Jacobian is singular.
    """
    b = Builder()
    args = b.inputs_like(gradient.inputs)
    (slope,) = TRANSFORMS.inline(b, gradient, args)
    x, equation = args[0], slope
    for limit, inwards in ((np.array(low, float), True), (np.array(high, float), False)):
        finite = np.isfinite(limit)
        place = np.where(finite, limit, 0.0)
        edge = np.where(finite, place + (1 if inwards else -1) * 1e-9 * np.maximum(1.0, np.abs(place)), limit)
        compare = REGISTRY["le"] if inwards else REGISTRY["ge"]
        falls = REGISTRY["gt"] if inwards else REGISTRY["lt"]
        at = compare(x, b.constant(edge))
        held = REGISTRY["logical_and"](at, falls(slope, b.zeros(slope.aval)))
        flat = REGISTRY["logical_and"](at, REGISTRY["eq"](slope, b.zeros(slope.aval)))
        equation = REGISTRY["where"](held, x - b.constant(place), equation)
        equation = REGISTRY["where"](flat, b.zeros(slope.aval), equation)
    return b.graph(f"{gradient.name}_within_bounds", [equation])
