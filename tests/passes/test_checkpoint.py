"""Checkpointed derivatives are bit for bit those without, and run as many steps as the schedules say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import evaluate, parse, to_text
from retrograd.ir.primitive import REGISTRY
from retrograd.passes.checkpoint.binomial import binomial_advances
from retrograd.passes.checkpoint.ctz import ctz_states
from retrograd.passes.checkpoint.mixed import mixed_steps

RNG = np.random.default_rng(11)
W = RNG.normal(size=(3, 3))
H = RNG.normal(size=3)
XS = RNG.normal(size=(64, 3))
PLANS = [
    rg.Snapshots(1),
    rg.Snapshots(3),
    rg.Snapshots(1, mixed=True),
    rg.Snapshots(4, mixed=True),
    rg.Log(),
    rg.Log("ctz"),
    rg.Periodic(2),
    rg.Periodic(),
    rg.Everything(),
]
Function = Callable[..., Any]


def cell(memory: Any, **options: Any) -> Function:
    """A recurrent cell, of which every output counts."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            new = np.tanh(w @ c + x)
            return new, np.sum(new**2)

        last, ys = rg.scan(body, h, xs, memory=memory, **options)
        return np.sum(last**2) + np.sum(np.sin(ys))

    return run


def nested(memory: Any, inner: Any = None, **options: Any) -> Function:
    """A loop in a loop, which closes over the outer carry and step."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def outer(c: Any, x: Any) -> Any:
            last, trail = rg.scan(lambda d, y: (np.sin(w @ d) + y * c, d * x), c, xs[:4], memory=inner, **options)
            return last * 0.5, np.sum(trail, axis=0)

        last, ys = rg.scan(outer, h, xs, memory=memory, **options)
        return np.sum(last**2) + np.sum(np.sin(ys))

    return run


def written(memory: Any, **options: Any) -> Function:
    """The body writes into a copy of its carry."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            new = c.copy()
            new[1:] *= x[:2]
            new[0] = np.sum(w[0] * c)
            return new, c[::-1]

        last, ys = rg.scan(body, h, xs, memory=memory, **options)
        return np.sum(last**2) + np.sum(np.sin(ys) * 2)

    return run


