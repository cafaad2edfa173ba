"""custom_vjp and custom_jvp: functions with derivatives from the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InternalError, OptionError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.primitive import TRANSFORMS, JvpMode, Primitive, primitive
from ...ir.structure import Body, Runs, Structure
from ...ir.types import Aval
from ..batching import lanes
from ..reduce import sum_
from .call import ONCE, make_call, results_of, run_call
from .flags import instantiated, picked, spread


def _body_shape(*avals: Aval, body: Graph, **graphs: Graph) -> tuple[Aval, ...]:
    return results_of(*avals, body=body)


def _batched(graph: Graph, size: int, flags: Sequence[bool]) -> tuple[Graph, list[bool]]:
    """A graph over lanes, which every result carries."""
    inner = Builder()
    inputs = [
        inner.input(_lane(size, v.aval) if f else v.aval, v.hint) for v, f in zip(graph.inputs, flags, strict=True)
    ]
    outs, on = TRANSFORMS.batch(inner, graph, size, inputs, flags)
    full = [lanes(size, o, f) for o, f in zip(outs, on, strict=True)]
    return inner.graph(f"{graph.name}_vmap", full), [True] * len(full)


def _lane(size: int, aval: Aval) -> Aval:
    return Aval((size, *aval.shape), aval.dtype)


# custom_jvp: attributes body(x...) → y..., rule(x..., ẋ...) → y..., ẏ...


def _custom_jvp_rule(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    rule, n = node.attrs["rule"], len(node.outputs)
    dots = [instantiated(b, t, x.aval) for t, x in zip(tans, args, strict=True) if x.aval.inexact]
    mixed = mode.split and rule.nested
    results = _split(b, rule, args, dots, mode) if mixed else TRANSFORMS.inline(b, rule, [*args, *dots])
    inexact = [v.aval.inexact for v in node.outputs]
    return results[:n], spread(results[n:], inexact)


def _split(b: Builder, rule: Graph, args: list[Symbol], dots: list[Symbol], mode: JvpMode) -> list[Symbol]:
    """The results of a rule in whose loops values and tangents mix; what is linear is its own derivative at zero."""
    active = [k >= len(args) for k in range(len(rule.inputs))]
    lin = rule.once(
        ("split", len(args), mode.nan_safe), lambda: TRANSFORMS.linearize(rule, active, nan_safe=mode.nan_safe)
    )
    found = TRANSFORMS.inline(b, lin.forward, [*args, *(b.zeros(x.aval) for x in dots)])
    values, residuals = found[: len(rule.outputs)], found[len(rule.outputs) :]
    tangents = spread(TRANSFORMS.inline(b, lin.linear, [*residuals, *dots]), lin.out_active)
    return [v if t is None else t for v, t in zip(values, tangents, strict=True)]


def _custom_jvp_batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], **graphs: Graph) -> Any:
    dots = [f for f, x in zip(flags, graphs["body"].inputs, strict=True) if x.aval.inexact]
    body, on = _batched(graphs["body"], size, flags)
    rule, _ = _batched(graphs["rule"], size, [*flags, *dots])
    return args[0].builder.emit(prim, [x.value for x in args], {"body": body, "rule": rule}), on


custom_jvp: Primitive = primitive(
    "custom_jvp",
    _body_shape,
    multi=True,
    run=run_call,
    jvp=_custom_jvp_rule,
    batch=_custom_jvp_batch,
    structure=Structure(bodies=(ONCE, Body("rule", Runs.NEVER))),
)

# custom_vjp: attributes body(x...) → y..., forward(x...) → y..., r..., backward(r..., ȳ...) → x̄...


def _custom_vjp_rule(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    n = len(node.outputs)
    results = make_call(b, node.attrs["forward"], args)
    outs, residuals = results[:n], results[n:]
    active = [t is not None for t in tans]
    values = [*(r.value for r in residuals), *(t.value for t in tans if t is not None)]
    wanted = [on for on, x in zip(active, args, strict=True) if x.aval.inexact]
    backward = node.attrs["backward"]
    narrow = Graph(backward.name, backward.inputs, backward.nodes, tuple(picked(backward.outputs, wanted)))
    tangents = b.emit(custom_linear, values, {"backward": narrow})
    return outs, spread(tangents, [o.aval.inexact for o in outs])


def _custom_vjp_batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], **graphs: Graph) -> Any:
    body, on = _batched(graphs["body"], size, flags)
    forward, kept = _batched(graphs["forward"], size, flags)
    n = len(graphs["body"].outputs)
    cts = [True] * (len(graphs["backward"].inputs) - (len(kept) - n))
    backward, _ = _batched(graphs["backward"], size, [*kept[n:], *cts])
    shared = [not f for f, x in zip(flags, graphs["body"].inputs, strict=True) if x.aval.inexact]
    backward = _summed(backward, shared)
    attrs = {"body": body, "forward": forward, "backward": backward}
    return args[0].builder.emit(prim, [x.value for x in args], attrs), on


def _summed(graph: Graph, shared: Sequence[bool]) -> Graph:
    """Sum the cotangents of arguments that all lanes share over the lanes."""
    b = Builder()
    outs = TRANSFORMS.inline(b, graph, b.inputs_like(graph.inputs))
    return b.graph(
        graph.name, [sum_(o, axis=(0,), keepdims=False) if s else o for o, s in zip(outs, shared, strict=True)]
    )


custom_vjp: Primitive = primitive(
    "custom_vjp",
    _body_shape,
    multi=True,
    run=run_call,
    jvp=_custom_vjp_rule,
    batch=_custom_vjp_batch,
    structure=Structure(bodies=(ONCE, Body("forward", Runs.NEVER), Body("backward", Runs.NEVER))),
)

# custom_linear: (r..., ẋ...) → ẏ..., the transpose of backward; its own transpose is backward itself.


def _linear_shape(*avals: Aval, backward: Graph) -> tuple[Aval, ...]:
    return backward.in_avals[len(avals) - len(backward.outputs) :]


def _expanded(backward: Graph, residuals: int) -> Graph:
    """(r..., ẋ...) → ẏ... as a graph: forward mode through a function of which only the pullback is known."""
    inner = Builder()
    known = inner.inputs_like(backward.inputs[:residuals])
    dots = inner.inputs_like(backward.outputs)
    cts = backward.inputs[residuals:]
    try:
        found = TRANSFORMS.transpose(inner, backward, [*known, *[None] * len(cts)], dots)
    except InternalError as fault:
        raise OptionError(
            f"forward mode transposes the bwd of custom_vjp, but {fault.what}",
            where=fault.where,
            remedy="make bwd linear in its cotangent, or give the derivative by rg.custom_jvp",
        ) from fault
    return inner.graph("forward", [instantiated(inner, x, v.aval) for x, v in zip(found, cts, strict=True)])


def _expansion(node: Node) -> Graph:
    backward = node.attrs["backward"]
    residuals = len(node.inputs) - len(backward.outputs)
    graph: Graph = backward.once("expanded", lambda: _expanded(backward, residuals))
    return graph


def _linear_run(evaluate: Any, node: Node, *args: Any) -> Any:
    return evaluate(_expansion(node), args)


def _linear_lower(b: Builder, node: Node, args: Sequence[Symbol]) -> Any:
    return TRANSFORMS.inline(b, TRANSFORMS.lower(_expansion(node)), args)


def _linear_jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    return TRANSFORMS.jvp(b, _expansion(node), args, tans, mode)


def _linear_transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    backward = node.attrs["backward"]
    n = len(operands) - len(backward.outputs)
    seeds = [instantiated(b, ct, v.aval) for ct, v in zip(cts, backward.inputs[n:], strict=True)]
    return [*[None] * n, *TRANSFORMS.inline(b, backward, [*operands[:n], *seeds])]


def _linear_batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], backward: Graph) -> Any:
    n = len(args) - len(backward.outputs)
    cts = [True] * (len(backward.inputs) - n)
    over, _ = _batched(backward, size, [*flags[:n], *cts])
    full = [*args[:n], *(lanes(size, x, f) for x, f in zip(args[n:], flags[n:], strict=True))]
    made = args[0].builder.emit(prim, [x.value for x in full], {"backward": over})
    return made, [True] * len(made)


custom_linear: Primitive = primitive(
    "custom_linear",
    _linear_shape,
    multi=True,
    run=_linear_run,
    lower=_linear_lower,
    jvp=_linear_jvp,
    transpose=_linear_transpose,
    batch=_linear_batch,
    structure=Structure(bodies=(Body("backward", Runs.NEVER),)),
)
