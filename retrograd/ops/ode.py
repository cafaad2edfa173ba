"""ode: the solution of y' = f(t, y, p...) at given times, by SciPy; its derivatives are solutions of other equations.

Tangents solve the variational equation beside the equation itself, cotangents the adjoint one backwards, from each of
the times to the one before (Pontryagin 1962; Chen et al., arXiv 1806.07366, with the states that the solution gave).
Both are approximated to the tolerances of the solution, and have derivatives in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node
from ..ir.modules import load
from ..ir.primitive import REGISTRY, TRANSFORMS, JvpMode, Primitive, primitive
from ..ir.structure import Body, Group, Runs, Structure
from ..ir.types import Aval
from .batching import lanes
from .complex import conj, imag, real, real_dtype, set_imag
from .elementwise import to_dtype
from .index import getitem
from .lane_loops import looped
from .shape import broadcast_to, reshape_to
from .structural.flags import instantiated, picked, spread

REAL = np.dtype(float)
METHODS = ("odeint", "RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA")
MATRICES = {"Radau": 11, "BDF": 6, "LSODA": 2, "odeint": 1}  # that the methods hold at once, measured with SciPy 1.17
VECTORS = 48  # and at most how many vectors
SOLVE = """
def solve_ode(slope, start, times, parameters, method, rtol, atol, strict=False):
    if method == 'odeint':
        options = {'rtol': rtol, 'atol': atol, 'tfirst': True}
        if not strict:
            return scipy.integrate.odeint(slope, start, times, parameters, **options)
        found, report = scipy.integrate.odeint(slope, start, times, parameters, full_output=True, **options)
        done = report['message'].startswith(('Integration successful', 'Nothing was done'))  # for equal times
        return found if done else np.full_like(found, np.nan)
    if times[0] == times[-1]:
        return np.tile(start, (len(times), 1))
    ends, asked, places = (times[0], times[-1]), times, np.arange(len(times))
    if not np.all(times[1:] != times[:-1]):
        asked, places = np.unique(times, return_inverse=True)
        if ends[1] < ends[0]:
            asked, places = asked[::-1], len(asked) - 1 - places
    found = scipy.integrate.solve_ivp(slope, ends, start, method, asked, args=parameters, rtol=rtol, atol=atol)
    if len(found.t) < len(asked):
        return np.full((len(times), len(start)), np.nan)
    return np.ascontiguousarray(found.y.T[places])
