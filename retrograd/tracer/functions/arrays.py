"""Copies, arrays like others, and facts about arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import Aval
from ...ops.elementwise import cast
from ..array import apply, shadow_of
from ..creation import full
from ..ufuncs import copy
from .table import Axis, implements


@implements(np.copy)
def copy_(a: Any, order: str = "K", subok: bool = False) -> Any:
    if isinstance(shadow_of(a), np.ndarray):
        return copy(a, order)
    return apply(cast, [a], aval=Aval((), a.dtype))


@implements(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return full_like(a, 1, dtype, order, subok, shape)


@implements(np.empty_like)
def empty_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    like = np.empty_like(shadow_of(a), dtype, shape=shape)
    return full(like.shape, fill_value, like.dtype)


@implements(np.shape)
def shape_of(a: Any) -> Any:
    return a.shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return int(a.ndim)


@implements(np.size)
def size(a: Any, axis: Axis = None) -> int:
    return int(np.size(shadow_of(a), axis))


@implements(np.result_type)
def result_type(*operands: Any) -> Any:
    return np.result_type(*map(shadow_of, operands))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return bool(np.iscomplexobj(shadow_of(x)))
