"""hoist_invariants: Graph → Graph in which loops compute once, before the first step, what is the same in all steps.

Only loops that surely make a step are considered, so nothing is computed that the program would not compute. What may
raise an error stays behind other operations that may, and nothing is moved from behind an effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import LoopNode, loop_of
from ..ir.primitive import TRANSFORMS
from ..ir.rewrite import Env, copy_nodes, mapped, rebuild
from ..ops.batching import elementwise, shifted_axis
from ..ops.shape import broadcast

CALM = frozenset({"const", "matmul", "permute", "reshape", "broadcast", "transpose", "vecdot", "tril", "triu", "sum"})


@TRANSFORMS.register("hoist_invariants")
def hoist_invariants(graph: Graph) -> Graph:
    """Move such operations in front of their loops, out of nested loops as far as they go."""
    if not graph.nested:
        return graph
    return mapped(graph, lambda g: rebuild(rebuild(g, _without_fixed_carries), _hoisted))


def _without_fixed_carries(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    """A loop that takes as constants the carries that no step changes; other passes then know that they are."""
    loop = loop_of(node)
    if loop is None or loop.condition is not None or loop.count is not None:
        return None
    consts, carry, xs = loop.layout.operands(loop.body.inputs)
    fixed = [k for k, v in enumerate(carry) if loop.body.outputs[k] is v]
    moving = [k for k in range(len(carry)) if k not in fixed]
    outputs = [loop.body.outputs[k] for k in (*moving, *range(len(carry), len(loop.body.outputs)))]
    if not fixed or not outputs:
        return None
    given, start, rows = loop.layout.operands([env[v] for v in loop.operands])
    inputs = (*consts, *(carry[k] for k in (*fixed, *moving)), *xs)
    body = Graph(loop.body.name, inputs, loop.body.nodes, tuple(outputs))
    layout = replace(loop.layout, consts=len(consts) + len(fixed), carry=len(moving))
    operands = [*given, *(start[k] for k in (*fixed, *moving)), *rows]
    made = b.emit(node.prim, [x.value for x in operands], loop.attrs(body, layout), [v.hint for v in outputs])
    results = dict(zip(moving, made, strict=False))
    return [*(results.get(k, start[k]) for k in range(len(carry))), *made[len(moving) :]]


def _hoisted(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    loop = loop_of(node)
    if loop is None or loop.condition is not None or loop.length < 1 or loop.count is not None:
        return None
    moved = _invariant(loop)
    if not any(node.inputs for node in moved):
        return None
    left = _read([n for n in loop.body.nodes if n not in moved or not n.inputs], loop.body.outputs)
    read = {v for n in left for v in n.inputs} | {*loop.body.outputs}
    new = [v for n in moved if n.inputs for v in n.outputs if v in read]

    given, start, rows = loop.layout.operands([env[v] for v in loop.operands])
    consts, carry, xs = loop.layout.operands(loop.body.inputs)
    outside = dict(zip(consts, given, strict=True))
    copy_nodes(b, _read(moved, new), outside)
    kept = [v for v in consts if v in read]

    inner = Builder()
    inside: Env = {v: inner.input(v.aval, v.hint) for v in (*kept, *new, *carry, *xs)}
    copy_nodes(inner, left, inside)
    body = inner.graph(loop.body.name, [inside[v] for v in loop.body.outputs])
    operands = [*(outside[v] for v in (*kept, *new)), *start, *rows]
    layout = replace(loop.layout, consts=len(kept) + len(new))
    b.where, b.replica = node.where, node.replica
    return b.emit(node.prim, [x.value for x in operands], loop.attrs(body, layout), [v.hint for v in node.outputs])


def _invariant(loop: LoopNode) -> dict[Node, None]:
    """The nodes of a body that depend on nothing that changes from step to step; its constants are among them."""
    consts, _, _ = loop.layout.operands(loop.body.inputs)
    same = {v for v in consts if v.aval.steps is None}
    found: dict[Node, None] = {}
    calm = True
    for node in loop.body.nodes:
        if node.effect:
            break
        may_raise = not _is_calm(node)
        if same.issuperset(node.inputs) and (calm or not may_raise) and _may_move(node):
            same.update(node.outputs)
            found[node] = None
        elif may_raise:
            calm = False
    return _without_ends(found)


def _without_ends(moved: dict[Node, None]) -> dict[Node, None]:
    """The nodes without those that only stretch what the steps read: a step does so for nothing."""
    read = set[Value]()  # by what is moved
    for node in reversed([*moved]):
        if node.prim is broadcast and read.isdisjoint(node.outputs):
            del moved[node]
        else:
            read.update(node.inputs)
    return moved


def _may_move(node: Node) -> bool:
    constant = node.prim.name == "const"
    plain = all(v.aval.steps is None and v.aval.kind != "generator" for v in (*node.inputs, *node.outputs))
    return plain and (constant or bool(node.inputs))


def _is_calm(node: Node) -> bool:
    """Whether a node raises no error, whatever its operands are."""
    prim = node.prim
    if prim.structure is not None or "linalg" in str(prim.numpy.code) or prim.lower is not None:
        return False
    batch: Any = prim.batch
    return prim.name in CALM or prim.alias is not None or batch in (elementwise, shifted_axis)


def _read(nodes: Iterable[Node], outputs: Iterable[Value]) -> list[Node]:
    """The nodes that outputs need."""
    needed, found = {*outputs}, []
    for node in reversed([*nodes]):
        if node.effect or not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            found.append(node)
    return found[::-1]
