"""``x[i, j]`` and ``x[i, j] = v`` at ints, recorded directly: programs on single elements do little else.

All that is unusual takes the complete procedure: other indices, views, plain numbers, other dtypes, other traces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ...ir.builder import Symbol
from ...ir.types import Aval
from ...ops.index import getitem, setitem
from ...where import user_site
from ..array import Tracer
from ..mutation import write
from ..trace import CURRENT, STOPPED, Storage, Trace

Get = Callable[[Tracer, Any], Any]
Put = Callable[[Tracer, Any, Any], None]


def _place(x: Tracer, index: Any) -> tuple[int, ...] | None:
    """The ints of an index of an element of an array with memory of its own; None if it is anything else."""
    found = index if type(index) is tuple else (index,)
    if x.parent is not None or type(x.shadow) is not ndarray or not found or x.shadow.ndim != len(found):
        return None
    for k, n in zip(found, x.shadow.shape, strict=True):
        if type(k) is not int or not -n <= k < n:
            return None
    return found


def _trace(x: Tracer) -> Trace | None:
    """The trace that records now, if it is that of an array, and nothing is compared."""
    trace = CURRENT.get()
    if trace is None or x.home is not trace or trace.asked >= trace.quick or STOPPED.get():
        return None
    return trace


def getting(whole: Get) -> Get:
    """``x[index]``, by ``whole`` if it is no such element."""
    avals: dict[Any, Aval] = {}  # by dtype

    @wraps(whole)
    def get(x: Tracer, index: Any) -> Any:
        trace, place, symbol = _trace(x), _place(x, index), x.storage.symbol
        if trace is None or place is None or symbol is None:
            return whole(x, index)
        shadow, dtype = x.shadow[place], x.shadow.dtype
        aval = avals.get(dtype) or avals.setdefault(dtype, Aval((), dtype, "scalar"))
        trace.asked += 1
        b = trace.builder
        b.where, hint = user_site(2)
        symbol = b.single(getitem, (symbol.value,), {"index": place}, (("index", place),), aval)
        if symbol.value.hint is None:
            symbol.value.hint = hint
        return Tracer(trace, shadow, Storage(symbol), where=b.where)

    return get


def putting(whole: Put) -> Put:
    """``x[index] = value``, by ``whole`` if it is no such element or another number."""

    @wraps(whole)
    def put(x: Tracer, index: Any, value: Any) -> None:
        trace, place, old = _trace(x), _place(x, index), x.storage.symbol
        new = None if place is None else _number(value, trace, x.shadow)
        if trace is None or place is None or old is None or new is None or not x.shadow.flags.writeable:
            whole(x, index, value)
            return
        x.shadow[place] = value.shadow
        trace.asked += 1
        trace.builder.where = user_site(2)[0]
        operands = old.value, new.value
        write(x, trace.builder.single(setitem, operands, {"index": place}, (("index", place),), old.value.aval))

    return put


def _number(value: Any, trace: Trace | None, array: Any) -> Symbol | None:
    """A traced number of the dtype of an array; None for anything else."""
    if type(value) is not Tracer or value.home is not trace or value.parent is not None:
        return None
    return value.storage.symbol if type(value.shadow) is array.dtype.type else None
