"""Plans and budgets of memory on the native target: the same bits as without, whatever shares a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native.target import REFUSALS
from tests.fuzz.test_memory_programs import EVERY, Case
from tests.support.folding import loops_from
from tests.support.native import in_a_hurry, needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::retrograd.errors.UnusedPlanWarning"),
    pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning"),
]
R = np.random.default_rng(20)
PLANS = [rg.Snapshots(2), rg.Log(), rg.Periodic(3), rg.Everything()]
UNKNOWN = [rg.Snapshots(2), rg.Log(), rg.Log("ctz"), rg.Periodic(2)]


@pytest.fixture(autouse=True, scope="module")
def on_the_native_target() -> Iterator[None]:
    with in_a_hurry():
        yield


def perceptron(w: Any, x: Any) -> Any:
    for k in w:
        x = np.tanh(x @ k)
    return np.sum(x * x)


def attention(w: Any, x: Any) -> Any:
    for _ in range(2):
        s = (x @ w[0]) @ (x @ w[1]).T
        p = np.exp(s - np.max(s, axis=1, keepdims=True))
        x = x + (p / np.sum(p, axis=1, keepdims=True)) @ (x @ w[2])
        x = (x - np.mean(x, axis=0)) / np.sqrt(np.var(x, axis=0) + 1e-5)
    return np.sum(np.sin(x))


def waves(w: Any, x: Any) -> Any:
    z = np.exp(1j * x)
    for i in range(5):
        z = np.fft.fft(z * np.exp(1j * w[i]) + 0.1 * np.conj(z) * z) / 50.0
    return np.sum(np.abs(z) ** 2)


BUDGETED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "products of BLAS": (perceptron, ([R.normal(size=(20, 20)) / 4.0 for _ in range(12)], R.normal(size=(300, 20)))),
    "products of both": (attention, (R.normal(size=(3, 4, 4)) / 3.0, R.normal(size=(40, 4)))),
    "complex numbers": (waves, (R.normal(size=(8, 1)), R.normal(size=2001))),
}


def bits(found: Any) -> bytes:
    return b"".join(np.asarray(x).tobytes() for x in rg.tree.flatten(found)[0])


@pytest.mark.parametrize("name", BUDGETED)
def test_budgets(name: str) -> None:
    loss, args = BUDGETED[name]
    plain = rg.value_and_grad(loss, (0, 1))
    expected, most = bits(plain(*args)), plain.plan(*args).peak_bytes
    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        rg.value_and_grad(loss, (0, 1), memory=1)(*args)
    least = int(caught.value.minimum)
    assert least < most
    for budget in (least, (least + most) // 2, most):
        assert bits(rg.value_and_grad(loss, (0, 1), memory=budget)(*args)) == expected


def steps(memory: Any) -> Callable[..., Any]:
    """A step has operations that stand alone in some plans, and share a kernel in others."""

    def loss(w: Any, x: Any) -> Any:
        def body(c: Any, t: Any) -> Any:
            d = np.sin(c) if c.ndim == 1 else c
            e = (w @ d.reshape(3, -1)).reshape(-1)
            return e * 0.5 + t, np.sum(np.exp(-e) * d)

        last, sums = rg.scan(body, x, np.linspace(0.0, 1.0, 11), memory=memory)
        return np.sum(last**3) + np.sum(np.sort(sums) * np.arange(11))

    return loss


def columns(memory: Any) -> Callable[..., Any]:
    """Sums over an axis with three elements behind it, and of arrays that are not in C order."""

    def loss(w: Any, x: Any) -> Any:
        def body(c: Any, t: Any) -> Any:
            y = c.reshape(20, 5, 3)
            y = np.sort(np.sin(y + np.sum(y, axis=1)[:, None] * 0.1), axis=0)
            y = y + np.sum(y.T, axis=2).T * 0.01
            return (y * w[0, 0]).reshape(-1), np.sum(np.sort(y, axis=1), axis=1)

        last, sums = rg.scan(body, x, None, 11, memory=memory)
        return np.sum(last**3) + np.sum(sums * np.cos(sums))

    return loss


def until(memory: Any) -> Callable[..., Any]:
    """A loop with a condition, with a sort in each step, which NumPy computes."""

    def loss(w: Any, x: Any) -> Any:
        def body(c: Any) -> Any:
            c = np.tanh(w @ c.reshape(3, -1)).reshape(-1)
            return np.sort(c) * 0.9 + np.cos(c) * 0.01

        return np.sum(np.exp(rg.while_loop(lambda c: np.sum(c * c) > 3.0, body, x, memory=memory)))

    return loss


@pytest.mark.parametrize(("make", "plans"), [(steps, PLANS), (columns, PLANS), (until, UNKNOWN)])
def test_plans_of_loops(make: Callable[[Any], Callable[..., Any]], plans: list[Any]) -> None:
    w, x = R.normal(size=(3, 3)) * 0.4, R.normal(size=300)
    expected = bits(rg.value_and_grad(make(None), (0, 1))(w, x))
    for plan in plans:
        assert bits(rg.value_and_grad(make(plan), (0, 1))(w, x)) == expected


def test_a_loop_that_shares_a_list_with_numpy_leaves_the_rest_to_c() -> None:
    """Its forward and its adjoint loop are in two kernels, with a sort between them."""

    def loss(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return np.sin(c) * 1.1, None

        y = rg.scan(body, np.exp(x), None, 5)[0]
        return np.sum(np.sort(y) * np.cos(x))

    x = R.normal(size=50)
    REFUSALS.clear()
    gradient = rg.value_and_grad(loss)
    value, slope = gradient(x)
    assert not REFUSALS
    text = gradient.source(x, language="c")
    for name in ("rg_exp", "rg_sin", "rg_cos"):
        assert f"{name}(" in text.split("kernel0", 1)[1]
    expected = rg.value_and_grad(loss, backend="numpy")(x)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-10)


@pytest.mark.parametrize("kind", ["", "regions"])
@pytest.mark.parametrize("seed", [12, *(pytest.param(k, marks=pytest.mark.slow) for k in range(100, 200))])
def test_random_programs(seed: int, kind: str, tmp_path: Path) -> None:
    """NumPy runs what C refuses or gives up, which may be other operations with a plan than without."""
    case = Case(seed, tmp_path, kind=kind)
    REFUSALS.clear()
    with loops_from(20):
        expected = case.warm(rg.value_and_grad(case.plain(), EVERY))[0]
        found = case.warm(rg.value_and_grad(case.planned(), EVERY))[0]
    assert REFUSALS or not np.isfinite(expected[0]) or bits(found) == bits(expected), case.about


@pytest.mark.parametrize("seed", [5, 50])
def test_random_programs_whose_loops_share_lists_with_numpy(seed: int, tmp_path: Path) -> None:
    test_random_programs(seed, "", tmp_path)
    assert not REFUSALS
