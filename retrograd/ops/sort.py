"""Sorting along one axis, elements picked along it by distinct indices, and searches in sorted arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.types import Aval
from .batching import shifted_axis
from .lane_loops import looped

INT = np.dtype(np.int64)


def _same(x: Aval, axis: int, **_: Any) -> Aval:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"{axis} is not an axis of {x}")
    return x


def _positions(x: Aval, axis: int, **_: Any) -> Aval:
    return Aval(_same(x, axis).shape, INT)


def copied(x: Aval, **_: Any) -> int:
    """Bytes of the copy that NumPy sorts or partitions."""
    return x.nbytes


def _kind(node: Node) -> str:
    return ", kind='stable'" if node.attrs["stable"] else ""


argsort: Primitive = primitive(
    "argsort",
    _positions,
    lambda node: f"np.argsort({{0}}, axis={{axis}}{_kind(node)})",
    names="argsort",
    batch=shifted_axis,
)


def _sort_push(t: Symbol, out: Symbol, x: Symbol, axis: int, stable: bool) -> Symbol:
    """The tangents in the order of a stable sort."""
    tangent: Symbol = take_along(t, argsort(x, axis=axis, stable=True), axis=axis)
    return tangent


sort = primitive(
    "sort",
    _same,
    lambda node: f"np.sort({{0}}, axis={{axis}}{_kind(node)})",
    names="sort",
    diff=(push(_sort_push),),
    batch=shifted_axis,
)


def _partition_push(t: Symbol, out: Symbol, x: Symbol, axis: int, kth: Any) -> Symbol:
    """The tangents in the order of the result: each result takes that of the element of equal rank.

    The order of ``argpartition`` would not do: between the ranks ``kth`` it may differ from that of ``partition``.
    """
    rank = argsort(argsort(out, axis=axis, stable=True), axis=axis, stable=True)
    order = take_along(argsort(x, axis=axis, stable=True), rank, axis=axis)
    tangent: Symbol = take_along(t, order, axis=axis)
    return tangent


partition = primitive(
    "partition", _same, "np.partition({0}, {kth}, axis={axis})", diff=(push(_partition_push),), batch=shifted_axis
)
argpartition = primitive("argpartition", _positions, "np.argpartition({0}, {kth}, axis={axis})", batch=shifted_axis)


def _along(index: Aval, axis: int, position: int) -> str:
    """Source of an index with operand ``position`` along one axis, and a range along each other axis."""
    parts = [
        f"np.arange({n})" + (f"[:{', None' * (index.ndim - k - 1)}]" if k < index.ndim - 1 else "")
        for k, n in enumerate(index.shape)
    ]
    return ", ".join([*parts[:axis], f"{{{position}}}", *parts[axis + 1 :]])


def _take_shape(x: Aval, index: Aval, axis: int) -> Aval:
    expected = (*x.shape[:axis], index.shape[axis], *x.shape[axis + 1 :])
    if index.shape != expected or index.dtype.kind not in "iu":
        raise ValueError(f"{index} picks no elements along axis {axis} of {x}")
    return Aval(index.shape, x.dtype)


def _add_shape(x: Aval, v: Aval, index: Aval, axis: int) -> Aval:
    if v != _take_shape(x, index, axis):
        raise ValueError(f"{v} does not fit the elements that {index} picks along axis {axis} of {x}")
    return x


# Like np.take_along_axis, but no index may occur twice on a line: then the transpose is a fancy `+=`.
take_along: Primitive = primitive(
    "take_along",
    _take_shape,
    lambda node: f"{{0}}[{_along(node.inputs[1].aval, node.attrs['axis'], 1)}]",
    diff=(pull(lambda acc, ct, x, index, axis: add_along(acc, ct, index, axis=axis), into=True), None),
    batch=shifted_axis,
)
add_along: Primitive = primitive(
    "add_along",
    _add_shape,
    statement=lambda node: f"{{0}}[{_along(node.inputs[2].aval, node.attrs['axis'], 2)}] += {{1}}",
    writes=0,
    loose=(1,),
    joint=True,
    batch=shifted_axis,
    scratch=lambda x, v, *_, **__: v.nbytes,
    diff=(
        pull(lambda ct, x, v, index, axis: ct),
        pull(lambda ct, x, v, index, axis: take_along(ct, index, axis=axis)),
        None,
    ),
)


def _lexsort_shape(*keys: Aval, axis: int) -> Aval:
    if any(key.shape != keys[0].shape for key in keys):
        raise ValueError(f"keys {', '.join(map(str, keys))} differ in shape")
    return _positions(keys[0], axis)


lexsort = primitive("lexsort", _lexsort_shape, "np.lexsort(({args},), axis={axis})", batch=shifted_axis)


def _search_shape(a: Aval, v: Aval, side: str) -> Aval:
    if a.ndim != 1:
        raise ValueError(f"searchsorted looks into a sorted vector, not into {a}")
    return Aval(v.shape, INT, "array" if v.shape else "scalar")


def _search_batch(prim: Primitive, size: int, args: Any, flags: Any, side: str) -> Any:
    return looped(prim, size, args, flags, side=side) if flags[0] else prim(*args, side=side)


def _digitize_shape(x: Aval, bins: Aval, right: bool) -> Aval:
    return _search_shape(bins, x, "")


def _digitize_batch(prim: Primitive, size: int, args: Any, flags: Any, right: bool) -> Any:
    return looped(prim, size, args, flags, right=right) if flags[1] else prim(*args, right=right)


# the bins may rise or fall; NumPy refuses others
digitize = primitive("digitize", _digitize_shape, "np.digitize({0}, {1}, right={right})", batch=_digitize_batch)
searchsorted = primitive("searchsorted", _search_shape, "np.searchsorted({0}, {1}, side={side})", batch=_search_batch)
