"""rg.config.keep_pages: freed memory that the C library keeps for the next arrays, instead of returning it at once.

The system fills the pages that it hands out with zeros. For arrays of 0.2 to 30 MB this costs more than an operation.
This is a setting of the whole process, for the arrays of all packages. It is off unless a program sets it.
"""

from __future__ import annotations

import ctypes
import sys

from ..errors import OptionError
from .settings import Config

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
USUAL = 128 * 1024  # both thresholds of a process, until it frees its first large array
LARGEST = 32 * 1024 * 1024  # glibc takes no larger arrays from the memory that it keeps

_kept = 0


def _get(config: Config) -> int:
    return _kept


def _set(config: Config, count: int) -> None:
    global _kept  # noqa: PLW0603 - the process has one such setting
    if type(count) is not int or not 0 <= count < 2**31:
        raise OptionError(f"rg.config.keep_pages = {count!r}", remedy="choose a number of bytes below 2 GiB")
    library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    if library is None or not hasattr(library, "mallopt"):
        raise OptionError("the C library here has no mallopt", remedy="leave out rg.config.keep_pages")
    library.mallopt(TRIM_THRESHOLD, max(count, USUAL))
    library.mallopt(MMAP_THRESHOLD, min(max(count, USUAL), LARGEST))
    if count < _kept:
        library.malloc_trim(0)
    _kept = count


Config.keep_pages = property(_get, _set)  # type: ignore[attr-defined]  # part of no key: results do not depend on it
