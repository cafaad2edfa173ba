"""Names for generated code: the user's where they are harmless, otherwise new ones."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from functools import lru_cache

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
RESERVED = frozenset({*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "math", "np", "scipy"})


@lru_cache(maxsize=1024)
def harmless(name: str | None) -> bool:
    """Whether a user's name may stand in generated source: ASCII, no keyword, builtin, dunder or module."""
    return bool(name and IDENTIFIER.match(name) and name not in RESERVED and not name.startswith("__"))


class Names:
    """Hands out distinct names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.used = set(taken)
        self.counts: dict[str, int] = {}

    def fresh(self, hint: str | None, default: str = "v") -> str:
        """``hint`` if it is harmless and free, else with ``_1``, ``_2``, ...; numbered ``v1`` without a hint."""
        base = hint if hint is not None and harmless(hint) else None
        name = base or self._numbered(default)
        while name in self.used:
            name = self._numbered(f"{base}_" if base else default)
        self.used.add(name)
        return name

    def _numbered(self, base: str) -> str:
        self.counts[base] = self.counts.get(base, 0) + 1
        return f"{base}{self.counts[base]}"
