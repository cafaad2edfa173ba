"""The outside modules that the source of primitives names: NumPy always, the parts of SciPy where they are used."""

from __future__ import annotations

import re
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

ALLOWED = ("numpy", "scipy", "math", "warnings", "binascii", "zlib")  # beside states in files
SCIPY = ("integrate", "linalg", "optimize", "signal", "sparse", "special", "stats")
_USED = re.compile(rf"scipy\.(?<![\w.]scipy\.)({'|'.join(SCIPY)})\.")


def scipy_parts(source: str) -> list[str]:
    """The modules of SciPy that source names, such as ``scipy.special``, in order."""
    return [f"scipy.{part}" for part in sorted(set(_USED.findall(source)))]


def load(name: str, *details: Any) -> ModuleType:
    """``__import__`` for generated source, also when Python shows a warning from it; ImportError for other modules."""
    if name.partition(".")[0] not in ALLOWED and name != "retrograd.ops.structural.disk":
        raise ImportError(f"generated source imports {name}")
    return __import__(name, *details)


def scope_for(source: str) -> dict[str, Any]:
    """The names of modules that source needs."""
    scope: dict[str, Any] = {"np": np}
    for name in scipy_parts(source):
        scope["scipy"] = load(name)
    return scope


@lru_cache(maxsize=1024)
def resolve(path: str) -> Any:
    """The ufunc behind ``np.sin`` or ``scipy.special.erf``, also where SciPy wraps it, under ``SCIPY_ARRAY_API=1``."""
    found: Any = scope_for(f"{path}.")[path.partition(".")[0]]
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return getattr(found, "__wrapped__", found)
