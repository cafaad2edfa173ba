"""Reads and writes by a basic index, of slices and ints, also as operands: it makes a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.builder import Symbol, attr_key
from ..ir.primitive import REGISTRY, Primitive, primitive, pull
from ..ir.texts import Arg
from ..ir.types import Aval, aval_of
from .batching import Flags, lanes

Index = tuple[Any, ...]
REMEMBERED = 8192
_PARTS: dict[Any, Aval] = {}  # a cache, since indexing takes longer than all other shape rules together


def indexed(x: Aval, arrays: Sequence[Aval], index: Index) -> Aval:
    """The aval of ``x[index]``, by NumPy's own rules on an array without memory."""
    key = (x.shape, x.dtype, *arrays, attr_key(index))
    part = _PARTS.get(key)
    if part is None:
        if len(_PARTS) >= REMEMBERED:
            _PARTS.clear()
        part = _PARTS[key] = _indexed(x, arrays, index)
    return part


def _indexed(x: Aval, arrays: Sequence[Aval], index: Index) -> Aval:
    if len(index) == x.ndim and all(type(i) is int and -n <= i < n for i, n in zip(index, x.shape, strict=True)):
        return aval_of(x.dtype.type())
    probe = np.broadcast_to(np.empty((), x.dtype), x.shape)
    found = iter(arrays)
    got: Any = probe[tuple(_example(next(found)) if isinstance(i, Arg) else i for i in index)]
    return Aval(got.shape, x.dtype, "array" if isinstance(got, np.ndarray) else "scalar")


def _example(at: Aval) -> Any:
    if at.dtype.kind not in "iu":
        raise ValueError(f"{at} is not an index")
    return np.zeros(at.shape, np.intp) if at.kind == "array" else 0


def write_shape(x: Aval, v: Aval, *arrays: Aval, index: Index) -> Aval:
    """The shape rule of writes: the value has the shape and dtype of the part that it replaces."""
    part = indexed(x, arrays, index)
    if v.shape != part.shape or v.dtype != x.dtype:
        raise ValueError(f"{v} does not fit into the part {part} of {x}")
    return x if x.kind == "array" and x.steps is None else Aval(x.shape, x.dtype)


def whole(index: Index) -> bool:
    """Whether the index selects the whole array."""
    return all(i is Ellipsis or i == slice(None) for i in index)


def shifted(index: Index, by: int) -> Index:
    """The index with the positions of its operands moved up by ``by``."""
    return tuple(Arg(i.position + by) if isinstance(i, Arg) else i for i in index)


def _basic(ints: Sequence[Aval]) -> None:
    if any(i.kind == "array" for i in ints):
        raise ValueError("a basic index takes numbers; arrays of integers are for gather and scatter")


def _getitem_shape(x: Aval, *ints: Aval, index: Index) -> Aval:
    _basic(ints)
    return indexed(x, ints, index)


def _setitem_shape(x: Aval, v: Aval, *ints: Aval, index: Index) -> Aval:
    _basic(ints)
    return write_shape(x, v, *ints, index=index)


def _by_arrays(name: str, size: int, args: Sequence[Symbol], flags: Flags, index: Index) -> Any:
    """The lanes of the same operation by arrays of positions, which takes one for each lane."""
    prim = REGISTRY[name]
    assert prim.batch is not None
    return prim.batch(prim, size, list(args), list(flags), index=index, unique=True)


def _getitem_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, index: Index) -> Any:
    if any(flags[1:]):  # each lane reads elsewhere
        return _by_arrays("gather", size, args, flags, index)
    return prim(args[0], *args[1:], index=(slice(None), *index))


def _setitem_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, index: Index) -> Any:
    if any(flags[2:]):
        return _by_arrays("scatter" if prim is setitem else "scatter_add", size, args, flags, index)
    x, v = (lanes(size, a, f) for a, f in zip(args[:2], flags[:2], strict=True))
    return prim(x, v, *args[2:], index=(slice(None), *index))


def _getitem_pull(acc: Symbol, ct: Symbol, x: Any, *ints: Symbol, index: Index) -> Any:
    return additem(acc, ct, *ints, index=shifted(index, 1))


def _setitem_pull_x(ct: Symbol, x: Any, v: Any, *ints: Symbol, index: Index) -> Any:
    part = v.aval if v.dtype == ct.dtype else Aval(v.shape, ct.dtype, v.aval.kind)
    return setitem(ct, ct.builder.zeros(part), *ints, index=index)


def _setitem_pull_v(ct: Symbol, x: Any, v: Any, *ints: Symbol, index: Index) -> Any:
    return getitem(ct, *ints, index=shifted(index, -1))


def _getitem_through(
    v: Symbol, shape: tuple[int, ...], before: Callable[[], Symbol], *ints: Symbol, index: Index
) -> Any:
    return v if whole(index) else setitem(before(), v, *ints, index=shifted(index, 1))


getitem: Primitive = primitive(
    "getitem",
    _getitem_shape,
    "{0}[{index}]",
    alias=0,
    through=_getitem_through,
    cheap=True,
    batch=_getitem_batch,
    diff=(pull(_getitem_pull, into=True), None),
)

setitem: Primitive = primitive(
    "setitem",
    _setitem_shape,
    statement="{0}[{index}] = {1}",
    writes=0,
    loose=(1,),
    joint=True,
    batch=_setitem_batch,
    diff=(pull(_setitem_pull_x), pull(_setitem_pull_v), None),
)

additem: Primitive = primitive(
    "additem",
    _setitem_shape,
    statement="{0}[{index}] += {1}",
    writes=0,
    loose=(1,),
    joint=True,
    batch=_setitem_batch,
    diff=(pull(lambda ct, *operands, index: ct), pull(_setitem_pull_v), None),
)

subitem: Primitive = primitive(  # what `absorb` makes of adding a negative
    "subitem", _setitem_shape, statement="{0}[{index}] -= {1}", writes=0, loose=(1,), final=True
)
