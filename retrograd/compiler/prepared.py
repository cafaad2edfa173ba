"""A function traced for solvers: once per signature, as long as the state that it reads is unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..ir.graph import Graph
from ..ir.types import in_order
from ..tracer.record import Recorded, record
from .compilation import Derived
from .compiled import Compiled
from .executable import Executable
from .paths import FINDERS, Paths
from .recording import form_of, results_of
from .settings import config
from .signature import Call, name_of
from .stages import run
from .transform import Transform


@dataclass(frozen=True)
class ForAllValues(Transform):
    """The function recorded for all values, so that decisions by Python are refused."""

    def record(self, function: Callable[..., Any], call: Call) -> tuple[Recorded, Derived]:
        """Like the body of a loop."""
        body = partial(call.applied, self.body(function))
        found = record(body, name_of(function), self.examples(call), call.hints, concrete=False, gathers=True)
        return found, Derived(found.graph, results_of(found), form_of(found))

    def body(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is recorded in place of the user's function."""
        return function


def prepared(function: Callable[..., Any], transform: ForAllValues, *args: Any) -> tuple[Graph, list[Any]]:
    """The graph of a call and its operands: arguments, then captures. A known signature is not recorded again."""
    compiled = Compiled(function, transform)
    found = FINDERS[-1](compiled, transform.take(function, args, {}))
    way = found.paths.way(compiled, *found.operands)
    present = found.paths.present(found.captures) if isinstance(found.paths, Paths) else None
    return way.recorded.graph, way.arguments(found.call.values(), present)


def code_of(graph: Graph, operands: Sequence[Any]) -> Executable:
    """The code of a graph for operands in this order in memory, made once and kept with the graph."""
    ordered = all(in_order(x) for x in operands if isinstance(x, np.ndarray))
    found: Executable = graph.once(("code", config.now(), ordered), lambda: Executable(run(graph), ordered=ordered))
    return found
