"""vjp, jvp and linearize keep compilations with a function: what careless callers do gives what plain NumPy gives."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose

import retrograd as rg

X = np.array([1.0, 2.0, 3.0])
MEMORY = [None, "20 kB"]


def slope(function, x, **options):
    return rg.vjp(function, x, **options)[1](1.0)[0]


def curved(v):
    return np.sum(np.sin(np.exp(np.tanh(v))))


class Model:
    def __init__(self, k):
        self.k = k

    def __call__(self, v):
        return np.sum(self.k * v**3)

    def square(self, v):
        return np.sum(self.k * v**2)


@pytest.mark.parametrize("outer", MEMORY)
@pytest.mark.parametrize("inner", [None, "20 kB", "30 kB"])
def test_a_pullback_of_a_pullback_may_have_budgets(inner, outer):
    pull = rg.vjp(lambda v: slope(curved, v, memory=inner), X, memory=outer)[1]
    assert_allclose(pull(np.ones(3))[0], rg.hessian(curved)(X) @ np.ones(3))


def test_shapes_and_dtypes_may_change_between_calls():
    def function(v):
        return np.sum(np.sin(v) * v)

    for x in [2.0, np.float32(2), X, X.astype(np.float32), np.ones((2, 3)), np.zeros(0), 2.0, X]:
        right = np.cos(x) * x + np.sin(x)
        one = np.ones_like(x) if isinstance(x, (np.ndarray, np.generic)) else 1.0
        assert_allclose(slope(function, x), right, rtol=1e-5)
        assert_allclose(rg.jvp(function, (x,), (one,))[1], np.sum(right), rtol=1e-5)
        assert_allclose(rg.linearize(function, x)[1](one), np.sum(right), rtol=1e-5)


def test_the_structure_may_change_between_calls():
    for tree in [{"a": X, "b": 2.0}, [X, X], (X,), {"b": X}, [X, X]]:
        found = slope(lambda t: sum(np.sum(v) ** 2 for v in (t.values() if isinstance(t, dict) else t)), tree)
        assert type(found) is type(tree)


def test_wrappers_copies_and_objects_have_compilations_of_their_own():
    def function(v):
        return np.sum(v**2)

    @functools.wraps(function)
    def wrapper(v):
        return 10 * function(v)

    for _ in range(2):
        assert_allclose(slope(function, X), 2 * X)
        assert_allclose(slope(wrapper, X), 20 * X)
    model = Model(2.0)
    assert_allclose(slope(model, X), 6 * X**2)
    for other in [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]:
        other.k = 1.0
        assert_allclose(slope(other, X), 3 * X**2)
        assert_allclose(slope(other.square, X), 2 * X)
        assert_allclose(slope(model, X), 6 * X**2)


@pytest.mark.parametrize("memory", MEMORY)
def test_a_pullback_is_of_its_own_point(memory):
    x, w = X.copy(), np.ones(3)

    def function(v):
        return np.sum(w * v**3)

    pull = rg.vjp(function, x, memory=memory)[1]
    w[:], x[:] = 100.0, 50.0
    for _ in range(2):
        assert_allclose(pull(1.0)[0], 3 * X**2)
        assert_allclose(pull(2.0)[0], 6 * X**2)
    assert_allclose(slope(function, X, memory=memory), 300 * X**2)


@pytest.mark.parametrize("memory", MEMORY)
def test_each_way_has_its_pullback(memory):
    def function(v):
        return np.sum(v**2) if v[0] > 0 else np.sum(v**3)

    pulls = [(x, rg.vjp(function, x, memory=memory)[1]) for x in (X, -X, 2 * X, -2 * X)]
    for x, pull in [*pulls, *pulls[::-1]]:
        assert_allclose(pull(1.0)[0], 2 * x if x[0] > 0 else 3 * x**2)


@pytest.mark.parametrize("memory", MEMORY)
def test_a_pullback_runs_in_threads_and_under_transforms(memory):
    pull = rg.vjp(lambda v: np.sin(v) * v, X, memory=memory)[1]
    right, found = np.cos(X) * X + np.sin(X), []
    thread = threading.Thread(target=lambda: found.append(pull(np.ones(3))[0]))
    thread.start()
    thread.join()
    assert_allclose(found[0], right)
    assert_allclose(rg.jit(lambda ct: pull(ct)[0])(np.ones(3)), right)
    assert_allclose(rg.grad(lambda ct: np.sum(pull(ct)[0] ** 2))(np.ones(3)), 2 * right**2)
    assert_allclose(rg.vmap(lambda ct: pull(ct)[0])(np.eye(3)), np.diag(right))


def test_threads_may_meet_at_a_fresh_function():
    def function(v):
        return np.sum(np.sin(v)) if v[0] > 0 else np.sum(v**3)

    wrong = []

    def work(x):
        for _ in range(5):
            right = np.cos(x) if x[0] > 0 else 3 * x**2
            if not np.allclose(slope(function, x), right) or not np.allclose(
                rg.linearize(function, x)[1](x), right @ x
            ):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(X if k % 2 else -X,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_functions_made_in_a_loop_die(monkeypatch):
    monkeypatch.setattr("retrograd.compiler.sharing.MOST", 0)  # else the last arrays may be kept as long as the code
    ends = []
    for k in range(20):
        w = np.full(1000, float(k))
        function = lambda v, w=w: np.sum(v * w)  # noqa: E731
        ends += [weakref.ref(function), weakref.ref(w)]
        slope(function, np.ones(1000))
        rg.linearize(function, np.ones(1000))[1](np.ones(1000))
    del function, w
    gc.collect()
    assert [end() for end in ends] == [None] * 40


def test_errors_leave_nothing_half_done():
    def function(v):
        if v[0] < 0:
            raise ValueError("negative")
        return np.sum(v**2)

    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            rg.vjp(function, -X)
        assert_allclose(slope(function, X), 2 * X)
        with pytest.raises(rg.errors.ShapeError):
            rg.vjp(function, X)[1](np.ones(4))


@pytest.mark.parametrize("memory", MEMORY)
def test_a_pullback_draws_nothing(memory):
    ours, theirs = np.random.default_rng(4), np.random.default_rng(4)
    for _ in range(3):
        out, pull = rg.vjp(lambda v: np.sum(v * ours.normal(size=3)), X, memory=memory)
        drawn = theirs.normal(size=3)
        assert_allclose(out, X @ drawn)
        assert_allclose([pull(1.0)[0], pull(1.0)[0]], [drawn, drawn])