def several(memory: Any, **options: Any) -> Function:
    """Carries of several kinds: an array, a number, a running sum that no derivative needs, one that never changes."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            state, scale, total, fixed = c
            new = np.tanh(w @ state * scale) + x
            return (new, scale * 0.9 + np.sum(x * state), total + np.sum(new), fixed), new * scale + fixed

        (state, scale, total, fixed), ys = rg.scan(body, (h, np.float64(0.5), 0.0, w[0]), xs, memory=memory, **options)
        return np.sum(state) * scale + np.sum(ys**2) + total + np.sum(fixed)

    return run


PROGRAMS = (cell, nested, written, several)
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
plans = pytest.mark.parametrize("plan", PLANS, ids=str)
ALL = (0, 1, 2)

MODES: dict[str, Callable[[Function], Function]] = {
    "value_and_grad": lambda f: rg.value_and_grad(f, argnums=ALL),
    "forward over reverse": lambda f: lambda *a: rg.jvp(rg.grad(f, argnums=ALL), a, a),
    "hessian": lambda f: rg.hessian(f, argnums=1),
    "reverse over reverse": lambda f: rg.grad(
        lambda *a: sum(np.sum(np.cos(g)) for g in rg.grad(f, argnums=ALL)(*a)), argnums=ALL
    ),
    "vmap of grad": lambda f: (
        lambda w, h, xs: rg.vmap(rg.grad(f, argnums=(0, 1)), in_axes=(0, None, None))(
            np.stack([w, w + 1, w - 1]), h, xs
        )
    ),
    "through a call": lambda f: rg.grad(lambda *a: rg.jit(f)(*a) * 2, argnums=ALL),
    "vjp": lambda f: lambda *a: rg.vjp(f, *a)[1](1.0),
    "a pullback used twice": lambda f: lambda *a: [p(2.0) for p in [rg.vjp(f, *a)[1]] * 2],
    "jvp": lambda f: lambda *a: rg.jvp(f, a, a),
}


def flat(tree: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in flat(item)]
    return [np.asarray(tree)]


def assert_same_bits(found: Any, expected: Any) -> None:
    for a, b in zip(flat(found), flat(expected), strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.sampled(3)
@plans
@programs
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_gradients_have_the_same_bits(program: Function, plan: Any, reverse: bool) -> None:
    for n in (0, 1, 2, 3, 9):
        if program is nested and n < 4:
            continue
        expected = rg.value_and_grad(program(None, reverse=reverse), argnums=ALL)(W, H, XS[:n])
        assert_same_bits(rg.value_and_grad(program(plan, reverse=reverse), argnums=ALL)(W, H, XS[:n]), expected)


@programs
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_every_mode_has_the_same_bits(program: Function, mode: Callable[[Function], Function]) -> None:
    args = (W, H, XS[:5])
    expected = mode(program(None))(*args)
    for plan in (rg.Snapshots(2), rg.Snapshots(3, mixed=True), rg.Log()):
        assert_same_bits(mode(program(plan))(*args), expected)


@pytest.mark.parametrize("outer", [None, rg.Snapshots(2), rg.Log(), rg.Everything()], ids=str)
@pytest.mark.parametrize("inner", [None, rg.Snapshots(1), rg.Snapshots(2), rg.Periodic()], ids=str)
@pytest.mark.parametrize("mode", ["value_and_grad", "hessian", "through a call"])
def test_loops_in_loops_have_the_same_bits_under_any_two_plans(outer: Any, inner: Any, mode: str) -> None:
    args = (W, H, XS[:6])
    assert_same_bits(MODES[mode](nested(outer, inner))(*args), MODES[mode](nested(None))(*args))


def slope(memory: Any, n: int) -> Function:
    return rg.grad(lambda x: rg.scan(lambda c, _: (np.sin(c) * 1.1, None), x, None, n, memory=memory)[0])


@pytest.mark.parametrize("n", [*range(9), 17, 33, 64])
def test_all_lengths_and_slots_have_the_same_bits_and_the_advances_of_the_closed_form(n: int) -> None:
    expected = slope(None, n)(0.7)
    for slots in (1, 2, 3, 5, 16):
        with rg.debug_counters() as counters:
            found = slope(rg.Snapshots(slots), n)(0.7)
        assert_same_bits(found, expected)
        assert counters.advances == binomial_advances(n, slots)
        assert counters.taped == n
        assert counters.snapshots == 0
        assert counters.snapshots_peak == min(slots, max(n - 1, 0))


@pytest.mark.parametrize(("n", "slots", "steps"), [(1, 1, 1), (2, 1, 2), (10, 3, 19), (100, 5, 352), (100, 10, 237)])
def test_mixed_slots_take_the_known_number_of_forward_steps(n: int, slots: int, steps: int) -> None:
    with rg.debug_counters() as counters:
        found = slope(rg.Snapshots(slots, mixed=True), n)(0.7)
    assert_same_bits(found, slope(None, n)(0.7))
    assert counters.advances + counters.taped == steps
    assert counters.snapshots_peak <= slots
    assert counters.snapshots == 0


def test_residuals_that_weigh_more_than_a_state_take_more_slots() -> None:
    def loss(memory: Any) -> Function:
        def run(h: Any) -> Any:
            def body(c: Any, _: Any) -> Any:
                return np.tanh(W @ c) * np.sin(W.T @ c), None

            return np.sum(rg.scan(body, h, None, 20, memory=memory)[0])

        return rg.grad(run)

    with rg.debug_counters() as counters:
        found = loss(rg.Snapshots(5, mixed=True))(H)
    assert_same_bits(found, loss(None)(H))
    assert counters.advances + counters.taped == mixed_steps(20, 5, 2) > mixed_steps(20, 5)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(65))
def test_every_length_and_every_number_of_slots(n: int) -> None:
    for slots, program in itertools.product(range(1, 17), (cell, written)):
        expected = rg.value_and_grad(program(None), argnums=ALL)(W, H, XS[:n])
        with rg.debug_counters() as counters:
            found = rg.value_and_grad(program(rg.Snapshots(slots)), argnums=ALL)(W, H, XS[:n])
        assert_same_bits(found, expected)
        assert counters.advances == binomial_advances(n, slots)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 16, 33, 64])
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_every_mode_has_the_same_bits_at_every_length(mode: Callable[[Function], Function], n: int) -> None:
    args = (W, H, XS[:n])
    for program in (cell, *([nested] if n > 3 else [])):
        expected = mode(program(None))(*args)
        for plan in (rg.Snapshots(1), rg.Snapshots(5), rg.Snapshots(16), rg.Periodic(), rg.Log()):
            assert_same_bits(mode(program(plan))(*args), expected)


@pytest.mark.parametrize(("n", "repeated"), [(100, 187), (128, 246)])
def test_logarithmic_memory_repeats_the_known_number_of_steps(n: int, repeated: int) -> None:
    with rg.debug_counters() as counters:
        slope(rg.Log(), n)(0.7)
    assert counters.advances == n - 1 + repeated
    assert counters.snapshots_peak == len(ctz_states(n)) - 1


def test_trailing_zeros_on_both_ways() -> None:
    with rg.debug_counters() as counters:
        slope(rg.Log(reverse="ctz"), 100)(0.7)
    assert counters.advances == 99 + 221
    assert counters.snapshots_peak == len(ctz_states(100))


def test_loops_in_loops_count_their_steps() -> None:
    n, m = 6, 4
    with rg.debug_counters() as counters:
        rg.grad(nested(rg.Snapshots(2), rg.Snapshots(1)))(W, H, XS[:n])
    assert counters.advances == binomial_advances(n, 2) + n * binomial_advances(m, 1)
    assert counters.taped == n + n * m
    with rg.debug_counters() as counters:
        rg.grad(nested(None, rg.Snapshots(1)))(W, H, XS[:n])
    assert counters.advances == n * binomial_advances(m, 1)
    assert counters.snapshots_peak == n


@pytest.mark.parametrize("inner", [None, rg.Tiered(2, 1), rg.Snapshots(1, mixed=True)], ids=str)
@pytest.mark.parametrize("plan", [*PLANS, rg.Tiered(1, 1), rg.Tiered(2, 3)], ids=str)
def test_reports_say_how_many_steps_run(plan: Any, inner: Any) -> None:
    with rg.debug_counters() as counters:
        f = rg.grad(nested(plan, inner))
        f(W, H, XS[:9])
    assert f.plan(W, H, XS[:9]).advances == counters.advances


MULTIPLES = ["hessian", "vmap of grad", "through a call", "forward over reverse", "vjp", "a pullback used twice"]


@pytest.mark.parametrize("mode", MULTIPLES)
def test_every_mode_is_checkpointed(mode: str) -> None:
    with rg.debug_counters() as counters:
        MODES[mode](cell(rg.Snapshots(2)))(W, H, XS[:9])
    again = counters.advances - 8
    assert again > 0
    assert again % (binomial_advances(9, 2) - 8) == 0 or counters.advances % binomial_advances(9, 2) == 0


def test_a_pullback_keeps_states_and_no_residuals() -> None:
    with rg.debug_counters() as counters:
        _, pullback = rg.vjp(cell(rg.Snapshots(2)), W, H, XS[:9])
        assert (counters.advances, counters.taped, counters.snapshots) == (8, 1, 2)
        first = pullback(1.0)
        second = pullback(1.0)
    assert_same_bits(first, second)
    assert counters.advances == 8 + 2 * (binomial_advances(9, 2) - 8)
    assert_same_bits(rg.jit(lambda ct: pullback(ct))(1.0), first)  # noqa: PLW0108 - a function of its own
    plain = rg.vjp(cell(None), W, H, XS[:9])[1]
    assert_same_bits(rg.vmap(pullback)(np.array([0.0, 1.0])), rg.vmap(plain)(np.array([0.0, 1.0])))


@pytest.mark.parametrize("inner", [rg.Snapshots(1), rg.Snapshots(2, mixed=True), rg.Tiered(1, 2)], ids=str)
@pytest.mark.parametrize("outer", [None, rg.Snapshots(2), rg.Tiered(1, 1)], ids=str)
def test_a_pullback_through_loops_in_loops_leaves_their_states(outer: Any, inner: Any) -> None:
    _, pullback = rg.vjp(nested(outer, inner), W, H, XS[:9])
    expected = rg.grad(nested(None), argnums=ALL)(W, H, XS[:9])
    for _ in range(3):
        assert_same_bits(pullback(1.0), expected)


def test_without_a_plan_nothing_is_counted_and_the_source_is_that_of_a_loop() -> None:
    with rg.debug_counters() as counters:
        slope(None, 10)(0.7)
        slope(rg.Everything(), 10)(0.7)
    assert (counters.advances, counters.taped, counters.snapshots_peak) == (0, 0, 0)
    assert "count" not in slope(rg.Snapshots(2), 10).source(0.7)
    assert "def binomial(" in slope(rg.Snapshots(2), 10).source(0.7)
    assert "def binomial(" not in slope(None, 10).source(0.7)


def test_what_needs_no_state_is_read_without_keeping_any() -> None:
    f = rg.value_and_grad(
        lambda w: np.sum(rg.scan(lambda c, x: (c + w * x * x, None), 0.0, XS[:, 0], memory=rg.Log())[0])
    )
    with rg.debug_counters() as counters:
        f(0.5)
    assert counters.snapshots_peak == 0


def test_only_states_that_residuals_need_are_kept() -> None:
    f = rg.grad(several(rg.Snapshots(2)), argnums=ALL)
    (sweep,) = [node for node in f.graph(W, H, XS[:9]).nodes if node.prim.name == "sweep"]
    assert len(sweep.attrs["kept"]) == 2  # the state and its scale, neither the total nor what never changes


@pytest.mark.parametrize("size", [4, 4096, 20_000])
def test_large_states_have_the_same_bits(size: int) -> None:
    def loss(memory: Any) -> Function:
        def run(x: Any, k: Any) -> Any:
            def body(c: Any, _: Any) -> Any:
                new = c + k * (np.roll(c, 1) - 2 * c + np.roll(c, -1)) * np.exp(-c * c)
                new[0] = 0.0
                return new, None

            return np.sum(rg.scan(body, x, None, 12, memory=memory)[0] ** 2)

        return rg.value_and_grad(run, argnums=(0, 1))

    x = RNG.normal(size=size)
    expected = loss(None)(x, 0.2)
    for plan in PLANS:
        assert_same_bits(loss(plan)(x, 0.2), expected)
        assert_same_bits(loss(plan)(x, 0.2), expected)


@pytest.mark.parametrize("side", [16, 128])
def test_steps_with_residuals_and_without_have_storage_of_their_own(side: int) -> None:
    """The two are made of the same values, of which the one needs others after the step than the other."""

    def loss(memory: Any) -> Function:
        def run(u: Any, k: Any) -> Any:
            def body(c: Any, _: Any) -> Any:
                around = np.roll(c, 1, 0) + np.roll(c, -1, 0) + np.roll(c, 1, 1) + np.roll(c, -1, 1) - 4.0 * c
                return c + k * (around + 0.01 * c * (1.0 - c**2)), None

            return np.sum(rg.scan(body, u, None, 30, memory=memory)[0] ** 2)

        return rg.value_and_grad(run, argnums=(0, 1))

    u = RNG.normal(size=(side, side))
    thrifty = loss(rg.Snapshots(6, mixed=True))
    assert_same_bits(thrifty(u, 0.1), loss(None)(u, 0.1))
    assert ("work = np.empty" in thrifty.source(u, 0.1)) == (side > 90)


@pytest.mark.parametrize("plan", [rg.Snapshots(1), rg.Snapshots(2), rg.Log(), rg.Periodic()], ids=str)
def test_host_calls_are_not_repeated(plan: Any) -> None:
    calls: list[float] = []

    @rg.lens(host=True)
    def noisy(x: Any) -> Any:
        calls.append(float(x))
        return np.float64(np.sin(x) + 0.001 * len(calls)), lambda ct: np.float64(ct * np.cos(x))

    def loss(memory: Any) -> Function:
        return rg.value_and_grad(lambda x: rg.scan(lambda c, _: (noisy(c) * 1.5, None), x, None, 7, memory=memory)[0])

    found = {}
    for memory in (None, plan):
        f = loss(memory)
        f(0.5)
        calls.clear()
        found[memory] = f(0.5), list(calls)
    assert found[plan][1] == found[None][1]
    assert_same_bits(found[plan][0], found[None][0])


@pytest.mark.parametrize("plan", [rg.Snapshots(2), rg.Snapshots(2, mixed=True), rg.Tiered(1, 1)], ids=str)
def test_host_calls_that_no_residual_needs_are_not_kept(plan: Any) -> None:
    """Their results go out of the loop, and what is computed from them alone is not computed again."""

    @rg.lens(host=True)
    def seen(x: Any) -> Any:
        return np.float64(2 * x), lambda ct: np.float64(2 * ct)

    def loss(memory: Any) -> Function:
        def body(c: Any, x: Any) -> Any:
            return np.sin(c) + x, seen(x) + c

        return rg.value_and_grad(lambda h, xs: np.sum(rg.scan(body, h, xs, memory=memory)[1]), argnums=(0, 1))

    assert_same_bits(loss(plan)(0.5, XS[:9, 0]), loss(None)(0.5, XS[:9, 0]))


def wandering(memory: Any, limit: float = 30.0) -> Function:
    """A loop of unknown length."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def body(c: Any) -> Any:
            state, steps = c
            return np.tanh(w @ state) + xs[0], steps + 1.0

        state, steps = rg.while_loop(lambda c: c[1] < limit, body, (h, 0.0), memory=memory)
        return np.sum(state**2) * steps

    return run


