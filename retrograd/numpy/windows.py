"""``np.lib.stride_tricks.sliding_window_view``: one axis after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import windows
from ..tracer.array import apply, shadow_of
from ..tracer.operands import lifted
from ..tracer.table import implements
from ..tracer.trace import unsupported
from .repeat import plain


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    if writeable:
        raise unsupported("sliding_window_view with writeable=True", "write into the array itself")
    widths, places = plain(window_shape, "window_shape"), None if axis is None else plain(axis, "axis")
    np.lib.stride_tricks.sliding_window_view(shadow_of(x), widths, places)  # NumPy's own errors
    (x,) = lifted(x)
    axes = range(x.ndim) if places is None else np.lib.array_utils.normalize_axis_tuple(places, x.ndim, None, True)
    for k, width in zip(axes, np.atleast_1d(np.asarray(widths)), strict=True):
        x = apply(windows.windows, [x], width=int(width), axis=int(k))
    return x
