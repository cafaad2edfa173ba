"""Linear recurrences along the last axis: digital filters, by SciPy.

A filter solves a₀ y[n] + a₁ y[n-1] + … = b₀ x[n] + b₁ x[n-1] + … forwards in time. It is linear in the signal and in b:
the cotangent of the signal is filtered backwards in time, that of b has a product of two signals for each lag. A
change ȧ of the denominator is a further signal, -ȧ₀ y[n] - ȧ₁ y[n-1] - …, on the right. So all derivatives are filters
and products of lagged signals again.

Coefficients are vectors, or have the leading axes of the signal, one filter for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.types import Aval
from .batching import Flags, elementwise, lanes
from .elementwise import neg
from .index import getitem, setitem
from .reduce import sum_
from .shape import broadcast_to, reshape_to

EACH = """
def filter_each(b, a, x, state=None):
    out = np.empty(x.shape, x.dtype)
    for at in np.ndindex(x.shape[:-1]):
        p, q = b[at] if b.ndim > 1 else b, a[at] if a.ndim > 1 else a
        if state is None:
            out[at] = scipy.signal.lfilter(p, q, x[at])
        else:
            out[at] = scipy.signal.lfilter(p, q, x[at], zi=state[at])[0]
    return out
"""
LAGGED = """
def lagged_products(x, y, count):
    n = x.shape[-1]
    out = np.zeros((*x.shape[:-1], count), x.dtype)
    for lag in range(min(count, n)):
        out[..., lag] = np.sum(x[..., lag:] * y[..., : n - lag], axis=-1)
    return out
"""


def _shape(b: Aval, a: Aval, x: Aval) -> Aval:
    if not x.ndim or not x.shape[-1] or x.dtype.char not in "fdFD":
        raise ValueError(f"{x} is not a signal")
    for c in (b, a):
        if not c.ndim or not c.shape[-1] or c.dtype != x.dtype or c.shape[:-1] not in ((), x.shape[:-1]):
            raise ValueError(f"{c} does not hold coefficients of filters of {x}")
    return x


def _shape_from(b: Aval, a: Aval, x: Aval, state: Aval) -> Aval:
    if state != Aval((*x.shape[:-1], max(b.shape[-1], a.shape[-1]) - 1), x.dtype):
        raise ValueError(f"{state} is not the state of filters of {x}")
    return _shape(b, a, x)


def _each(node: Node) -> bool:
    """Whether a loop must do it: SciPy takes one filter, and not always an empty array."""
    b, a, x, *_ = (v.aval for v in node.inputs)
    return b.ndim > 1 or a.ndim > 1 or not x.size


def _code(node: Node) -> str:
    return "filter_each({args})" if _each(node) else "scipy.signal.lfilter({args})"


def _code_from(node: Node) -> str:
    return "filter_each({args})" if _each(node) else "scipy.signal.lfilter({0}, {1}, {2}, zi={3})[0]"


def _for_lanes(size: int, c: Symbol, flag: bool, lead: tuple[int, ...]) -> Symbol:
    """Coefficients of lanes get all leading axes of the signal."""
    if c.ndim - flag > 1:
        return lanes(size, c, flag)
    if not flag:
        return c
    n = c.shape[-1]
    wide: Symbol = broadcast_to(reshape_to(c, (size, *(1,) * (len(lead) - 1), n)), (*lead, n))
    return wide


def _batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    signals = [lanes(size, x, flag) for x, flag in zip(args[2:], flags[2:], strict=True)]
    lead = signals[0].shape[:-1]
    return prim(*(_for_lanes(size, c, flag, lead) for c, flag in zip(args[:2], flags[:2], strict=True)), *signals)


def _mirrored(x: Symbol) -> Symbol:
    mirrored: Symbol = getitem(x, index=(*(slice(None),) * (x.ndim - 1), slice(None, None, -1)))
    return mirrored


def _first(c: Symbol) -> Symbol:
    """The first coefficient, as a filter of one coefficient."""
    first: Symbol = getitem(c, index=(*(slice(None),) * (c.ndim - 1), slice(0, 1)))
    return first


def _one(x: Symbol) -> Symbol:
    return x.builder.constant(1.0, Aval((1,), x.dtype))


def _pull_b(ct: Symbol, b: Any, a: Symbol, x: Symbol) -> Any:
    found = lagged_products(ct, lfilter(_one(x), a, x), count=b.shape[-1])
    return sum_(found, axis=tuple(range(found.ndim - 1)), keepdims=False) if b.ndim < found.ndim else found


def _push_a(t: Symbol, out: Symbol, b: Symbol, a: Symbol, x: Symbol) -> Any:
    return neg(lfilter(t, a, out))


def _pull_x(ct: Symbol, b: Symbol, a: Symbol, x: Any) -> Any:
    return _mirrored(lfilter(b, a, _mirrored(ct)))


lfilter: Primitive = primitive(
    "lfilter",
    _shape,
    _code,
    names="lfilter",
    helper=EACH,
    batch=_batch,
    diff=(pull(_pull_b), push(_push_a), pull(_pull_x)),
)


def _entering(state: Symbol, x: Symbol) -> Symbol:
    """A state as a signal that enters with ``x``, as far as that goes."""
    n, m = x.shape[-1], state.shape[-1]
    rows = (slice(None),) * (x.ndim - 1)
    if m >= n:
        return state if m == n else getitem(state, index=(*rows, slice(0, n)))
    padded: Symbol = setitem(x.builder.zeros(x.aval), state, index=(*rows, slice(0, m)))
    return padded


def _push_state_a(t: Symbol, out: Symbol, b: Symbol, a: Symbol, x: Symbol, state: Symbol) -> Any:
    """SciPy divides b and a by a₀, but not the state."""
    moved = neg(lfilter(t, a, out))
    return moved + lfilter(_first(t), a, _entering(state, x)) if state.size else moved


def _push_state(t: Symbol, out: Symbol, b: Symbol, a: Symbol, x: Symbol, state: Symbol) -> Any:
    return lfilter(_first(a), a, _entering(t, x)) if state.size else x.builder.zeros(x.aval)


lfilter_from: Primitive = primitive(
    "lfilter_from",
    _shape_from,
    _code_from,
    names="lfilter",
    helper=EACH,
    batch=_batch,
    diff=(
        push(lambda t, out, b, a, x, state: lfilter(t, a, x)),
        push(_push_state_a),
        push(lambda t, out, b, a, x, state: lfilter(b, a, t)),
        push(_push_state),
    ),
)


def _lagged_shape(x: Aval, y: Aval, count: int) -> Aval:
    """Σₙ x[n] y[n-k] for each lag k."""
    if not x.ndim or not x.shape[-1] or x != y or x.dtype.char not in "fdFD" or count < 1:
        raise ValueError(f"{x} and {y} are not two signals with {count} lags")
    return Aval((*x.shape[:-1], count), x.dtype)


lagged_products: Primitive = primitive(
    "lagged_products",
    _lagged_shape,
    "lagged_products({0}, {1}, {count})",
    helper=LAGGED,
    batch=elementwise,
    scratch=lambda x, y, count: x.nbytes,
    diff=(
        pull(lambda ct, x, y, count: lfilter(ct, _one(y), y)),
        pull(lambda ct, x, y, count: _mirrored(lfilter(ct, _one(x), _mirrored(x)))),
    ),
)
