"""``scipy.integrate.odeint`` and ``solve_ivp`` for traced starts, times, arguments, and slopes that capture them.

>>> import numpy as np, retrograd as rg
>>> from retrograd.scipy.ode import odeint
>>> decay = rg.grad(lambda k: odeint(lambda y, t: -k * y, np.ones(1), np.array([0.0, 1.0]))[-1, 0])
>>> bool(abs(decay(2.0) + np.exp(-2.0)) < 1e-6)
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.record_body import label_of, operand, put, recorded_body, strong, typed
from ..compiler.unknowns import flat
from ..errors import ControlFlowError, ShapeError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph
from ..ir.types import Aval
from ..numpy.creation import array as traced_array
from ..ops.ode import METHODS, ode
from ..ops.ode_events import ode_path
from ..ops.slopes import result_of
from ..passes.inline import inline_into
from ..tracer.array import Tracer, shadow_of
from ..tracer.creation import active_trace
from ..tracer.operands import astype, lifted
from ..tracer.trace import Trace, unsupported
from ..tracer.tree import flatten
from .dispatch import Lazy, array, stands_for

INTEGRATE, OPTIMIZE = Lazy("scipy.integrate"), Lazy("scipy.optimize")
REAL = np.dtype(float)
MESSAGES = {-1: "the solver failed", 0: "the solution reaches the end of the span", 1: "an event ended the solution"}


def _real(x: Any) -> Any:
    """An operand as a flat array in double precision."""
    x = array(traced_array(x) if isinstance(x, (list, tuple)) else x)
    x = np.reshape(x, (-1,))
    return x if x.dtype == REAL else astype(x, REAL)


class _Flow(NamedTuple):
    """What was recorded of a slope and of events, and the operands: start, times, arguments, captures."""

    body: Graph
    event: Graph
    operands: list[Any]


def _problem(slope: Any, name: str, start: Any, times: Any, args: Sequence[Any], events: Any = None) -> _Flow | None:
    """``slope(t, y, args)`` and ``events(t, y, args)``, a vector, recorded; None if nothing is traced."""
    start, times = _real(start), _real(times)
    leaves, spec = flatten(tuple(args))
    leaves = [strong(x) if isinstance(x, (Tracer, bool, float)) else x for x in leaves]

    def body(t: Any, y: Any, args: Any) -> Any:
        found = _real(slope(t, y, args))
        if found.shape != start.shape:
            raise ShapeError(
                f"the slope has the shape {found.shape}, but the state has {start.shape}",
                remedy="return one slope for each element of the state",
            )
        return found if events is None else (found, events(t, y, args))

    body.__name__ = name
    trees = [flatten(float(shadow_of(times)[0])), flatten(np.array(shadow_of(start))), (leaves, spec)]
    recorded = recorded_body(body, "slope", trees)
    given = [x for x in leaves if isinstance(x, (Tracer, np.ndarray, np.generic)) or type(x) is int]
    operands = [start, times, *given, *recorded.captures]
    if not any(_is_traced(x) for x in operands):
        return None
    graph = _of_scalars(recorded.graph)
    first, last = result_of(graph, 0), result_of(graph, len(graph.outputs) - 1)
    return _Flow(typed(first, [Aval(start.shape, REAL)]), last, operands)


def _of_scalars(graph: Graph) -> Graph:
    """The graph of a time, a state and parameters, with NumPy's scalars in place of Python numbers among the latter.

    Lanes are loops, whose steps get scalars.
    """
    b = Builder()
    given = [b.input(v.aval, v.hint) for v in graph.inputs[:2]]
    given += [b.coerce(b.input(_scalar(v.aval), v.hint), v.aval) for v in graph.inputs[2:]]
    return b.graph(graph.name, inline_into(b, graph, given))


def _scalar(aval: Aval) -> Aval:
    return Aval(aval.shape, aval.dtype, "scalar") if aval.kind == "python" else aval


def _operands(trace: Trace, operands: Sequence[Any]) -> list[tuple[Symbol, Any]]:
    found = []
    for symbol, shadow in (operand(trace, x) for x in operands):
        example = symbol.dtype.type(shadow) if symbol.aval.kind == "python" else shadow
        found.append((trace.builder.coerce(symbol, _scalar(symbol.aval)), example))
    return found


def _solved(slope: Callable[..., Any], name: str, start: Any, times: Any, args: Sequence[Any], **attrs: Any) -> Any:
    """The states at the times, or None if nothing is traced; ``slope(t, y, args)``."""
    problem = _problem(slope, name, start, times, args)
    if problem is None:
        return None
    trace = active_trace()
    return put(trace, ode, {"body": problem.body, **attrs}, _operands(trace, problem.operands))[0]


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


class _Events(NamedTuple):
    """The functions that are zero at events, and what their attributes say: as SciPy reads them."""

    functions: tuple[Any, ...]
    directions: tuple[float, ...]
    most: tuple[int, ...]  # the number of events of each that ends the solution; 0 if none does

    def values(self, t: Any, y: Any, args: Any) -> Any:
        """The vector of what is zero at events."""
        found = [flat(f(t, y, *args), "an event") for f in self.functions]
        for f, value in zip(self.functions, found, strict=True):
            if value.shape != (1,):
                raise ShapeError(
                    f"the event {label_of(f, 'event')} gives {value.size} numbers", remedy="return one number"
                )
        return np.concatenate(found) if found else _real(y)[:0]


def _events_of(events: Any) -> _Events:
    functions = () if events is None else (events,) if callable(events) else tuple(events)
    most = [getattr(f, "terminal", None) or 0 for f in functions]
    if any(int(n) != n or n < 0 for n in most):
        raise ValueError("The `terminal` attribute of each event must be a boolean or positive integer.")
    return _Events(functions, tuple(float(getattr(f, "direction", 0)) for f in functions), tuple(map(int, most)))


class _Path:
    """A solution at steps that the solver chose, or up to an event that ended it; how many is asked when it is read."""

    def __init__(self, problem: _Flow, events: _Events, **attrs: Any) -> None:
        trace = active_trace()
        if not trace.concrete:
            raise ControlFlowError(
                "the number of steps and events of scipy.integrate.solve_ivp depends on data, while the function is "
                "compiled for all values",
                remedy="pass t_eval=; find the time of an event with rg.scipy.brentq",
            )
        attrs |= {"body": problem.body, "event": problem.event, "directions": events.directions, "most": events.most}
        operands = _operands(trace, problem.operands)
        none = (0,) * (2 + len(events.most))
        counts = tuple(shadow_of(put(trace, ode_path, {**attrs, "counts": none}, operands)[0]).tolist())
        self._numbers, *self._results = put(trace, ode_path, {**attrs, "counts": counts}, operands)
        self._events = events

    def status(self) -> int:
        """As SciPy has it: -1 for a solver that failed, 1 for a solution that an event ended."""
        return min(self.ended(), 1)

    def ended(self) -> int:
        """The position of the event that ended the solution, from 1 on; 0 and -1 as in ``status``."""
        return int(self._numbers[0])

    def rows(self) -> tuple[Any, Any]:
        """The times, and the states as rows."""
        self.ended()  # the derivative of the last time depends on it
        int(self._numbers[1])
        return self._results[0], self._results[1]

    def of_events(self, k: int) -> list[Any]:
        """The times of events for k = 0, the states there for k = 1."""
        found = []
        for j in range(len(self._events.most)):
            n = int(self._numbers[2 + j])
            found.append(self._results[2 * j + 2 + k] if n else np.zeros(0))
        return found

    def end(self, last: Any) -> Any:
        """The time at which the solution ends."""
        j = self.ended()
        return self._results[2 * j][-1] if j > 0 else last


@stands_for("scipy.integrate.solve_ivp", closures=True)
def solve_ivp(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    *,
    args: Any = None,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    **options: Any,
) -> Any:
    """As SciPy's: the result has ``t``, ``y``, ``t_events``, ``y_events``, ``status``, ``success`` and ``message``.

    How many steps there are without ``t_eval``, and how many events, is asked where they are read, and the function is
    compiled once for each answer. Steps inside of the span count as fixed times; times of events have derivatives. With
    ``dense_output`` it has ``sol``, too: a function of times, each call of which solves the equation once more.
    """
    if used := [name for name, value in options.items() if value]:
        raise unsupported(f"scipy.integrate.solve_ivp with {', '.join(used)}", "leave them out")
    if method not in METHODS[1:]:
        raise unsupported(
            "scipy.integrate.solve_ivp with a custom method", f"choose a method of {', '.join(METHODS[1:])}"
        )
    parameters = () if args is None else tuple(args)
    own = _events_of(events)
    tolerances = {"method": method, "rtol": float(rtol), "atol": float(atol)}

    def slope(t: Any, y: Any, args: Any) -> Any:
        return fun(t, y, *args)

    def plain() -> Any:
        options = {"events": events, "args": args, "rtol": rtol, "atol": atol}
        return INTEGRATE.solve_ivp(fun, t_span, y0, method, t_eval, dense_output, **options)

    def end() -> Any:
        return t_span[1] if path is None else path.end(t_span[1])

    def states(times: Any, span: Any) -> Any:
        """The states at times in order as rows; None if nothing is traced."""
        whole, kept = _with_ends(span, times)
        found = _solved(slope, label_of(fun, "slope"), y0, whole, parameters, **tolerances)
        return None if found is None else found[kept]

    def solution(t: Any) -> Any:
        """The states at any times of the span, as columns; one time gives one state."""
        times, span = _real(t), (t_span[0], end())
        order = np.argsort(times * np.sign(shadow_of(t_span[1]) - shadow_of(t_span[0])))
        rows = states(times[order], span)
        if rows is None:
            return plain().sol(shadow_of(t))
        found = np.transpose(rows[np.argsort(order)])
        return found if np.ndim(shadow_of(t)) else found[:, 0]

    path = None
    asked = t_eval is not None and any(own.most)
    if t_eval is None or own.functions:
        inner = [*_times(t_eval)] if asked else []
        times = [t_span[0], *inner, t_span[1]]
        problem = _problem(slope, label_of(fun, "slope"), y0, times, parameters, own.values)
        path = None if problem is None else _Path(problem, own, asked=asked, **tolerances)
    found: Any = states(t_eval, t_span) if t_eval is not None and not asked else None
    if path is None and found is None:
        result = plain()
        result.sol = solution if dense_output else None
        return result
    sol = solution if dense_output else None
    if path is None:
        more = {"status": 0, "success": True, "message": "the state at all times of t_eval"}
        return OPTIMIZE.OptimizeResult(
            t=_times(t_eval), y=np.transpose(found), sol=sol, t_events=None, y_events=None, **more
        )
    makers: dict[str, Callable[[], Any]] = {
        "t": lambda: path.rows()[0] if found is None else _times(t_eval),
        "y": lambda: np.transpose(path.rows()[1] if found is None else found),
        "t_events": lambda: path.of_events(0) if events is not None else None,
        "y_events": lambda: path.of_events(1) if events is not None else None,
        "status": path.status,
        "success": lambda: path.status() >= 0,
        "message": lambda: MESSAGES[path.status()],
    }
    return _lazily(makers, sol)


def _lazily(makers: Mapping[str, Callable[[], Any]], sol: Any) -> Any:
    """A result in which everything but ``sol`` is asked for when it is read."""

    def missing(_: Any, name: str) -> Any:
        if name not in makers:
            raise KeyError(name)
        return makers[name]()

    return type("OdeResult", (OPTIMIZE.OptimizeResult,), {"__missing__": missing})(sol=sol)


def _times(t_eval: Any) -> Any:
    among = isinstance(t_eval, (list, tuple)) and any(isinstance(t, Tracer) for t in t_eval)
    return t_eval if isinstance(t_eval, Tracer) else traced_array(t_eval) if among else np.asarray(t_eval)
