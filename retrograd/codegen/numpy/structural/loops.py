"""Statements of loops, and of their lists of steps."""

from __future__ import annotations

from dataclasses import replace

from ....ir.graph import Node, Value
from ....ir.loop_node import loop_of
from ....ir.texts import literal
from ....ir.types import Aval
from ....ops.structural import scan as scans
from ....ops.structural import while_loop as while_loops
from ....ops.structural.flags import picked
from ....ops.structural.scan import scan
from ....ops.structural.stack import absent, step_numbers
from ....ops.structural.while_loop import while_loop
from ..at_once import at_once
from ..bodies import BodyEmitter
from ..emitter import emits
from .steps_at_once import call_steps


@emits(scan)
def _scan(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    loop = loop_of(node)
    if loop is not None and at_once(emitter.plan.order, loop):
        call_steps(emitter, node, loop, ins, outs)
        return
    parts, (count, rest), reverse = scans.layout(node), scans.counted(node, ins), node.attrs["reverse"]
    length = node.attrs["length"]
    n = length if count is None else emitter.number(node, count)
    last = length - 1 if count is None else f"{n} - 1"
    consts, carry, xs = parts.operands(rest)
    k_out, arrays, stacks = parts.results(outs)
    _, ys, entries = parts.results(node.outputs)
    operands = parts.operands(scans.counted(node, node.inputs)[1])
    emitter.start(node, k_out, carry, operands[1])
    for name, y in zip(arrays, ys, strict=True):
        emitter.line(f"{name} = {emitter.step_rows(y)}")
    for name, value in zip(stacks, entries, strict=True):
        emitter.line(f"{name} = {emitter.empty('[]', entry_of(value))}")
    made = emitter.plan.order.producer
    counts = [v in made and made[v].prim is step_numbers for v in operands[2]]
    hints = picked([v.hint for v in parts.operands(node.attrs["body"].inputs)[2]], counts)
    t = emitter.fresh(next(iter(hints), None) or "t")
    steps = f"range({last}, -1, -1)" if reverse else f"range({n})"
    with emitter.working(node.attrs["body"]), emitter.block(f"for {t} in {steps}:"):
        emitter.name_rows(node.attrs["body"], t)
        filled = emitter.fill_rows(node, arrays, t)
        names = [*consts, *k_out, *(t if f else f"{x}[{t}]" for x, f in zip(xs, counts, strict=True))]
        results = emitter.inline(node.attrs["body"], names, bound=parts.consts + parts.carry)
        _, y_t, s_t = parts.results(results)
        for k, (store, value) in enumerate(zip(arrays, y_t, strict=True)):
            if k not in filled:
                emitter.line(f"{store}[{t}] = {value}")
        for store, value in zip(stacks, s_t, strict=True):
            emitter.line(f"{store}.append({value})")
        emitter.moved(k_out, results, node.attrs["body"])
    if reverse:
        for name in stacks:
            emitter.line(f"{name}.reverse()")


@emits(while_loop)
def _while_loop(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    parts = while_loops.layout(node)
    consts, inits, _ = parts.operands(ins)
    carry, _, stacks = parts.results(outs)
    emitter.start(node, carry, inits, parts.operands(node.inputs)[1])
    for name, value in zip(stacks, parts.results(node.outputs)[2], strict=True):
        emitter.line(f"{name} = {emitter.empty('[]', entry_of(value))}")
    names, bound = [*consts, *carry], parts.consts + parts.carry
    with emitter.working(node.attrs["body"]), emitter.loop(node, names):
        results = emitter.inline(node.attrs["body"], names, bound=bound)
        for store, value in zip(stacks, parts.results(results)[2], strict=True):
            emitter.line(f"{store}.append({value})")
        emitter.moved(carry, results, node.attrs["body"])


def entry_of(value: Value) -> Aval:
    """What one step adds to a list."""
    return replace(value.aval, steps=(value.aval.steps or ())[1:] or None)


@emits(step_numbers)
def _step_numbers(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    """Write nothing if only loops read the numbers of the steps: loops count by themselves. A range takes no memory."""
    value, graph = node.out, emitter.plan.order
    steps = f"range({ins[0] if ins else node.attrs['aval'].steps[0]})"
    if value in graph.outputs:
        emitter.line(f"{outs[0]} = list({steps})")
    elif not all(_goes_over(user, value) for user in graph.uses.get(value, ())):
        emitter.line(f"{outs[0]} = {steps}")
    else:
        emitter.unmade.add(value)


def _goes_over(loop: Node, value: Value) -> bool:
    """Whether a node is a scan that reads the value only step by step."""
    if loop.prim.name != "scan":
        return False
    ahead = (loop.attrs["length"] < 0) + loop.attrs["consts"] + loop.attrs["carry"]
    return value not in loop.inputs[:ahead]


@emits(absent)
def _absent(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    aval = node.out.aval
    text = f"{literal(aval.dtype)}(0)"
    if aval.kind == "array":
        text = f"np.broadcast_to({text}, {aval.shape})"
    for n in reversed(aval.steps or ()):
        text = "[]" if n < 0 else f"[{text}] * {n}"
    emitter.line(f"{outs[0]} = {text}")
