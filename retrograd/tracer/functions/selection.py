"""Choices between values: where, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import elementwise as ops
from ..array import Tracer, apply, shadow_of
from ..trace import unsupported
from ..ufuncs import as_operand, astype
from .shapes import broadcast_to
from .table import implements, shadow_dtype


@implements(np.where)
def where(condition: Any, /, *choices: Any) -> Any:
    if len(choices) != 2:
        raise unsupported("np.where with one argument: its shape depends on data", "give the two choices")
    x, y = map(as_operand, choices)
    condition = as_operand(condition)
    shadow = np.where(shadow_of(condition), shadow_of(x), shadow_of(y))
    if shadow_dtype(condition) != np.bool_:
        condition = np.not_equal(condition, 0)
    return apply(
        ops.where, [_spread(condition, shadow.shape, None), *(_spread(v, shadow.shape, shadow.dtype) for v in (x, y))]
    )


def _spread(x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An operand with the dtype and shape of a result; numbers become arrays."""
    if not isinstance(x, Tracer):
        x = np.asarray(x, dtype)
        return x if x.shape == shape else np.broadcast_to(x, shape)
    if dtype is not None and x.dtype != dtype:
        x = astype(x, dtype)
    return x if x.shape == shape else broadcast_to(x, shape)
