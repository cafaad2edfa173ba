"""Long Python loops are compared instead of recorded: the same bits as plain Python, whatever happens on the way."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.spatial

import retrograd as rg
from retrograd.ir.rewrite import walk
from retrograd.tracer.repeats import comparing, looped, steps
from tests.fuzz.loops_in_python import W, compiled_loops

X = np.array([0.4, -0.7, 1.1])
A = np.array([1.0, 0.5, -0.3])


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Short loops are compared, too; how many of them have become loops of the graph."""
    monkeypatch.setattr(comparing, "UNWATCHED", 0)
    monkeypatch.setattr(comparing, "LOOK", 8)
    monkeypatch.setattr(comparing, "REST", 1)
    monkeypatch.setattr(looped, "FEWEST", 2)
    monkeypatch.setattr(looped, "LONG", 1)
    count = {"loops": 0}
    emit = looped.Looped._loop

    def counted(self: Any, *args: Any) -> None:
        count["loops"] += 1
        emit(self, *args)

    monkeypatch.setattr(looped.Looped, "_loop", counted)
    return count


def _never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "UNWATCHED", 10**9)


# Random programs ----------------------------------------------------------------------------------------------------


def _holds(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        point = rng.normal(), rng.normal(size=3)
        value, slopes = rg.value_and_grad(compiled_loops(seed), argnums=(0, 1))(*point)
        plain = compiled_loops(seed)(*point)
        if np.float64(value).tobytes() != np.float64(plain).tobytes():  # products and sums in another order
            np.testing.assert_allclose(value, plain, rtol=1e-13, err_msg=str(seed))
            with rg.config(exact=True):
                value, _ = rg.value_and_grad(compiled_loops(seed), argnums=(0, 1))(*point)
            assert np.float64(value).tobytes() == np.float64(plain).tobytes(), seed
        with monkeypatch.context() as plainly:
            _never(plainly)
            expected = rg.grad(compiled_loops(seed), argnums=(0, 1))(*point)
        for x, y in zip(slopes, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12, err_msg=str(seed))


def test_random_programs(early: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    _holds(range(24), monkeypatch)
    assert early["loops"] > 12


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(50))
def test_further_random_programs(chunk: int, early: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    _holds(range(24 + 40 * chunk, 64 + 40 * chunk), monkeypatch)
    assert early["loops"]


# What happens on the way --------------------------------------------------------------------------------------------


def kept_states(x, a):
    states = [x]
    for _ in range(40):
        x = np.tanh(W @ x + a)
        states.append(x)
    return np.sum(np.stack(states) * 0.1) + np.sum(states[7] * states[-2])


def a_state_of_long_ago(x, a):
    early = x
    for t in range(40):
        x = np.tanh(W @ x + a)
        if t == 5:
            early = x
    return np.sum(x * early)


def three_states_back(x, a):
    old, older, oldest = x, a, x * a
    for _ in range(50):
        x, old, older, oldest = np.tanh(W @ oldest + a), x, old, older
    return np.sum(x * old + older * oldest)


def a_decision_at_the_end(x, a):
    for _ in range(40):
        x = np.tanh(W @ x + a)
    return np.sum(x) if x[0] > 0 else np.sum(x * x)


def decisions_on_the_way(x, a):
    hits = 0
    for t in range(60):
        x = np.tanh(W @ x + a)
        if t % 20 == 19 and x[0] > 0:
            hits += 1
    return np.sum(x) * hits


def writes_after_the_loop(x, a):
    y = x
    for _ in range(40):
        x, y = np.tanh(W @ x + a), x
    z = x.copy()
    z[0] = y[1]
    z += y
    return np.sum(z * x)


def writes_through_a_view(x, a):
    m = np.stack([x, a])
    for _ in range(40):
        m = np.tanh(m * 0.9)
        row = m[0]
    row[1] = 0.25
    return np.sum(m)


def writes_in_each_iteration(x, a):
    out = np.zeros(40)
    for t in range(40):
        x = np.tanh(W @ x + a)
        out[t] = x[1]
    return np.sum(out + np.arange(40))  # the sum of products would be a product, which rounds otherwise


def no_gradient_in_some(x, a):
    for t in range(60):
        if t > 40:
            with rg.no_grad():
                x = np.tanh(W @ x + a)
        else:
            x = np.tanh(W @ x + a)
    return np.sum(x * a)


def no_gradient_in_each(x, a):
    for _ in range(40):
        with rg.no_grad():
            y = np.sin(x)
        x = np.tanh(W @ x + a * y)
    return np.sum(x)


@rg.jit
def compiled_step(x, a):
    return np.tanh(W @ x + a)


def calls_of_compiled_functions(x, a):
    for _ in range(40):
        x = np.tanh(W @ x + a)
    for _ in range(20):
        x = compiled_step(x, a) * 0.5
    return np.sum(x)


def closures_of_control_flow(x, a):
    for _ in range(40):
        x = np.tanh(W @ x + a)
    return np.sum(rg.cond(x[0] > 0.0, lambda: x * a, lambda: x - a))


def failures_that_are_caught(x, a):
    for t in range(60):
        x = np.tanh(W @ x + a)
        if t % 25 == 24:
            try:
                np.linalg.inv(np.zeros((2, 2)) * x[0])
            except np.linalg.LinAlgError:
                x = x * 0.5
    return np.sum(x)


def numbers_of_either_sign(x, a):
    for t in range(40):
        x = np.tanh(W @ x + a) * (0.0 if t < 20 else -0.0) + x * 0.5
    return np.sum(np.copysign(a, x))


def ints_become_floats(x, a):
    for t in range(40):
        x = np.tanh(W @ x + a) * (1 if t < 20 else 1.0)
    return np.sum(x)


def arrays_of_either_order(x, a):
    m = np.outer(x, a)
    for t in range(60):
        m = np.tanh(0.9 * (m.T if t % 30 == 29 else m))
    return np.sum(m @ x)


def a_plain_array_that_changes(x, a):
    scale = np.ones(3)
    for t in range(40):
        if t == 25:
            scale[1] = 0.5
        x = np.tanh(W @ x + a) * scale
    return np.sum(x)


def constants_made_in_each(x, a):
    for _ in range(40):
        x = np.tanh(np.array([[0.5, 0.1, 0.0], [0.0, 0.5, 0.1], [0.1, 0.0, 0.5]]) @ x + np.ones(3) * 0.1 + np.cos(a))
    return np.sum(x)


def draws_on_the_way(x, a):
    rng = np.random.default_rng(3)
    for t in range(60):
        x = np.tanh(W @ x + a)
        if t % 30 == 29:
            x = x + 0.1 * rng.normal(size=3)
    return np.sum(x)


def equal_operations_in_each(x, a):
    for _ in range(40):
        x = np.tanh(W @ x + a) * np.tanh(W @ x + a) - np.sin(a) * np.sin(a)
    return np.sum(x)


def results_of_several(x, a):
    m = np.outer(x, a) + np.eye(3)
    for _ in range(40):
        q, r = np.linalg.qr(m)
        m = 0.5 * (r @ q) + W
    return np.sum(m)


def methods_and_attributes(x, a):
    m = np.outer(x, a)
    for _ in range(40):
        m = np.tanh((m.T * 0.5).reshape(3, 3) + m.mean() + m.sum(axis=0)[1])
    return m.max() + m.T[0, 1]


def loops_in_loops(x, a):
    for _ in range(12):
        for _ in range(15):
            x = np.tanh(W @ x + a)
        x = x * 0.9 + a * 0.1
    return np.sum(x)


def many_states(x, a):
    states = [x * (i + 1) * 0.01 for i in range(70)]
    for _ in range(12):
        states = [(0.9 - 0.001 * i) * s + (0.1 + 0.001 * i) for i, s in enumerate(states)]
    y, kept = states[0], states[64] + states[65]
    del states
    for _ in range(300):
        y = np.sin(y) + a
    return np.sum(y * kept)


def one_call_many_times(x, a):
    states = [x * (i + 1) * 0.01 for i in range(70)]
    for _ in range(12):
        states = [np.sin(s) * a for s in states]
        states = [states[-1] + states[0], *states[:-1]]
    return np.sum(states[3] * states[69])


def an_early_state_is_kept(x, a):
    y = 2.0 * x[0]
    for t in range(60):
        y = np.tanh(y * 0.9) + 0.1
        if t == 30:
            early = y
    return early * y + a[0]


def functions_of_shapes(x, a):
    for _ in range(40):
        x = np.tanh(W @ x + a) * (np.size(x) / len(x)) * np.ndim(x)
    return np.sum(x)


ON_THE_WAY = [
    f
    for f in list(globals().values())
    if getattr(f, "__code__", W) is not W and f.__code__.co_varnames[:2] == ("x", "a")
]


@pytest.mark.costly
@pytest.mark.parametrize("f", ON_THE_WAY, ids=lambda f: f.__name__)
def test_what_happens_on_the_way(f: Callable[..., Any], early: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = f(X, A)
    value, slopes = rg.value_and_grad(f, argnums=(0, 1))(X, A)
    assert np.float64(value).tobytes() == np.float64(expected).tobytes()
    _never(monkeypatch)
    for x, y in zip(slopes, rg.grad(f, argnums=(0, 1))(X, A), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-14)
    assert early["loops"] or f in NOT_COMPARED


NOT_COMPARED = {writes_in_each_iteration, no_gradient_in_each}


# Long loops ---------------------------------------------------------------------------------------------------------


def lorenz_of_floats(steps: int) -> Callable[..., Any]:
    def slope(s):
        x, y, z = s
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z

    def f(s):
        s = (s[0], s[1], s[2])
        for _ in range(steps):
            half = tuple(a + 0.005 * b for a, b in zip(s, slope(s), strict=True))
            s = tuple(a + 0.01 * b for a, b in zip(s, slope(half), strict=True))
        return s[0]

    return f


def lorenz_of_an_array(steps: int) -> Callable[..., Any]:
    def slope(s):
        return np.stack([10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8.0 / 3.0 * s[2]])

    def f(s):
        for _ in range(steps):
            s = s + 0.01 * slope(s + 0.005 * slope(s))
        return s[0]

    return f


@pytest.mark.parametrize("program", [lorenz_of_floats, lorenz_of_an_array])
def test_the_graph_of_a_long_loop_is_small(program: Callable[..., Any]) -> None:
    f, s = program(1500), np.ones(3)
    graph = rg.trace(f)(s)
    assert len(graph.nodes) <= 5
    assert max(len(node.attrs["body"].nodes) for node in walk(graph) if node.prim.name == "scan") < 60
    assert rg.jit(f)(s) == f(s)


@pytest.mark.parametrize("n", [499, 500, 501, 502, 996, 999, 1000, 1001, 1002, 1003, 1100, 1498, 1501, 2000])
def test_lengths_around_those_at_which_comparing_begins(n: int) -> None:
    def f(x, y):
        for _ in range(n):
            x, y = 0.5 * x + y, x - 0.25 * y
        return x * y

    assert rg.jit(f)(0.3, 0.7) == f(0.3, 0.7)
    np.testing.assert_allclose(rg.grad(f)(0.3, 0.7), (f(0.3 + 1e-6, 0.7) - f(0.3 - 1e-6, 0.7)) / 2e-6, rtol=1e-5)


def test_a_loop_may_be_longer_than_a_recording() -> None:
    def f(x):
        for _ in range(rg.config.max_nodes):
            x = x * 0.999 + 0.001
        return x

    assert rg.jit(f)(0.5) == f(0.5)


def test_a_loop_that_does_not_end_is_named() -> None:
    def f(x):
        while True:
            x = x * 0.999 + 0.001

    with rg.config(max_nodes=3000), pytest.raises(rg.errors.TraceLengthError, match="in the loop at"):
        rg.jit(f)(0.5)


def test_an_early_number_of_python_is_a_row() -> None:
    def f(x):
        for t in range(3000):
            x = x * 0.999 + 0.001
            if t in (1500, 1600):
                early.append(x)
        return x * early[-1] + early[-2]

    early: list[Any] = []
    assert rg.jit(f)(0.5) == f(0.5)
    assert len(rg.trace(f)(0.5).nodes) < 20


def test_what_is_written_out_is_counted() -> None:
    def f(m):
        for t in range(6000):
            m = m * 0.999 + 0.001
            if t == 3000:
                early = m
        return m + early

    with rg.config(max_nodes=5000), pytest.raises(rg.errors.TraceLengthError, match="more than 5000"):
        rg.jit(f)(np.asfortranarray(np.ones((2, 2))))  # rows of an array lie in C order, and these do not


def test_what_follows_from_a_captured_array_is_known_after_the_loop() -> None:
    def f(x):
        m = W
        for _ in range(3000):
            m = np.tanh(W @ m + 0.1)
        return float(scipy.spatial.KDTree(m).query([0.0, 0.0, 0.0])[0]) * x[0]

    assert rg.jit(f)(X) == f(X)


def test_an_exception_from_outside_ends_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a signal's handler, which may run anywhere."""
    plain, count = comparing.plain, [0]

    def interrupted(x: Any) -> Any:
        count[0] += 1
        if count[0] == 1000:
            raise TimeoutError
        return plain(x)

    def f(x):
        for _ in range(3000):
            x = np.tanh(x * 0.9 + 0.1)
        return x

    monkeypatch.setattr(comparing, "plain", interrupted)
    with pytest.raises(TimeoutError):
        rg.jit(f)(X)


def test_what_is_gone_leaves_no_memory() -> None:
    states = []

    def f(x):
        for t in range(6000):
            x = np.tanh(x * 0.5 + 0.1)
            if t % 500 == 499:
                states.append(weakref.ref(x))
        gc.collect()
        alive.append(sum(state() is not None for state in states))
        return np.sum(x)

    alive: list[int] = []
    rg.jit(f)(X)
    assert alive == [1]


# Where repetition is looked for --------------------------------------------------------------------------------------

UNARY = [np.sin, np.cos, np.tanh, np.arctan, np.negative, np.exp, np.square, np.cbrt]


def test_a_long_iteration_is_waited_for_once_it_begins_again(
    early: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "REST", 1_000)

    def f(x: Any) -> Any:
        for _ in range(12):
            for function in UNARY[:7]:  # nearly a quarter of the steps at the last look
                x = function(x)
        return x

    np.testing.assert_array_equal(rg.jit(f)(0.3 * X), f(0.3 * X))
    assert early["loops"] == 1


def test_steps_that_do_not_come_again_are_noted_for_two_looks(
    early: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "REST", 1_000)
    noted = []
    monkeypatch.setattr(comparing, "NumPyCall", lambda *args: noted.append(args) or steps.NumPyCall(*args))

    def f(x: Any) -> Any:
        for k in range(96):
            x = UNARY[k * k % 11 % 8](x) + 0.01 * k
        return x

    rg.trace(f)(0.3 * X)
    assert early["loops"] == 0
    assert len(noted) == 2 * comparing.LOOK - 1  # and what came before
