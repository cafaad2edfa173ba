"""Programs on the native target have NumPy's results, and bits that depend on nothing but their operands."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import retrograd as rg
from retrograd.codegen.native.target import REFUSALS
from retrograd.compiler.executable import Executable
from retrograd.compiler.native_target import NATIVE
from retrograd.ir import Aval, evaluate, parse
from tests.support import laws, values
from tests.support.graphs import built, op
from tests.support.native import as_kernels, needs_compiler, results
from tests.support.random_graphs import Example, random_graphs
from tests.support.stages import pipeline

pytestmark = needs_compiler
RNG = np.random.default_rng(0)


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    p = e / np.sum(e, axis=1, keepdims=True)
    return np.sum(np.log(p) * p)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return np.sum(np.tanh(centred / np.sqrt(variance + 1e-5) * gain + bias))


def columns(x: Any) -> Any:
    return np.sum(np.sum(np.sin(x), axis=0) ** 2) + np.sum(np.max(x, axis=0)) + np.sum(np.prod(x[:, :4], axis=1))


def bodies(x: Any) -> Any:
    d = x[:, None, :] - x[None, :, :]
    return np.sum(1 / np.sqrt(np.sum(d * d, axis=-1) + 0.01))


def stencil(u: Any) -> Any:
    for _ in range(3):
        v = u.copy()
        v[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        u = v
    return np.sum(u * u)


def pieces(x: Any) -> Any:
    y = np.concatenate((x[3:], x[:3] * 2.0, np.roll(x, 2)))
    y[::2] = 0.5
    return np.sum(y[::-1] * np.arange(2.0 * len(x))) + np.sum(np.stack((x[0], x[1])) ** 3)


def lorenz(start: Any) -> Any:
    def slope(x: Any, y: Any, z: Any) -> Any:
        return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z

    def step(state: Any, _: Any) -> Any:
        middle = [u + 0.005 * d for u, d in zip(state, slope(*state), strict=True)]
        return tuple(u + 0.01 * d for u, d in zip(state, slope(*middle), strict=True)), None

    last, _ = rg.scan(step, tuple(start), None, 40)
    return last[0] * last[1]


def heat(u: Any) -> Any:
    def step(u: Any, k: Any) -> Any:
        v = u + k * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)
        return v - 0.01 * v**2, np.sum(v)

    last, sums = rg.scan(step, u, np.linspace(0.05, 0.1, 20))
    return np.sum(last**2) + np.sum(np.sin(sums))


def layers(w: Any, v: Any, x: Any) -> Any:
    return np.sum((np.tanh(x @ w + 1.0) @ v) ** 2)


def mixed(x: Any) -> Any:
    return np.sum(np.where(x > 0, np.maximum(x, 0.5), np.abs(x)) * (x.astype(np.float32) * 2).astype(np.float64))


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (rosenbrock, (normal(2),)),
    (rosenbrock, (normal(101),)),
    (rosenbrock, (normal(9000),)),
    (softmax, (normal(13, 21),)),
    (softmax, (normal(3, 2),)),
    (layer_norm, (normal(7, 33), normal(33), normal(33))),
    (columns, (normal(40, 19),)),
    (columns, (normal(5, 5),)),
    (bodies, (normal(30, 3),)),
    (stencil, (normal(12, 17),)),
    (pieces, (normal(11),)),
    (pieces, (normal(40),)),
    (lorenz, (np.array([1.0, 2.0, 3.0]),)),
    (heat, (normal(8, 9),)),
    (heat, (normal(3, 3),)),
    (layers, (normal(20, 30), normal(30, 4), normal(50, 20))),
    (mixed, (normal(30),)),
]
over_programs = pytest.mark.parametrize(
    ("program", "args"), PROGRAMS, ids=[f"{f.__name__}-{args[0].shape}" for f, args in PROGRAMS]
)


@over_programs
def test_gradients_are_those_of_the_numpy_target(program: Callable[..., Any], args: tuple[Any, ...]) -> None:
    every = tuple(range(len(args)))
    value, slopes = rg.value_and_grad(program, argnums=every)(*args)
    REFUSALS.clear()
    with rg.config(backend="native"):
        made = rg.value_and_grad(program, argnums=every)
        found, gradients = made(*args)
        again = made(*args)
    assert not REFUSALS
    np.testing.assert_allclose(found, value, rtol=1e-12)
    for x, y in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12 * np.max(np.abs(y)))
    values.assert_same_bits(list(again[1]), list(gradients))


@given(example=random_graphs())
def test_random_graphs_have_the_results_of_numpy(example: Example) -> None:
    graph = pipeline(example.graph)
    found = Executable(graph, target=NATIVE)(*example.args)
    values.assert_has_avals(found, graph.out_avals)
    values.assert_close(list(found), list(evaluate(graph, example.args)), laws.tolerance_of(graph))
    assert not any(values.shares(x, example.args) for x in found)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 16, 31, 64, 100])
def test_steps_of_any_number_and_carries_of_any_size(n: int) -> None:
    def run(x: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            a, b = carry
            return (np.sin(a) + y, a), (a * b, np.sum(b))

        (a, b), (products, sums) = rg.scan(step, (x, x), ys, reverse=n % 2 == 0)
        return np.sum(a * b) + np.sum(products) + np.sum(sums**2)

    args = RNG.normal(size=(2, n))[0], RNG.normal(size=(max(1, n % 5), n))
    expected = rg.grad(run, argnums=(0, 1))(*args)
    with rg.config(backend="native"):
        found = rg.grad(run, argnums=(0, 1))(*args)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-13)


def test_lanes_have_the_bits_of_single_calls() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(np.tanh(x)) * np.log1p(x * x), axis=-1)

    xs = RNG.normal(size=(7, 37))
    with rg.config(backend="native"):
        together = rg.vmap(rg.grad(f))(xs)
        single = rg.grad(f)
        for x, row in zip(xs, together, strict=True):
            values.assert_same_bits([single(x)], [row])


def test_arithmetic_has_the_bits_of_numpy() -> None:
    start = np.array([1.0, 2.0, 3.0])
    expected = rg.value_and_grad(lorenz)(start)
    with rg.config(backend="native"):
        values.assert_same_bits(list(rg.value_and_grad(lorenz)(start)), list(expected))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 8, 34, 1000])
def test_products_beside_sums_and_differences_are_rounded(n: int, dtype: Any) -> None:
    """GCC 12 contracts them where they take turns, in spite of its flag."""

    def rotated(x: Any, y: Any) -> Any:
        return np.stack([x * y[0] - y * x[1], x * x[1] + y * y[0]], axis=-1)

    def turned(x: Any, y: Any) -> Any:
        left, right = x.reshape(-1, 2), y.reshape(-1, 2)
        both = left * right
        return np.stack([both[:, 0] - right[:, 0], both[:, 1] + right[:, 1]], axis=-1)

    def signed(x: Any, y: Any) -> Any:
        left, right = x.reshape(-1, 2), y.reshape(-1, 2)
        return np.stack([left[:, 0] * right[:, 0] + right[:, 1], -(left[:, 1] * right[:, 0]) + right[:, 1]], axis=-1)

    x, y = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
    for f in (rotated, turned, signed):
        made = rg.jit(f, backend="native")
        assert made.executable(x, y).module.kernels
        values.assert_same_bits([made(x, y)], [f(x, y)])


def test_nan_and_infinity_pass_through_extrema() -> None:
    def extrema(x: Any) -> Any:
        return op("max", x, axis=(0,), keepdims=False), op("min", x, axis=(0,), keepdims=False)

    graphs = [built(extrema, Aval((n,), ROW.dtype)) for n in (30, 63, 64, 5000)]  # long rows have other loops
    for graph, function in zip(graphs, as_kernels(graphs), strict=True):
        (n,) = graph.inputs[0].aval.shape
        for at, special in product((0, 1, 17, n - 1), (np.nan, np.inf, -np.inf)):
            x = RNG.normal(size=n)
            x[at] = special
            values.assert_same_bits(results(function, graph, [x]), list(evaluate(graph, [x])))


def test_small_results_may_read_what_else_is_only_needed_row_by_row() -> None:
    graph = parse("""
