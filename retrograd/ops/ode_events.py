"""ode_path: the solution of y' = f(t, y, p...) at steps of the solver's own, and the events g(t, y, p...) = 0 on it.

An event at t has ṫ = -(g_y ẏ + g_p ṗ) / (g_t + g_y f) by the implicit function theorem, where ẏ is the tangent of the
state at a fixed time. How many steps and events there are is in ``counts``, for which the node is made; the first
result has the numbers that were found, and the others are cut, or filled up with nan, to the sizes of ``counts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.embedded import embed
from ..ir.graph import Graph, Node
from ..ir.modules import load
from ..ir.primitive import REGISTRY, TRANSFORMS, JvpMode, Primitive, primitive
from ..ir.structure import Body, Group, Runs, Structure
from ..ir.types import Aval
from .batching import elementwise, lanes
from .implicit import raise_unsolved
from .index import getitem
from .lane_loops import looped
from .ode import METHODS, bytes_of_method, tangent_of
from .shape import broadcast_to, reshape_to, stop_gradient
from .slopes import gradient_of
from .structural.flags import instantiated, picked, spread

REAL = np.dtype(float)
FOLLOW = embed("""
def follow_ode(slope, event, start, times, parameters, directions, most, asked, counts, method, rtol, atol):
    def event_of(j):
        def value(t, y, *given):
            return event(t, y, *given)[j]
        value.direction, value.terminal = directions[j], most[j]
        return value
    def filled(rows, size, *shape):
        rows = np.reshape(np.array(rows, float), (-1, *shape))[:size]
        return np.concatenate([rows, np.full((size - len(rows), *shape), np.nan)])
    events = [event_of(j) for j in range(len(most))]
    found = scipy.integrate.solve_ivp(
        slope, (times[0], times[-1]), start, method, times[1:-1] if asked else None,
        events=events, args=parameters, rtol=rtol, atol=atol)
    ended = min(found.status, 0)
    if found.status == 1:
        ended = [0 < most[j] <= len(found.t_events[j]) for j in range(len(most))].index(True) + 1
    numbers = np.array([ended, len(found.t), *[len(when) for when in found.t_events]], np.int64)
    states = np.transpose(found.y) if len(found.t) else ()
    results = [filled(found.t, counts[1]), filled(states, counts[1], len(start))]
    for size, when, where in zip(counts[2:], found.t_events, found.y_events):
        results += [filled(when, size), filled(where, size, len(start))]
    return numbers, *results
""")
CROSSED = embed("""
def crossed(rate, near):
    if not np.all(~np.isfinite(rate) | (rate != 0.0) & (np.abs(near - rate) <= 0.25 * np.abs(rate))):
        unsolved('an event only touches zero, as far as the tolerances of the solution tell: '
                 'its time has no derivative there. Smaller rtol= and atol= tell more')
    return np.ones(np.shape(rate))[()]
