"""The memory that this process may still take."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

MARGIN = 0.8  # of the memory that seems free: other parts of the program allocate, too
GROUP = Path("/sys/fs/cgroup")
LIMITS = (
    (GROUP / "memory.max", GROUP / "memory.current"),
    (GROUP / "memory/memory.limit_in_bytes", GROUP / "memory/memory.usage_in_bytes"),
)


def available_bytes() -> int:
    """Four fifths of the least of: free memory of the machine, of the control group, and below the process limit."""
    return int(MARGIN * max(min(_free(), _in_group(), _below_limit()), 0))


def _free() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) * 1024
    except (OSError, StopIteration):
        pages = os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in os.sysconf_names else os.sysconf("SC_PHYS_PAGES")
        return pages * os.sysconf("SC_PAGE_SIZE")


def _in_group() -> float:
    for limit, used in LIMITS:
        try:
            return float(limit.read_text(encoding="ascii")) - float(used.read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such group, or "max": no limit
            continue
    return float("inf")


def _below_limit() -> float:
    if find_spec("resource") is None:  # some platforms lack it
        return float("inf")
    resource = import_module("resource")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return float("inf")
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return float(limit - pages * os.sysconf("SC_PAGE_SIZE"))