graph f(%x: f64[3,31]) {
  %0 = sin %x : f64[3,31]
  %1 = exp %0 : f64[3,31]
  %2 = sum %1 {axis=(1,), keepdims=True} : f64[3,1]
  %3 = getitem %1 {index=s_[:, 0:1]} : f64[3,1]
  %4 = broadcast %2 : f64[3,31]
  %5 = div %1, %4 : f64[3,31]
  return %3, %5
}""")
    (function,) = as_kernels([graph])
    x = RNG.normal(size=(3, 31))
    values.assert_close(results(function, graph, [x]), list(evaluate(graph, [x])), 1e-14)


ROW = Aval((30,), np.dtype(np.float64))


def test_a_long_sum_is_as_exact_as_numpys() -> None:
    graph = built(lambda x: op("sum", x, axis=(0,), keepdims=False), Aval((10**6,), np.dtype(np.float64)))
    (function,) = as_kernels([graph])
    x = RNG.normal(size=10**6) ** 2
    exact = float(np.sum(x.astype(np.longdouble)))
    assert abs(function(x) - exact) <= 1e-14 * exact


def test_threads_may_call_one_kernel() -> None:
    graph = parse("""
graph f(%x: f64[400,300]) {
  %0 = max %x {axis=(1,), keepdims=True} : f64[400,1]
  %1 = broadcast %0 : f64[400,300]
  %2 = sub %x, %1 : f64[400,300]
  %3 = exp %2 : f64[400,300]
  %4 = sum %3 {axis=(0,), keepdims=False} : f64[300]
  %5 = broadcast %4 : f64[400,300]
  %6 = div %3, %5 : f64[400,300]
  return %6
}""")
    (function,) = as_kernels([graph])
    xs = [RNG.normal(size=(400, 300)) for _ in range(4)]
    expected = [function(x).copy() for x in xs]
    wrong: list[int] = []

    def work(k: int) -> None:
        wrong.extend(k for _ in range(50) if not np.array_equal(function(xs[k]), expected[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
