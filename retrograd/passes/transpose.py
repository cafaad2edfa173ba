"""transpose: linear(residuals..., ẋ...) → ẏ... becomes adjoint(residuals..., ȳ...) → x̄...: add ↔ copy, zero ↔ drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import REGISTRY, TRANSFORMS, Pull
from ..ir.types import Aval


class LinearOperand:
    """An operand in which a node is linear: its value is not known, its aval is."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype


@TRANSFORMS.register("transpose")
def transpose_into(
    b: Builder, graph: Graph, args: Sequence[Symbol | None], cts: Sequence[Symbol | None]
) -> list[Symbol | None]:
    """Cotangents of the inputs whose argument is None; the graph must be linear in those. None is a zero cotangent."""
    known: dict[Value, Symbol] = {v: s for v, s in zip(graph.inputs, args, strict=True) if s is not None}
    linear = {v for v, s in zip(graph.inputs, args, strict=True) if s is None}
    backward: list[Node] = []
    for node in graph.nodes:
        if not linear.isdisjoint(node.inputs):
            linear.update(node.outputs)
            backward.append(node)
        else:
            known.update(zip(node.outputs, b.copy_node(node, [known[v].value for v in node.inputs]), strict=True))
    ct_of: dict[Value, Symbol] = {}
    for value, ct in zip(graph.outputs, cts, strict=True):
        if ct is not None and value in linear:
            _accumulate(ct_of, value, ct)
    for node in reversed(backward):
        out_cts = [ct_of.pop(v, None) for v in node.outputs]
        if any(ct is not None for ct in out_cts):
            if node.prim.writes is not None:  # also into the cotangent, which for a 0-d array may be a number
                out_cts = [ct and b.coerce(ct, _plain(ct.aval)) for ct in out_cts]
            operands: list[Any] = [LinearOperand(v.aval) if v in linear else known[v] for v in node.inputs]
            b.where, b.replica = node.where, node.replica
            _transpose_node(b, node, operands, out_cts, ct_of)
            b.replica = 0
    return [ct_of.get(v) for v, s in zip(graph.inputs, args, strict=True) if s is None]


def _transpose_node(
    b: Builder, node: Node, operands: list[Any], cts: list[Symbol | None], ct_of: dict[Value, Symbol]
) -> None:
    prim = node.prim
    if prim.transpose is not None:
        for value, operand, ct in zip(node.inputs, operands, prim.transpose(b, node, operands, cts), strict=True):
            if isinstance(operand, LinearOperand) and ct is not None:
                _accumulate(ct_of, value, ct)
        return
    if len(cts) != 1:
        raise InternalError(f"{prim.name} has no transpose", where=node.where)
    rules = {i: prim.derivative(i) for i, x in enumerate(operands) if isinstance(x, LinearOperand)}
    if len(rules) > 1 and not (prim.joint or prim.jvp is not None):
        raise InternalError(f"{prim.name} is not linear in its operands together", where=node.where)
    pulls = {i: rule for i, rule in rules.items() if isinstance(rule, Pull)}
    if len(pulls) < len(rules):
        raise InternalError(f"{prim.name} is not linear in operand {min({*rules} - {*pulls})}", where=node.where)
    (ct,) = cts
    for i, rule in reversed(pulls.items()):  # the last operand first: a write is read before it is erased
        value = node.inputs[i]
        if rule.into:
            total = b.coerce(ct_of.get(value) or b.zeros(_plain(value.aval)), _plain(value.aval))
            ct_of[value] = rule.rule(total, ct, *operands, **node.attrs)
        else:
            _accumulate(ct_of, value, rule.rule(ct, *operands, **node.attrs))


def _plain(aval: Aval) -> Aval:
    return aval if aval.kind == "array" else Aval(aval.shape, aval.dtype, "array", aval.steps)


def _accumulate(ct_of: dict[Value, Symbol], value: Value, ct: Symbol) -> None:
    old = ct_of.get(value)
    add = REGISTRY["add" if ct.aval.steps is None else "stack_add"]
    ct_of[value] = ct if old is None else add(old, ct)


def transpose(linear: Graph, known: int) -> Graph:
    """The adjoint of a graph that is linear in all inputs after the first ``known``."""
    b = Builder()
    args = b.inputs_like(linear.inputs[:known])
    cts = [b.input(v.aval, "ct" if len(linear.outputs) == 1 else f"ct{i}") for i, v in enumerate(linear.outputs)]
    tangents = linear.inputs[known:]
    found = transpose_into(b, linear, [*args, *[None] * len(tangents)], cts)
    filled = [b.zeros(v.aval) if ct is None else b.coerce(ct, v.aval) for ct, v in zip(found, tangents, strict=True)]
    return b.graph(linear.name.removesuffix("_linear") + "_adjoint", filled)
