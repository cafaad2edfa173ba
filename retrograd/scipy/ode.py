"""``scipy.integrate.odeint`` and ``solve_ivp`` for traced starts, times, arguments, and slopes that close over them.

>>> import numpy as np, retrograd as rg
>>> from retrograd.scipy.ode import odeint
>>> decay = rg.grad(lambda k: odeint(lambda y, t: -k * y, np.ones(1), np.array([0.0, 1.0]))[-1, 0])
>>> bool(abs(decay(2.0) + np.exp(-2.0)) < 1e-6)
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.record_body import label_of, operand, put, recorded_body, strong, typed
from ..errors import ShapeError
from ..ir.builder import Symbol
from ..ir.types import Aval
from ..numpy.creation import array as traced_array
from ..ops.ode import METHODS, ode
from ..tracer.array import Tracer, shadow_of
from ..tracer.creation import active_trace
from ..tracer.operands import astype, lifted
from ..tracer.trace import unsupported
from ..tracer.tree import flatten
from .dispatch import Lazy, array, stands_for

INTEGRATE, OPTIMIZE = Lazy("scipy.integrate"), Lazy("scipy.optimize")
REAL = np.dtype(float)


def _real(x: Any) -> Any:
    """An operand as a flat array in double precision."""
    x = array(traced_array(x) if isinstance(x, (list, tuple)) else x)
    x = np.reshape(x, (-1,))
    return x if x.dtype == REAL else astype(x, REAL)


def _solved(slope: Callable[..., Any], name: str, start: Any, times: Any, args: Sequence[Any], **attrs: Any) -> Any:
    """The states at the times, or None if nothing is traced; ``slope(t, y, args)``."""
    start, times = _real(start), _real(times)
    leaves, spec = flatten(tuple(args))
    leaves = [strong(x) if isinstance(x, (Tracer, bool, float)) else x for x in leaves]

    def body(t: Any, y: Any, args: Any) -> Any:
        found = _real(slope(t, y, args))
        if found.shape != start.shape:
            raise ShapeError(
                f"the slope has the shape {found.shape}, and the state {start.shape}",
                remedy="return one slope for each element of the state",
            )
        return found

    body.__name__ = name
    trees = [flatten(float(shadow_of(times)[0])), flatten(np.array(shadow_of(start))), (leaves, spec)]
    recorded = recorded_body(body, "slope", trees)
    given = [x for x in leaves if isinstance(x, (Tracer, np.ndarray, np.generic)) or type(x) is int]
    operands = [start, times, *given, *recorded.captures]
    if not any(_is_traced(x) for x in operands):
        return None
    trace = active_trace()
    graph = typed(recorded.graph, [Aval(start.shape, REAL)])
    return put(trace, ode, {"body": graph, **attrs}, [operand(trace, x) for x in operands])[0]


def _is_traced(x: Any) -> bool:
    return not x.const if isinstance(x, Tracer) else isinstance(getattr(x, "payload", None), Symbol)


@stands_for("scipy.integrate.odeint", closures=True)
def odeint(
    func: Any,
    y0: Any,
    t: Any,
    args: Any = (),
    *,
    rtol: Any = None,
    atol: Any = None,
    tfirst: bool = False,
    **options: Any,
) -> Any:
    """As SciPy's, with derivatives to its tolerances. Raises UnsupportedError for further options."""
    if used := [name for name, value in options.items() if value]:
        raise unsupported(f"scipy.integrate.odeint with {', '.join(used)}", "leave them out; rtol= and atol= are known")
    args = args if isinstance(args, tuple) else (args,)
    rtol, atol = (1.49012e-8 if tolerance is None else float(tolerance) for tolerance in (rtol, atol))

    def slope(t: Any, y: Any, args: Any) -> Any:
        return func(t, y, *args) if tfirst else func(y, t, *args)

    found = _solved(slope, label_of(func, "slope"), y0, t, args, method="odeint", rtol=rtol, atol=atol)
    if found is None:
        return INTEGRATE.odeint(func, y0, t, args, rtol=rtol, atol=atol, tfirst=tfirst)
    return found


def _with_ends(t_span: Any, t_eval: Any) -> tuple[Any, slice]:
    """The times from end to end, and where those that are asked for stand among them.

    An end that is among the times asked for is left out, but only if both are plain numbers: traced ones may differ at
    another call.
    """
    (times,) = lifted(_real(t_eval)) if isinstance(t_eval, Tracer) else (_real(t_eval),)
    first, last = t_span
    edges = ((first, times[0]), (last, times[-1])) if len(shadow_of(times)) else ((first, None), (last, None))
    before, after = (
        any(isinstance(x, Tracer) and not x.const for x in pair) or shadow_of(pair[0]) != shadow_of(pair[1])
        for pair in edges
    )
    whole = [*([first] if before else []), *times, *([last] if after else [])]
    return whole, slice(int(before), len(whole) - int(after))


@stands_for("scipy.integrate.solve_ivp", closures=True)
def solve_ivp(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    *,
    args: Any = None,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    **options: Any,
) -> Any:
    """As SciPy's at the times ``t_eval``, which must be given: the result has ``t``, ``y`` and ``success``.

    With ``dense_output`` it has ``sol``, too: a function of times, each call of which solves the equation once more.
    """
    if used := [name for name, value in options.items() if value]:
        raise unsupported(f"scipy.integrate.solve_ivp with {', '.join(used)}", "leave them out, and pass t_eval=")
    if t_eval is None or method not in METHODS:
        raise unsupported(
            "scipy.integrate.solve_ivp without t_eval=, or with a method of your own",
            f"pass t_eval=, the times at which the state is wanted, and a method of {', '.join(METHODS[1:])}",
        )
    parameters = () if args is None else tuple(args)

    def states(times: Any) -> Any:
        """The states at times in order as rows; None if nothing is traced."""
        whole, kept = _with_ends(t_span, times)
        found = _solved(
            lambda t, y, args: fun(t, y, *args),
            label_of(fun, "slope"),
            y0,
            whole,
            parameters,
            method=method,
            rtol=float(rtol),
            atol=float(atol),
        )
        return None if found is None else found[kept]

    def solution(t: Any) -> Any:
        """The states at any times of the span, as columns; one time gives one state."""
        times = _real(t)
        order = np.argsort(times * np.sign(shadow_of(t_span[1]) - shadow_of(t_span[0])))
        rows = states(times[order])
        if rows is None:
            return plain().sol(shadow_of(t))
        found = np.transpose(rows[np.argsort(order)])
        return found if np.ndim(shadow_of(t)) else found[:, 0]

    def plain() -> Any:
        return INTEGRATE.solve_ivp(fun, t_span, y0, method, t_eval, dense_output, args=args, rtol=rtol, atol=atol)

    found = states(t_eval)
    if found is None:
        result = plain()
        result.sol = solution if dense_output else None
        return result
    among = isinstance(t_eval, (list, tuple)) and any(isinstance(t, Tracer) for t in t_eval)
    times = t_eval if isinstance(t_eval, Tracer) else traced_array(t_eval) if among else np.asarray(t_eval)
    return OPTIMIZE.OptimizeResult(
        t=times,
        y=np.transpose(found),
        sol=solution if dense_output else None,
        t_events=None,
        y_events=None,
        success=True,
        status=0,
        message="the state at all times of t_eval",
    )
