"""call: a function that is stored once, differentiated once, and emitted as a function of its own.

A ``closed`` call is not inlined, even for a memory budget: only its region decides what to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.primitive import TRANSFORMS, JvpMode, Primitive, primitive
from ...ir.structure import Body, Runs, Structure
from ...ir.types import Aval
from .flags import picked, spread

ONCE = Body("body", Runs.ONCE, ("consts",), ("results",))  # from the operands as they are to the results as they are


def results_of(*avals: Aval, body: Graph, closed: bool = False) -> tuple[Aval, ...]:
    """The avals of the results of a body; ValueError if it takes other operands."""
    if body.in_avals != avals:
        raise ValueError(f"the body takes {', '.join(map(str, body.in_avals))}, not {', '.join(map(str, avals))}")
    return body.out_avals


def run_call(evaluate: Any, node: Node, *args: Any) -> Any:
    """Interpret the body."""
    return evaluate(node.attrs["body"], args)


@TRANSFORMS.register("make_call")
def make_call(b: Builder, body: Graph, operands: Sequence[Symbol], *, closed: bool = False) -> list[Symbol]:
    """Emit a call; its results. Operands take the avals of the body's inputs."""
    values = [b.coerce(x, v.aval).value for x, v in zip(operands, body.inputs, strict=True)]
    return b.emit(call, values, {"body": body, **_if_closed(closed)}, [v.hint for v in body.outputs])


def _if_closed(closed: bool) -> dict[str, Any]:
    return {"closed": True} if closed else {}


def _jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> tuple[list[Any], list[Any]]:
    body = node.attrs["body"]
    active = tuple(t is not None for t in tans)
    known = [t for t in tans if t is not None]
    if mode.split:
        lin, forward, kept = _linearized_call(body, active, mode.nan_safe)
        results = make_call(b, forward, args)
        n = len(body.outputs)
        computed = iter(results[n:])
        residuals = [args[k] if k >= 0 else next(computed) for k in kept]
        tangents = make_call(b, lin.linear, [*residuals, *known]) if any(lin.out_active) else []
        return results[:n], spread(tangents, lin.out_active)
    graph, flags = fused_call(body, active, mode)
    made = make_call(b, graph, [*args, *known])
    return made[: len(flags)], spread(made[len(flags) :], flags)


def _linearized_call(body: Graph, active: tuple[bool, ...], nan_safe: bool) -> tuple[Any, Graph, list[int]]:
    key = ("linearize", active, nan_safe)
    found: tuple[Any, Graph, list[int]] = body.once(key, lambda: _linearized(body, active, nan_safe))
    return found


def _linearized(body: Graph, active: Sequence[bool], nan_safe: bool) -> tuple[Any, Graph, list[int]]:
    """The linearized body, its forward graph without residuals that are inputs, and the positions of those inputs."""
    lin = TRANSFORMS.linearize(body, active, nan_safe=nan_safe)
    forward = lin.forward
    kept = [forward.inputs.index(r) if r in forward.inputs else -1 for r in lin.residuals]
    computed = [r for r, k in zip(lin.residuals, kept, strict=True) if k < 0]
    outs = forward.outputs[: len(body.outputs)]
    return lin, Graph(body.name, forward.inputs, forward.nodes, (*outs, *computed)), kept


def fused_call(body: Graph, active: tuple[bool, ...], mode: JvpMode) -> tuple[Graph, list[bool]]:
    """A graph of the body's values and tangents, and for each result whether it has a tangent."""
    found: tuple[Graph, list[bool]] = body.once(("jvp", active, mode), lambda: _fused(body, active, mode))
    return found


def _fused(body: Graph, active: Sequence[bool], mode: JvpMode) -> tuple[Graph, list[bool]]:
    inner = Builder()
    inputs = inner.inputs_like(body.inputs)
    dots = inner.inputs_like(picked(body.inputs, active))
    outs, douts = TRANSFORMS.jvp(inner, body, inputs, spread(dots, active), mode)
    tangents = [d for d in douts if d is not None]
    return inner.graph(f"{body.name}_jvp", [*outs, *tangents]), [d is not None for d in douts]


def transposed_call(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    """A call of the transpose of the body."""
    body = node.attrs["body"]
    known = tuple(isinstance(x, Symbol) for x in operands)
    avals = tuple(None if ct is None else ct.aval for ct in cts)
    adjoint, flags = body.once(("transpose", known, avals), lambda: _adjoint(body, known, avals))
    given = picked(operands, known) + [ct for ct in cts if ct is not None]
    closed = node.attrs.get("closed", False)
    full = iter(spread(make_call(b, adjoint, given, closed=closed) if any(flags) else [], flags))
    return [None if k else next(full) for k in known]


def _adjoint(body: Graph, known: Sequence[bool], avals: Sequence[Aval | None]) -> tuple[Graph, list[bool]]:
    inner = Builder()
    inputs = inner.inputs_like(picked(body.inputs, known))
    cts = [None if aval is None else inner.input(aval, "ct") for aval in avals]
    found = TRANSFORMS.transpose(inner, body, spread(inputs, known), cts)
    name = body.name.removesuffix("_linear") + "_adjoint"
    return inner.graph(name, [ct for ct in found if ct is not None]), [ct is not None for ct in found]


def _batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], body: Graph, closed: bool = False) -> Any:
    graph, out_flags = batched_call(body, size, flags)
    return make_call(args[0].builder, graph, args, closed=closed), out_flags


def batched_call(body: Graph, size: int, flags: Sequence[bool]) -> tuple[Graph, list[bool]]:
    """The body over lanes, and for each result whether it has lanes."""
    key = ("batch", size, tuple(flags))
    found: tuple[Graph, list[bool]] = body.once(key, lambda: _batched(body, size, flags))
    return found


def _batched(body: Graph, size: int, flags: Sequence[bool]) -> tuple[Graph, list[bool]]:
    inner = Builder()
    inputs = [
        inner.input(Aval((size, *v.aval.shape), v.aval.dtype, "array", v.aval.steps) if f else v.aval, v.hint)
        for v, f in zip(body.inputs, flags, strict=True)
    ]
    outs, out_flags = TRANSFORMS.batch(inner, body, size, inputs, flags)
    return inner.graph(f"{body.name}_vmap", outs), out_flags


def narrowed_call(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    """The body with only the used results: its attributes, and the operands and results that remain."""
    body = node.attrs["body"]
    small, live = body.once(("dce", tuple(used)), lambda: _narrowed(body, used))
    return {"body": small}, [i for i, f in enumerate(live) if f], [i for i, f in enumerate(used) if f]


def _dce(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    attrs, ins, outs = narrowed_call(node, used)
    return {**attrs, **_if_closed(node.attrs.get("closed", False))}, ins, outs


def _narrowed(body: Graph, used: Sequence[bool]) -> tuple[Graph, list[bool]]:
    live = TRANSFORMS.live_inputs(body, used)
    small = Graph(body.name, tuple(picked(body.inputs, live)), body.nodes, tuple(picked(body.outputs, used)))
    return TRANSFORMS.prune(small), live


call: Primitive = primitive(
    "call",
    results_of,
    multi=True,
    run=run_call,
    jvp=_jvp,
    transpose=transposed_call,
    batch=_batch,
    dce=_dce,
    structure=Structure(bodies=(ONCE,), transparent=True),
)
