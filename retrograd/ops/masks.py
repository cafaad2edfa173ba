"""A write by a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ControlFlowError
from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .batching import Flags, lanes
from .elementwise import BOOL, where
from .reduce import sum_
from .shape import broadcast_to, reshape_to


def _putmask_shape(x: Aval, mask: Aval, v: Aval) -> Aval:
    if not x.ndim or x.shape != mask.shape or v.shape or mask.dtype != BOOL or x.dtype != v.dtype:
        raise ValueError(f"putmask wants an array, a mask of its shape and a number of its dtype, not {x}, {mask}, {v}")
    return x


def _putmask_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    x, mask, v = args
    x, mask = lanes(size, x, flags[0]), lanes(size, mask, flags[1])
    if not flags[2]:
        return prim(x, mask, v)
    return where(mask, broadcast_to(reshape_to(v, (size, *(1,) * (x.ndim - 1))), x.shape), x)


def _putmask_pull_x(ct: Symbol, x: Any, mask: Symbol, v: Any) -> Any:
    return putmask(ct, mask, ct.builder.zeros(Aval((), ct.dtype, "scalar")))


def _putmask_pull_v(ct: Symbol, x: Any, mask: Symbol, v: Any) -> Any:
    return sum_(where(mask, ct, 0), axis=tuple(range(ct.ndim)), keepdims=False)


def _flatnonzero_batch(*_: Any, **__: Any) -> Any:
    raise ControlFlowError(
        "the number of elements that a mask selects may differ between the batch elements of a vmap",
        remedy="choose with np.where(mask, x, 0), or write x[mask] = value",
    )


# as many positions as its aval says; a guard after it checks that
flatnonzero = primitive(
    "flatnonzero", lambda mask, aval: aval, "np.flatnonzero({0})", typed=True, batch=_flatnonzero_batch
)

# {0}[mask] = number: a multiple faster than np.where if few elements are hit, since that branches on each element
putmask: Primitive = primitive(
    "putmask",
    _putmask_shape,
    statement="{0}[{1}] = {2}",
    writes=0,
    loose=(2,),
    joint=True,
    batch=_putmask_batch,
    diff=(pull(_putmask_pull_x), None, pull(_putmask_pull_v)),
)
