"""The machine and the versions that a table of times belongs to."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from bench.contestants import PACKAGES

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS")


def limit_threads(number: int) -> None:
    """Keep this process and its children on `number` processors, which BLAS, XLA and torch take as their threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])


def threads() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The processor's model, where the system tells."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def version_of(package: str) -> str:
    """As installed; a dash for a package that is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "–" if find_spec(package) is None else "from source"


def describe() -> str:
    """Two lines: processor and threads, then versions."""
    settings = "".join(f", {name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ)
    packages = ", ".join(f"{package} {version_of(package)}" for package in ("numpy", *PACKAGES))
    return f"{processor()}, threads: {threads()}{settings}\nPython {platform.python_version()}, {packages}"
