"""Slices of a known length that begin where an operand says: reads, writes and sums, each along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull
from ..ir.texts import Arg
from ..ir.types import Aval
from .batching import Flags, lanes
from .elementwise import cast
from .gather import gather, scatter, scatter_add
from .shape import broadcast_to, iota, reshape_to

INT = np.dtype(np.int64)


def _part(x: Aval, start: Aval, axis: int, size: int, step: int) -> Aval:
    """The aval of ``size`` elements along an axis. Whoever records it sees to it that they exist."""
    if start.kind == "array" or start.dtype != INT:
        raise ValueError(f"{start} is not the start of a slice")
    if not 0 <= axis < x.ndim or size < 1 or step < 1 or (size - 1) * step >= x.shape[axis]:
        raise ValueError(f"{x} has no {size} elements along the axis {axis}, {step} apart")
    return Aval((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)


def _read_shape(x: Aval, start: Aval, *, axis: int, size: int, step: int) -> Aval:
    return _part(x, start, axis, size, step)


def _write_shape(x: Aval, v: Aval, start: Aval, *, axis: int, size: int, step: int) -> Aval:
    part = _part(x, start, axis, size, step)
    if v != part:
        raise ValueError(f"{v} does not fit into the part {part} of {x}")
    return Aval(x.shape, x.dtype)


def _code(position: int, then: str) -> Callable[[Node], str]:
    """The source of an operation whose operand at this position is the start."""

    def code(node: Node) -> str:
        axis, size, step = (node.attrs[name] for name in ("axis", "size", "step"))
        start, length = f"{{{position}}}", (size - 1) * step + 1
        return f"{{0}}[{':, ' * axis}{start}:{start} + {length}{f':{step}' if step > 1 else ''}]{then}"

    return code


def _places(lane_count: int, start: Symbol, size: int, step: int) -> Symbol:
    """For each lane, the positions of the elements of its slice."""
    b, shape = start.builder, (lane_count, size)
    counted = b.emit(iota, (), {"aval": Aval((size,), INT)})[0]
    first = broadcast_to(reshape_to(cast(start, aval=Aval(start.shape, INT)), (lane_count, 1)), shape)
    found: Symbol = first + broadcast_to(counted * step if step > 1 else counted, shape)
    return found


def _by_places(
    prim: Primitive, count: int, args: Sequence[Symbol], flags: Flags, position: int, attrs: dict[str, Any]
) -> Any:
    """The lanes of the same operation by arrays of positions, which takes one for each lane."""
    *operands, start = args
    index = (*(slice(None),) * attrs["axis"], Arg(position))
    assert prim.batch is not None
    places = _places(count, start, attrs["size"], attrs["step"])
    return prim.batch(prim, count, [*operands, places], list(flags), index=index, unique=True)


def _read_batch(prim: Primitive, count: int, args: Sequence[Symbol], flags: Flags, *, axis: int, **attrs: Any) -> Any:
    if flags[1]:  # each lane reads elsewhere
        return _by_places(gather, count, args, flags, 1, {"axis": axis, **attrs})
    return prim(*args, axis=axis + 1, **attrs)


def _write_batch(prim: Primitive, count: int, args: Sequence[Symbol], flags: Flags, *, axis: int, **attrs: Any) -> Any:
    if flags[2]:
        return _by_places(scatter if prim is set_slice else scatter_add, count, args, flags, 2, {"axis": axis, **attrs})
    x, v = (lanes(count, a, f) for a, f in zip(args[:2], flags[:2], strict=True))
    return prim(x, v, args[2], axis=axis + 1, **attrs)


def _through(v: Symbol, shape: tuple[int, ...], before: Callable[[], Symbol], start: Symbol, **attrs: Any) -> Any:
    return set_slice(before(), v, start, **attrs)


def _set_pull_x(ct: Symbol, x: Any, v: Any, start: Symbol, **attrs: Any) -> Any:
    return set_slice(ct, ct.builder.zeros(Aval(v.shape, ct.dtype)), start, **attrs)


def _pull_v(ct: Symbol, x: Any, v: Any, start: Symbol, **attrs: Any) -> Any:
    return slice_at(ct, start, **attrs)


slice_at: Primitive = primitive(
    "slice_at",
    _read_shape,
    _code(1, ""),
    alias=0,
    through=_through,
    cheap=True,
    batch=_read_batch,
    diff=(pull(lambda acc, ct, x, start, **attrs: add_slice(acc, ct, start, **attrs), into=True), None),
)

set_slice: Primitive = primitive(
    "set_slice",
    _write_shape,
    statement=_code(2, " = {1}"),
    writes=0,
    loose=(1,),
    joint=True,
    batch=_write_batch,
    diff=(pull(_set_pull_x), pull(_pull_v), None),
)

add_slice: Primitive = primitive(
    "add_slice",
    _write_shape,
    statement=_code(2, " += {1}"),
    writes=0,
    loose=(1,),
    joint=True,
    batch=_write_batch,
    diff=(pull(lambda ct, *operands, **attrs: ct), pull(_pull_v), None),
)
