"""Tapes give what the graph of a derivative gives, and serve recordings that may not come back."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

import retrograd as rg
from retrograd.compiler import folding, postponed, tapes, waiting
from retrograd.compiler.paths import Paths
from retrograd.compiler.tapes import tape_of, tapeable
from retrograd.ir import Aval, Graph, evaluate
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from retrograd.passes.differentiate import value_and_grad
from retrograd.passes.inline import inline_into
from retrograd.passes.linearize import linearize
from retrograd.passes.simplify import simplify
from tests.support import graphs, values
from tests.support.random_graphs import Example, random_graphs
from tests.support.samples import SAMPLES, Sample
from tests.ways.generated import generated
from tests.ways.programs import ball

pytestmark = pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")


def of_whole(graph: Graph, active: Sequence[bool], args: Sequence[Any]) -> Sequence[Any]:
    """Results and gradients by the graph of the derivative."""
    simple = simplify(graph)
    lin = linearize(simple, active, nan_safe=False)
    return evaluate(value_and_grad(simple, active, lin), args)


def summed(graph: Graph) -> Graph:
    """A graph with one number as its result, in which each part of the results of ``graph`` has its own cotangent."""
    b = Builder()
    outs = inline_into(b, graph, b.share_inputs(graph))
    total = None
    for found in outs:
        if not found.aval.inexact or found.aval.steps is not None:
            continue
        out = graphs.op("real", found) if found.dtype.kind == "c" else found
        flat = graphs.op("reshape", out, aval=Aval((out.size,), out.dtype))
        part = graphs.op("sum", graphs.op("sin", flat) * 0.75 + flat, axis=(0,), keepdims=False)
        part = b.coerce(part, Aval((), np.dtype(np.float64), "scalar"))
        total = part if total is None else total + part
    return b.graph("total", [] if total is None else [total])


def masks(graph: Graph) -> Iterator[list[bool]]:
    """All inputs that can be active, and each alone."""
    able = graphs.inexact(graph)
    if any(able):
        yield able
    if sum(able) > 1:
        yield from ([k == i for k in range(len(able))] for i, on in enumerate(able) if on)


def agree(graph: Graph, args: Sequence[Any]) -> int:
    """Compare a tape with the graph of the derivative; how often."""
    compared = 0
    for active in masks(graph):
        tape = tape_of(graph, active, True)
        assert tape.depends == linearize(graph, active, nan_safe=False).out_active[0]
        if tape.depends:
            before = values.snapshot(args)
            found, expected = tape(args), of_whole(graph, active, args)
            assert [type(x) for x in found] == [type(x) for x in expected]
            values.assert_close(found, expected, 50 * graphs.precision(graph))
            values.assert_same_bits(tape(args), found)
            values.assert_same_bits(args, before)
            compared += 1
    return compared


TAKEN = sorted(
    name
    for name, prim in REGISTRY.items()
    if not (prim.final or prim.mark or prim.effect or prim.structure is not None)
)


@pytest.mark.parametrize("name", TAKEN)
def test_each_primitive_goes_back_as_in_a_graph(name: str) -> None:
    def law(sample: Sample) -> None:
        graph = summed(sample.graph())
        if graph.outputs and tapeable(graph):
            with np.errstate(all="ignore"):
                agree(graph, sample.operands())

    for sample in SAMPLES[name]:
        try:
            law(sample)
        except Exception as fault:
            fault.add_note(f"sample: {sample}")
            raise


@given(example=random_graphs(scalar=True))
def test_random_graphs_go_back_as_in_a_graph(example: Example) -> None:
    if tapeable(example.graph):
        agree(example.graph, example.args)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ways each compilation had; nothing is kept with the code of a function."""
    seen: list[int] = []
    compile_ways = Paths._compile
    monkeypatch.setattr(Paths, "_compile", lambda paths: (seen.append(len(paths.known)), compile_ways(paths))[1])
    monkeypatch.setattr(folding, "LONG", 1 << 60)
    with rg.config(cache_size=0):
        yield seen  # type: ignore[misc]  # a fixture


def decays(x: Any, least: Any) -> Any:
    """A loop of at least 9 decisions: the way is the number of steps."""
    for _ in range(9):
        x = x * 0.9 if x > 0 else 0.1 * np.sin(x)
    while x > least:
        x = x * x / (1.0 + x)
    return x**3


def fresh() -> Any:
    """The function, made anew: nothing is compiled for it."""

    def decaying(x: Any, least: Any) -> Any:
        return decays(x, least)

    return decaying


def slope(x: float, least: float) -> Any:
    return pytest.approx((decays(x + 1e-6, least) - decays(x - 1e-6, least)) / 2e-6, rel=1e-6, abs=1e-12)


WAYS = (0.3, 0.1, 0.05, 0.01, 0.001)


def test_what_decides_often_is_compiled_when_it_comes_back(compilations: list[int]) -> None:
    g = rg.grad(fresh())
    for least in WAYS:
        assert g(1.75, least) == slope(1.75, least)
    assert compilations == []
    assert g(1.75, WAYS[1]) == slope(1.75, WAYS[1])  # kept, and not the first
    assert compilations == []
    assert g(1.5, WAYS[0]) == slope(1.5, WAYS[0])
    assert g(1.5, WAYS[0]) == slope(1.5, WAYS[0])
    assert compilations == [1]
    assert g(1.5, 1e-9) == slope(1.5, 1e-9)  # a new one, which may not come back either
    assert compilations == [1]


