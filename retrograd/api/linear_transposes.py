"""linear_transpose: linear functions turned around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.later import on_operands
from ..compiler.members import members
from ..compiler.signature import take_apart
from ..compiler.transform import Transform
from ..errors import InternalError, NonDifferentiableError
from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.types import Aval
from ..passes.transpose import transpose
from ..tracer.record import Recorded
from ..tracer.tree import map_leaves
from .at_a_point import chosen_of
from .eval_shape import example_of


def linear_transpose(function: Callable[..., Any], *examples: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function.

    Parameters
    ----------
    function : callable
        A function that is linear in its arguments.
    *examples : tree
        Arguments that give shapes and dtypes; results of ``rg.eval_shape`` do as well.

    Returns
    -------
    callable
        It takes a cotangent and returns a tuple with one entry for each argument.

    Raises
    ------
    NonDifferentiableError
        If the function is not linear.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> rg.linear_transpose(lambda x: A @ x, np.zeros(2))(np.array([1.0, 0.0]))
    (array([1., 2.]),)
    """
    transform = Transform("linear_transpose")
    transform.accept(function)
    call = take_apart(function, map_leaves(example_of, examples), {})
    chosen = chosen_of(function, call)
    recorded, _ = transform.record(function, call)
    n = len(call.traced)
    inputs = recorded.graph.inputs
    turned = Graph(recorded.graph.name, (*inputs[n:], *inputs[:n]), recorded.graph.nodes, recorded.graph.outputs)
    try:
        backward = transpose(turned, len(recorded.captures))
    except InternalError as fault:
        raise NonDifferentiableError(
            f"the function is not linear: {fault.what}",
            where=fault.where,
            remedy="transpose its linearization: rg.linearize(f, x)[1]",
        ) from None
    _check_at_zero(recorded, n)
    avals: list[Aval | None] = list(recorded.graph.out_avals)
    run = on_operands(backward, recorded.captures)

    def transposed(ct: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = chosen.tree(run(members(recorded.out_spec, ct, avals, "the cotangent")))
        return found

    return transposed


def _check_at_zero(recorded: Recorded, n: int) -> None:
    """NonDifferentiableError if the function is not zero where its arguments are, such as x + 1."""
    zeros = [np.zeros(v.aval.shape, v.aval.dtype)[()] for v in recorded.graph.inputs[:n]]
    with np.errstate(all="ignore"):
        values = evaluate(recorded.graph, [*zeros, *(c.shadow for c in recorded.captures)])
    if any(np.any(np.isfinite(y) & (y != 0)) for y in values):
        raise NonDifferentiableError(
            "the function is not linear: it is not zero where its arguments are",
            remedy="leave out what it adds, or transpose its linearization: rg.linearize(f, x)[1]",
        )
