"""The node that a function returning ``(value, pullback)`` becomes: its pullback is a graph inside, or a host call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.inside import inserted
from ..compiler.signature import is_traced, name_of
from ..errors import ControlFlowError, ShapeError, TracerConversionError, TreeError, UnsupportedError
from ..ir.builder import Symbol
from ..ir.types import Aval, aval_of
from ..ops.structural import host as hosts
from ..tracer.array import shadow_of, symbol_in, wrap, wrap_all
from ..tracer.containers import prefix_leaves, register_container
from ..tracer.foreign import adviser
from ..tracer.outside import Plainly, trace_here
from ..tracer.record import record
from ..tracer.swallowed import forget_since, refusals
from ..tracer.tree import flatten, map_leaves, unflatten
from ..where import user_site
from .custom import CustomVjp

UNTRACED = (UnsupportedError, TracerConversionError, ControlFlowError)
Args = tuple[Any, ...]
Pull = Callable[[Sequence[Any], Sequence[Any]], Args]


@dataclass(frozen=True, eq=False)
class Closed:
    """A pullback and its residuals: ``pull(leaves of ct, residuals)`` gives one cotangent per argument."""

    pull: Pull
    residuals: list[Any]


register_container(Closed, lambda c: (c.residuals, c.pull), lambda pull, residuals: Closed(pull, list(residuals)))


def lens_node(function: Callable[..., Any], host: bool | None) -> CustomVjp:
    """The operation of a lens. ``host`` says whether Python is called back; None means only if tracing fails."""

    def pair(*args: Any) -> tuple[Any, Callable[[Any], Any]]:
        found = function(*args)
        if not isinstance(found, tuple) or len(found) != 2 or not callable(found[1]):
            raise TreeError(
                f"a lens returns the pair (value, pullback), not {found!r:.60}",
                remedy="return value, lambda ct: ...",
            )
        return found

    def value(*args: Any) -> Any:
        return _traced_or_called(host, lambda: pair(*args)[0], lambda: by_host(lambda *given: pair(*given)[0], args))

    def forward(*args: Any) -> tuple[Any, Closed]:
        return _traced_or_called(  # type: ignore[no-any-return]  # both give the pair
            host, lambda: _closed(pair, args), lambda: (value(*args), _pull_by_host(pair, args))
        )

    def backward(closed: Closed, ct: Any) -> Args:
        return closed.pull(flatten(ct)[0], closed.residuals)

    value.__name__ = name_of(function, "lens")
    node = CustomVjp(value)
    node.defvjp(forward, backward)
    return node


def _traced_or_called(host: bool | None, traced: Callable[[], Any], called: Callable[[], Any]) -> Any:
    if host:
        return called()
    before = refusals()
    try:
        return traced()
    except Exception as fault:
        if host is False or not (isinstance(fault, UNTRACED) or adviser().translated(fault) is not None):
            raise
        forget_since(before)
        return called()


def _closed(pair: Callable[..., Any], args: Args) -> tuple[Any, Closed]:
    """The value, and the pullback recorded as a graph; its captures are the residuals."""
    value, pullback = pair(*args)
    leaves, spec = flatten(value)
    on = [_inexact(x) for x in leaves]

    def run(cts: Sequence[Any]) -> list[Any]:
        rest = iter(cts)
        return _flat(pullback(unflatten(spec, [next(rest) if f else None for f in on])), args)

    seeds = [np.ones_like(shadow_of(x))[()] for x, f in zip(leaves, on, strict=True) if f]
    recorded = record(run, "pullback", seeds, ["ct" for _ in seeds], concrete=False)
    trace = trace_here()
    assert trace is not None
    residuals = [
        wrap(trace, c.payload, c.shadow, None) if isinstance(c.payload, Symbol) else c.payload
        for c in recorded.captures
    ]

    def pull(cts: Sequence[Any], known: Sequence[Any]) -> Args:
        within = trace_here()
        assert within is not None
        return _tree(inserted(within, recorded.graph, [*cts, *known]), args)

    return value, Closed(pull, residuals)


def _flat(found: Any, args: Args) -> list[Any]:
    """The cotangents that a pullback returned, one for each floating-point leaf of the arguments."""
    cts = (found,) if len(args) == 1 else found
    if not isinstance(cts, tuple) or len(cts) != len(args):
        raise TreeError(
            f"the pullback of a lens of {len(args)} arguments returns {found!r:.60}",
            remedy=f"return a tuple of {len(args)} cotangents, None for zero",
        )
    flat = []
    for ct, arg in zip(cts, args, strict=True):
        leaves, spec = flatten(arg)
        for part, leaf in zip(prefix_leaves(ct, spec, "a cotangent"), map(shadow_of, leaves), strict=True):
            if _inexact(leaf):
                flat.append(np.zeros_like(leaf)[()] if part is None else _fitting(part, leaf))
    return flat


def _fitting(ct: Any, leaf: Any) -> Any:
    if np.shape(shadow_of(ct)) != np.shape(leaf):
        raise ShapeError(
            f"the pullback of a lens returns a cotangent of shape {np.shape(shadow_of(ct))} for an argument of "
            f"shape {np.shape(leaf)}",
            remedy="return cotangents of the arguments' shapes",
        )
    return ct


def _tree(flat: Sequence[Any], args: Args) -> Args:
    """The inverse of ``_flat``, with 0 for leaves that have no cotangent."""
    rest = iter(flat)
    found: Args = map_leaves(lambda x: next(rest) if _inexact(shadow_of(x)) else 0, args)
    return found


def _inexact(x: Any) -> bool:
    return is_traced(x) and aval_of(shadow_of(x)).inexact


def by_host(function: Callable[..., Any], args: Args) -> Any:
    """Let the generated code call an untraced function, which must give equal results for equal arguments."""
    leaves, rebuilt = taken_apart(args)
    with Plainly():
        example, spec = flatten(function(*rebuilt(list(map(shadow_of, leaves)))))
    avals = [aval_of(x) for x in example]

    def run(*given: Any) -> list[Any]:
        with Plainly():
            return flatten(function(*rebuilt(given)))[0]

    return unflatten(spec, _called(run, leaves, avals))


def _pull_by_host(pair: Callable[..., Any], args: Args) -> Closed:
    """A pullback that runs the function again, so that it keeps nothing but the arguments."""
    leaves, rebuilt = taken_apart(args)

    def run(*given: Any) -> list[Any]:
        plain = rebuilt(given[:n])
        rest = iter(given[n:])
        with Plainly():
            value, pullback = pair(*plain)
            return _flat(pullback(map_leaves(lambda x: next(rest) if _inexact(x) else None, value)), plain)

    n = len(leaves)
    avals = [_cotangent_aval(x) for x in leaves if _inexact(x)]
    return Closed(lambda cts, known: _tree(_called(run, [*known, *cts], avals), args), leaves)


def _cotangent_aval(x: Any) -> Aval:
    aval = aval_of(shadow_of(x))
    return Aval((), aval.dtype, "scalar") if aval.kind == "python" else aval


def taken_apart(args: Args) -> tuple[list[Any], Callable[[Sequence[Any]], Args]]:
    """The leaves that become operands, and a function that rebuilds the arguments from them."""
    leaves, spec = flatten(args)
    operands = [x for x in leaves if is_traced(x)]
    static = {i: x for i, x in enumerate(leaves) if not is_traced(x)}

    def rebuilt(values: Sequence[Any]) -> Args:
        rest = iter(values)
        made: Args = unflatten(spec, [static[i] if i in static else next(rest) for i in range(spec.num_leaves)])
        return made

    return operands, rebuilt


def _called(function: Callable[..., Sequence[Any]], operands: Sequence[Any], avals: Sequence[Aval]) -> list[Any]:
    """Record a host call in the current trace."""
    trace = trace_here()
    assert trace is not None
    host = hosts.Host(function, avals)
    where = trace.builder.where = user_site()[0]
    outs = trace.builder.emit(hosts.host, [symbol_in(trace, x).value for x in operands], {"name": host})
    shadows = host(*map(shadow_of, operands))
    return wrap_all(trace, outs, shadows, where)
