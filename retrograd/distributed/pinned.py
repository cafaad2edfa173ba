"""BLAS with a fixed number of threads, and what else the bits of a result depend on."""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..ir.target import VERSION


class _Pins:
    """The limits in force: the first one sets the number of threads, the last one gives it back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.limits: list[Any] = []
        self.known: tuple[int, Any] = (0, None)  # libraries, found when so many modules were loaded

    def controller(self) -> Any:
        """The BLAS libraries of this process. Imports may load further ones."""
        if not self.current():
            self.known = (len(sys.modules), _threadpoolctl().ThreadpoolController())
        return self.known[1]

    def current(self) -> bool:
        """Whether nothing was imported since the libraries were looked up."""
        return self.known[0] == len(sys.modules)


_pins = _Pins()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS compute in one thread while this block runs, in all threads of the process.

    How BLAS cuts a matrix product into pieces depends on the number of its threads, and so do the last bits.
    """
    with _pins.lock:
        if _pins.count == 0 or not _pins.current():
            _pins.limits.append(_pins.controller().limit(limits=1, user_api="blas"))
        _pins.count += 1
    try:
        yield
    finally:
        with _pins.lock:
            _pins.count -= 1
            while _pins.count == 0 and _pins.limits:  # the first one knows the numbers from before
                _pins.limits.pop().restore_original_limits()


def environment() -> str:
    """Versions, processor and BLAS of this process: if two processes differ in these, so may the last bits.

    >>> "numpy" in environment()
    True
    """
    found = {f"{x['internal_api']} {x['version']} {x.get('architecture', '')}".strip() for x in _blas_libraries()}
    versions = f"python {platform.python_version()}, numpy {np.__version__}, retrograd {VERSION}"
    return ", ".join([versions, platform.machine(), *_vector_units(), *sorted(found)])


def _blas_libraries() -> list[dict[str, Any]]:
    with _pins.lock:
        found = _pins.controller().info()
    return [x for x in found if x["user_api"] == "blas" and "numpy" in x["filepath"]]


def _vector_units() -> list[str]:
    """The newest instruction set that NumPy's own loops use here."""
    found: Any = np.show_config(mode="dicts")
    units: list[str] = found.get("SIMD Extensions", {}).get("found", [])
    return units[-1:]


def _threadpoolctl() -> Any:
    try:
        return import_module("threadpoolctl")
    except ModuleNotFoundError:
        raise UnsupportedError(
            "rg.distributed needs the package threadpoolctl, which is not installed",
            remedy="python -m pip install 'retrograd[distributed]'",
        ) from None
