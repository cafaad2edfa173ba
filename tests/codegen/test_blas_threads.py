"""Loops with small products run with one thread of the BLAS, and leave the number of threads as it was."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy import blas_threads
from retrograd.codegen.numpy.blas_threads import _Limit, on_one_thread

W = np.linspace(-0.1, 0.1, 80 * 80).reshape(80, 80)
X = np.linspace(0.0, 1.0, 64 * 80).reshape(64, 80)


class Threads:
    """A BLAS that counts."""

    def __init__(self, count: int = 4) -> None:
        self.count = count
        self.written: list[int] = []

    def read(self) -> int:
        return self.count

    def write(self, count: int) -> None:
        self.count = count
        self.written.append(count)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    fake = Threads()
    made = _Limit(fake.read, fake.write)
    monkeypatch.setattr(blas_threads, "limit", lambda package="numpy": made)
    return fake


def looped(steps: int = 30, w: Any = W, x: Any = X) -> Any:
    def loss(w):
        return np.sum(rg.fori_loop(0, steps, lambda k, h: np.tanh(h @ w), x) ** 2)

    return rg.value_and_grad(loss)


@pytest.mark.parametrize(("products", "rows", "one"), [(8, 64, True), (7, 64, False), (8, 700, False), (8, 2, False)])
def test_many_small_products_in_a_row_have_one_thread(threads, products, rows, one):
    x = np.linspace(0.0, 1.0, rows * 80).reshape(rows, 80)

    def layers(x):
        for _ in range(products):
            x = np.tanh(x @ W)
        return x

    assert np.isfinite(rg.jit(layers)(x)).all()
    assert threads.written == ([1, 4] if one else [])


def test_a_stack_is_many_products(threads):
    f = rg.jit(lambda w: np.tanh(w @ w))
    f(np.stack([W] * 8))
    f(np.stack([W] * 7))
    assert threads.written == [1, 4]
    assert threads.count == 4


def test_a_loop_with_small_products_has_one_thread(threads):
    g = looped()
    value, _ = g(W)
    assert threads.written == [1, 4]
    assert threads.count == 4
    assert np.isfinite(value)


@pytest.mark.parametrize(("steps", "rows", "one"), [(16, 700, False), (17, 700, True), (16, 64, True)])
def test_a_loop_of_a_few_large_products_keeps_the_threads(threads, steps, rows, one):
    looped(steps, x=np.linspace(0.0, 1.0, rows * 80).reshape(rows, 80))(W)
    assert threads.written == ([1, 4] if one else [])


@pytest.mark.parametrize(
    "loss",
    [
        lambda w: np.sum(np.tanh(X @ w) ** 2),  # no loop
        lambda w: np.sum(rg.fori_loop(0, 30, lambda k, h: np.tanh(h @ w[:8, :8]), X[:8, :8])),  # BLAS uses no threads
    ],
)
def test_other_functions_keep_their_threads(threads, loss):
    rg.grad(loss)(W)
    assert threads.written == []


def test_large_products_keep_their_threads(threads):
    big = np.ones((300, 300))

    def loss(w):
        y = rg.fori_loop(0, 3, lambda k, h: np.tanh(h @ W), X)
        return np.sum(w @ w) + np.sum(y)

    rg.grad(loss)(big)
    assert threads.written == []


def test_threads_come_back_after_errors(threads):
    @on_one_thread
    def fails():
        assert threads.count == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert threads.count == 4


def test_calls_within_calls_and_in_threads(threads):
    entered, done = threading.Barrier(3), threading.Event()

    @on_one_thread
    def waits():
        entered.wait(10)
        done.wait(10)
        return threads.count

    @on_one_thread
    def nested():
        return on_one_thread(lambda: threads.count)(), threads.count

    workers = [threading.Thread(target=waits) for _ in range(2)]
    for worker in workers:
        worker.start()
    entered.wait(10)
    assert nested() == (1, 1)
    assert threads.count == 1
    done.set()
    for worker in workers:
        worker.join()
    assert threads.written == [1, 4]


def test_who_asked_for_one_thread_keeps_it(threads):
    threads.count = 1
    looped()(W)
    assert threads.written == []


def test_the_blas_of_numpy_is_found_and_restored():
    found = blas_threads.limit()
    if found is None:
        pytest.skip("NumPy has no OpenBLAS of its own here")
    before = found._read()
    assert before >= 1
    assert on_one_thread(found._read)() == 1
    assert found._read() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_forked_within_has_its_threads(threads):
    @on_one_thread
    def forked() -> int:
        child = os.fork()
        if not child:
            os._exit(0 if threads.count == 4 and on_one_thread(lambda: threads.count)() == 1 else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert forked() == 0
    assert threads.count == 4


def test_results_do_not_depend_on_the_limit(monkeypatch):
    value, slope = looped()(W)
    monkeypatch.setattr(blas_threads, "limit", lambda: None)
    plain, other = looped(steps=30)(W)
    np.testing.assert_allclose(value, plain, rtol=1e-13)
    np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("n", "limited"), [(60, True), (290, True), (300, False)])
def test_small_systems_that_scipy_solves_have_one_thread(threads: Threads, n: int, limited: bool) -> None:
    def loss(k: Any) -> Any:
        root = np.linalg.cholesky(k)
        return np.sum(np.linalg.solve(root, np.ones(n)))

    k = np.eye(n) * 2.0
    gradient = rg.grad(loss)
    assert "solve_triangular" in gradient.source(k)
    gradient(k)
    assert threads.written == ([1, 4] if limited else [])
    assert threads.count == 4


@pytest.mark.parametrize(("k", "limited"), [(2, False), (3, True), (270, True), (300, False)])
def test_a_product_beside_systems_that_scipy_solves_has_one_thread(threads: Threads, k: int, limited: bool) -> None:
    n = 300  # SciPy keeps its threads for such systems

    def loss(x: Any) -> Any:
        root = np.linalg.cholesky(x @ x.T + n * np.eye(n))
        return np.sum(np.linalg.solve(root, np.ones(n)))

    x = np.ones((n, k)) + np.eye(n, k)
    value = rg.jit(loss)
    assert "solve_triangular" in value.source(x)
    value(x)
    assert threads.written == ([1, 4] if limited else [])
    assert threads.count == 4
