"""The processor, on which compiled code and the last bits of results depend."""

from __future__ import annotations

import contextlib
import platform
from functools import cache
from pathlib import Path


@cache
def processor() -> str:
    """The kind of the processor and the instructions that it has; homes and disks may be shared by machines."""
    told = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        told = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.machine()}\n{told}"
