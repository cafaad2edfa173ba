"""Copies, arrays like others, and facts about arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops.elementwise import cast
from ..tracer.array import apply, shadow_of
from ..tracer.operands import Axis
from ..tracer.table import implements
from ..tracer.trace import unsupported
from ..tracer.ufuncs import as_operand, copy
from .creation import full_like, like


@implements(np.copy)
def copy_(a: Any, order: str = "K", subok: bool = False) -> Any:
    if isinstance(shadow_of(a), np.ndarray):
        return copy(a, order)
    return apply(cast, [a], aval=Aval((), a.dtype))


implements(np.full_like)(full_like)
for _function, _value in ((np.zeros_like, 0), (np.ones_like, 1), (np.empty_like, 0)):
    implements(_function)(like(_value))


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


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return bool(np.isrealobj(shadow_of(x)))


def _shadows(*operands: Any) -> list[Any]:
    return [shadow_of(as_operand(x)) for x in operands]


@implements(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    return bool(np.may_share_memory(*_shadows(a, b)))


@implements(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> bool:
    x, y = _shadows(a, b)
    return bool(np.shares_memory(x, y, max_work))


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*map(shadow_of, arrays))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return bool(np.can_cast(shadow_of(from_), to, casting))


@implements(np.min_scalar_type)
def min_scalar_type(a: Any) -> Any:
    if a.ndim == 0:
        raise unsupported("np.min_scalar_type of a traced number, which depends on its value,", "use a.dtype")
    return a.dtype
