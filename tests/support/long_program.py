"""A function of many lines, each a little different, so that no loop is found."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np


def long_program(n: int) -> Any:
    """A function of so many lines, whose source tracebacks and listings find."""
    lines = ["def long(x):"]
    lines += [f"    x = np.sin(x * 1.{k:04}) + np.cos(x) * 0.5" for k in range(1, n + 1)]
    source = "\n".join([*lines, "    return np.sum(x)", ""])
    scope: dict[str, Any] = {"np": np}
    file = f"/programs/long_{n}.py"
    exec(compile(source, file, "exec"), scope)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return scope["long"]
