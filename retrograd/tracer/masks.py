"""Reads and writes by a traced mask: how many elements it names depends on data, so a guard holds the number fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ControlFlowError
from ..ir.types import Aval
from ..ops.elementwise import where
from ..ops.masks import flatnonzero, putmask
from ..ops.shape import broadcast_to
from ..where import user_site
from .array import Tracer, apply, cast_to, shadow_of, symbol_in, tracers_in
from .index_arrays import PUT_BY_MASK, example_index, is_traced
from .indexing import get
from .mutation import check_writable, make_traced, read, write
from .trace import owner


def places(mask: Tracer) -> Tracer:
    """The positions of the true elements in the flattened mask: int64, as many as in the example.

    Raises ControlFlowError in the body of a loop, which is compiled for all values.
    """
    site = user_site()[0]
    if not mask.home.concrete:
        raise ControlFlowError(
            "the number of elements that a traced mask selects depends on data, but the function is compiled for "
            "all values",
            where=site,
            remedy="choose with np.where(mask, x, 0), or write x[mask] = value",
        )
    flat = apply(flatnonzero, [mask], aval=Aval((int(np.count_nonzero(mask.shadow)),), np.dtype(np.int64)))
    flat.home.decide(read(flat), "size", len(flat.shadow), site)
    return flat


def nonzero(mask: Tracer) -> tuple[Any, ...]:
    """``np.nonzero`` of a traced mask: the positions of the true elements along each axis."""
    flat: Any = places(mask)
    found = []
    for n in reversed(mask.shape[1:]):
        found.append(flat % n)
        flat = flat // n
    return (flat, *reversed(found))


def put_where(x: Tracer, items: tuple[Any, ...], value: Any) -> bool:
    """``x[..., mask, ...] = value`` for a traced mask; False if that takes the number of elements that it names."""
    k = next(k for k, i in enumerate(items) if is_traced(i) and i.dtype == np.bool_)
    mask, before, after = items[k], items[:k], items[k + 1 :]
    x.shadow[example_index(x, items)]  # NumPy's own error for a bad index
    if not all(i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in (*before, *after)):
        return False
    full = (slice(None),) * (x.ndim - mask.ndim - sum(isinstance(i, (int, slice)) for i in (*before, *after)))
    after = after if Ellipsis in (*before, *after) else (*after, Ellipsis)
    before, after = _expanded(before, full), _expanded(after, full)
    part = get(x, (*before, *(slice(None),) * mask.ndim, *after, Ellipsis))
    ndim = sum(not isinstance(i, int) for i in after)
    shape = np.shape(shadow_of(value))
    if len(shape) > ndim:
        lead, rest = shape[: len(shape) - ndim], shape[len(shape) - ndim :]
        if lead[-1] != 1 or any(isinstance(i, int) for i in (*before, *after)):
            return False
        value = np.reshape(value, (*lead[:-1], *(1,) * mask.ndim, *rest))
    wide: Any = np.reshape(mask, (*mask.shape, *(1,) * ndim))
    trace = owner([x, mask, *tracers_in([value])])
    check_writable(x, trace)
    trace.builder.where = user_site(3)[0]
    make_traced(x)
    if mask.ndim and not shape and mask.shape == part.shape:
        new = putmask(read(part), symbol_in(trace, wide), cast_to(value, Aval((), x.dtype, "scalar"), trace))
    else:
        chosen = broadcast_to(symbol_in(trace, wide), part.shape)
        new = where(chosen, cast_to(value, Aval(part.shape, x.dtype), trace), read(part))
    np.copyto(part.shadow, shadow_of(value), where=wide.shadow, casting="unsafe")
    write(part, new)
    return True


def _expanded(items: tuple[Any, ...], full: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items with slices in place of an ellipsis."""
    if Ellipsis not in items:
        return items
    k = items.index(Ellipsis)
    return (*items[:k], *full, *items[k + 1 :])


PUT_BY_MASK.append(put_where)
