"""What is said and drawn of compiled functions: memory, what less of it costs, and errors explained."""

from typing import Any

from ..compiler.compiled import INSPECTORS, Compiled
from ..compiler.garbage import paused
from ..compiler.settings import config
from .curves import Tradeoff, tradeoff
from .memory import MemoryReport, report


def _plan(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MemoryReport:
    return report(compiled.executable(*args, **kwargs).graph, compiled.path(args, kwargs))


def _tradeoff(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tradeoff:
    path = compiled.known_path(args, kwargs)
    derived = compiled.record(compiled.take(args, kwargs))[1] if path is None else path.derived
    with config(nan_safe=compiled.nan_safe or config.nan_safe), paused:
        return tradeoff(derived)


INSPECTORS.update(plan=_plan, tradeoff=_tradeoff)
