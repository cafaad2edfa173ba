"""vjp, jvp, linearize and linear_transpose: derivatives at a point, as values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from ..compiler.compilation import Derived
from ..compiler.compiled import Compiled
from ..compiler.composed import Composed
from ..compiler.debug_nans import DERIVATIVE, FUNCTION, inspect
from ..compiler.inside import inserted
from ..compiler.later import Later, Run
from ..compiler.members import leaf_avals, members
from ..compiler.memory.loops import with_default
from ..compiler.recording import results_of
from ..compiler.settings import config
from ..compiler.signature import Argnums, Call, Wanted, take_apart, wanted
from ..compiler.stages import settled
from ..compiler.transform import Transform
from ..errors import OptionError, TreeError
from ..ir.graph import Graph
from ..ir.types import Aval
from ..passes.checkpoint.checkpoint import limited
from ..passes.control.expose_calls import at_rest
from ..passes.jvp import jvp as jvp_graph
from ..passes.linearize import linearize as linearize_graph
from ..passes.pullback import pullback as pullback_graph
from ..tracer.containers import flatten_like, flatten_up_to
from ..tracer.record import Recorded, enclosing
from ..tracer.trace import Capture
from ..tracer.tree import Spec, children, flatten, unflatten, written
from .functions.blocks import aligned
from .functions.closures import Fn, is_function
from .functions.cotangent import FunctionCotangent
from .functions.observed import FunctionCall, Observed, checked_form, observe, take_functions
from .memory import MemoryPlan, plan_of


def split_aux(recorded: Recorded, has_aux: bool) -> tuple[Spec, int]:
    """The structure of the differentiated output, and how many results it has."""
    if not has_aux:
        return recorded.out_spec, len(recorded.graph.outputs)
    if not (recorded.out_spec.type is tuple and len(children(recorded.out_spec)) == 2):
        raise OptionError(
            f"with has_aux=True the function returns a pair (output, aux), not {written(recorded.out_spec)}",
            remedy="return output, aux",
        )
    head = children(recorded.out_spec)[0]
    return head, sum(1 for i in range(head.num_leaves) if i not in recorded.statics)


def vjp(
    function: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    fns: str = "captures",
    memory: MemoryPlan = None,
) -> Any:
    """The value at a point, and the pullback there.

    A callable among the primals is a differentiable function value. If a result is a function, its cotangent is a
    ``FunctionCotangent`` or a list of pairs; ``function`` then runs again for each pullback.

    Parameters
    ----------
    function : callable
        The function to differentiate.
    *primals : tree
        The point.
    has_aux : bool
        Whether the function returns ``(out, aux)``.
    fns : "captures" or "pairs"
        What the cotangent of a function value is: a dict from the names of its captures to their cotangents, or a
        ``FunctionCotangent``, the pairs of input and cotangent of all its calls.
    memory : plan, int or str, optional
        A plan for the loops that have none, or a budget: bytes, a text such as ``"64 MiB"``, or ``"available"``. The
        budget covers all that this call and one call of the pullback allocate: results, the values kept in between, and
        copies of the primals. Values that do not fit are computed again.

    Returns
    -------
    tuple
        ``(out, pullback)``, with ``has_aux`` ``(out, pullback, aux)``. ``pullback(ct)`` takes a cotangent with the
        structure and shapes of ``out`` and returns a tuple, one cotangent for each primal. It may be called any number
        of times.

    Raises
    ------
    NonDifferentiableError
        If a primal holds no floating-point numbers.
    ShapeError, TreeError
        If a cotangent does not fit the output.
    OptionError
        If an option is wrong.
    MemoryBudgetError
        If the budget is too small for any plan.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> out, pullback = rg.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> [float(ct) for ct in pullback(1.0)]
    [4.0, 3.0]
    >>> x = np.linspace(0.0, 1.0, 1000)
    >>> out, pullback = rg.vjp(lambda x: np.sin(np.exp(np.tanh(x))), x, memory="64 kB")
    >>> bool(np.all(pullback(x)[0] == rg.vjp(lambda x: np.sin(np.exp(np.tanh(x))), x)[1](x)[0]))
    True
    >>> out, pullback = rg.vjp(lambda f, x: f(f(x)), np.square, 3.0, fns="pairs")
    >>> [(float(x), float(ct)) for x, ct in pullback(1.0)[0].pairs]
    [(3.0, 18.0), (9.0, 1.0)]
    """
    made = Compiled(function, Vjp("vjp", has_aux=has_aux, fns=checked_form(fns), memory=plan_of(memory)))
    try:
        return made(*primals)
    except FunctionResult:
        return _vjp_to_functions(function, primals, has_aux, fns, memory)


class FunctionResult(Exception):  # noqa: N818 - a signal, not an error
    """A function that is pulled back returns functions."""


@dataclass(frozen=True)
class Vjp(Transform):
    """``vjp``; with ``argnums`` by these arguments alone."""

    has_aux: bool = False
    fns: str = "captures"
    memory: tuple[Any, ...] | None = None
    argnums: Argnums | None = None

    def take(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        chosen = tuple(range(len(args))) if self.argnums is None else self.argnums
        return take_functions(function, args, kwargs, chosen, self.fns)

    def check(self, function: Callable[..., Any], call: Call) -> None:
        chosen_of(function, call, self.argnums)

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        chosen = chosen_of(function, call, self.argnums)
        head, n = split_aux(recorded, self.has_aux)
        if any(callable(x) for i, x in recorded.statics.items() if i < head.num_leaves):
            raise FunctionResult
        seen = observe(call, recorded.graph)
        budget = self.memory[1] if self.memory is not None and self.memory[0] == "bytes" else None
        graph = seen.graph if budget is not None else with_default(seen.graph, self.memory)
        active = [*chosen.active, *(False for _ in recorded.captures), *(True for _ in range(seen.deltas))]
        lin = linearize_graph(graph, active, nan_safe=config.nan_safe)
        seeded = [aval.inexact and i < n for i, aval in enumerate(graph.out_avals)]
        forward = at_rest(lin.forward, seen.deltas)
        joined = budget is not None or limited(forward)
        later = Later(forward, pullback_graph(lin, seeded), len(graph.outputs), joined, budget)
        count, has_aux = len(recorded.graph.outputs), self.has_aux
        avals, results = leaf_avals(recorded, head), results_of(recorded)

        def assemble(found: Sequence[Any], run: Run) -> Any:
            tree = results(found[:count])

            def pullback(ct: Any) -> tuple[Any, ...]:
                grads = run(members(head, ct, avals, "the cotangent"))
                own = len(grads) - seen.deltas
                return tuple(seen.cotangents(chosen.tree(grads[:own]), found[count:], grads[own:]))

            return (tree[0], pullback, tree[1]) if has_aux else (tree, pullback)

        return Derived(forward, assemble, lin=lin, later=later)


def chosen_of(function: Callable[..., Any], call: Call, argnums: Argnums | None = None) -> Wanted:
    """What is differentiated: every argument, unless some are chosen."""
    chosen = tuple(range(len(children(children(call.spec)[0])))) if argnums is None else argnums
    return wanted(call, function, chosen, Observed, empty=isinstance(call, FunctionCall))


def _vjp_to_functions(
    function: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, fns: str, memory: MemoryPlan
) -> Any:
    """``vjp`` if results are functions: pull a pair (x, ct) of a result back through ``function(*primals)(x)``."""
    out = function(*primals)
    results, spec = flatten(out[0] if has_aux else out)

    def pullback(ct: Any) -> Any:
        parts = flatten_up_to(spec, ct, "the cotangent")
        parts = [FunctionCotangent(c) if callable(y) else c for y, c in zip(results, parts, strict=True)]
        given = unflatten(spec, parts)
        cts: list[Any] = []

        def evaluated(*args: Any) -> list[Any]:
            again = function(*args)
            matched = aligned(again[0] if has_aux else again, given)
            cts[:] = [c for _, c in matched]
            return [y for y, _ in matched]

        _, pull = vjp(evaluated, *primals, fns=fns, memory=memory)
        return pull(cts)

    return (out[0], pullback, out[1]) if has_aux else (out, pullback)


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value at a point, and the derivative along tangents.

    The tangent of a function is a function g: the derivative is that of f + ε g in ε. For ``rg.functions.fn(f)`` it may
    also be another such function value, whose captures are the tangents of those of f.

    Parameters
    ----------
    function : callable
        The function to differentiate.
    primals, tangents : tuple or list
        One entry for each argument, with equal structures and shapes.

    Returns
    -------
    tuple
        ``(out, out_tangent)``.

    Raises
    ------
    NonDifferentiableError
        If a primal holds no floating-point numbers.
    ShapeError, TreeError
        If tangents do not fit the primals.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> [float(v) for v in rg.jvp(lambda x: x**2, (3.0,), (1.0,))]
    [9.0, 6.0]
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TreeError(
            "jvp takes a tuple of primals and a tuple of tangents",
            remedy="write jvp(f, (x,), (x_dot,))",
        )
    along = [is_function(p) and not isinstance(t, Fn) for p, t in zip(primals, tangents, strict=False)]
    if any(along):
        return _jvp_along_functions(function, tuple(primals), tuple(tangents), along)
    if config.debug_nans and enclosing() is None:
        return _pushed(function, tuple(primals), tuple(tangents), _inspected)
    found: tuple[Any, Any] = Compiled(function, Composed("jvp", make=_pushing, inline=sys.maxsize))(
        tuple(primals), tuple(tangents)
    )
    return found


def _pushing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of primals and tangents that gives the value and its tangent, for a trace."""

    def pushed(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        return _pushed(function, primals, tangents, _inserted)

    return pushed


def _pushed(
    function: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    run: Callable[[Graph, Graph, list[Any], list[Any]], Sequence[Any]],
) -> tuple[Any, Any]:
    call = take_apart(function, primals, {})
    chosen = chosen_of(function, call)
    recorded, _ = Transform("jvp").record(function, call)
    graph = jvp_graph(recorded.graph, [*chosen.active, *(False for _ in recorded.captures)], nan_safe=config.nan_safe)
    dots = _tangents(chosen, recorded, tangents)
    results = run(recorded.graph, graph, [*call.values(), *recorded.captures], dots)
    n, assemble = len(recorded.graph.outputs), results_of(recorded)
    return assemble(results[:n]), assemble(results[n:])


def _inserted(function: Graph, derivative: Graph, operands: list[Any], dots: list[Any]) -> Sequence[Any]:
    trace = enclosing()
    assert trace is not None
    return inserted(trace, derivative, [*operands, *dots])


def _inspected(function: Graph, derivative: Graph, operands: list[Any], dots: list[Any]) -> Sequence[Any]:
    plain = [x.payload if isinstance(x, Capture) else x for x in operands]
    inspect(function, plain, FUNCTION)
    return inspect(settled(derivative), [*plain, *dots], DERIVATIVE)


def _jvp_along_functions(
    function: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], on: Sequence[bool]
) -> tuple[Any, Any]:
    """``jvp`` if the tangents of function values are functions: the derivative in ε of the values f + ε g."""
    if len(primals) != len(tangents):
        raise TreeError(
            f"jvp is given {len(primals)} primals and {len(tangents)} tangents",
            remedy="give one tangent for each primal",
        )
    for is_f, t in zip(on, tangents, strict=True):
        if is_f and not callable(t):
            raise TreeError(
                f"the tangent of a function value is a function, not a {type(t).__name__}",
                remedy="pass a function g; the derivative is that of f + eps * g by eps",
            )

    def moved(eps: Any, *others: Any) -> Any:
        rest = iter(others)
        both = zip(primals, tangents, on, strict=True)
        return function(*(_shifted(p, t, eps) if is_f else next(rest) for p, t, is_f in both))

    plain = [[x for x, is_f in zip(side, on, strict=True) if not is_f] for side in (primals, tangents)]
    return jvp(moved, (0.0, *plain[0]), (1.0, *plain[1]))


