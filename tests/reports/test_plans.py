"""Plans and trade-offs say what is kept, why, and what less memory would cost."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.checkpoint.binomial import binomial_advances

OUTSIDE = "residual: the derivative of its reader needs it"
U = np.random.default_rng(3).normal(size=(100, 100))


def heat(memory: Any, n: int = 20) -> Any:
    def loss(u: Any, k: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            around = np.roll(c, 1, 0) + np.roll(c, -1, 0)
            return c + k * around * np.exp(-c * c), None

        return np.sum(rg.scan(body, u, None, n, memory=memory)[0] ** 2)

    return rg.value_and_grad(loss, argnums=(0, 1))


def nested(outer: Any, inner: Any) -> Any:
    def loss(u: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return rg.scan(lambda d, _: (np.sin(d) + c * d, None), c, None, 5, memory=inner)[0], None

        return np.sum(rg.scan(body, u, None, 6, memory=outer)[0])

    return rg.grad(loss)


@pytest.mark.parametrize("plan", [rg.Snapshots(1), rg.Snapshots(4), rg.Log(), rg.Log("ctz"), rg.Periodic()], ids=str)
@pytest.mark.parametrize("program", [heat, lambda m: nested(m, m), lambda m: nested(None, m)], ids=["one", "two", "in"])
def test_the_predicted_steps_are_the_counted_ones(program: Any, plan: Any) -> None:
    f = program(plan)
    args = (U, 0.1) if program is heat else (U * 0.01,)
    with rg.debug_counters() as counters:
        f(*args)
    assert f.plan(*args).advances == counters.advances > 0


def test_a_plan_names_what_is_kept_and_why() -> None:
    plan = heat(rg.Snapshots(3)).plan(U, 0.1)
    kept = next(v for v in plan.saved if v.name == "c_at")
    assert kept.bytes == 3 * U.nbytes
    assert kept.reason == "states in 3 slots"
    assert kept.where.startswith("test_plans.py:")
    assert (kept.producer.split()[0], kept.consumer.split()[0]) == ("sweep", "unsweep")
    assert {v.reason for v in plan.saved} == {"states in 3 slots", "residual of the last step", OUTSIDE}
    assert plan.advances == binomial_advances(20, 3)
    assert plan.recomputed == plan.advances - 19
    text = str(plan)
    for part in (f"peak {plan.peak_bytes:,} bytes", "states in 3 slots", "at the peak:", "test_plans.py:"):
        assert part in text


def test_the_course_of_memory_ends_in_its_peak() -> None:
    plan = heat(rg.Snapshots(3)).plan(U, 0.1)
    assert max(plan.over_time) == plan.peak_bytes
    assert len(plan.over_time) <= 400
    assert sum(size for _, size, _ in plan.at_peak) <= plan.peak_bytes
    assert sum(size for _, size, _ in plan.at_peak) >= 0.9 * plan.peak_bytes


def test_views_take_no_time_on_the_course_of_memory() -> None:
    def loss(w: Any) -> Any:
        parts = [w[k : k + 50] for k in range(50)]  # all of them views that are made at once
        return np.sum(sum(np.sin(part) * part for part in parts))

    assert rg.jit(loss).plan(U).over_time[0] >= 50 * 100 * 8


def test_without_a_plan_every_residual_is_named() -> None:
    plan = heat(None).plan(U, 0.1)
    assert (plan.advances, plan.recomputed) == (0, 0)
    reason = "residual of each step: the loop has no plan"
    assert {v.reason for v in plan.saved} == {reason, OUTSIDE}
    assert all(v.bytes == 20 * U.nbytes for v in plan.saved if v.reason == reason)


def test_what_depends_on_data_is_said_to() -> None:
    f = rg.grad(lambda x: rg.while_loop(lambda c: c < 10.0, lambda c: c * c + x, x, memory=rg.Log()))
    plan = f.plan(1.5)
    assert (plan.peak_bytes, plan.advances, plan.over_time) == (None, None, None)
    assert "depends on data" in str(plan)
    assert "states, as many as the plan keeps" in str(plan)


def test_the_curve_goes_from_all_memory_to_the_least() -> None:
    curve = heat(None).tradeoff(U, 0.1)
    assert curve.points[0].plan == "Everything()"
    assert curve.points[-1].plan == "Snapshots(1)"
    peaks = [p.peak_bytes for p in curve.points]
    steps = [p.advances for p in curve.points]
    assert peaks == sorted(peaks, reverse=True)
    assert steps == sorted(steps)
    assert heat(rg.Snapshots(2)).tradeoff(U, 0.1) == curve  # the loop's own plan is set aside
    for point in curve.points[1:]:
        slots = int(point.plan.removeprefix("Snapshots(").removesuffix(")"))
        assert heat(rg.Snapshots(slots)).plan(U, 0.1).peak_bytes == point.peak_bytes
        assert point.advances == binomial_advances(20, slots)
    assert "Snapshots(1)" in str(curve)


@pytest.mark.parametrize("what", ["plan", "tradeoff"])
def test_plans_are_data_and_pictures(what: str) -> None:
    found = getattr(heat(rg.Snapshots(2)), what)(U, 0.1)
    assert json.loads(json.dumps(found.to_dict()))["name"] == found.name
    drawn = ET.fromstring(found.to_svg())
    assert drawn.tag.endswith("svg")
    line = drawn.find("{http://www.w3.org/2000/svg}polyline")
    assert line is not None
    assert len(line.attrib["points"].split()) == len(found.points if what == "tradeoff" else found.over_time)
    pytest.importorskip("matplotlib")
    (axes,) = found.figure().axes
    assert len(axes.lines) == 1


def test_a_function_without_loops_has_one_point() -> None:
    curve = rg.grad(lambda x: np.sum(np.sin(x) ** 2)).tradeoff(U)
    assert [p.plan for p in curve.points] == ["Everything()"]


def test_residuals_outside_of_loops_are_named_too() -> None:
    def loss(w: Any, x: Any) -> Any:
        hidden = np.tanh(x @ w)
        out = np.exp(hidden) @ w
        return np.sum(out**2)

    plan = rg.grad(loss, argnums=(0, 1)).plan(U, U)
    kept = {v.name: v for v in plan.saved}
    assert set(kept) == {"sub", "exp", "out"}  # 1 - tanh², the exponential, and its product
    assert kept["exp"].bytes == U.nbytes
    assert kept["exp"].producer.startswith("exp test_plans.py:")
    assert kept["exp"].where.startswith("test_plans.py:")
    assert all(v.reason == OUTSIDE for v in plan.saved)
    assert not rg.jit(loss).plan(U, U).saved


def test_the_text_draws_memory_over_time() -> None:
    plan = heat(rg.Snapshots(3)).plan(U, 0.1)
    (bars,) = [line for line in str(plan).splitlines() if line.startswith("over time: ")]
    assert "█" in bars
    assert 20 < len(bars) <= 11 + 72


def test_a_picture_of_a_function_with_control_characters_in_its_name_is_xml():
    function = lambda x: np.sum(x * 2)  # noqa: E731 - it gets a name below
    function.__name__ = "odd\x00name\x1b<&"
    svg = rg.grad(function).plan(np.ones(3)).picture().svg()
    assert "odd" in ET.fromstring(svg).find(".//{*}text").text


def moved_on(x):
    def step(c, _):
        u, p = c
        return (2 * u - p + 0.1 * np.sin(u) * np.cos(p), u), None

    (u, p), _ = rg.scan(step, (x, x * 1.0), None, length=50)
    return np.sum(u * p)


def moved_on_twice(x):
    def step(c, _):
        u, p, q = c
        return (u * np.sin(p) * np.cos(q), u, p), None

    (u, p, q), _ = rg.scan(step, (x, x * 1.0, x * 2.0), None, length=50)
    return np.sum(u * p * q)


def exchanged(x):
    def step(c, _):
        u, p, s = c
        return (p, u, s * np.sin(u) * np.cos(p)), None

    u, p, s = rg.scan(step, (x, x * 2.0, x), None, length=50)[0]
    return np.sum(u * p * s)


def loop_in_a_loop(x):
    def outer(c, _):
        def inner(d, _):
            return np.sin(d) * d + c, None

        return rg.scan(inner, c, None, length=10)[0], None

    return np.sum(rg.scan(outer, x, None, length=10)[0])


@pytest.mark.parametrize("program", [moved_on, moved_on_twice, exchanged, loop_in_a_loop])
def test_saved_lists_that_share_their_states_count_them_once(program):
    plan = rg.grad(program).plan(np.linspace(0.1, 1.0, 10_000))
    saved = sum(value.bytes for value in plan.saved)
    assert 0.7 * plan.peak_bytes < saved <= plan.peak_bytes
