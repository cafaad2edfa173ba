"""The graphs of user-written derivatives, with the inputs and outputs of the functions that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.example_values import FEW
from ..errors import InternalError, NonDifferentiableError, RetrogradError, ShapeError
from ..ir.builder import Builder, Symbol
from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.rewrite import walk
from ..ir.types import Aval
from ..ops.structural.host import repeats
from ..ops.structural.loops import MOST_STEPS
from ..passes.inline import inline_into
from ..passes.transpose import transpose
from ..tracer.swallowed import forget_since, refusals


def fitted(b: Builder, x: Symbol, aval: Aval, what: str) -> Symbol:
    """What a rule returned in the type that it must have; ShapeError for another shape, or complex in place of real."""
    if x.shape != aval.shape or (x.dtype.kind == "c" and aval.dtype.kind != "c"):
        remedy = "return its real part" if x.shape == aval.shape else "return the shape of what it belongs to"
        raise ShapeError(f"{what} is {x.aval}, expected {aval}", remedy=remedy)
    return b.coerce(x, aval)


def typed(graph: Graph, body: Graph) -> Graph:
    """Cast the results of a jvp rule's graph to the avals of the body's results, and its tangents as well."""
    b = Builder()
    outs = inline_into(b, graph, b.inputs_like(graph.inputs))
    wanted = [("the output of the rule", a) for a in body.out_avals]
    wanted += [("the tangent that the rule returns", a) for a in body.out_avals if a.inexact]
    return b.graph(graph.name, [fitted(b, o, a, what) for o, (what, a) in zip(outs, wanted, strict=True)])


def check_linear(rule: Graph, known: int, results: int) -> None:
    """NonDifferentiableError unless the outputs after ``results`` are linear in the inputs after ``known``.

    Bodies that compute values and tangents together are tried on numbers, since only what is linear in them is turned
    around.
    """
    if rule.nested:
        if not _scales(rule, known, results):
            raise _not_linear("-2 times the tangents do not give -2 times the results", None)
        return
    before = refusals()
    try:
        transpose(Graph(rule.name, rule.inputs, rule.nodes, rule.outputs[results:]), known)
    except InternalError as fault:
        raise _not_linear(fault.what, fault.where) from None
    except RetrogradError:  # what has no reverse mode may be there for forward mode
        forget_since(before)


def _not_linear(what: str, where: Any) -> NonDifferentiableError:
    return NonDifferentiableError(
        f"the rule of custom_jvp is not linear in its tangents: {what}",
        where=where,
        remedy="return a sum of products of each tangent with what does not depend on tangents",
    )


def _scales(rule: Graph, known: int, results: int) -> bool:
    """Whether -2 times the tangents give -2 times the results, beside what the results are without tangents."""
    if not all(map(repeats, walk(rule))):
        return True
    draw = np.random.default_rng(0).normal
    given = [_numbers(v.aval, draw) for v in rule.inputs]
    token = MOST_STEPS.set(FEW)
    try:
        with np.errstate(all="ignore"):
            found = [evaluate(rule, [*given[:known], *(k * t for t in given[known:])])[results:] for k in (0, 1, -2)]
            return all(map(_are_proportional, *(map(np.asarray, each) for each in found)))
    except Exception:  # noqa: BLE001 - these numbers may be outside of its domain: any exception
        return True
    finally:
        MOST_STEPS.reset(token)


def _are_proportional(none: np.ndarray[Any, Any], once: np.ndarray[Any, Any], twice: np.ndarray[Any, Any]) -> bool:
    """Whether the change of a result is -2 times as large; to the last bit if nothing else is in it."""
    if not np.any(none):
        return np.array_equal(-2 * once, twice, equal_nan=True)
    change = once - none
    size = float(np.max(np.abs(change), where=np.isfinite(change), initial=0.0))
    return np.allclose(twice - none, -2 * change, rtol=0, atol=0.01 * size, equal_nan=True)


def _numbers(aval: Aval, draw: Callable[..., Any]) -> Any:
    """An example of this type."""
    x = np.asarray(draw(size=aval.shape)).astype(aval.dtype)
    return x if aval.kind == "array" else x[()] if aval.kind == "scalar" else x.item()


def captures_before_tangents(graph: Graph, n: int, m: int, captures: int) -> Graph:
    """Reorder inputs (x..., ẋ..., c...) to (x..., c..., ẋ..., ċ...): captures are arguments like the others."""
    b = Builder()
    inputs = graph.inputs
    xs = b.inputs_like(inputs[:n])
    cs = b.inputs_like(inputs[m : m + captures])
    dots = b.inputs_like(inputs[n:m])
    for v in inputs[m : m + captures]:
        if v.aval.inexact:
            b.input(v.aval)
    return b.graph(graph.name, inline_into(b, graph, [*xs, *dots, *cs]))


def prefixed(forward: Graph, body: Graph, n: int) -> Graph:
    """(x..., c...) → y..., r..., c...: results with the body's avals; the captures are residuals, too."""
    b = Builder()
    inputs = b.inputs_like(forward.inputs)
    outs = inline_into(b, forward, inputs)
    k = len(body.outputs)
    results = [fitted(b, o, a, "the output of fwd") for o, a in zip(outs[:k], body.out_avals, strict=True)]
    return b.graph("forward", [*results, *outs[k:], *inputs[n:]])


def shaped(backward: Graph, body: Graph, n: int, residuals: int, inexact: Sequence[int]) -> Graph:
    """(r..., c..., ȳ...) → x̄..., c̄...: cotangents with the body's avals, those of captures zero."""
    b = Builder()
    rs = b.inputs_like(backward.inputs[:residuals])
    cs = b.inputs_like(body.inputs[n:])
    cts = [b.input(body.out_avals[i], "ct") for i in inexact]
    given = [b.coerce(ct, v.aval) for ct, v in zip(cts, backward.inputs[residuals:], strict=False)]  # captures follow
    outs = inline_into(b, backward, [*rs, *given, *cs])
    wanted = [v.aval for v in body.inputs[:n] if v.aval.inexact]
    zeros = [b.zeros(v.aval) for v in body.inputs[n:] if v.aval.inexact]
    found = [fitted(b, o, a, "a cotangent that bwd returns") for o, a in zip(outs, wanted, strict=True)]
    return b.graph("backward", [*found, *zeros])
