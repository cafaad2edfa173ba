"""absorb: Graph → Graph without broadcasts and casts that NumPy does implicitly, for the emitter."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node, Value, filled
from ...ir.modules import resolve
from ...ir.primitive import TRANSFORMS, Primitive
from ...ir.rewrite import mapped, with_nodes
from ...ops.index import additem, subitem

LOOKED_AT = frozenset({"broadcast", "cast", "const", "neg"})
WEAK = {"i": int, "f": float, "c": complex}


def absorb(graph: Graph) -> Graph:
    """Remove explicit broadcasts and casts from operands of ufuncs; the avals of results stay as they are.

    The result is for planning and emission only: other passes expect the explicit form.
    """
    return mapped(graph, _absorbed)


def _absorbed(graph: Graph) -> Graph:
    made = {node.out: node for node in graph.nodes if node.prim.name in LOOKED_AT}
    implicit = {v for v, node in made.items() if node.prim.name in ("broadcast", "cast")}
    nodes = []
    for node in graph.nodes:
        if node.prim is not additem and implicit.isdisjoint(node.inputs):
            nodes.append(node)
            continue
        text, inputs, prim = node.prim.numpy, list(node.inputs), node.prim
        loose = range(len(inputs)) if text.broadcasts else text.loose
        if prim is additem and (negated := _negated(inputs[1], graph, made)) is not None:
            inputs[1], prim = negated, subitem
        for i in loose:
            inputs[i] = _without_broadcast(node, inputs, i, made)
        for i in loose:  # now that the loop above has found the Python numbers, whose dtypes give way
            inputs[i] = _without_cast(node, inputs, i, made)
        same = prim is node.prim and tuple(inputs) == node.inputs
        nodes.append(node if same else replace(node, prim=prim, inputs=tuple(inputs)))
    pruned: Graph = TRANSFORMS.prune(with_nodes(graph, nodes))
    return pruned


def _negated(value: Value, graph: Graph, made: dict[Value, Node]) -> Value | None:
    """The operand of a negation, if nothing else reads the negation."""
    source = made.get(value)
    if source is None or source.prim.name != "neg" or len(graph.uses[value]) > 1 or value in graph.outputs:
        return None
    return source.inputs[0]


def _shape(value: Value, made: dict[Value, Node]) -> tuple[int, ...]:
    """The shape of an operand as it is written: constants are plain numbers."""
    return () if filled(value, made) else value.aval.shape


def _without_broadcast(node: Node, inputs: list[Value], i: int, made: dict[Value, Node]) -> Value:
    source = made.get(inputs[i])
    if source is None or source.prim.name != "broadcast":
        return inputs[i]
    if node.prim.writes is not None:
        return source.inputs[0]
    others = [_shape(v, made) for k, v in enumerate(inputs) if k != i]
    if np.broadcast_shapes(source.inputs[0].aval.shape, *others) != node.out.aval.shape:
        return inputs[i]
    return source.inputs[0]


def _without_cast(node: Node, inputs: list[Value], i: int, made: dict[Value, Node]) -> Value:
    source = made.get(inputs[i])
    if source is None or source.prim.name != "cast" or not node.prim.numpy.ufunc:
        return inputs[i]
    before = source.inputs[0]
    if before.aval.kind == "python" and node.out.aval.kind != "array":
        return inputs[i]  # between numbers, Python's operators are not NumPy's: they raise
    numbers = any(v.aval.kind == "python" or filled(v, made) for v in inputs)
    if numbers and not node.out.aval.shape and source.out.aval.dtype.kind == "c":
        return inputs[i]  # a complex number of Python's takes np.float64 for a float, and gives a plain complex
    wanted = (*(v.aval.dtype for v in node.inputs), node.out.aval.dtype)
    tried = [before if k == i else v for k, v in enumerate(inputs)]
    strong = tuple(WEAK.get(v.aval.dtype.kind) if v.aval.kind == "python" else v.aval.dtype for v in tried)
    literal = tuple(
        WEAK.get(v.aval.dtype.kind, d) if filled(v, made) else d for v, d in zip(tried, strong, strict=True)
    )
    same = all(_loop(node.prim, dtypes) == wanted for dtypes in {strong, literal})
    return before if same else inputs[i]


@lru_cache(maxsize=4096)
def _loop(prim: Primitive, dtypes: tuple[Any, ...]) -> Any:
    try:
        return resolve(prim.numpy.ufunc).resolve_dtypes((*dtypes, None))
    except TypeError:
        return None
