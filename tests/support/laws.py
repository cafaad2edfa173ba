"""The laws that every primitive and every graph obeys; each raises AssertionError where it is broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.compiler.executable import Executable
from retrograd.ir import Graph, evaluate, parse, to_text, verify
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import Pull
from retrograd.passes.jvp import jvp
from retrograd.passes.linearize import linearize
from retrograd.passes.lower import lower
from retrograd.passes.transpose import transpose, transpose_into
from tests.support.stages import pipeline

from . import graphs, values
from .samples import Sample

# the code of these solves in general, and what they lower to by Cholesky factors
OTHER_WAY = {"half_inverse", "half_log_det", "solve_positive"}
ROUNDING = 300.0  # two ways of computing one number may differ by this many machine epsilons


def tolerance_of(graph: Graph) -> float:
    """How far two ways of computing what a graph computes may differ."""
    return ROUNDING * graphs.precision(graph)


def shape_rule(graph: Graph, args: Sequence[Any]) -> None:
    """NumPy gives what the shape rule says, and does not change the operands."""
    before = values.snapshot(args)
    values.assert_has_avals(evaluate(graph, args), graph.out_avals)
    values.assert_same_bits(args, before)


def round_trip(graph: Graph, args: Sequence[Any]) -> None:
    """The text is read back to a graph with the same text and the same results."""
    text = to_text(graph)
    again = verify(parse(text))
    assert to_text(again) == text
    values.assert_same_bits(evaluate(again, args), evaluate(graph, args))


def lowering(graph: Graph, args: Sequence[Any]) -> Graph:
    """The lowered graph gives the same numbers: to the last bit, but for what lowers to another way of computing."""
    lowered = verify(lower(graph))
    found, expected = list(evaluate(lowered, args)), list(evaluate(graph, args))
    if any(prim.name in OTHER_WAY for prim in graph.prims):
        values.assert_close(found, expected, tolerance_of(graph))
    else:
        values.assert_same_bits(found, expected)
    return lowered


def emission(graph: Graph, args: Sequence[Any], tolerance: float = 0.0) -> None:
    """The generated code does what the interpreter does, and keeps its hands off the arguments.

    It does so to the last bit where arguments are contiguous. Where they are not, or with a ``tolerance``,
    storage that is used again may have another order of axes than new storage has, and sums another order.
    """
    run = Executable(pipeline(graph))
    lowered = lowering(graph, args)
    for given, within in ((list(args), tolerance), ([values.strided(x) for x in args], tolerance_of(graph))):
        expected = evaluate(lowered, given)
        before = values.snapshot(given)
        found = run(*given)
        values.assert_has_avals(found, graph.out_avals)
        if within:
            values.assert_close(list(found), list(expected), within)
        else:
            values.assert_same_bits(found, expected)
        values.assert_same_bits(given, before)
        owned = [x for x, v in zip(found, graph.outputs, strict=True) if v.aval.steps is None]
        for i, x in enumerate(owned):
            assert not values.shares(x, given), f"result {i} shares memory with an argument"
            assert not values.shares(x, owned[:i]), f"result {i} shares memory with another result"
            assert all(y.flags.writeable for y in values.arrays(x)), f"result {i} is read-only"


def aliasing(sample: Sample) -> None:
    """A result shares memory only with the operand that the primitive names."""
    prim, args = sample.prim, sample.operands()
    graph = sample.graph()
    before = values.snapshot(args)
    outs = evaluate(graph, args)
    values.assert_same_bits(args, before)
    fresh = range(len(outs)) if not prim.multi else prim.fresh(graph.nodes[0]) if prim.fresh else ()
    for k in fresh:
        for i, x in enumerate(args):
            assert i == prim.alias or not values.shares(outs[k], x), f"result {k} shares memory with operand {i}"
        assert not values.shares(outs[k], [*outs[:k], *outs[k + 1 :]]), f"result {k} shares memory with another"


def forward(graph: Graph, active: Sequence[bool], args: Sequence[Any], seed: int = 0, loosen: float = 1.0) -> None:
    """jvp: the tangents are the limits of differences, and the results those of the function."""
    rng = np.random.default_rng(seed)
    both = verify(jvp(graph, active, nan_safe=False))
    directions = [values.random_of(rng, v.aval) for v in graph.inputs]
    dots = [d for d, on in zip(directions, active, strict=True) if on]
    found = evaluate(both, [*args, *dots])
    values.assert_has_avals(found, both.out_avals)
    n = len(graph.outputs)
    values.assert_same_bits(found[:n], evaluate(graph, args))

    def along(step: float) -> list[Any]:
        moved = [values.shifted(x, d, step) if on else x for x, d, on in zip(args, directions, active, strict=True)]
        return [x for x, v in zip(evaluate(graph, moved), graph.outputs, strict=True) if v.aval.inexact]

    eps = graphs.precision(graph)
    h = 2e-3 if eps < 1e-10 else 3e-2

    def difference(p2: Any, p1: Any, m1: Any, m2: Any) -> Any:
        d = [np.asarray(x, np.complex128) for x in (p2, p1, m1, m2)]
        return (8 * (d[1] - d[2]) - (d[0] - d[3])) / (12 * h)

    slopes = values.mapped(difference, along(2 * h), along(h), along(-h), along(-2 * h))
    tangents = [t for t, v in zip(found[n:], graph.outputs, strict=True) if v.aval.inexact]
    values.assert_close(tangents, slopes, (1e-8 if eps < 1e-10 else 3e-3) * loosen)


def reverse(graph: Graph, active: Sequence[bool], args: Sequence[Any], seed: int = 0) -> None:
    """linearize gives the results and the tangents of jvp; transpose gives <u, J v> = <Jᵀ u, v>; twice, J again."""
    rng = np.random.default_rng(seed)
    n = len(graph.outputs)
    dots = [values.random_of(rng, v.aval) for v, on in zip(graph.inputs, active, strict=True) if on]
    straight = evaluate(jvp(graph, active, nan_safe=False), [*args, *dots])
    lin = linearize(graph, active, nan_safe=False)
    verify(lin.forward)
    verify(lin.linear)
    found = evaluate(lin.forward, args)
    values.assert_same_bits(found[:n], straight[:n])
    residuals = found[n:]
    tangents = evaluate(lin.linear, [*residuals, *dots])
    expected = [t for t, on in zip(straight[n:], lin.out_active, strict=True) if on]
    tolerance = tolerance_of(graph)
    values.assert_close(list(tangents), expected, tolerance)
    silent = [t for t, on in zip(straight[n:], lin.out_active, strict=True) if not on]
    assert all(not np.any(x) for x in values.leaves(silent)), "an output without a tangent has one"
    adjoint_of(lin.linear, list(residuals), dots, rng, tolerance)


def adjoint_of(
    linear: Graph, residuals: Sequence[Any], dots: Sequence[Any], rng: np.random.Generator, tolerance: float
) -> None:
    """A linear graph and its transpose: shapes and dtypes of cotangents, the pairing, transposed twice."""
    known = len(residuals)
    b = Builder()
    raw = transpose_into(
        b, linear, [*b.inputs_like(linear.inputs[:known]), *[None] * len(dots)], b.inputs_like(linear.outputs)
    )
    for ct, v in zip(raw, linear.inputs[known:], strict=True):
        assert ct is None or (ct.shape, ct.dtype, ct.aval.steps) == (v.aval.shape, v.aval.dtype, v.aval.steps), (
            f"the cotangent of {v.aval} is {ct.aval}"
        )
    adjoint = verify(transpose(linear, known))
    cts = [values.random_of(rng, v.aval) for v in linear.outputs]
    found = evaluate(adjoint, [*residuals, *cts])
    values.assert_has_avals(found, [v.aval for v in linear.inputs[known:]])
    image = evaluate(linear, [*residuals, *dots])
    left, right = values.pairing(cts, image), values.pairing(found, dots)
    size = sum(float(np.sum(np.abs(x))) for x in values.leaves([*image, *found]))
    assert abs(left - right) <= tolerance * max(1.0, size), f"<u, J v> = {left} but <Jᵀ u, v> = {right}"
    twice = verify(transpose(adjoint, known))
    values.assert_close(list(evaluate(twice, [*residuals, *dots])), list(image), tolerance)


def derivatives(
    graph: Graph,
    args: Sequence[Any],
    order: int = 1,
    active: Sequence[bool] | None = None,
    *,
    smooth: bool = True,
    loosen: float = 1.0,
) -> None:
    """All laws of derivatives up to ``order``, each derivative taken of derivatives in both modes."""
    active = graphs.inexact(graph) if active is None else active
    if not graphs.differentiable(graph, active):
        return
    if smooth:
        forward(graph, active, args, loosen=loosen)
    reverse(graph, active, args)
    if order > 1:
        for derivative, more in derivative_graphs(graph, args, 1):
            derivatives(derivative, more, order - 1, smooth=smooth, loosen=loosen * 100)


def derivative_graphs(graph: Graph, args: Sequence[Any], seed: int = 0) -> list[tuple[Graph, list[Any]]]:
    """The tangents and the cotangents of a graph, with arguments; nothing where there are none."""
    active = graphs.inexact(graph)
    if not graphs.differentiable(graph, active):
        return []
    rng = np.random.default_rng(seed)
    found = []
    for derivative in (graphs.tangent_graph(graph, active), graphs.reverse_graph(graph, active)):
        more = [values.random_of(rng, v.aval) for v in derivative.inputs[len(args) :]]
        found.append((derivative, [*args, *more]))
    return found


def linearity(sample: Sample) -> None:
    """Where an operand has a Pull, the primitive is additive and homogeneous in it, and the Pull is the adjoint."""
    prim, graph, args = sample.prim, sample.graph(), sample.operands()
    pulls = [i for i in range(len(args)) if isinstance(prim.derivative(i), Pull) and graph.inputs[i].aval.inexact]
    if not pulls or not graph.outputs[0].aval.inexact:
        return
    together = prim.joint or prim.jvp is not None or prim.transpose is not None
    rng = np.random.default_rng(2)
    tolerance = tolerance_of(graph)
    for group in [pulls, *([i] for i in pulls)] if together else [[i] for i in pulls]:
        # operands in which it is linear together, but which do not belong to the group, are zero
        rest = [i for i in range(len(args)) if i not in group]
        fixed = {i: _zero(args[i]) if together and i in pulls else args[i] for i in rest}
        order = [*rest, *group]
        turned = Graph(graph.name, tuple(graph.inputs[i] for i in order), graph.nodes, graph.outputs)
        known = [fixed[i] for i in rest]
        x, y = ([values.random_of(rng, graph.inputs[i].aval) for i in group] for _ in range(2))
        mixed = values.mapped(_combined, x, y)
        at_x, at_y, at_mixed = (list(evaluate(turned, [*known, *v])) for v in (x, y, mixed))
        values.assert_close(at_mixed, values.mapped(_combined, at_x, at_y), tolerance)
        adjoint_of(turned, known, x, rng, tolerance)


def _zero(x: Any) -> Any:
    return values.mapped(lambda leaf: values.as_kind(np.zeros(np.shape(leaf)), values.of_aval(leaf)), x)


def _combined(x: Any, y: Any) -> Any:
    """2 x - 0.5 y, exact in floating point where x and y are."""
    return values.as_kind(2 * np.asarray(x) - 0.5 * np.asarray(y), values.of_aval(x))


def lanes(graph: Graph, flags: Sequence[bool], cases: Sequence[Sequence[Any]]) -> None:
    """batch: each lane is what the graph gives for the operands of that lane; what is shared is the first case's."""
    shared = [[x if on else x0 for x, x0, on in zip(case, cases[0], flags, strict=True)] for case in cases]
    args = [
        values.stacked(column) if on else column[0] for column, on in zip(zip(*shared, strict=True), flags, strict=True)
    ]
    wide, on = graphs.batched(graph, len(cases), flags)
    found = evaluate(wide, args)
    values.assert_has_avals(found, wide.out_avals)
    each = [evaluate(graph, case) for case in shared]
    expected = [
        values.stacked(column) if out else column[0] for column, out in zip(zip(*each, strict=True), on, strict=True)
    ]
    assert [np.asarray(x).dtype for x in values.leaves(list(found))] == [
        np.asarray(x).dtype for x in values.leaves(expected)
    ]
    values.assert_close(list(found), expected, tolerance_of(graph))


def joined(cases: Sequence[Sequence[Any]], flags: Sequence[bool]) -> list[Any]:
    """Arguments for a graph over lanes: flagged ones stacked, others the first case's."""
    columns = zip(zip(*cases, strict=True), flags, strict=True)
    return [values.stacked(column) if on else column[0] for column, on in columns]
