"""The code of libraries, which is not followed."""

from __future__ import annotations

import sys
from types import FrameType, FunctionType, ModuleType
from typing import Any

from ...where import FOREIGN, is_foreign, is_ours
from .classes import is_a

HEAP = 1 << 9  # the flag of classes that are not compiled into Python
MAKERS = ("builtins", "types")  # named by classes that ``exec`` without a module, or ``types.new_class``, has made


def is_library(x: Any) -> bool:
    """Whether a function, a class or a module belongs to Python, NumPy, SciPy, us or an installed package."""
    name: Any
    if is_a(x, ModuleType):
        name, file = x.__name__, str(vars(x).get("__file__"))
    elif is_a(x, FunctionType):
        name, file = dict.get(x.__globals__, "__name__"), x.__code__.co_filename
    else:
        name = getattr(x, "__module__", None)
        if name in MAKERS and is_made(x):
            return False
        if name == "builtins":
            return True
        named = isinstance(name, str) and name != "__main__"  # that is the user's, also under "python -m pytest"
        module = sys.modules.get(str(name)) if named else None
        file = getattr(module, "__file__", None) or ""
    return (isinstance(name, str) and FOREIGN[name]) or "site-packages" in file


def is_made(x: Any) -> bool:
    """Whether a class that names one of these modules is not one of its own."""
    return is_a(x, type) and bool(x.__flags__ & HEAP) and vars(sys.modules[x.__module__]).get(x.__name__) is not x


def is_builtin(cls: type) -> bool:
    """Whether a class is one of Python's builtins."""
    return getattr(cls, "__module__", None) == "builtins" and not is_made(cls)


def runs_library(frame: FrameType) -> bool:
    """Whether a frame runs code of Python's, or of an installed package other than NumPy, SciPy and us."""
    return not is_ours(frame) and (is_foreign(frame) or "site-packages" in frame.f_code.co_filename)


def of_ours(x: Any) -> bool:
    """Whether a class, or a function, is defined in this package."""
    return package(x) == "retrograd"


def package(x: Any) -> str:
    """The name of the package that defines a class or a function."""
    return str(getattr(x, "__module__", None)).partition(".")[0]
