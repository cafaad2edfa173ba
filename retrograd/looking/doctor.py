"""doctor: whether the installed packages fit together, and whether a derivative is correct here."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import NamedTuple

import numpy as np

from ..api.gradients import grad
from ..ir.target import VERSION
from .amounts import in_seconds, in_short
from .machine import machine

OLDEST = (3, 11)
OPTIONAL = {
    "scipy": "programs that use SciPy",
    "matplotlib": "figures of curves",
    "tqdm": "bars for long work",
    "rich": "bars for long work",
    "jax": "to_jax",
    "torch": "to_torch",
}


class Finding(NamedTuple):
    """One thing that was looked at: whether it is as it should be, and what was found."""

    fine: bool
    what: str
    found: str


def examine() -> list[Finding]:
    """All that is looked at."""
    found = [
        Finding(True, "retrograd", VERSION),
        Finding(sys.version_info >= OLDEST, "Python", f"{platform.python_version()}, {platform.platform()}"),
        *_required(),
    ]
    for name, use in OPTIONAL.items():
        version = _version(name)
        found.append(Finding(True, name, version or f"not installed; it serves {use}"))
    found.append(_derivative())
    speeds = machine()
    rates = [in_short(rate) for rate in speeds[:3]]
    second = f"{rates[0]}flops, {rates[1]} exps, {rates[2]}B of memory a second"
    said = f"{second}; a NumPy call takes {in_seconds(speeds.call)}"
    found.append(Finding(True, "this machine", said))
    return found


def _required() -> list[Finding]:
    try:
        wanted = metadata.requires("retrograd") or []
    except metadata.PackageNotFoundError:
        return [Finding(False, "installation", "retrograd is on the path, but not installed: pip install .")]
    found = []
    for line in wanted:
        if "extra ==" in line:
            continue
        name = "".join(c if c.isalnum() or c in "-_." else " " for c in line).split()[0]
        version, least = _version(name), line.partition(">=")[2].split(",")[0].strip()
        fine = version is not None and _numbers(version) >= _numbers(least)
        found.append(
            Finding(fine, name, f"{version or 'not installed'}, requires {line[len(name) :] or 'any version'}")
        )
    return found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in version.split(".")[:3])


def _derivative() -> Finding:
    x = np.linspace(0.1, 1.0, 5)
    found = grad(lambda x: np.sum(np.sin(x) ** 2))(x)
    fine = bool(np.allclose(found, np.sin(2 * x), rtol=1e-12))
    return Finding(fine, "a derivative", "is correct" if fine else f"is wrong: {found} instead of {np.sin(2 * x)}")
