"""applied: mark a call of a function value in the graph, with its arguments and its results, which pass unchanged.

``passes.expose`` finds the calls by this mark, wherever batching, loops and calls have moved them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import HigherOrderCotangentError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.primitive import JvpMode, Primitive, primitive
from ...ir.rewrite import walk
from ...ir.types import Aval
from ..batching import Flags, lanes


def _shape(*avals: Aval, key: int, call: int, nth: int, args: int, axes: int) -> tuple[Aval, ...]:
    if not 0 <= args < len(avals) or any(a.ndim < axes for a in avals):
        raise ValueError(f"a call with {args} arguments over {axes} batch axes does not have {len(avals)} operands")
    return avals[args:]


def _run(_: Any, node: Node, *operands: Any) -> tuple[Any, ...]:
    return operands[node.attrs["args"] :]


def _lower(_: Builder, node: Node, operands: list[Symbol]) -> list[Symbol]:
    return operands[node.attrs["args"] :]


def _jvp(
    b: Builder, node: Node, operands: list[Symbol], tans: list[Any], mode: JvpMode
) -> tuple[list[Symbol], list[Any]]:
    n = node.attrs["args"]
    if any(t is not None for t in tans[:n]):
        raise HigherOrderCotangentError(
            "a function value is differentiated inside the function that takes it: its cotangent would be a derivative "
            "of a point evaluation, which no list of pairs represents",
            where=node.where,
            remedy='use fns="captures", which differentiates through what the function captures',
        )
    return b.copy_node(node, [x.value for x in operands]), tans[n:]


def _batch(
    prim: Primitive, size: int, operands: Sequence[Symbol], flags: Flags, axes: int, **attrs: int
) -> tuple[list[Symbol], list[bool]]:
    wide = [lanes(size, x, flag).value for x, flag in zip(operands, flags, strict=True)]
    outs = operands[0].builder.emit(prim, wide, {**attrs, "axes": axes + 1})
    return outs, [True] * len(outs)


def marks(graph: Graph) -> frozenset[int]:
    """The keys of the function values that a graph or a body inside it calls: its code depends on these, too."""
    return graph.once("marks", lambda: frozenset(n.attrs["key"] for n in walk(graph) if n.prim is applied))


# key: the function value that is called; call: the form of the call; nth: what keeps equal calls from becoming one;
# args: how many operands are arguments, the rest are results; axes: how many leading axes of all are lanes of vmap.
applied: Primitive = primitive("applied", _shape, mark=True, multi=True, run=_run, lower=_lower, jvp=_jvp, batch=_batch)
