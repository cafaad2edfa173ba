"""NumPy as a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...ir.graph import Graph
from ...ir.modules import load
from ...ir.plan import Plan
from ...ir.target import Module
from ...ops.structural.disk import cleaning
from . import structural  # noqa: F401 - it registers the emitters of structural primitives
from .absorb import absorb
from .check import BUILTINS, check_source
from .footprint.footprint import Simulation
from .module import emit_module


class NumPy:
    """Modules of NumPy statements.

    ``place`` lays a graph out. It is a pass, which this room must not import, so that whoever makes the target hands
    it over: that is one argument in one place, while a registry would have to be filled before it is asked.
    """

    name = "numpy"

    def __init__(self, place: Callable[[Graph], Plan]) -> None:
        self._place = place

    def legalise(self, graph: Graph) -> Graph:
        """Broadcasts and casts vanish where NumPy does them by itself."""
        return absorb(graph)

    def plan(self, graph: Graph) -> Plan:
        """The storage of a graph."""
        return self._place(graph)

    def emit(self, plan: Plan, constants: Mapping[int, np.ndarray[Any, Any]] | None = None) -> Module:
        """The module of a plan."""
        return emit_module(plan, constants)

    def footprint(self, plan: Plan) -> Simulation:
        """The memory of a plan, by running its statements on blocks that only have a size."""
        return Simulation(plan)

    def load(self, module: Module, filename: str, names: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
        """The function of a module, whose source is checked and then run."""
        check_source(module.source)
        scope: dict[str, Any] = {
            "__name__": "retrograd.generated",
            "np": np,
            "__builtins__": {**BUILTINS, "__import__": load},
        }
        exec(compile(module.source, filename, "exec"), scope)  # noqa: S102 - the source is ours and was checked
        scope.update(names)  # of which some stand in the module, as functions that only say what they are for
        function: Callable[..., Any] = scope[module.function]
        return cleaning(function) if "retrograd" in scope else function
