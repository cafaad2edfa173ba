"""NumPy as a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Graph
from ...ir.modules import load
from ...ir.plan import Plan
from ...ir.target import Module
from .absorb import absorb
from .module import emit_module

if TYPE_CHECKING:
    from ...ir.footprint import Footprint

PASSES: list[Callable[[Graph], Graph]] = [absorb]  # extensions add further ones
AROUND: list[Callable[[Graph], Callable[[Any], Any] | None]] = []  # what goes around the function of a graph
CHECKS: list[Callable[[str], None]] = []  # what must accept source before it runs
FAULTS = (ArithmeticError, LookupError, RuntimeError, ValueError)
USED = (abs, dict, list, map, min, next, range, len, slice, tuple, zip, float, int, bool, complex)
BUILTINS: dict[str, Any] = {known.__name__: known for known in (*FAULTS, *USED)}


class NumPy:
    """Modules of NumPy statements.

    Who makes it passes ``place``, which lays a graph out and is a pass, and ``measure``, which finds the memory of a
    plan: this package must not import the first, and only budgets ask the second.
    """

    name = "numpy"

    def __init__(self, place: Callable[[Graph, bool], Plan], measure: Callable[[Plan], Footprint]) -> None:
        self._place, self._measure = place, measure

    def legalise(self, graph: Graph) -> Graph:
        """The graph without broadcasts and casts that NumPy does by itself, after all passes."""
        passes = tuple(PASSES)
        legal: Graph = graph.once(("numpy legal", passes), lambda: reduce(lambda graph, run: run(graph), passes, graph))
        return legal

    def plan(self, graph: Graph, ordered: bool = True) -> Plan:
        """The storage of a graph; ``ordered`` says whether arrays that come in are C-ordered."""
        return graph.once(("numpy plan", ordered), lambda: self._place(graph, ordered))

    def emit(self, plan: Plan, constants: Mapping[int, np.ndarray[Any, Any]] | None = None) -> Module:
        """The module of a plan."""
        return replace(emit_module(plan, constants), around=tuple(x for ask in AROUND if (x := ask(plan.order))))

    def footprint(self, plan: Plan) -> Footprint:
        """The memory of a plan."""
        return self._measure(plan)

    def load(self, module: Module, filename: str, names: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
        """Check the source of a module and run it; its function."""
        for check in CHECKS:
            check(module.source)
        builtins = {**BUILTINS, "__import__": load}
        scope: dict[str, Any] = {"__name__": "retrograd.generated", "np": np, "__builtins__": builtins}
        exec(compile(module.source, filename, "exec"), scope)  # noqa: S102 - the source is ours and was checked
        scope.update(names)  # some of these stand in the module as functions that only document them
        function: Callable[..., Any] = reduce(lambda f, around: around(f), module.around, scope[module.function])
        return function
