"""Values that are computed in a part of a new array: where, their bits, what fills the rest, and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.rewrite import walk
from retrograd.passes.parts_in_place import LEAST
from tests.support.memory import measured

FEW = LEAST // 8  # elements


def written(index: Any, of: Callable[[Any], Any], shape: Any, number: float = 0.0) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = np.full(shape, number, x.dtype)
        y[index] = of(x)
        return y

    return f


def normals(*shape: int, dtype: str = "f8") -> Any:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x.reshape(-1)[:5] = [-0.0, 0.0, np.nan, np.inf, -np.inf]
    return x


def in_place(f: Any, *args: Any) -> bool:
    return any(node.prim.name == "into_part" for node in walk(f.at(*args).plan.order))


def poisoned(f: Any, *args: Any) -> Any:
    """What the source gives if new arrays are full of nan."""

    def empty(*args: Any) -> Any:
        return np.full(args[0], np.nan, *args[1:])

    scope: dict[str, Any] = {"empty": empty}
    source = f.source(*args).replace("np.empty(", "empty(")
    exec(source, scope)
    name = source.split('"""')[1].split("(")[0]
    with np.errstate(invalid="ignore"):
        return scope[name](*args)


PARTS = [
    (slice(1, None), -1),
    (slice(None, -1), -1),
    (slice(2, -3), -5),
    (slice(None), 0),
    (slice(-FEW - 4, -4), None),
    ((slice(3, None), slice(None)), -3),
]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, np.nan])
@pytest.mark.parametrize(("index", "shorter"), PARTS)
def test_bits_and_the_rest(index: Any, shorter: int | None, number: float, dtype: str) -> None:
    few = LEAST // np.dtype(dtype).itemsize
    columns = (16,) if isinstance(index, tuple) else ()
    for n in (few - 1, few, 3 * few + 1) if shorter is not None else (FEW,):
        rows = -(-n // 16) if columns else n
        x = normals(rows, *columns, dtype=dtype)
        length = rows - shorter if shorter is not None else FEW + 9
        for of in (np.square, lambda x: -x, lambda x: x * x + x, lambda x: np.abs(x) / 3):
            f = rg.jit(written(index, of, (length, *columns), number))
            with rg.config(exact=True), np.errstate(invalid="ignore"):
                wanted = f.__wrapped__(x)
                assert f(x).tobytes() == wanted.tobytes()
                assert poisoned(f, x).tobytes() == wanted.tobytes()
                assert in_place(f, x) == (x.nbytes >= LEAST and shorter != 0)


@pytest.mark.parametrize(
    "f",
    [
        written(slice(1, None), np.sin, FEW + 1),  # NumPy's loops may round otherwise
        written(slice(1, None), lambda x: x, FEW + 1),
        written(slice(None, None, 2), lambda x: x * x, 2 * FEW),
        written(slice(None, None, -1), lambda x: x * x, FEW),
        written((slice(None), slice(1, None)), lambda x: (x * x).reshape(64, -1), (64, FEW // 64 + 1)),
        lambda x: (y := x * x, written(slice(1, None), lambda _: y, FEW + 1)(x)),  # it is read elsewhere
    ],
)
def test_what_is_copied(f: Any) -> None:
    x = np.random.default_rng(0).normal(size=FEW)
    g = rg.jit(f)
    with rg.config(exact=True):
        for found, wanted in zip(g(x), f(x), strict=True):
            np.testing.assert_array_equal(found, wanted)
        assert not in_place(g, x)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.mark.parametrize("n", [FEW, FEW + 1, 20_000])
def test_an_adjoint_of_slices(n: int) -> None:
    x = np.random.default_rng(0).normal(size=n)
    grad = rg.grad(rosenbrock)
    r, wanted = x[1:] - x[:-1] ** 2, np.zeros(n)
    wanted[1:] = 200 * r
    wanted[:-1] -= 400 * r * x[:-1] + 2 * (1 - x[:-1])
    np.testing.assert_allclose(grad(x), wanted, rtol=1e-13, atol=1e-11)
    assert in_place(grad, x) == (n > FEW)
    assert poisoned(grad, x).tobytes() == grad(x).tobytes()
    np.testing.assert_array_equal(rg.vmap(grad)(np.stack([x, 2 * x])), [grad(x), grad(2 * x)])
    np.testing.assert_array_equal(rg.grad(rg.checkpoint(rosenbrock))(x), grad(x))


def test_it_takes_no_memory() -> None:
    """Two operands that die there would outlive the new array otherwise."""
    n = 100_000
    x = np.random.default_rng(0).normal(size=n)

    def two(x: Any) -> Any:
        return written(slice(1, None), lambda x: np.sin(x) * np.cos(x), n + 1)(x)

    def one(x: Any) -> Any:
        return written(slice(1, None), lambda x: np.sin(x) * x, n + 1)(x)

    for f, wanted in ((rg.jit(two), False), (rg.jit(one), True)):
        f(x)
        assert in_place(f, x) == wanted
        peak = f.at(x).plan.peak
        assert peak <= 2 * 8 * (n + 1)
        assert abs(measured(lambda f=f: f(x)) - peak) <= 0.01 * peak + 4096


def test_in_loops() -> None:
    def step(x: Any) -> Any:
        y = np.zeros(FEW + 3)
        y[1:-2] = x[1:-2] * x[2:-1]
        return y + x

    f = rg.jit(lambda x: rg.fori_loop(0, 3, lambda i, x: step(x), x))
    x = np.random.default_rng(0).normal(size=FEW + 3)
    with rg.config(exact=True):
        np.testing.assert_array_equal(f(x), step(step(step(x))))
        assert in_place(f, x)
