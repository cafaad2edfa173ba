"""Nothing outlives its use: compiled functions, traces, captures and instances are collected."""

from __future__ import annotations

import gc
import linecache
import sys
import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracer.array import Tracer
from retrograd.tracer.trace import CURRENT, Trace

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def nothing_kept_with_code():
    """Small compilations are kept as long as the code of a function lives, for functions made anew of it."""
    with rg.config(cache_size=0):
        yield


class Array(np.ndarray):
    """Plain arrays take no weak references; this base of a plain view does."""


def big():
    """A plain array, and a mark that tells whether its memory is still held."""
    base = np.ones(1000).view(Array)
    return np.frombuffer(base.data), weakref.ref(base)


def gone(mark):
    gc.collect()
    return mark() is None


def alive(cls):
    gc.collect()
    return sum(type(x) is cls for x in gc.get_objects())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("transform", [rg.jit, rg.grad, rg.value_and_grad, rg.vmap, rg.jacfwd, rg.jacrev, rg.hessian])
def test_a_compiled_function_is_collected_with_its_compilations(transform):
    def f(x):
        return np.sum(x**2)

    x = np.ones((2, 3)) if transform is rg.vmap else X
    g = transform(f)
    g(x)
    executable = weakref.ref(g.executable(x))
    compiled, function = weakref.ref(g), weakref.ref(f)
    del g, f
    assert gone(compiled)
    assert gone(executable)
    assert gone(function)


def test_captured_arrays_are_freed_with_the_function():
    def made():
        w, mark = big()
        return rg.grad(lambda x: np.sum(x * w)), mark

    f, mark = made()
    f(np.ones(1000))
    assert not gone(mark)
    del f
    assert gone(mark)


def test_arguments_and_results_are_not_kept():
    f = rg.grad(lambda x: np.sum(np.sin(x) * x))
    x, mark = big()
    f(x)
    rg.vjp(np.sin, x)
    del x
    assert gone(mark)


def test_a_pullback_holds_what_it_needs_and_no_longer():
    x, mark = big()
    _, pullback = rg.vjp(lambda x: x * x, x)
    del x
    held = weakref.ref(pullback)
    pullback(np.ones(1000))
    del pullback
    assert gone(held)
    assert gone(mark)


def test_traces_and_traced_values_do_not_stay():
    def f(x):
        y = np.zeros(3)
        y[0] = x[1]
        return np.sum(np.sin(y) * rg.grad(lambda v: np.sum(v**2))(x))

    before = alive(Tracer), alive(Trace)
    for _ in range(3):
        rg.grad(f)(X)
        rg.hessian(f)(X)
        rg.scan(lambda c, x: (c + x, c), 0.0, X)
        decides = rg.jit(lambda x: 1.0 if x[0] > 0 else 2.0)
        decides(X), decides(-X)
    sys.last_exc = sys.last_value = sys.last_traceback = None
    assert alive(Tracer) <= before[0]
    assert alive(Trace) <= before[1]


def test_a_failed_trace_frees_its_arguments():
    x, mark = big()

    def f(x):
        raise ZeroDivisionError

    for transform in (rg.jit, rg.grad):
        try:
            transform(f)(x)
        except ZeroDivisionError:
            pass
        else:
            pytest.fail("it does not raise")
    assert CURRENT.get() is None
    del x
    assert gone(mark)


def test_instances_with_compiled_methods_are_collected():
    class Model:
        def __init__(self):
            self.w, self.mark = big()

        @rg.grad
        def slope(self, x):
            return np.sum(self.w * x)

        @rg.jit
        def apply(self, x):
            return self.w * x

        @rg.jacfwd
        def jacobian(self, x):
            return self.w[:3] * x

    model = Model()
    model.slope(np.ones(1000))
    model.apply(np.ones(1000))
    model.jacobian(X)
    instance, mark = weakref.ref(model), model.mark
    del model
    assert gone(instance)
    assert gone(mark)


def test_a_hundred_instances_leave_nothing_behind():
    class Model:
        @rg.jit
        def apply(self, x):
            return x * 2

    for _ in range(100):
        Model().apply(X)
    gc.collect()
    assert len(Model.apply._methods) == 0


def test_generated_lines_leave_the_line_cache_when_the_next_function_is_compiled():
    f = rg.jit(lambda x: x * 2)
    filename = f.executable(X).filename
    assert filename in linecache.cache
    del f
    gc.collect()
    assert filename in linecache.cache  # a traceback may be walking over the files: none goes missing behind its back
    rg.jit(lambda x: x * 3)(X)
    assert filename not in linecache.cache


def test_many_functions_made_in_a_loop_do_not_pile_up():
    def once(k):
        return rg.grad(lambda x: np.sum(x**2) * k)(X)

    for k in range(5):
        once(k)
    gc.collect()
    before = len(gc.get_objects())
    for k in range(30):
        once(k)
    gc.collect()
    assert len(gc.get_objects()) - before < 300


def test_with_code_few_arrays_are_kept(monkeypatch):
    monkeypatch.setattr("retrograd.compiler.sharing.MOST", 20_000)

    def called(n):
        base = np.ones(n).view(Array)
        w = np.frombuffer(base.data)
        rg.grad(lambda x: np.sum(x * w))(np.ones(n))
        return weakref.ref(base)

    with rg.config(cache_size=256):
        marks = [called(n) for n in (900, 1000, 1100)]
        assert [gone(mark) for mark in marks] == [True, False, False]
        assert gone(called(3000))
        assert [gone(mark) for mark in marks] == [True, False, False]


def test_functions_made_anew_over_large_arrays_compile_once():
    def made(data):
        return rg.grad(lambda x: np.sum(x * data))

    with rg.config(cache_size=256):
        for k in range(4):
            data = np.arange(4000.0) + k
            slope = made(data)
            np.testing.assert_array_equal(slope(np.ones(4000)), data)
            assert slope.cache_info().misses == (k == 0)
