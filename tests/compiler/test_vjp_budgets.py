"""Budgets for a function and its pullback: kept to by both together, the same bits, and the pullback runs again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.api.memory import bytes_of
from retrograd.compiler import later
from retrograd.compiler.executable import Executable
from retrograd.compiler.memory import budgets
from retrograd.compiler.memory.budgets import Choosing, peak_of
from retrograd.ir import Aval, Graph
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from retrograd.ops.structural.host import Host, host
from retrograd.passes.remat.search import Crossing, without_turn, work
from retrograd.passes.remat.split import divide, halves
from tests.programs.mixed import arguments, mixed
from tests.support.memory import measured, one_thread

R = np.random.default_rng(8)
W = R.normal(size=(6, 40, 40)) / 6.0
X = R.normal(size=(300, 40))
CT = R.normal(size=(300, 40))


def layers(w: Any, x: Any) -> Any:
    for i in range(6):
        x = np.tanh(x @ w[i]) + np.sin(x) * 0.1
    return x


def waves(x: Any, depth: int = 15) -> Any:
    for _ in range(depth):
        x = np.sin(x) * 1.1
    return x


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in tree]


def least(f: Callable[..., Any], *primals: Any) -> int:
    """The number of bytes that the error names."""
    with pytest.raises(rg.errors.MemoryBudgetError, match="allow at least") as caught:
        rg.vjp(f, *primals, memory=1)
    return int(caught.value.minimum)


class Parts:
    """The divided graph that a vjp with a budget compiles, and its predicted peak."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def spy(planned: Graph) -> Graph:
            self.planned, self.whole = planned, divide(planned)
            return self.whole

        monkeypatch.setattr(later, "divide", spy)

    def peak(self) -> int:
        return peak_of(self.whole)

    @property
    def head(self) -> Graph:
        return halves(self.whole)[0]

    @property
    def tail(self) -> Graph:
        return halves(self.whole)[1]

    def work(self) -> int:
        """Of both parts together, as if they ran once: what only the pullback reads moves there and repeats nothing."""
        return sum(map(work, without_turn(self.planned).nodes))


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    return Parts(monkeypatch)


def test_budgets_hold_and_pullbacks_keep_every_bit(parts: Parts) -> None:
    out, pullback = rg.vjp(layers, W, X)
    plain = bits([out, *pullback(CT)])
    rg.vjp(layers, W, X, memory="1 GB")
    most, fewest = parts.peak(), least(layers, W, X)
    assert fewest < 0.9 * most
    last = None
    for budget in np.linspace(fewest, most, 6).astype(int).tolist():
        out, pullback = rg.vjp(layers, W, X, memory=budget)
        assert parts.peak() <= budget
        assert last is None or parts.work() <= last
        last = parts.work()
        for _ in range(3):
            assert bits([out, *pullback(CT)]) == plain


def check_mixed_program(seed: int, parts: Parts) -> None:
    """Budgets are kept, and values and cotangents keep every bit."""
    args, program = arguments(), mixed(seed)
    out, pullback = rg.vjp(program, *args)
    expected = bits([out, *pullback(out)])
    fewest = least(program, *args)
    for budget in (fewest, 2 * fewest, 10 * fewest):
        out, pullback = rg.vjp(program, *args, memory=budget)
        assert parts.peak() <= budget
        for _ in range(2):
            assert bits([out, *pullback(out)]) == expected


@pytest.mark.parametrize("seed", range(4))
def test_mixed_programs(seed: int, parts: Parts) -> None:
    check_mixed_program(seed, parts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 64))
def test_more_mixed_programs(seed: int, parts: Parts) -> None:
    check_mixed_program(seed, parts)


@pytest.mark.slow
def test_more_memory_never_means_more_work(parts: Parts) -> None:
    def own(w: Any, x: Any) -> Any:  # other tests compile `layers` itself
        return layers(w, x)

    rg.vjp(own, W, X, memory="1 GB")
    again = []
    for budget in np.linspace(least(own, W, X), parts.peak(), 50).astype(int).tolist():
        rg.vjp(own, W, X, memory=budget)
        assert parts.peak() <= budget
        again.append(parts.work())
    assert all(more >= less for more, less in pairwise(again))
    assert again[0] > again[-1]