def _shifted(f: Callable[..., Any], g: Callable[..., Any], eps: Any) -> Callable[..., Any]:
    """f + ε g."""

    def shifted(*args: Any) -> Any:
        leaves, spec = flatten(f(*args))
        moves = flatten_like(spec, g(*args), "the tangent of a function value")
        return unflatten(spec, [y + eps * d for y, d in zip(leaves, moves, strict=True)])

    return shifted


def _tangents(chosen: Wanted, recorded: Recorded, tangents: Sequence[Any]) -> list[Any]:
    avals = [recorded.graph.inputs[k].aval for k, on in enumerate(chosen.active) if on]
    wanted_leaves = [avals[i] if i >= 0 else None for i in chosen.leaves]
    filled = flatten(tuple(tangents))
    if filled[1] != chosen.spec:
        own = [aval for aval in wanted_leaves if aval is not None]
        return members(flatten(chosen.tree([0.0] * len(avals)))[1], tuple(tangents), own, "the tangents")
    return members(chosen.spec, tuple(tangents), wanted_leaves, "the tangents")


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value at a point, and the derivative there as a linear function of tangents.

    Parameters
    ----------
    function : callable
        The function to differentiate.
    *primals : tree
        The point.

    Returns
    -------
    tuple
        ``(out, linear)``; ``linear(*tangents)`` may be called any number of times.

    Raises
    ------
    NonDifferentiableError
        If a primal holds no floating-point numbers.
    ShapeError, TreeError
        If tangents do not fit the primals.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> out, linear = rg.linearize(np.sin, 0.0)
    >>> float(linear(2.0))
    2.0
    """
    found: tuple[Any, Callable[..., Any]] = Compiled(function, Linearization("linearize"))(*primals)
    return found


@dataclass(frozen=True)
class Linearization(Transform):
    """``linearize``; with ``argnums`` in these arguments alone."""

    argnums: Argnums | None = None

    def check(self, function: Callable[..., Any], call: Call) -> None:
        chosen_of(function, call, self.argnums)

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        chosen = chosen_of(function, call, self.argnums)
        lin = linearize_graph(
            recorded.graph, [*chosen.active, *(False for _ in recorded.captures)], nan_safe=config.nan_safe
        )
        results, avals = results_of(recorded), recorded.graph.out_avals

        def assemble(found: Sequence[Any], run: Run) -> Any:
            def linear(*tangents: Any) -> Any:
                given = zip((i for i in chosen.leaves if i >= 0), _tangents(chosen, recorded, tangents), strict=True)
                dots = iter(run([dot for _, dot in sorted(given, key=itemgetter(0))]))  # in the order of arguments
                return results([next(dots) if on else _zero(a) for on, a in zip(lin.out_active, avals, strict=True)])

            return results(found), linear

        return Derived(lin.forward, assemble, lin=lin, later=Later(lin.forward, lin.linear, len(avals)))


def _zero(aval: Aval) -> Any:
    return np.zeros(aval.shape, aval.dtype) if aval.kind == "array" else aval.dtype.type(0)
