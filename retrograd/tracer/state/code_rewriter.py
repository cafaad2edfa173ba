"""Observed code, made once for each code object while that lives."""

from __future__ import annotations

import weakref
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING

from ...where import ByCode

if TYPE_CHECKING:
    from .observed_code import Shown


class CodeRewriter:
    """Makes observed code of code, once for each code object while that lives."""

    def __init__(self, observers: Shown) -> None:
        self._observers = observers
        self._known = ByCode(self._rewritten)
        self._made: weakref.WeakSet[CodeType] = weakref.WeakSet()
        self._by_id: dict[int, weakref.ref[CodeType]] = {}  # the same, found at once

    def __call__(self, code: CodeType) -> CodeType:
        """The observed code; of observed code, itself."""
        if self.is_observed(code):
            return code
        made = self._known[code]
        self._made.add(made)
        self._by_id[id(made)] = weakref.ref(made, partial(self._gone, id(made)))
        return made

    def _gone(self, key: int, gone: weakref.ref[CodeType]) -> None:
        if self._by_id.get(key) is gone:
            del self._by_id[key]

    def is_observed(self, code: CodeType) -> bool:
        """Whether this is observed code."""
        return id(code) in self._by_id or code in self._made

    def _rewritten(self, code: CodeType) -> CodeType:
        from .observed_code import Rewriting  # noqa: PLC0415 - the package ``bytecode`` takes long to import

        return Rewriting(self._observers, self)(code)
