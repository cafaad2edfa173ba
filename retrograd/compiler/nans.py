"""debug_nans: graphs run node by node, and the first nan or infinity out of finite numbers is an error."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import NanError
from ..ir.evaluate import evaluate
from ..ir.graph import Graph, Node
from .settings import config

if TYPE_CHECKING:
    from .compilation import Path

FUNCTION, DERIVATIVE = "the function", "the derivative"


def inspect_path(path: Path, leaves: Sequence[Any]) -> Any:
    """The user's result; NanError at the first operation that makes a nan or an infinity, of the function first."""
    args = [*leaves, *(c.payload for c in path.recorded.captures)]
    inspect(path.recorded.graph, args, FUNCTION)
    return path.derived.assemble(inspect(config.settled(path.derived.graph), args, DERIVATIVE))


def inspect(graph: Graph, args: Sequence[Any], stage: str) -> tuple[Any, ...]:
    """The results of a graph, by plain interpretation; NanError as above."""
    return evaluate(graph, args, watch=partial(_look, stage))


def _look(stage: str, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
    made = _first([x for x in results if node.inputs and not node.graphs])
    if made and not _first(operands):
        raise NanError(
            f"{node.prim.name} made {made} in {stage}",
            where=node.where,
            remedy="keep its operands away from there with np.where or np.clip; where a branch that is not taken makes "
            "it in a derivative, nan_safe=True annihilates it",
        )


def _first(values: Sequence[Any]) -> str:
    """Which of nan and inf stands among values, if any."""
    for x in values:
        if isinstance(x, (list, tuple)):
            if found := _first(x):
                return found
        elif np.asarray(x).dtype.kind in "fc" and not np.all(np.isfinite(x)):
            return "nan" if np.any(np.isnan(x)) else "inf"
    return ""
