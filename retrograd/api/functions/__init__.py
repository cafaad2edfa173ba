"""Function types: functions as differentiable values, and their cotangents."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .closures import Fn
    from .conversion import closure_convert, fn
    from .cotangent import FunctionCotangent
    from .learners import fit_pairs

__all__ = ["Fn", "FunctionCotangent", "closure_convert", "fit_pairs", "fn"]

if not TYPE_CHECKING:
    # `grad` is made of some of these files, and `learners` of `grad`: so none is imported before it is asked for.
    _FILES = {
        "Fn": "closures",
        "FunctionCotangent": "cotangent",
        "closure_convert": "conversion",
        "fit_pairs": "learners",
        "fn": "conversion",
    }

    def __getattr__(name: str) -> Any:
        """A public name of ``rg.functions``, imported from the file that defines it."""
        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_FILES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
