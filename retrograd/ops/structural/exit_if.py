"""exit_if: if a guard fails, leave the graph with the results of another path, the ``body``.

``merge_paths`` makes it of guards, after all differentiation.
"""

from __future__ import annotations

from typing import Any

from ...errors import InternalError
from ...ir.evaluate import Left
from ...ir.graph import Graph, Node
from ...ir.primitive import Primitive, primitive
from ...ir.structure import Body, Group, Runs, Structure
from ...ir.types import Aval
from .guard import answer, guard_shape


def _exit_shape(value: Aval, *operands: Aval, kind: str, expected: Any, lanes: bool, body: Graph) -> tuple[Aval, ...]:
    guard_shape(value, kind=kind, expected=expected, lanes=lanes)
    if body.in_avals != operands:
        raise ValueError(f"the path takes {', '.join(map(str, body.in_avals))}")
    return ()


def _exit_run(evaluate: Any, node: Node, value: Any, *operands: Any) -> tuple[Any, ...]:
    if node.attrs["lanes"]:
        raise InternalError("a path for a batch cannot be interpreted", where=node.where)
    if answer(value, node.attrs["kind"]) == node.attrs["expected"]:
        raise Left(evaluate(node.attrs["body"], operands))
    return ()


exit_if: Primitive = primitive(
    "exit_if",
    _exit_shape,
    run=_exit_run,
    multi=True,
    effect=True,
    structure=Structure(
        bodies=(Body("body", Runs.AT_MOST_ONCE, ("consts",), ("left",)),),  # whose outputs are the results of the graph
        operands=(Group("choice", 1), Group("consts")),
        results=(),
    ),
)
