"""Memory-time curves of whole gradients: exact, monotone, and each point is what its budget gives."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.checkpoint.tally import steps_of
from retrograd.passes.remat.search import work
from tests.support.memory import measured

EXAMPLES = Path(__file__).parents[2] / "examples"
R = np.random.default_rng(7)
PYTHON = 96 * 1024  # bytes of Python objects and of the buffers of NumPy's iterators, which do not count


@pytest.fixture(scope="module")
def nets() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module("memory_curves")
    finally:
        sys.path.remove(str(EXAMPLES))


every_net = pytest.mark.parametrize("k", range(3), ids=["u-net", "transformer", "perceptron"])


def check_point(case: Any, point: Any) -> None:
    """The budget of a point gives its peak, and runs again what it says."""
    plan = rg.grad(case.loss, memory=point.peak_bytes).plan(*case.args)
    assert plan.peak_bytes <= point.peak_bytes == plan.budget
    assert (plan.work, plan.share) == (point.work, pytest.approx(point.share))


@every_net
def test_each_point_is_what_its_budget_gives(nets: ModuleType, k: int) -> None:
    case = nets.cases(quick=True)[k]
    points = rg.grad(case.loss).tradeoff(*case.args).points
    assert len(points) >= 3
    assert points[0].peak_bytes == rg.grad(case.loss).plan(*case.args).peak_bytes
    assert (points[0].plan, points[0].work) == ("Everything()", 0)
    for point in (points[0], points[len(points) // 2], points[-1]):
        check_point(case, point)
    with pytest.raises(rg.errors.MemoryBudgetError):
        rg.grad(case.loss, memory=points[-1].peak_bytes - 1)(*case.args)


@pytest.mark.slow
@every_net
def test_every_point_is_what_its_budget_gives(nets: ModuleType, k: int) -> None:
    case = nets.cases(quick=True)[k]
    for point in rg.grad(case.loss).tradeoff(*case.args).points:
        check_point(case, point)


@every_net
def test_less_memory_costs_more_work(nets: ModuleType, k: int) -> None:
    case = nets.cases(quick=True)[k]
    curve = rg.grad(case.loss).tradeoff(*case.args)
    assert len(curve.points) <= 64
    for before, after in pairwise(curve.points):
        assert before.peak_bytes > after.peak_bytes
        assert before.work < after.work or (before is curve.points[0] and after.work == 0)
        assert after.share == after.work / curve.forward


def test_a_budget_does_not_change_the_curve(nets: ModuleType) -> None:
    case = nets.cases(quick=True)[2]
    free = rg.grad(case.loss).tradeoff(*case.args)
    tight = rg.grad(case.loss, memory=1).tradeoff(*case.args)  # which no plan keeps: nothing is compiled
    assert (free.budget, tight.budget) == (None, 1)
    assert free.points == tight.points
    compiled = rg.grad(case.loss, memory=free.points[-1].peak_bytes)
    compiled(*case.args)
    assert compiled.tradeoff(*case.args).points == free.points


def test_measured_memory_is_what_the_curve_predicts(nets: ModuleType) -> None:
    for case in (nets.u_net(96, 8, 2), nets.transformer(256, 64, 4, 1), nets.perceptron(12, 128, 1024)):
        points = rg.grad(case.loss).tradeoff(*case.args).points
        expected = rg.grad(case.loss)(*case.args)
        for point in (points[len(points) // 2], points[-1]):
            gradient = rg.grad(case.loss, memory=point.peak_bytes)
            found = gradient(*case.args)
            for x, y in zip(leaves(expected), leaves(found), strict=True):
                np.testing.assert_array_equal(x, y)
            peak = measured(gradient, *case.args)
            assert abs(peak - point.peak_bytes) <= 0.01 * point.peak_bytes + PYTHON, case.title


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [leaf for item in tree for leaf in leaves(item)] if isinstance(tree, (list, tuple)) else [tree]


def chain_of(n: int, x: Any) -> Any:
    for _ in range(n):
        x = np.sin(x) * x
    return x


def chain(x: Any) -> Any:
    return np.sum(chain_of(30, x))


def test_what_is_kept_and_what_runs_again_make_the_whole_forward_pass() -> None:
    x = R.normal(size=5000)
    curve = rg.grad(chain).tradeoff(x)
    whole = rg.grad(chain, memory=curve.points[0].peak_bytes).plan(x)
    assert (whole.again, whole.work, whole.share) == ((), 0, 0.0)
    assert {v.reason.partition(":")[0] for v in whole.saved} == {"kept by the budget"}
    thrifty = rg.grad(chain, memory=curve.points[-1].peak_bytes).plan(x)
    assert sum(v.bytes for v in thrifty.saved) < 0.5 * sum(v.bytes for v in whole.saved)
    assert thrifty.work == sum(v.work for v in thrifty.again) == curve.points[-1].work
    assert all(v.work > 0 and v.where.startswith("test_curves.py:") for v in (*thrifty.saved, *thrifty.again))
    graph = rg.grad(chain, memory=curve.points[-1].peak_bytes).graph(x)
    plain = rg.grad(chain).graph(x)
    assert sum(map(work, graph.nodes)) - sum(map(work, plain.nodes)) == thrifty.work


def test_most_of_the_peak_is_what_is_kept(nets: ModuleType) -> None:
    """Also where only gradients are asked for, so that no value has to be computed before the turn."""
    case = nets.perceptron(12, 32, 512)
    points = rg.grad(case.loss).tradeoff(*case.args).points
    for point in points[1], points[len(points) // 2]:
        plan = rg.grad(case.loss, memory=point.peak_bytes).plan(*case.args)
        assert 0.7 * plan.peak_bytes <= sum(v.bytes for v in plan.saved) <= plan.peak_bytes
        assert plan.later  # the slopes of tanh
        assert "computed later, not repeated: " in str(plan)


def test_a_kept_value_costs_what_computing_it_again_takes() -> None:
    def loss(x: Any, w: Any) -> Any:
        a = x @ w
        b = np.exp(a)
        return np.sum(a * a * b)

    x, w = R.normal(size=(40, 50)), R.normal(size=(50, 50))
    kept = {v.name: v for v in rg.grad(loss, argnums=1, memory="1 GB").plan(x, w).saved}
    assert kept["a"].work == 2 * 40 * 50 * 50
    assert kept["b"].work == 2 * 40 * 50  # reads and writes each element
    assert kept["b"].reason == "kept by the budget: computing it again costs 4,000 operations"
    assert kept["b"].producer.startswith("exp test_curves.py:")


def test_what_is_never_repeated_says_so() -> None:
    random = np.random.default_rng(1)

    def loss(x: Any) -> Any:
        noise = random.normal(size=x.shape)
        looped = rg.scan(lambda c, _: (np.sin(c), None), x * noise, None, 5)[0]
        return np.sum(looped * looped)

    found = rg.grad(loss, memory="1 GB").plan(R.normal(size=300)).saved
    reasons = {(v.producer.split()[0], v.reason) for v in found}
    assert ("draw", "random draws and host calls are never repeated") in reasons
    assert ("scan", "results of loops and calls are not computed again") in reasons


def mixed(w: Any, x: Any) -> Any:
    """Layers, a loop, and a layer again."""
    for _ in range(2):
        x = np.tanh(x @ w)
    x = rg.scan(lambda c, _: (np.sin(c) * 1.01, None), x, None, 12)[0]
    x = np.tanh(x @ w)
    return np.sum(x * x)


MIXED = (R.normal(size=(40, 40)) / 6.0, R.normal(size=(300, 40)))


def operations(f: Any, args: tuple[Any, ...]) -> int:
    """Of one call, in loops as often as these run."""
    steps = steps_of(f.graph(*args).nodes)
    assert steps is not None
    return steps.work


def test_loops_and_the_rest_share_a_budget() -> None:
    plain = rg.value_and_grad(mixed, (0, 1))
    value, grads = plain(*MIXED)
    curve = plain.tradeoff(*MIXED)
    alone = [p for p in curve.points if "again" not in p.plan]
    both = [p for p in curve.points if "Snapshots" in p.plan and "again" in p.plan]
    assert alone[0].plan == "Everything()"
    assert min(p.peak_bytes for p in both) < 0.8 * min(p.peak_bytes for p in alone)
    last = operations(plain, MIXED)
    for point in (curve.points[k * (len(curve.points) - 1) // 3] for k in range(1, 4)):
        thrifty = rg.value_and_grad(mixed, (0, 1), memory=point.peak_bytes)
        assert thrifty.plan(*MIXED).peak_bytes <= point.peak_bytes
        assert last <= operations(thrifty, MIXED) <= operations(plain, MIXED) + point.work
        last = operations(thrifty, MIXED)
        found, others = thrifty(*MIXED)
        assert found == value
        for x, y in zip(grads, others, strict=True):
            np.testing.assert_array_equal(x, y)
    least = curve.points[-1].peak_bytes
    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        rg.value_and_grad(mixed, (0, 1), memory=least - 1)(*MIXED)
    assert caught.value.minimum == least


@pytest.mark.parametrize("inner", [3, 12])
def test_points_of_loops_in_loops_are_what_budgets_give(inner: int) -> None:
    def loss(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return rg.scan(lambda d, _: (np.sin(d) * c + 0.5 * d, None), c, None, inner)[0], None

        return np.sum(rg.scan(body, x, None, 6)[0])

    x = R.normal(size=20_000)
    for point in rg.grad(loss).tradeoff(x).points:
        plan = rg.grad(loss, memory=point.peak_bytes).plan(x)
        assert plan.peak_bytes <= point.peak_bytes


def test_functions_that_keep_nothing_have_one_point() -> None:
    x = R.normal(size=(50, 50))
    curve = rg.jit(lambda x: np.sum(np.sin(x) @ x)).tradeoff(x)
    assert [(p.plan, p.work) for p in curve.points] == [("Everything()", 0)]
    assert curve.points[0].peak_bytes == rg.jit(lambda x: np.sum(np.sin(x) @ x)).plan(x).peak_bytes
    looped = rg.jit(lambda x: rg.scan(lambda c, _: (np.sin(c), None), x, None, 9)[0]).tradeoff(x)
    assert [p.plan for p in looped.points] == ["Everything()"]


def test_decisions_of_python_choose_a_curve() -> None:
    def loss(x: Any) -> Any:
        y = chain_of(10, x)
        return np.sum(y * y) if np.sum(x) > 0 else np.sum(chain_of(10, np.cos(y)))

    x = np.abs(R.normal(size=5000))
    short, long = rg.grad(loss).tradeoff(x), rg.grad(loss).tradeoff(x - 3.0)
    assert long.forward > 1.5 * short.forward
    for curve, at in ((short, x), (long, x - 3.0)):
        plan = rg.grad(loss, memory=curve.points[-1].peak_bytes).plan(at)
        assert plan.peak_bytes <= curve.points[-1].peak_bytes
        assert plan.work == curve.points[-1].work > 0


def test_memory_that_depends_on_data_has_no_curve() -> None:
    f = rg.grad(lambda x: np.sum(rg.while_loop(lambda c: np.sum(c) < 10.0, lambda c: c * 1.5, x)))
    curve = f.tradeoff(np.ones(3))
    assert curve.points == ()
    assert "depends on data" in str(curve)
    assert curve.to_svg().startswith("<svg")


def test_a_gradient_inside_a_compiled_function_has_its_curve_too() -> None:
    x = R.normal(size=20_000)
    whole = rg.grad(chain).tradeoff(x).points[0].peak_bytes
    inside = rg.jit(lambda x: rg.grad(chain, memory=whole // 2)(x) * 2.0)
    plan = inside.plan(x)
    assert plan.budget == whole // 2 >= plan.peak_bytes
    assert plan.again
    assert inside.tradeoff(x).budget == whole // 2
    assert len(inside.tradeoff(x).points) > 3


def test_curves_and_plans_are_data_and_text() -> None:
    x = R.normal(size=20_000)
    curve = rg.grad(chain, memory="3 MB").tradeoff(x)
    plan = rg.grad(chain, memory="3 MB").plan(x)
    for found in (curve, plan):
        assert json.loads(json.dumps(found.to_dict()))["budget"] == 3_000_000
        assert "budget 3 MB" in found.to_svg()
    text = str(curve)
    assert f"{curve.points[-1].peak_bytes:_}" in text  # as Python reads it
    assert f"{curve.points[-1].share:.1%}" in text
    text = str(plan)
    for part in ("of a budget of 3,000,000", "kept by the budget: computing", "computed again: ", "of a forward pass"):
        assert part in text
    assert len(text.splitlines()) < 40  # equal rows are one
