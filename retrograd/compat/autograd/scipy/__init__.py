"""SciPy under autograd's name: its own modules, but for ``signal``, where autograd's ``convolve`` has axes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import signal as signal

if not TYPE_CHECKING:  # the modules are SciPy's own, and loaded on first use

    def __getattr__(name: str) -> Any:
        """A module of SciPy."""
        try:
            return import_module(f"scipy.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"scipy.{name}":  # SciPy itself is not there
                raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