def counted(memory: Any) -> Function:
    """A loop of a traced number of steps, whose body reads its number."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        n = np.sum(xs > -1e9).astype(int)
        return np.sum(rg.fori_loop(n, lambda i, c: np.sin(w @ c) + 0.1 * i * c, h, memory=memory))

    return run


OPEN = [rg.Snapshots(1), rg.Snapshots(3), rg.Log(), rg.Log("ctz"), rg.Periodic(4), rg.Everything()]


@pytest.mark.parametrize("plan", OPEN, ids=str)
@pytest.mark.parametrize("program", [wandering, counted], ids=lambda p: p.__name__)
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_loops_of_unknown_length_have_the_same_bits(program: Function, mode: Any, plan: Any) -> None:
    args = (W, H, XS[:4])
    assert_same_bits(mode(program(plan))(*args), mode(program(None))(*args))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 21])
@pytest.mark.parametrize("plan", OPEN, ids=str)
def test_every_unknown_length_has_the_same_bits(n: int, plan: Any) -> None:
    found, expected = (rg.grad(wandering(memory, float(n)), argnums=ALL) for memory in (plan, None))
    assert_same_bits(found(W, H, XS), expected(W, H, XS))


@pytest.mark.parametrize(("n", "repeated"), [(8, 4), (100, 187), (1000, 2945), (1024, 2997)])
def test_a_loop_of_unknown_length_takes_logarithmic_memory(n: int, repeated: int) -> None:
    grow = rg.grad(
        lambda x: rg.while_loop(lambda c: c[1] < n, lambda c: (np.sin(c[0]), c[1] + 1.0), (x, 0.0), memory=rg.Log())[0]
    )
    with rg.debug_counters() as counters:
        grow(0.5)
    if n > 8:
        assert counters.advances == n + repeated
    assert counters.snapshots_peak == (n - 1).bit_length() + 1
    assert counters.taped == n


def test_a_loop_of_unknown_length_in_fixed_slots() -> None:
    for slots in (1, 2, 10):
        with rg.debug_counters() as counters:
            rg.grad(wandering(rg.Snapshots(slots), 50.0), argnums=ALL)(W, H, XS)
        assert counters.snapshots_peak == slots
        assert counters.advances <= binomial_advances(50, slots) + 50 * 2


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (lambda: rg.Snapshots(0), "Snapshots\\(slots=0\\)"),
        (lambda: rg.Snapshots(True), "Snapshots\\(slots=True\\)"),
        (lambda: rg.Log("revolve"), "Log\\(reverse='revolve'\\)"),
        (lambda: rg.Periodic(0), "Periodic\\(every=0\\)"),
        (lambda: slope(0.5, 3)(0.5), "memory=0.5 is neither a plan"),
        (lambda: rg.grad(wandering(rg.Periodic()))(W, H, XS), "needs a known number of steps"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan: Any, what: str) -> None:
    with pytest.raises(rg.errors.OptionError, match=what):
        plan()


FINAL = [rg.Snapshots(2), rg.Snapshots(3, mixed=True), rg.Log("ctz"), rg.Tiered(1, 2)]


@pytest.mark.parametrize("plan", FINAL, ids=str)
@pytest.mark.parametrize("program", [*PROGRAMS, wandering, counted], ids=lambda p: p.__name__)
def test_the_interpreter_runs_what_the_text_of_a_checkpointed_graph_says(program: Function, plan: Any) -> None:
    if program in (wandering, counted) and plan in (FINAL[1], FINAL[-1]):
        plan = rg.Periodic(3)
    args = (W, H, XS[:7])
    with rg.config(verify=2):
        f = rg.grad(program(plan), argnums=ALL)
        expected = f(*args)
    graph = f.graph(*args)
    assert {node.prim.name for node in graph.nodes} & {"sweep", "open_sweep"}
    for found, ct in zip(evaluate(parse(to_text(graph)), args), expected, strict=True):
        np.testing.assert_allclose(found, ct, rtol=1e-13)
        assert np.shape(found) == np.shape(ct)


@pytest.mark.parametrize("prim", [p for p in REGISTRY.values() if p.final], ids=lambda p: p.name)
def test_what_the_last_passes_make_has_no_derivative(prim: Any) -> None:
    assert (prim.jvp, prim.transpose, prim.batch, prim.diff) == (None, None, None, ())


def test_a_plan_that_cannot_be_followed_is_named_with_its_line() -> None:
    def chosen(memory: Any) -> Function:
        def run(h: Any) -> Any:
            return np.sum(
                rg.cond(
                    np.sum(h) > -1e9,
                    lambda h: rg.scan(lambda c, _: (np.sin(c), None), h, None, 5, memory=memory)[0],
                    lambda h: h,
                    h,
                )
            )

        return run

    with pytest.warns(rg.errors.UnusedPlanWarning, match=r"the loop at .*test_checkpoint.py:\d+ is not followed"):
        found = rg.grad(chosen(rg.Snapshots(1)))(H)
    assert_same_bits(found, rg.grad(chosen(None))(H))
    with pytest.warns(rg.errors.UnusedPlanWarning, match="use rg.vjp instead of rg.linearize"):
        rg.linearize(cell(rg.Snapshots(1)), W, H, XS[:3])


def deep(outer: Any, middle: Any, inner: Any, kind: str) -> Function:
    """Three loops in one another; the one in the middle is a scan, a while loop, or one of a traced length."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def step(c: Any) -> Any:
            return rg.scan(lambda d, y: (np.sin(w @ d) + y * c, None), c, xs[:4], memory=inner)[0]

        def turn(c: Any, x: Any) -> Any:
            if kind == "scan":
                c = rg.scan(lambda d, y: (step(d) * y, None), c, xs[:3], memory=middle)[0]
            elif kind == "while":
                c = rg.while_loop(lambda d: d[1] < 3.0, lambda d: (step(d[0]), d[1] + 1.0), (c, 0.0), memory=middle)[0]
            else:
                c = rg.fori_loop(np.sum(xs[:3] > -1e9).astype(int), lambda i, d: step(d) + 0.1 * i, c, memory=middle)
            return c + x, np.sum(c)

        last, ys = rg.scan(turn, h, xs, memory=outer)
        return np.sum(last**2) + np.sum(np.sin(ys))

    return run