def test_the_least_is_enough_and_a_byte_less_is_not() -> None:
    fewest = least(layers, W, X)
    rg.vjp(layers, W, X, memory=fewest)
    with pytest.raises(rg.errors.MemoryBudgetError):
        rg.vjp(layers, W, X, memory=fewest - 1)


@pytest.mark.parametrize(("depth", "states"), [(15, 9), (60, 18)])
def test_long_chains_take_about_the_root_of_their_length(depth: int, states: int) -> None:
    """Beside three arrays: the copied argument, the result and a cotangent. What is kept stays for further calls."""
    x = R.normal(size=20_000)
    assert least(lambda x: waves(x, depth), x) <= (states + 3) * x.nbytes


@one_thread()
def test_the_prediction_is_what_is_measured(parts: Parts) -> None:
    def deep(x: Any, y: Any) -> Any:
        for _ in range(6):
            x = np.sin(x) * x + y
        return x

    x, y = R.normal(size=250_000), R.normal(size=250_000)
    for budget in (least(deep, x, y), "1 GB"):
        rg.vjp(deep, x, y, memory=budget)
        predicted = parts.peak()
        head, tail = Executable(parts.head), Executable(parts.tail)

        def run(head: Executable = head, tail: Executable = tail) -> tuple[Any, Any]:
            results = head(x, y)
            return results, tail(*results[1:], x)

        assert abs(measured(run) - predicted) <= 0.01 * predicted


def test_a_pullback_is_that_of_its_point() -> None:
    x = X.copy()
    _, pullback = rg.vjp(layers, W, x, memory=least(layers, W, X))
    expected = bits(rg.vjp(layers, W, X)[1](CT))
    x[:] = 0.0
    assert bits(pullback(CT)) == expected
    lanes = np.stack([k * CT for k in range(1, 9)])
    with pytest.raises(rg.errors.MemoryBudgetError):  # what all lanes take in one call
        rg.vmap(pullback)(lanes)
    _, pullback = rg.vjp(layers, W, X, memory="20 MB")
    found = rg.vmap(lambda ct: pullback(ct)[1])(lanes)
    np.testing.assert_allclose(found[1], rg.vjp(layers, W, X)[1](2 * CT)[1], rtol=1e-12, atol=1e-13)


def test_results_may_be_changed_and_views_are_no_trap() -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        return y, y.T, x

    x = R.normal(size=(200, 300))
    ct = (x, x.T, x)
    expected = rg.vjp(f, x)[1](ct)[0].tobytes()
    for budget in (least(f, x), "1 GB"):
        out, pullback = rg.vjp(f, x, memory=budget)
        for part in out:
            part[:] = 7.0
        assert pullback(ct)[0].tobytes() == expected


