"""debug_nans: graphs run node by node, and the first nan or infinity out of finite numbers is an error."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from ..errors import NanError
from ..ir.evaluate import evaluate
from ..ir.graph import Graph, Node
from ..ir.rewrite import walk
from ..ops.annihilation import annihilating_div, annihilating_mul
from .compilation import INSPECTORS, Compilation
from .settings import Config, config
from .stages import settled

FUNCTION, DERIVATIVE = "the function", "the derivative"


def debug_nans() -> AbstractContextManager[Config]:
    """Stop at the first nan or infinity that an operation makes of finite numbers, in a block.

    Calls in the block run node by node.

    Returns
    -------
    context manager
        It yields ``rg.config``.

    Raises
    ------
    NanError
        In the block; it names the operation and the user's line.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> with rg.debug_nans(), np.errstate(divide="ignore"):
    ...     try:
    ...         rg.grad(np.sqrt)(0.0)
    ...     except rg.errors.NanError as fault:
    ...         print(fault.what)
    div made inf in the derivative
    """
    return config(debug_nans=True)


def inspect(graph: Graph, args: Sequence[Any], stage: str) -> tuple[Any, ...]:
    """The results of a graph, by plain interpretation; NanError at the first operation that makes nan or infinity."""
    return evaluate(graph, args, watch=partial(_look, stage))


def _look(stage: str, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
    made = _first([x for x in results if node.inputs and not node.graphs])
    if made and not _first(operands):
        raise NanError(
            f"{node.prim.name} made {made} in {stage}",
            where=node.where,
            remedy="avoid such operands with np.where or np.clip; if a branch that is not taken makes "
            "it in a derivative, nan_safe=True annihilates it",
        )


def _first(values: Sequence[Any]) -> str:
    """The first of nan and inf among values, or an empty text."""
    for x in values:
        if isinstance(x, (list, tuple)):
            if found := _first(x):
                return found
        elif np.asarray(x).dtype.kind in "fc" and not np.all(np.isfinite(x)):
            return "nan" if np.any(np.isnan(x)) else "inf"
    return ""


def inspected(compilation: Compilation, args: Sequence[Any]) -> Any:
    """The user's result by plain interpretation, of the function first: NanError as for ``inspect``.

    ``args`` are the leaves of the call and the captures.
    """
    inspect(compilation.recorded.graph, args, FUNCTION)
    return compilation.derived.interpreted(_derivative(compilation.derived.graph, args), _derivative)


def _derivative(graph: Graph, args: Sequence[Any]) -> Sequence[Any]:
    """The derivative's results. With ``nan_safe`` an infinity that a zero wins over later is no fault."""
    graph = settled(graph)
    try:
        return inspect(graph, args, DERIVATIVE)
    except NanError:
        if not any(node.prim in (annihilating_mul, annihilating_div) for node in walk(graph)):
            raise
        found = evaluate(graph, args)
        if _first(found):
            raise
        return found


INSPECTORS["debug_nans"] = inspected
