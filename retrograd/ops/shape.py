"""Operations that move elements without changing them: broadcast, reshape, permute, copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .batching import Flags, elementwise
from .reduce import sum_


def _broadcast_shape(x: Aval, aval: Aval) -> Aval:
    if np.broadcast_shapes(x.shape, aval.shape) != aval.shape or x.dtype != aval.dtype:
        raise ValueError(f"{x} does not broadcast to {aval}")
    return aval


def _unbroadcast(ct: Symbol, x: Symbol, aval: Aval) -> Symbol:
    """The sum over the axes that broadcasting made or stretched."""
    new = len(aval.shape) - x.ndim
    stretched = tuple(i + new for i, n in enumerate(x.shape) if n == 1 and aval.shape[i + new] != 1)
    axis = (*range(new), *stretched)
    return reshape_to(sum_(ct, axis=axis, keepdims=False) if axis else ct, x.shape)


def _broadcast_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, aval: Aval) -> Symbol:
    (x,) = args
    padded = (size, *(1,) * (len(aval.shape) - x.ndim + 1), *x.shape[1:])
    return broadcast_to(reshape_to(x, padded), (size, *aval.shape))


broadcast: Primitive = primitive(
    "broadcast",
    _broadcast_shape,
    "np.broadcast_to({0}, {shape})",
    typed=True,
    alias=0,
    cheap=True,
    diff=(pull(_unbroadcast),),
    batch=_broadcast_batch,
)


def broadcast_to(x: Symbol, shape: tuple[int, ...]) -> Symbol:
    """``x`` stretched to ``shape``; itself if it has that shape."""
    return x if x.shape == shape else broadcast(x, aval=Aval(shape, x.dtype))


def before_broadcast(f: Callable[..., Symbol], *operands: Symbol) -> Symbol:
    """``f(*operands)``, for an elementwise f; of numbers that were all broadcast, one number, which then is."""
    nodes = [x.builder.made.get(x.value) for x in operands]
    if not all(node is not None and node.prim is broadcast and not node.inputs[0].aval.shape for node in nodes):
        return f(*operands)
    sources = [Symbol(x.builder, node.inputs[0]) for x, node in zip(operands, nodes, strict=True) if node is not None]
    return broadcast_to(f(*sources), operands[0].shape)


def _reshape_shape(x: Aval, aval: Aval) -> Aval:
    if math.prod(aval.shape) != x.size or x.dtype != aval.dtype:
        raise ValueError(f"{x} does not reshape to {aval}")
    return aval


def _reshape_code(node: Node) -> str:
    """Use the method, which is faster than the function; a number has none, and stays a number when reshaped to ()."""
    if node.inputs[0].aval.kind == "array":
        return "{0}.reshape({shape})"
    return "np.reshape({0}, {shape})" if node.out.aval.shape else "np.asarray({0})"


def _reshape_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, aval: Aval) -> Symbol:
    return reshape_to(args[0], (size, *aval.shape))


reshape: Primitive = primitive(
    "reshape",
    _reshape_shape,
    _reshape_code,
    typed=True,
    alias=0,
    through=lambda v, shape, before, aval: reshape_to(v, shape),
    cheap=True,
    diff=(pull(lambda ct, x, aval: reshape_to(ct, x.shape)),),
    batch=_reshape_batch,
)


def reshape_to(x: Symbol, shape: tuple[int, ...]) -> Symbol:
    """``x`` with another shape of the same size; itself if it has that shape."""
    return x if x.shape == shape else reshape(x, aval=Aval(shape, x.dtype))


def _permute_shape(x: Aval, axes: tuple[int, ...]) -> Aval:
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(f"{axes} is not a permutation of the axes of {x}")
    return Aval(tuple(x.shape[a] for a in axes), x.dtype)


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes ``axes``."""
    return tuple(int(i) for i in np.argsort(axes))


def _permute_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, axes: tuple[int, ...]) -> Any:
    return permute(args[0], axes=(0, *(a + 1 for a in axes)))


def _permute_code(node: Node) -> str:
    axes = node.attrs["axes"]
    if node.inputs[0].aval.kind != "array":
        return "np.asarray({0})"
    return "{0}.T" if axes == tuple(range(len(axes)))[::-1] else "{0}.transpose({axes})"


permute: Primitive = primitive(
    "permute",
    _permute_shape,
    _permute_code,
    alias=0,
    through=lambda v, shape, before, axes: permute(v, axes=inverse(axes)),
    cheap=True,
    diff=(pull(lambda ct, x, axes: permute(ct, axes=inverse(axes))),),
    batch=_permute_batch,
)


def _iota_shape(aval: Aval) -> Aval:
    if aval.ndim != 1:
        raise ValueError(f"iota counts along one axis, not {aval}")
    return aval


iota = primitive("iota", _iota_shape, "np.arange({size}, dtype={dtype})", typed=True, cheap=True, batch=elementwise)

copy = primitive(
    "copy", lambda x: x, "{0}.copy()", diff=(pull(lambda ct, x: ct),), batch=elementwise, cheap=True, order="C"
)

owned = primitive(  # a copy that lies in memory as its operand does
    "owned", lambda x: x, '{0}.copy("K")', diff=(pull(lambda ct, x: ct),), batch=elementwise, cheap=True, order="K"
)

stop_gradient: Primitive = primitive(
    "stop_gradient",
    lambda x: x,
    "{0}",
    alias=0,
    diff=(None,),
    transpose=lambda b, node, operands, cts: cts,  # it changes no number, which matters where bwd is turned around
    batch=elementwise,
    cheap=True,
    lower=lambda b, node, args: args,
)
