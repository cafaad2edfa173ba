"""linear_transpose: linear functions turned around."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.later import on_operands
from ..compiler.members import members
from ..compiler.signature import take_apart
from ..compiler.transform import Transform
from ..errors import InternalError, NonDifferentiableError
from ..ir.evaluate import evaluate
from ..ir.graph import Graph, Node
from ..ir.rewrite import walk
from ..ir.types import Aval
from ..passes.transpose import transpose
from ..tracer.record import Recorded
from ..tracer.tree import map_leaves
from .at_a_point import chosen_of
from .eval_shape import example_of

REMEDY = "transpose its linearization: rg.linearize(f, x)[1]"
ROUNDING = 0.01  # how far two sums of the same products may lie apart


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
            remedy=REMEDY,
        ) from None
    _check_at_zero(recorded, n)
    _check_loops(recorded, backward, n)
    avals: list[Aval | None] = list(recorded.graph.out_avals)
    run = on_operands(backward, recorded.captures)

    def transposed(ct: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = chosen.tree(run(members(recorded.out_spec, ct, avals, "the cotangent")))
        return found

    return transposed


def _check_at_zero(recorded: Recorded, n: int) -> None:
    """NonDifferentiableError if the function is not zero where its arguments are, such as x + 1."""
    zeros = [np.zeros(aval.shape, aval.dtype)[()] for aval in recorded.graph.in_avals[:n]]
    with np.errstate(all="ignore"):
        values = evaluate(recorded.graph, [*zeros, *(c.shadow for c in recorded.captures)])
    if any(np.any(np.isfinite(y) & (y != 0)) for y in values):
        raise NonDifferentiableError(
            "the function is not linear: it is not zero where its arguments are",
            remedy=f"leave out what it adds, or {REMEDY}",
        )


def _check_loops(recorded: Recorded, backward: Graph, n: int) -> None:
    """NonDifferentiableError if a loop is not linear, such as one that squares its carry, or what goes through ints.

    A loop is transposed by its derivative at zero. So ct · f(x) must be x · fᵀ(ct) at another point, as far as rounding
    lets it. A function that draws numbers has others there.
    """
    if recorded.graph.effect or all(_is_plain(node) for node in walk(recorded.graph)):
        return
    rng, graph = np.random.default_rng(0), recorded.graph
    xs, cts = ([_drawn(rng, aval) for aval in avals] for avals in (graph.in_avals[:n], graph.out_avals))
    captured = [c.shadow for c in recorded.captures]
    with np.errstate(all="ignore"):
        there, size, noise = _products(graph, [*xs, *captured], cts)
        back, size_back, noise_back = _products(backward, [*captured, *cts], xs)
    most = ROUNDING * (size + size_back) + noise + noise_back
    if np.isfinite(most) and abs(there - back) > most:
        raise NonDifferentiableError(
            "the function is not linear: a loop or integers in it depend on its arguments otherwise", remedy=REMEDY
        )


def _products(graph: Graph, args: Sequence[Any], others: Sequence[Any]) -> tuple[float, float, float]:
    """The sum of the results times ``others``, that of their sizes, and how far rounding inside may move it."""
    largest = coarsest = 0.0

    def watch(node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        nonlocal largest, coarsest
        for y in results:
            if isinstance(y, (np.ndarray, np.generic)) and y.dtype.kind in "fc" and y.size:
                largest = max(largest, float(np.max(np.abs(y))))
                coarsest = max(coarsest, float(np.finfo(y.dtype).eps))

    found = [np.asarray(x * y) for x, y in zip(others, evaluate(graph, args, watch), strict=True)]
    weight = sum(float(np.sum(np.abs(x))) for x in others)
    sizes = sum(float(np.sum(np.abs(x))) for x in found)
    return sum(float(np.sum(x).real) for x in found), sizes, math.sqrt(coarsest) * largest * weight


def _is_plain(node: Node) -> bool:
    """Whether a node has the rules of its primitive alone, which say in which operands it is linear."""
    return node.prim.structure is None and all(v.aval.dtype.kind in "fc" for v in node.outputs)


def _drawn(rng: np.random.Generator, aval: Aval) -> Any:
    """Numbers for a value; zeros for one without a derivative."""
    numbers = 4.0 * rng.standard_normal(aval.shape) if aval.dtype.kind in "fc" else np.zeros(aval.shape)
    return numbers.astype(aval.dtype)[()]