def test_a_function_that_comes_back_at_once_is_compiled_at_its_second_call(compilations: list[int]) -> None:
    for transform in (rg.grad, rg.value_and_grad, rg.jit):
        compilations.clear()
        g = transform(fresh())
        first = g(1.75, 0.1)
        assert compilations == []
        np.testing.assert_allclose(g(1.75, 0.1), first, rtol=1e-14)
        assert compilations == [1]


def test_a_first_way_that_was_folded_is_not_compiled(compilations: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def bounces(y: Any, v: Any) -> Any:
        return ball(y, v)

    monkeypatch.setattr(folding, "LONG", 256)
    g = rg.grad(bounces)
    starts = np.linspace(0.6, 3.0, 12).tolist()  # the second goes another way than the first
    for _ in range(3):
        for y in starts:
            expected = (ball(y + 1e-7, 0.0) - ball(y - 1e-7, 0.0)) / 2e-7
            assert g(y, 0.0) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert compilations == []
    assert g.at(starts[0], 0.0).signature.kept_ways.ways == {}  # type: ignore[attr-defined]


def test_the_code_of_a_way_that_is_not_compiled_can_be_seen(compilations: list[int]) -> None:
    g = rg.grad(fresh())
    g(1.75, 0.1)
    assert "def " in g.source(1.75, 0.1)
    assert compilations == [1]
    for least in WAYS:
        assert g(1.75, least) == slope(1.75, least)


def test_a_budget_and_few_decisions_are_compiled_at_once(compilations: list[int]) -> None:
    rg.grad(fresh(), memory=1e6)(1.75, 0.1)
    rg.grad(lambda x: x * x if x > 0 else x)(1.75)
    assert compilations == [1, 1]


def test_arguments_of_the_first_call_are_not_kept() -> None:
    g = rg.value_and_grad(lambda x, least: decays(np.sum(x), least))
    for least in WAYS:
        x = np.full(1000, 0.00175)
        gone = weakref.ref(x)
        g(x, least)
        del x
        gc.collect()
        assert gone() is None


def test_results_are_the_callers_own() -> None:
    g = rg.value_and_grad(lambda x, least: decays(np.sum(x), least) * np.sum(x))
    x = np.full(3, 0.6)
    for least in (*WAYS, *WAYS):
        value, slopes = g(x, least)
        before = slopes.copy()
        slopes[:] = -1.0
        again = g(x, least)
        np.testing.assert_allclose(again[0], value, rtol=1e-14)
        np.testing.assert_allclose(again[1], before, rtol=1e-14)
    np.testing.assert_array_equal(x, np.full(3, 0.6))


def test_auxiliary_results_and_containers() -> None:
    def f(p: Any, least: Any) -> Any:
        total = decays(p["a"] * np.sum(p["b"][1]), least)
        return total, {"total": total, "name": "decay", "parts": [p["b"][1] * total]}

    p = {"a": 1.75, "b": (2, np.full(4, 0.25))}
    ours, others = rg.grad(f, has_aux=True), rg.grad(f, has_aux=True)
    for least in (*WAYS, *WAYS):
        slopes, aux = ours(p, least)
        with mock.patch.dict(postponed.TAPED, clear=True):
            expected, known = others(p, least)
        assert aux["name"] == "decay"
        assert slopes["a"] == pytest.approx(expected["a"], rel=1e-13)
        assert slopes["b"][0] is None
        np.testing.assert_allclose(slopes["b"][1], expected["b"][1], rtol=1e-13)
        np.testing.assert_allclose(aux["parts"][0], known["parts"][0], rtol=1e-13)


def test_a_result_that_does_not_depend_on_the_argument_is_told() -> None:
    def f(x: Any, y: Any) -> Any:
        decays(x, 0.1)
        return y * 2.0

    with pytest.warns(rg.errors.IndependentOutputWarning):
        assert rg.grad(f)(1.75, 1.0) == 0.0


@pytest.mark.sampled(60)
@pytest.mark.parametrize("seed", range(300))
def test_a_random_program_has_the_gradient_of_its_graph(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source, program = generated(seed)
    rng = np.random.default_rng(seed)
    starts = [(*rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 5)) for _ in range(4)]
    monkeypatch.setattr(folding, "LONG", 1 << 60)
    monkeypatch.setattr(waiting, "SHORT", 0)
    with rg.config(cache_size=0), np.errstate(all="ignore"):
        taped, second = rg.value_and_grad(program, (0, 1, 2)), rg.grad(rg.grad(program))
        for start in (*starts, *starts):
            value, slopes = taped(*start)
            with mock.patch.dict(postponed.TAPED, clear=True):
                expected, others = rg.value_and_grad(program, (0, 1, 2))(*start)
                curvature = rg.grad(rg.grad(program))(*start)
            np.testing.assert_allclose(value, program(*start), rtol=1e-12, err_msg=source)
            np.testing.assert_allclose(value, expected, rtol=1e-12, err_msg=source)
            for mine, other in zip((*slopes, second(*start)), (*others, curvature), strict=True):
                scale = 1e-11 * (1.0 + float(np.max(np.abs(other))))
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=scale, err_msg=source)


def test_rules_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "MOST", 3)
    monkeypatch.setattr(tapes, "_RULES", {})
    g = rg.grad(fresh())
    for least in (*WAYS, *WAYS):
        assert g(1.75, least) == slope(1.75, least)
    assert len(tapes._RULES) <= 3