""")


# --- crossed: (g', g' as far away as the tolerances may move the event) → 1.0; it raises unless both are alike


def _crossed_run(_: Any, node: Node, rate: Any, near: Any) -> Any:
    scope: dict[str, Any] = {"np": np, "unsolved": raise_unsolved, "__name__": __name__}
    exec(CROSSED, scope)  # noqa: S102 - the source stands above
    return scope["crossed"](rate, near)


crossed: Primitive = primitive(
    "crossed",
    lambda rate, near: Aval(rate.shape, REAL, "array" if rate.ndim else "scalar"),
    run=_crossed_run,
    batch=elementwise,
    diff=(None, None),
)


# --- ode_path: (start, times, p...) → numbers, times, states, then times and states of each event


def _shape(
    start: Aval,
    times: Aval,
    *parameters: Aval,
    body: Graph,
    event: Graph,
    directions: Sequence[float],
    most: Sequence[int],
    asked: bool,
    counts: Sequence[int],
    method: str,
    rtol: float,
    atol: float,
) -> tuple[Aval, ...]:
    """``times`` has the ends, and between them the times ``asked`` for; ``most`` says after how many events to end."""
    own = Aval((len(most),), REAL)
    if start.ndim != 1 or times.ndim != 1 or times.size < 2 or start.dtype != REAL or times.dtype != REAL:
        raise ValueError(f"{start} and {times} are not a state and times in double precision")
    for graph, out in ((body, start), (event, own)):
        if graph.in_avals[1:] != (start, *parameters) or graph.out_avals != (out,) or method not in METHODS[1:]:
            raise ValueError(f"{graph.name} gives no {out} for {', '.join(map(str, parameters))}")
    if not len(counts) - 2 == len(directions) == len(most):
        raise ValueError(f"{counts} are not numbers for {len(most)} events")
    sizes = [n for n in counts[1:] for _ in range(2)]
    pairs = [Aval((n, start.size) if k % 2 else (n,), REAL) for k, n in enumerate(sizes)]
    return Aval((len(counts),), np.dtype(np.int64)), *pairs


def _scratch(start: Aval, times: Aval, *parameters: Aval, **attrs: Any) -> int:
    results = _shape(start, times, *parameters, **attrs)
    return bytes_of_method(attrs["method"], start, *results, *results, *results)


def follow(evaluate: Any, attrs: Any, start: Any, times: Any, *parameters: Any) -> Any:
    """The results for operands that are values."""
    load("scipy.integrate")
    scope: dict[str, Any] = {"np": np, "scipy": load("scipy"), "__name__": __name__}
    exec(FOLLOW, scope)  # noqa: S102 - the source stands above

    def called(name: str) -> Any:
        return lambda *args: evaluate(attrs[name], args)[0]

    options = [attrs[name] for name in ("directions", "most", "asked", "counts", "method", "rtol", "atol")]
    return scope["follow_ode"](called("body"), called("event"), start, times, parameters, *options)


def _one_event(event: Graph, j: int) -> Graph:
    """(y, t, p...) → the number that is zero at the j-th event."""
    b = Builder()
    t, y, *parameters = event.in_avals
    state, time = b.input(y, "y"), b.input(t, "t")
    (values,) = TRANSFORMS.inline(b, event, [time, state, *[b.input(a) for a in parameters]])
    return b.graph(event.name, [getitem(values, index=(j,))])


def _movement(attrs: Any, j: int, active: Sequence[bool], mode: JvpMode) -> Graph:
    """(t, y, ẏ, p..., ṗ of active ones...) → ṫ of the j-th event, and ẏ at the time that moves."""
    slope, event = attrs["body"], attrs["event"].once(("event", j), lambda: _one_event(attrs["event"], j))
    b = Builder()
    t, y, *parameters = slope.in_avals
    time, state, dot = b.input(t, "t"), b.input(y, "y"), b.input(y, "dot")
    given = [b.input(a) for a in parameters]
    dots = spread([b.input(a) for a in picked(parameters, active)], active)
    still = JvpMode(split=False, nan_safe=mode.nan_safe)

    def rate_at(time: Symbol, state: Symbol, given: Sequence[Symbol]) -> tuple[Symbol, Symbol]:
        """How fast the number changes along the solution, and the slope of the state."""
        (f,) = TRANSFORMS.inline(b, slope, [time, state, *given])
        tans = [f, b.constant(1.0, time.aval), *(None for _ in given)]
        value, (rate,) = TRANSFORMS.jvp(b, event, [state, time, *given], tans, still)
        return instantiated(b, rate, value[0].aval), f

    rate, f = rate_at(time, state, given)
    fixed = [stop_gradient(x) if x.aval.inexact else x for x in (time, state, *given)]
    certain, along = stop_gradient(rate), stop_gradient(f)
    certain = certain * crossed(certain, certain)
    _, gradient = TRANSFORMS.inline(b, gradient_of(event), [fixed[1], fixed[0], *fixed[2:]])
    size = REGISTRY["abs"]
    error = size(gradient) * (size(fixed[1]) * attrs["rtol"] + attrs["atol"])
    later = REGISTRY["sum"](error, axis=(0,), keepdims=False) / size(certain)
    moved = along * broadcast_to(reshape_to(later, (1,)), along.shape)
    near, _ = rate_at(b.coerce(fixed[0] + later, t), fixed[1] + moved, fixed[2:])
    rate = rate * crossed(certain, near)

    value, (change,) = TRANSFORMS.jvp(b, event, [state, time, *given], [dot, None, *dots], mode)
    when = -instantiated(b, change, value[0].aval) / rate
    return b.graph(f"{event.name}_moves", [when, dot + f * broadcast_to(reshape_to(when, (1,)), f.shape)])


def _joined(*parts: Any) -> Any:
    return REGISTRY["concatenate"](*parts, axis=0)


def _jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    numbers, *outs = b.copy_node(node, [x.value for x in args])
    start, times, *parameters = args
    own, attrs = node.attrs, {name: node.attrs[name] for name in ("body", "method", "rtol", "atol")}
    row = reshape_to(start, (1, start.size))

    def states_at(when: Symbol, states: Symbol, dots: Symbol | None) -> Any:
        """The tangent of states on the solution, whose times have tangents."""
        ends = tans[1]
        if ends is not None or dots is not None:
            first = b.zeros(Aval((1,), REAL)) if ends is None else getitem(ends, index=(slice(0, 1),))
            dots = _joined(first, b.zeros(when.aval) if dots is None else dots)
        known = [start, _joined(getitem(times, index=(slice(0, 1),)), when), *parameters]
        found = tangent_of(b, attrs, known, _joined(row, states), [tans[0], dots, *tans[2:]], mode)
        return None if found is None else getitem(found, index=(slice(1, None),))

    found: list[Any] = [None] * len(outs)
    active = tuple(t is not None for t in tans[2:])
    for j, size in enumerate(own["counts"][2:]):
        when, states = outs[2 * j + 2 : 2 * j + 4]
        if size:
            dots = instantiated(b, states_at(when, states, None), states.aval)
            moves = _movement(own, j, active, mode)
            given = [when, states, dots, *parameters, *picked(tans[2:], active)]
            given = [b.coerce(x, a) if k > 2 else x for k, (x, a) in enumerate(zip(given, moves.in_avals, strict=True))]
            flags = [k < 3 for k in range(len(given))]
            both, wide = TRANSFORMS.batch(b, moves, size, given, flags)
            found[2 * j + 2 : 2 * j + 4] = [lanes(size, x, on) for x, on in zip(both, wide, strict=True)]
    if outs[0].size:
        found[0] = _of_steps(b, own, outs[0].size, tans[1], found)
        found[1] = states_at(outs[0], outs[1], found[0])
    return [numbers, *outs], [None, *found]


def _of_steps(b: Builder, attrs: Any, size: int, ends: Any, found: Sequence[Any]) -> Any:
    """The tangent of the times: steps inside stay where they are; the last one is an end, or the event that ended."""
    if attrs["asked"]:
        return None if ends is None else getitem(ends, index=(slice(1, size + 1),))
    ended = attrs["counts"][0]
    last = found[2 * ended] if ended > 0 else ends if ended == 0 else None
    if ends is None and last is None:
        return None
    one = Aval((1,), REAL)
    edges = [
        b.zeros(one) if x is None else getitem(x, index=(part,))
        for x, part in ((ends, slice(0, 1)), (last, slice(-1, None)))
    ]
    return _joined(edges[0], b.zeros(Aval((size - 2,), REAL)), edges[1]) if size > 1 else edges[0]


ode_path: Primitive = primitive(
    "ode_path",
    _shape,
    helper=FOLLOW,
    run=lambda evaluate, node, *args: follow(evaluate, node.attrs, *args),
    scratch=_scratch,
    jvp=_jvp,
    batch=looped,
    multi=True,
    fresh=lambda node: range(len(node.outputs)),
    structure=Structure(
        bodies=(
            Body("body", Runs.STEPS, ("time", "state", "consts"), ("slope",), times=lambda _: -1),
            Body("event", Runs.STEPS, ("time", "state", "consts"), ("zero",), times=lambda _: -1),
        ),
        operands=(Group("start", 1), Group("times", 1), Group("consts")),
        inner=(Group("time", 1), Group("state", 1), Group("slope", 1), Group("zero", 1)),
    ),
)
