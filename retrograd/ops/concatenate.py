"""Operations that join arrays or numbers into one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import REGISTRY, Primitive, primitive, pull
from ..ir.types import Aval
from .batching import Flags, lanes
from .shape import reshape_to


def _concatenate_shape(*avals: Aval, axis: int) -> Aval:
    first = avals[0]
    for aval in avals:
        if aval.shape[:axis] + aval.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]:
            raise ValueError(f"{', '.join(map(str, avals))} do not concatenate along axis {axis}")
        if aval.dtype != first.dtype:
            raise ValueError(f"dtypes of {', '.join(map(str, avals))} differ")
    length = sum(aval.shape[axis] for aval in avals)
    return Aval((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype)


def _concatenate_transpose(b: Any, node: Any, operands: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    (ct,), axis, out, at = cts, node.attrs["axis"], [], 0
    for x in operands:
        n = x.aval.shape[axis]
        index = (*(slice(None),) * axis, slice(at, at + n))
        out.append(None if ct is None else REGISTRY["getitem"](ct, index=index))
        at += n
    return out


def _concatenate_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, axis: int) -> Any:
    return concatenate(*(lanes(size, x, f) for x, f in zip(args, flags, strict=True)), axis=axis + 1)


def _listed(node: Node) -> str:
    """The operands as a tuple."""
    return "({args},)" if len(node.inputs) == 1 else "({args})"


def _concatenate_code(node: Node) -> str:
    return f"np.concatenate({_listed(node)}, axis={{axis}})"


concatenate = primitive(
    "concatenate",
    _concatenate_shape,
    _concatenate_code,
    joint=True,
    takes_out=True,
    diff=(pull(lambda ct, *xs, axis: None),),
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
)


def _array_shape(*avals: Aval) -> Aval:
    if any(aval.shape or aval.dtype != avals[0].dtype for aval in avals):
        raise ValueError(f"{', '.join(map(str, avals))} are not numbers of one dtype")
    return Aval((len(avals),), avals[0].dtype)


def _array_transpose(b: Any, node: Any, operands: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    (ct,) = cts
    return [None if ct is None else REGISTRY["getitem"](ct, index=(i,)) for i in range(len(operands))]


def _array_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    columns = (reshape_to(lanes(size, x, f), (size, 1)) for x, f in zip(args, flags, strict=True))
    return concatenate(*columns, axis=1)


array = primitive(
    "array",
    _array_shape,
    lambda node: f"np.array({_listed(node)})",
    joint=True,
    diff=(pull(lambda ct, *xs: None),),
    transpose=_array_transpose,
    batch=_array_batch,
)