def test_estimates_count_what_stays_for_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the copies of arguments, they are the peaks of the code."""
    x = R.normal(size=20_000)
    found: list[Choosing] = []

    class Spied(Choosing):
        def __init__(self, graph: Graph, rest: Callable[[Graph], Graph]) -> None:
            super().__init__(graph, rest)
            found.append(self)

    monkeypatch.setattr(budgets, "Choosing", Spied)
    least(waves, x)
    choices = found[0].landmarks
    assert len(choices) > 5
    for choice in choices:
        assert found[0].peak(choice) == pytest.approx(choice.score.peak + x.nbytes, rel=0.01)


def test_host_calls_are_no_choice() -> None:
    sine = Host(lambda x: [np.sin(x)], [Aval((100,), np.dtype(float))])
    b = Builder()
    x = b.input(sine.avals[0])
    y = b.emit(host, [REGISTRY["cos"](x).value], {"name": sine})[0]
    z = REGISTRY["sin"](y)
    b.emit(REGISTRY["turn"], (), {"budget": 1})
    crossing = Crossing(b.graph("f", [y * z]))
    assert z.value in crossing.choosable
    assert y.value not in crossing.choosable
    assert sum(node.prim is host for node in crossing.again(frozenset()).nodes) == 1


def stepped(x: Any, memory: Any = None) -> Any:
    return rg.scan(lambda c, _: (np.sin(c) * 1.01, None), x, None, 60, memory=memory)[0]


def test_loops_without_plans_get_the_budget(parts: Parts) -> None:
    x = R.normal(size=20_000)
    out, pullback = rg.vjp(stepped, x)
    expected = bits([out, pullback(x)[0]])
    fewest = least(stepped, x)
    assert fewest < 12 * x.nbytes
    for budget in (fewest, 2 * fewest, "1 GB"):
        out, pullback = rg.vjp(stepped, x, memory=budget)
        assert parts.peak() <= bytes_of(budget)
        for _ in range(2):
            assert bits([out, pullback(x)[0]]) == expected
        x_then = x.copy()
        x[:] = 0.0
        assert bits(pullback(x_then)) == expected[1:]
        x[:] = x_then


def test_loops_with_plans_keep_them() -> None:
    x = R.normal(size=20_000)
    own = lambda x: stepped(x, rg.Snapshots(3))  # noqa: E731 - a function of one line
    with rg.debug_counters() as counters:
        _, pullback = rg.vjp(own, x, memory="1 GB")
        pullback(x)
    assert counters.snapshots_peak == 3
    with pytest.raises(rg.errors.MemoryBudgetError):
        rg.vjp(own, x, memory=3 * x.nbytes)


def test_in_a_trace_the_budget_is_that_of_the_whole() -> None:
    def slope(w: Any, x: Any) -> Any:
        out, pullback = rg.vjp(layers, w, x, memory=budget)
        return pullback(out)[0]

    def free(w: Any, x: Any) -> Any:
        out, pullback = rg.vjp(layers, w, x)
        return pullback(out)[0]

    most = rg.jit(free).plan(W, X).peak_bytes
    expected = rg.jit(free)(W, X)
    for budget in (int(0.8 * most), 10 * most):
        compiled = rg.jit(slope)
        assert compiled(W, X).tobytes() == expected.tobytes()
        assert compiled.plan(W, X).peak_bytes <= budget
    budget = 1000
    with pytest.raises(rg.errors.MemoryBudgetError):
        rg.jit(slope)(W, X)


def test_second_derivatives_aux_and_functions() -> None:
    def f(x: Any) -> Any:
        return np.sin(x) * x, {"twice": 2 * x}

    x = X[0]
    _, pullback, aux = rg.vjp(f, x, has_aux=True, memory="1 MB")
    np.testing.assert_array_equal(aux["twice"], 2 * x)
    np.testing.assert_allclose(pullback(x)[0], x * (np.cos(x) * x + np.sin(x)), rtol=1e-13)
    again = rg.grad(lambda x: np.sum(rg.vjp(lambda x: f(x)[0], x, memory="1 MB")[1](x)[0]))
    plain = rg.grad(lambda x: np.sum(rg.vjp(lambda x: f(x)[0], x)[1](x)[0]))
    np.testing.assert_allclose(again(x), plain(x), rtol=1e-13)
    through = lambda a: lambda x: np.sin(a * x)  # noqa: E731 - functions of one line
    _, pullback = rg.vjp(lambda g, x: g(g(x)), through(2.0), x, memory="1 MB")
    _, without = rg.vjp(lambda g, x: g(g(x)), through(2.0), x)
    assert bits([pullback(x)[0]["a"], pullback(x)[1]]) == bits([without(x)[0]["a"], without(x)[1]])


def test_what_depends_on_data_can_have_no_budget() -> None:
    def settle(x: Any) -> Any:
        return rg.while_loop(lambda c: np.sum(c * c) > 1.0, lambda c: np.sin(c) * 0.9, x, memory=rg.Log())

    with pytest.raises(rg.errors.OptionError, match="depends on its data"):
        rg.vjp(settle, X[0], memory="1 MB")


def test_draws_are_made_once() -> None:
    generator = np.random.default_rng(1)

    def noisy(x: Any) -> Any:
        return np.sin(np.sin(x) * generator.normal(size=x.shape))

    x = R.normal(size=5000)
    _, pullback = rg.vjp(noisy, x, memory=least(noisy, x))
    state = generator.bit_generator.state
    first = pullback(x)[0]
    assert generator.bit_generator.state == state
    assert pullback(x)[0].tobytes() == first.tobytes()


@pytest.mark.parametrize("wrong", [0, -5, "a lot", 0.5, True])
def test_wrong_budgets_are_refused(wrong: Any) -> None:
    with pytest.raises(rg.errors.OptionError, match="memory="):
        rg.vjp(np.sin, X, memory=wrong)
    assert rg.vjp(np.sin, X, memory="available")[0].shape == X.shape
