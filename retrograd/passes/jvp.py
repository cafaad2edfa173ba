"""jvp: f(x...) → y... becomes f'(x..., ẋ...) → y..., ẏ..., with tangent code that is structurally linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InternalError, NonDifferentiableError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import TRANSFORMS, JvpMode, Pull, Unknown

Tangent = Symbol | None
STILL: list[Callable[[Graph], set[Value]]] = []  # find values whose changes change no result


@TRANSFORMS.register("jvp")
def jvp_into(
    b: Builder, graph: Graph, args: Sequence[Symbol], tans: Sequence[Tangent], mode: JvpMode
) -> tuple[list[Symbol], list[Tangent]]:
    """Outputs and their tangents; None is a zero tangent."""
    start = len(b.nodes)
    primal: dict[Value, Symbol] = dict(zip(graph.inputs, args, strict=True))
    tangent: dict[Value, Tangent] = dict(zip(graph.inputs, tans, strict=True))
    still = set[Value]().union(*(find(graph) for find in STILL))
    outs: Sequence[Symbol]
    douts: Sequence[Tangent]
    for node in graph.nodes:
        ins = [primal[v] for v in node.inputs]
        dots = [tangent.get(v) for v in node.inputs]
        if not any(dots) or not any(v.aval.inexact for v in node.outputs):
            outs, douts = b.copy_node(node, [s.value for s in ins]), [None] * len(node.outputs)
        elif node.prim.jvp is not None:
            b.where, b.replica = node.where, 0
            outs, douts = node.prim.jvp(b, node, ins, dots, mode)
        else:
            outs = b.copy_node(node, [s.value for s in ins])
            douts = [_tangent(b, node, ins, dots, outs[0])]
        for value, out, dot in zip(node.outputs, outs, douts, strict=True):
            primal[value] = out
            tangent[value] = dot if value.aval.inexact and value not in still else None
    if mode.nan_safe:
        TRANSFORMS.annihilate(b, start, [t.value for t in tans if t is not None])
    return [primal[v] for v in graph.outputs], [tangent.get(v) for v in graph.outputs]


def _tangent(b: Builder, node: Node, ins: list[Symbol], dots: list[Tangent], out: Symbol) -> Tangent:
    prim = node.prim
    if prim.joint:
        linear = [isinstance(prim.derivative(i), Pull) for i in range(len(ins))]
        if not any(on and t is not None for on, t in zip(linear, dots, strict=True)):
            return None
        mixed = [
            x if not on else b.zeros(x.aval) if t is None else t for x, t, on in zip(ins, dots, linear, strict=True)
        ]
        return prim(*mixed, **node.attrs)  # type: ignore[no-any-return]  # symbols are untyped under operators
    total: Tangent = None
    for i, t in enumerate(dots):
        rule = prim.derivative(i)
        if t is None or rule is None:
            continue
        if isinstance(rule, Unknown):
            raise NonDifferentiableError(
                f"the derivative with respect to {rule.what} is not known",
                where=node.where,
                remedy="keep it constant: pass a plain number, or wrap it in rg.stop_gradient",
            )
        further = (*ins[:i], t, *ins[i + 1 :])
        term: Any = prim(*further, **node.attrs) if isinstance(rule, Pull) else rule.rule(t, out, *ins, **node.attrs)
        if term is None:  # constant here, as x**0 is
            continue
        total = term if total is None else total + term
    if prim.multi:
        raise InternalError(f"{prim.name} has several results and no jvp rule")
    return total


def jvp(graph: Graph, active: Sequence[bool], *, nan_safe: bool) -> Graph:
    """f(x...) → y... becomes f'(x..., ẋ...) → y..., ẏ...; only active inputs have tangents, all results do."""
    b = Builder()
    args = b.inputs_like(graph.inputs)
    dots = [
        b.input(v.aval, v.hint and f"{v.hint}_dot") if on else None for v, on in zip(graph.inputs, active, strict=True)
    ]
    outs, douts = jvp_into(b, graph, args, dots, JvpMode(split=False, nan_safe=nan_safe))
    filled = [b.zeros(o.aval) if d is None else b.coerce(d, o.aval) for o, d in zip(outs, douts, strict=True)]
    return b.graph(f"{graph.name}_jvp", [*outs, *filled])
