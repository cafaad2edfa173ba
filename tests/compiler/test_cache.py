"""The cache: each key is made once, also by many threads, and a failure leaves nothing behind."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.cache import Cache, CacheInfo

THREADS = 8


def together(work, count=THREADS):
    """Run ``work(k)`` in many threads that start at the same moment; their results."""
    barrier = threading.Barrier(count, timeout=60)

    def run(k):
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_a_key_is_made_once():
    cache: Cache[object] = Cache()
    made = []
    for _ in range(3):
        assert cache.get("a", lambda: made.append("a") or "value") == "value"
    assert cache.get("b", lambda: "other") == "other"
    assert made == ["a"]
    assert cache.info() == CacheInfo(hits=2, misses=2, size=2)


def test_a_failure_leaves_the_key_new():
    cache: Cache[str] = Cache()

    def fail():
        raise ZeroDivisionError

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            cache.get("a", fail)
    assert cache.info() == CacheInfo(0, 0, 0)
    assert cache.get("a", lambda: "value") == "value"


def test_threads_that_ask_together_wait_for_one_maker():
    cache: Cache[object] = Cache()
    made = []

    def make():
        made.append(threading.get_ident())
        time.sleep(0.05)
        return object()

    found = together(lambda _: cache.get("key", make))
    assert len(made) == 1
    assert all(x is found[0] for x in found)


def test_different_keys_are_made_side_by_side():
    cache: Cache[int] = Cache()
    meeting = threading.Barrier(2, timeout=30)

    def make(k):
        meeting.wait()  # only passes while the other is being made too
        return k

    assert together(lambda k: cache.get(k, lambda: make(k)), 2) == [0, 1]


def test_a_waiting_thread_tries_again_after_a_failure():
    cache: Cache[str] = Cache()
    attempts = []

    def make():
        attempts.append(1)
        time.sleep(0.02)
        if len(attempts) == 1:
            raise ValueError("the first one fails")
        return "value"

    def work(_):
        try:
            return cache.get("key", make)
        except ValueError:
            return "failed"

    found = together(work)
    assert sorted(set(found)) == ["failed", "value"]
    assert found.count("failed") == 1
    assert len(attempts) == 2


def test_many_threads_trace_a_fresh_function_once_for_each_signature():
    runs = []

    @rg.value_and_grad
    def f(x):
        runs.append(x.shape)
        time.sleep(0.01)
        y = np.zeros(x.shape)
        y[...] = np.sin(x)
        return np.sum(y * x)

    def work(k):
        out = []
        for n in (2, 3, 4):
            x = np.arange(1.0, n + 1) * (k + 1)
            out.append((x, *f(x)))
        return out

    for results in together(work):
        for x, value, slope in results:
            assert value == pytest.approx(np.sum(np.sin(x) * x), rel=1e-12)
            np.testing.assert_allclose(slope, np.cos(x) * x + np.sin(x), rtol=1e-12)
    assert sorted(runs) == [(2,), (3,), (4,)]
    assert f.cache_info().misses == 3


def test_threads_use_one_compiled_function_at_once():
    x = np.random.default_rng(0).standard_normal((50, 50))
    f = rg.grad(lambda x, k: np.sum(np.tanh(x @ x) * k))
    expected = [f(x, float(k)) for k in range(THREADS)]

    def work(k):
        return [f(x, float(k)) for _ in range(20)]

    for k, results in enumerate(together(work)):
        for found in results:
            np.testing.assert_array_equal(found, expected[k])


def test_every_transform_may_be_used_from_many_threads():
    def f(x):
        return np.sum(np.sin(x) ** 2)

    x = np.array([0.5, 1.0, -2.0])
    jobs = [
        lambda: rg.jit(f)(x),
        lambda: rg.grad(f)(x),
        lambda: rg.hessian(f)(x),
        lambda: rg.vjp(f, x)[1](1.0)[0],
        lambda: rg.vmap(f)(x.reshape(3, 1)),
        lambda: rg.jacfwd(np.sin)(x),
        lambda: rg.scan(lambda c, v: (c * v, c), 1.0, x)[1],
        lambda: rg.jvp(f, (x,), (x,))[1],
    ]
    expected = [job() for job in jobs]
    for _ in range(3):
        for k, found in enumerate(together(lambda k: jobs[k](), len(jobs))):
            np.testing.assert_array_equal(found, expected[k])


def test_new_dataclasses_may_be_met_by_many_threads_at_once():
    from dataclasses import make_dataclass  # noqa: PLC0415 - classes are made here

    for k in range(20):
        cls = make_dataclass(f"Point{k}", ["x", "y"])

        def work(j, cls=cls):
            return rg.grad(lambda p: p.x * p.y)(cls(2.0, float(j)))

        for j, slope in enumerate(together(work, 4)):
            assert (slope.x, slope.y) == (float(j), 2.0)


def test_recursion_through_the_cache_does_not_lock():
    @rg.jit
    def f(x, n):
        return x if n == 0 else f(x, n - 1) * 2.0

    for found in together(lambda _: f(1.0, 5)):
        assert found == 32.0


def test_a_failing_trace_in_one_thread_does_not_disturb_the_others():
    @rg.jit
    def f(x, bad):
        time.sleep(0.002)
        made = np.zeros(3)
        made[0] = x[0]
        if bad:
            raise ZeroDivisionError
        return made

    def work(k):
        try:
            return f(np.ones(3) * k, k % 2 == 1)
        except ZeroDivisionError:
            return None

    for k, found in enumerate(together(work)):
        if k % 2:
            assert found is None
        else:
            np.testing.assert_array_equal(found, [k, 0.0, 0.0])
    assert f.cache_info().size == 1
    assert type(np.zeros(1)) is np.ndarray
