"""The interface of targets: a backend plans, emits and measures graphs, so planning is independent of the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import InternalError
from ..where import Where
from .graph import Graph
from .plan import Plan

if TYPE_CHECKING:
    from .footprint import Footprint

VERSION = "0.1.0"  # of the package, which generated modules name


@dataclass(frozen=True)
class Module:
    """Source, the name of its function, the user's lines, wrappers of the function, and the names of bodies."""

    source: str
    function: str
    lines: dict[int, Where]
    around: tuple[Callable[[Any], Any], ...] = ()
    functions: Mapping[Graph, str] = field(default_factory=dict)


class Target(Protocol):
    """Turns graphs into code that runs.

    A graph is legalised, planned, emitted and loaded, in this order; ``footprint`` needs no more than a plan, so that
    memory is known before anything is emitted.
    """

    @property
    def name(self) -> str:
        """The key of the target's texts in primitives."""

    def legalise(self, graph: Graph) -> Graph:
        """The graph in the form that is planned and emitted: operations that the target absorbs have no node.

        No pass follows. Raises UnsupportedError for a graph that the target cannot compute.
        """

    def plan(self, graph: Graph, ordered: bool = True) -> Plan:
        """The order and the storage of a legalised graph; ``ordered`` says whether arrays come in C-ordered."""

    def emit(self, plan: Plan, constants: Mapping[int, np.ndarray[Any, Any]] | None = None) -> Module:
        """The source of a plan; ``constants`` are values of inputs, by position, that are written into it."""

    def footprint(self, plan: Plan) -> Footprint:
        """The memory of the code that ``emit`` makes of a plan."""

    def load(self, module: Module, filename: str, names: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
        """The function of a module: it takes flat positional arguments; one result is bare, several are a tuple.

        Tracebacks name ``filename``. ``names`` are the functions of this process that the module may call.
        """


METHODS = ("legalise", "plan", "emit", "footprint", "load")


class Targets(dict[str, Target]):
    """All targets by name."""

    def add(self, target: Target) -> None:
        """Register a target; InternalError if it lacks a method, or if its name is taken."""
        name = type(target).__name__
        for method in METHODS:
            if not callable(getattr(target, method, None)):
                raise InternalError(f"the target {name} has no method {method}: a target has {', '.join(METHODS)}")
        if self.setdefault(target.name, target) is not target:
            raise InternalError(f"two targets are called {target.name}")

    @property
    def chosen(self) -> Target:
        """The target that graphs are compiled for."""
        return self[CHOICE[-1]()]


TARGETS = Targets()
CHOICE: list[Callable[[], str]] = [lambda: "numpy"]  # the last says which target is chosen

# What tells, of a graph, the functions that its code calls by name, beside those of its module.
PROVIDERS: list[Callable[[Graph], Mapping[str, Callable[..., Any]]]] = []
