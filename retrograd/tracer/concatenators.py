"""``np.r_`` and ``np.c_`` inside a trace: arrays joined by the index of an object, which NumPy never hands over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .array import Tracer, shadow_of
from .trace import unsupported


class Concatenator:
    """Stands for ``np.r_``, or with ``columns`` for ``np.c_``, whose vectors become columns."""

    def __init__(self, original: Any, columns: bool, fresh: Callable[[Any], Any]) -> None:
        self._original, self._columns, self._fresh = original, columns, fresh

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        like = self._original[tuple(map(_shadow, items))]
        if not any(isinstance(i, Tracer) for i in items):
            return self._fresh(like)
        if isinstance(items[0], str):
            raise unsupported("np.r_ with a string", "use np.concatenate or np.stack")
        parts = [self._part(np.r_[i] if isinstance(i, slice) else i) for i in items]
        return np.concatenate(parts, -1 if self._columns else 0, dtype=like.dtype, casting="unsafe")

    def _part(self, x: Any) -> Any:
        if self._columns and np.ndim(x) < 2:
            return np.reshape(x, (-1, 1))
        return np.atleast_1d(x)


def _shadow(item: Any) -> Any:
    if isinstance(item, slice):
        return slice(*map(_plain, (item.start, item.stop, item.step)))
    return shadow_of(item)


def _plain(bound: Any) -> Any:
    return bound.__index__() if isinstance(bound, Tracer) else bound
