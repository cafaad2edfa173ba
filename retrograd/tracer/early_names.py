"""Names that modules bound early, by ``from numpy import zeros``: stand-ins replace them during traces."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ..where import FOREIGN
from .interception import PATCHERS, Patcher, StandIn


class Searched:
    """A module, how many names it has, and those of them that stand-ins replace."""

    __slots__ = ("count", "found", "module", "names")

    def __init__(self, module: ModuleType) -> None:
        self.module, self.names, self.count = module, vars(module), -1
        self.found: list[tuple[str, Any]] = []

    def search(self, stand_ins: Mapping[int, Any]) -> None:
        """Find the names."""
        names = self.names.copy()
        self.found = [(name, stand_ins[id(x)]) for name, x in names.items() if id(x) in stand_ins]
        self.count = len(names)


class EarlyNames(Patcher):
    """Finds and replaces such names in the user's modules and in the pure-Python libraries that these use.

    A module is searched again when its number of names has changed.
    """

    def __init__(self) -> None:
        self._stand_ins: dict[int, Any] = {}
        self._users: list[Searched] = []
        self._modules = 0
        self._patched: list[tuple[dict[str, Any], str, Any, Any]] = []

    def follow(self, stand_ins: Mapping[int, StandIn]) -> None:
        """Look for these functions too; each stand-in knows its ``original``."""
        self._stand_ins.update(stand_ins)
        for user in self._users:
            user.count = -1

    def patch(self) -> None:
        """Replace the functions by their stand-ins."""
        if self._modules != len(sys.modules):
            self._modules = len(sys.modules)
            loaded = sys.modules.copy().items()  # which no import of another thread changes
            known = {id(user.module): user for user in self._users}
            users = [m for name, m in loaded if not FOREIGN[name] and type(m) is ModuleType]
            self._users = [known.get(id(module)) or Searched(module) for module in users]
        for user in self._users:
            names = user.names
            if len(names) != user.count:
                user.search(self._stand_ins)
            for name, stand_in in user.found:
                if names.get(name) is stand_in.original:
                    self._patched.append((names, name, stand_in.original, stand_in))
                    names[name] = stand_in

    def restore(self) -> None:
        """Restore the functions, except where a name was bound to something else meanwhile."""
        for names, name, original, stand_in in self._patched:
            if names.get(name) is stand_in:
                names[name] = original
        self._patched.clear()


PATCHERS.append(EarlyNames())