"""


def _shape(
    start: Aval,
    times: Aval,
    *parameters: Aval,
    body: Graph,
    method: str,
    rtol: float,
    atol: float,
    strict: bool = False,
) -> Aval:
    """The body takes a time, a state and the parameters, and gives the slope of the state.

    If it is ``strict``, as equations for derivatives are, the states are nan where ``odeint`` only warns.
    """
    if start.ndim != 1 or times.ndim != 1 or not times.size or start.dtype != REAL or times.dtype != REAL:
        raise ValueError(f"{start} and {times} are not a state and times in double precision")
    if body.in_avals[1:] != (start, *parameters) or body.out_avals != (start,) or method not in METHODS:
        raise ValueError(f"{body.name} gives no slope of {start} for {', '.join(map(str, parameters))}")
    return Aval((times.size, start.size), REAL)


def _run(evaluate: Any, node: Node, start: Any, times: Any, *parameters: Any) -> Any:
    load("scipy.integrate")
    scope: dict[str, Any] = {"np": np, "scipy": load("scipy"), "__name__": __name__}
    exec(SOLVE, scope)  # noqa: S102 - the source stands above
    body = node.attrs["body"]

    def slope(t: Any, y: Any, *parameters: Any) -> Any:
        return evaluate(body, (t, y, *parameters))[0]

    method, rtol, atol = (node.attrs[name] for name in ("method", "rtol", "atol"))
    return scope["solve_ode"](slope, start, times, parameters, method, rtol, atol, node.attrs.get("strict", False))


def bytes_of_method(method: str, start: Aval, *results: Aval) -> int:
    """About what a solver holds itself, with copies of its results."""
    copies = 0 if method == "odeint" else sum(aval.nbytes for aval in results)
    return copies + (VECTORS + MATRICES.get(method, 0) * start.size) * start.nbytes


def _scratch(start: Aval, times: Aval, *parameters: Aval, **attrs: Any) -> int:
    return bytes_of_method(attrs["method"], start, _shape(start, times, *parameters, **attrs))


def _if_safe(nan_safe: bool) -> dict[str, Any]:
    return {"nan_safe": True} if nan_safe else {}


def _slopes(b: Builder, body: Graph, times: Symbol, states: Symbol, parameters: Sequence[Symbol]) -> Symbol:
    """The slopes at all times."""
    flags = [True, True, *(False for _ in parameters)]
    (out,), (wide,) = TRANSFORMS.batch(b, body, times.size, [times, states, *parameters], flags)
    return lanes(times.size, out, wide)


def tangent_of(
    b: Builder,
    attrs: Mapping[str, Any],
    known: Sequence[Symbol],
    states: Symbol,
    tans: Sequence[Any],
    mode: JvpMode,
) -> Any:
    """The tangent of the states for those of ``known``: start, times and parameters; None is zero.

    A later end moves the state along its slope; a later start moves it back.
    """
    start, times, *parameters = known
    tangent, moved = None, tans[0]
    if tans[1] is not None:
        slopes = _slopes(b, attrs["body"], times, states, parameters)
        tangent = slopes * broadcast_to(reshape_to(tans[1], (times.size, 1)), slopes.shape)
        first = getitem(tangent, index=(0,))
        moved = -first if moved is None else moved - first
    active = tuple(t is not None for t in tans[2:])
    if moved is not None or any(active):
        own = [p for p, on in zip(parameters, active, strict=True) if on]
        dots = [instantiated(b, t, p.aval) for t, p in zip(picked(tans[2:], active), own, strict=True)]
        given = [start, times, states, *parameters, instantiated(b, moved, start.aval), *dots]
        (term,) = b.emit(ode_tangent, [x.value for x in given], {**attrs, "active": active, **_if_safe(mode.nan_safe)})
        tangent = term if tangent is None else tangent + term
    return tangent


def _jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    (states,) = b.copy_node(node, [x.value for x in args])
    return [states], [tangent_of(b, node.attrs, args, states, tans, mode)]


ode: Primitive = primitive(
    "ode",
    _shape,
    helper=SOLVE,
    run=_run,
    scratch=_scratch,
    jvp=_jvp,
    batch=looped,
    structure=Structure(
        bodies=(Body("body", Runs.STEPS, ("time", "state", "consts"), ("slope",), times=lambda _: -1),),
        operands=(Group("start", 1), Group("times", 1), Group("consts")),
        inner=(Group("time", 1), Group("state", 1), Group("slope", 1)),
    ),
)


def _standing_for(graph: Callable[[Node], Graph]) -> dict[str, Any]:
    """The fields of a primitive that computes what a graph, made from its node, computes."""

    def run(evaluate: Any, node: Node, *args: Any) -> Any:
        return evaluate(graph(node), args)[0]

    def lower(b: Builder, node: Node, args: Sequence[Symbol]) -> Any:
        return TRANSFORMS.inline(b, graph(node), args)

    def jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
        return TRANSFORMS.jvp(b, graph(node), args, tans, mode)

    return {"run": run, "lower": lower, "jvp": jvp, "structure": Structure(bodies=(Body("body", Runs.NEVER),))}


# ode_tangent: (start, times, states, p..., start-dot, p-dot of active ones...) → states-dot, linear in the latter


def _tangent_shape(
    start: Aval, times: Aval, states: Aval, *rest: Aval, active: Sequence[bool], nan_safe: bool = False, **attrs: Any
) -> Aval:
    if rest[len(active)] != start or len(rest) != len(active) + 1 + sum(active):
        raise ValueError(
            f"{len(rest)} operands are not tangents of {start} and {sum(active)} of {len(active)} parameters"
        )
    return _shape(start, times, *rest[: len(active)], **attrs)


def _joined(*parts: Any) -> Any:
    return REGISTRY["concatenate"](*parts, axis=0)


# The cotangents of parameters of any precision are parts of one vector of doubles, as the states are.


def _room(aval: Aval) -> int:
    """The number of doubles that hold a parameter; a complex number takes two."""
    return aval.size * (2 if aval.dtype.kind == "c" else 1)


def _doubles(x: Symbol) -> list[Symbol]:
    """The parts of the vector: the numbers, or the real and then the imaginary parts."""
    flat = reshape_to(x, (x.size,))
    return [to_dtype(part, REAL) for part in ((real(flat), imag(flat)) if x.dtype.kind == "c" else (flat,))]


def _of_doubles(flat: Symbol, aval: Aval) -> Symbol:
    """A parameter of its part of the vector."""
    n = aval.size
    if aval.dtype.kind == "c":
        whole = to_dtype(getitem(flat, index=(slice(0, n),)), aval.dtype)
        flat = set_imag(whole, to_dtype(getitem(flat, index=(slice(n, 2 * n),)), real_dtype(aval.dtype)))
    return flat.builder.coerce(reshape_to(to_dtype(flat, aval.dtype), aval.shape), aval)


def _variational(body: Graph, active: Sequence[bool], nan_safe: bool) -> Graph:
    """(t, [y, ẏ], p..., ṗ...) → [y', ẏ']."""
    b = Builder()
    t, y, *parameters = body.in_avals
    n = y.size
    time, both = b.input(t, "t"), b.input(Aval((2 * n,), REAL), "y")
    given = [b.input(a) for a in parameters]
    dots = [b.input(a) for a in picked(parameters, active)]
    mode = JvpMode(split=False, nan_safe=nan_safe)
    state, dot = getitem(both, index=(slice(0, n),)), getitem(both, index=(slice(n, 2 * n),))
    (slope,), (tangent,) = TRANSFORMS.jvp(b, body, [time, state, *given], [None, dot, *spread(dots, active)], mode)
    return b.graph(f"{body.name}_tangent", [_joined(slope, instantiated(b, tangent, y))])


def _expansion(node: Node) -> Graph:
    """The tangents as a part of the solution of a larger equation."""
    attrs = dict(node.attrs)
    active, safe, body = attrs.pop("active"), attrs.pop("nan_safe", False), attrs["body"]
    attrs["body"] = body.once(("variational", active, safe), lambda: _variational(body, active, safe))
    attrs["strict"] = True
    b = Builder()
    b.where = node.where
    start, times, _, *rest = b.inputs_like(node.inputs)
    k, n = len(active), start.size
    both = _joined(start, rest[k])
    (found,) = b.emit(ode, [x.value for x in (both, times, *rest[:k], *rest[k + 1 :])], attrs)
    return b.graph("tangents", [getitem(found, index=(slice(None), slice(n, 2 * n)))])


def _adjoint_equation(body: Graph, active: tuple[bool, ...], nan_safe: bool) -> Graph:
    """(t, [y, ȳ, p̄], p...) → their slopes; p̄ are the cotangents of active parameters, as doubles."""
    b = Builder()
    t, y, *parameters = body.in_avals
    n = y.size
    total = sum(map(_room, picked(parameters, active)))
    time, whole = b.input(t, "t"), b.input(Aval((2 * n + total,), REAL), "y")
    given = [b.input(a) for a in parameters]
    state, ct = getitem(whole, index=(slice(0, n),)), getitem(whole, index=(slice(n, 2 * n),))
    lin = TRANSFORMS.linearize(body, [False, True, *active], nan_safe=nan_safe)
    slope, *residuals = TRANSFORMS.inline(b, lin.forward, [time, state, *given])
    targets = [y, *picked(parameters, active)]
    found: Sequence[Any] = [None] * len(targets)
    if lin.out_active[0]:
        found = TRANSFORMS.transpose(b, lin.linear, [*residuals, *[None] * len(targets)], [ct])
    back = [
        [b.zeros(Aval((_room(a),), REAL))] if c is None else _doubles(-c) for c, a in zip(found, targets, strict=True)
    ]
    return b.graph(f"{body.name}_adjoint", [_joined(slope, *(part for parts in back for part in parts))])


def _interval(node: Node, parameters: Sequence[Symbol], n: int, total: int) -> Graph:
    """One step of the loop: the cotangents at the earlier of two times from those at the later."""
    attrs = dict(node.attrs)
    active, safe, body = attrs.pop("active"), attrs.pop("nan_safe", False), attrs["body"]
    attrs["body"] = body.once(("adjoint", active, safe), lambda: _adjoint_equation(body, active, safe))
    attrs["strict"] = True
    b = Builder()
    b.where = node.where
    given = [b.input(p.aval) for p in parameters]
    vector = Aval((n,), REAL)
    ct, sums = b.input(vector, "ct"), b.input(Aval((total,), REAL), "sums")
    later, earlier = (b.input(Aval((), REAL, "scalar")) for _ in range(2))
    state, new = b.input(vector, "state"), b.input(vector)
    times = _joined(*(reshape_to(t, (1,)) for t in (later, earlier)))
    whole = _joined(state, ct + new, sums)
    (found,) = b.emit(ode, [x.value for x in (whole, times, *given)], attrs)
    last = getitem(found, index=(1,))
    parts = (slice(n, 2 * n), slice(2 * n, 2 * n + total))
    return b.graph("backwards", [getitem(last, index=(part,)) for part in parts])


def _tangent_transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    active = node.attrs["active"]
    known, (ct,) = operands[: 3 + len(active)], cts
    if ct is None:
        return [None] * len(operands)
    (flat,) = b.emit(ode_cotangent, [x.value for x in (*known, ct)], node.attrs)
    return [*[None] * len(known), *_parts(flat, known, active)]


ode_tangent: Primitive = primitive(
    "ode_tangent",
    _tangent_shape,
    transpose=_tangent_transpose,
    batch=looped,
    **_standing_for(_expansion),
)


# ode_cotangent: (start, times, states, p..., states-bar) → start-bar and p-bar of active ones, in one vector


def _parts(flat: Symbol, known: Sequence[Symbol], active: Sequence[bool]) -> list[Symbol]:
    """The parts of a vector that stand for the start and for the active parameters."""
    found, at = [], 0
    for x in (known[0], *picked(known[3:], active)):
        size = _room(x.aval)
        found.append(_of_doubles(getitem(flat, index=(slice(at, at + size),)), x.aval))
        at += size
    return found


def _cotangent_shape(
    start: Aval, times: Aval, states: Aval, *rest: Aval, active: Sequence[bool], nan_safe: bool = False, **attrs: Any
) -> Aval:
    *parameters, ct = rest
    if ct != states or ct != _shape(start, times, *parameters, **attrs):
        raise ValueError(f"{ct} is not a cotangent of {states}")
    return Aval((start.size + sum(map(_room, picked(parameters, active))),), REAL)


def _backwards(node: Node) -> Graph:
    """The cotangents as a loop over the intervals, from the last to the first."""
    b = Builder()
    b.where = node.where
    _, times, states, *parameters, ct = b.inputs_like(node.inputs)
    m, n = states.shape
    total = node.out.aval.size - n
    late, early = (slice(1, m),), (slice(0, m - 1),)
    rows = [getitem(x, index=k) for x, k in ((times, late), (times, early), (states, late), (ct, late))]
    zeros = [b.zeros(Aval((k,), REAL)) for k in (n, total)]
    attrs = {
        "arrays": 0,
        "body": _interval(node, parameters, n, total),
        "carry": 2,
        "consts": len(parameters),
        "length": m - 1,
        "reverse": True,
    }
    back, sums = b.emit(REGISTRY["scan"], [x.value for x in (*parameters, *zeros, *rows)], attrs)
    return b.graph("cotangents", [_joined(back + getitem(ct, index=(0,)), sums)])


def _cotangent_transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    """The tangents again, which for complex parameters are conjugate to cotangents."""
    *known, _ = operands
    if cts[0] is None:
        return [None] * len(operands)
    dots = [conj(d) if d.dtype.kind == "c" else d for d in _parts(cts[0], known, node.attrs["active"])]
    (moved,) = b.emit(ode_tangent, [x.value for x in (*known, *dots)], node.attrs)
    return [*[None] * len(known), moved]


ode_cotangent: Primitive = primitive(
    "ode_cotangent",
    _cotangent_shape,
    transpose=_cotangent_transpose,
    batch=looped,
    **_standing_for(_backwards),
)
