"""Names that modules bound early, by ``from numpy import zeros``: stand-ins replace them during traces."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ..where import FOREIGN
from .interception import PATCHERS, Patcher, StandIn


class EarlyNames(Patcher):
    """Finds and replaces such names in the user's modules and in the pure-Python libraries that these use.

    A module is searched again when its number of names has changed.
    """

    def __init__(self) -> None:
        self._stand_ins: dict[int, Any] = {}
        self._found: dict[str, tuple[ModuleType, int, list[tuple[str, Any]]]] = {}
        self._users: list[ModuleType] = []
        self._modules = 0
        self._patched: list[tuple[dict[str, Any], str, Any, Any]] = []

    def follow(self, stand_ins: Mapping[int, StandIn]) -> None:
        """Look for these functions too; each stand-in knows its ``original``."""
        self._stand_ins.update(stand_ins)
        self._found.clear()

    def patch(self) -> None:
        """Replace the functions by their stand-ins."""
        if self._modules != len(sys.modules):
            self._modules = len(sys.modules)
            loaded = sys.modules.copy().items()  # which no import of another thread changes
            self._users = [m for name, m in loaded if name.partition(".")[0] not in FOREIGN and type(m) is ModuleType]
        for module in self._users:
            for name, stand_in in self._names(module):
                names = vars(module)
                if names.get(name) is stand_in.original:
                    self._patched.append((names, name, stand_in.original, stand_in))
                    names[name] = stand_in

    def restore(self) -> None:
        """Restore the functions, except where a name was bound to something else meanwhile."""
        for names, name, original, stand_in in self._patched:
            if names.get(name) is stand_in:
                names[name] = original
        self._patched.clear()

    def _names(self, module: ModuleType) -> list[tuple[str, Any]]:
        names = vars(module)
        known = self._found.get(module.__name__)
        if known is None or known[0] is not module or known[1] != len(names):
            found = [(name, self._stand_ins[id(x)]) for name, x in names.copy().items() if id(x) in self._stand_ins]
            known = self._found[module.__name__] = (module, len(names), found)
        return known[2]


PATCHERS.append(EarlyNames())
