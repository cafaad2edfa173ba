"""The members of compiled functions that report: pictures, plans of memory, and the cost of less memory."""

from __future__ import annotations

from typing import Any

from ..compiler.compilation import INSPECTORS
from ..compiler.compiled import member
from ..ir.graph import FORMS
from . import curves, memory
from .unused import warn_of_unused_plans

INSPECTORS["unused plans"] = warn_of_unused_plans


@member
def dot(self: Any, /, *args: Any, **kwargs: Any) -> str:
    """The graph for these arguments as DOT text."""
    return str(FORMS["dot"](self.graph(*args, **kwargs)))


@member
def plan(self: Any, /, *args: Any, **kwargs: Any) -> memory.MemoryReport:
    """A report of the memory that a call with these arguments keeps, and the work that it repeats."""
    return memory.report(self.at(*args, **kwargs))


@member
def tradeoff(self: Any, /, *args: Any, **kwargs: Any) -> curves.Tradeoff:
    """The cost of less memory: the peak of a call and the repeated work, from all memory to the least.

    A gradient without loops keeps ever fewer values; loops follow ever thriftier plans. Nothing is compiled for it.
    Print it, or draw it.
    """
    return curves.tradeoff(self.at(*args, **kwargs))