@pytest.mark.parametrize("kind", ["scan", "while", "traced"])
def test_three_loops_in_one_another_follow_any_plans(kind: str) -> None:
    args = (W, H, XS[:5])
    expected = rg.value_and_grad(deep(None, None, None, kind), argnums=ALL)(*args)
    two = rg.Snapshots(2)
    for outer, middle, inner in itertools.product((None, two), repeat=3):
        with rg.debug_counters() as counters:
            found = rg.value_and_grad(deep(outer, middle, inner, kind), argnums=ALL)(*args)
        assert_same_bits(found, expected)
        assert (counters.advances > 0) == any((outer, middle, inner))
        if inner and not outer and not middle:
            runs = 5 * (3 if kind != "traced" else 9)
            assert counters.advances == runs * binomial_advances(4, 2)


def test_a_plan_inside_a_call_inside_a_loop() -> None:
    def program(memory: Any, plan: Any) -> Function:
        @rg.jit
        def inner(w: Any, c: Any) -> Any:
            last = rg.scan(lambda d, _: (np.sin(w @ d) + c * d, None), c, None, 5, memory=plan)[0]
            for _ in range(6):
                last = np.tanh(last) * c + np.cos(last)
            return last

        def run(w: Any, h: Any, xs: Any) -> Any:
            return np.sum(rg.scan(lambda c, x: (inner(w, c) + x, None), h, xs, memory=memory)[0])

        return rg.value_and_grad(run, argnums=ALL)

    args = (W, H, XS[:6])
    expected = program(None, None)(*args)
    for memory, plan in itertools.product((None, rg.Snapshots(2), rg.Log()), (rg.Snapshots(1), rg.Periodic())):
        assert_same_bits(program(memory, plan)(*args), expected)
