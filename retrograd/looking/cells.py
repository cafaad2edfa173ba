"""Readable names for lines in notebook cells: ``Cell [3], line 2``."""

from __future__ import annotations

import re
import sys
from typing import Any

from ..where import Where

CELL = re.compile(r"Cell \[\d+\]")  # so it is called in the text of graphs, which is read back


def cell_of(where: Where) -> str | None:
    """The cell that a line belongs to, as the notebook numbers it; None for lines of files."""
    if where.file.startswith("Cell") and CELL.fullmatch(where.file):
        return f"{where.file}, line {where.line}"
    shell = shell_here()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", None)
    number = numbers.get(where.file) if isinstance(numbers, dict) else None
    return None if number is None else f"Cell [{number}], line {where.line}"


def shell_here() -> Any:
    """The IPython shell of this process, if there is one; it is not imported for the question."""
    ipython = sys.modules.get("IPython")
    ask = getattr(ipython, "get_ipython", None)
    return ask() if ask is not None else None
