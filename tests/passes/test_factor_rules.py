"""Powers of two that are taken out of sums: where, and that numbers keep their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.factor_rules import LARGEST

SUMS: dict[str, Callable[..., Any]] = {
    "y + b z": lambda x, w, z, a, b: (x * a) * w + b * z,
    "y + z b": lambda x, w, z, a, b: w * (a * x) + z * b,
    "b z + y": lambda x, w, z, a, b: b * z + (x * a) * w,
    "z b + y": lambda x, w, z, a, b: z * b + w * (x * a),
    "y - b z": lambda x, w, z, a, b: (a * x) * w - b * z,
    "y - z b": lambda x, w, z, a, b: (x * a) * w - z * b,
}


def operations(f: Any, *args: Any) -> list[str]:
    return [node.prim.name for node in f.at(*args).graph.nodes]


def points(dtype: str) -> Any:
    rng = np.random.default_rng(0)
    x, w, z = (rng.normal(size=50).astype(dtype) for _ in range(3))
    x[:4], z[2:6] = [np.inf, -np.inf, np.nan, 0.0], [np.inf, 1.0, -np.inf, np.nan]
    return x, w, z


@pytest.mark.parametrize("total", SUMS.values(), ids=SUMS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("same_sign", [True, False])
@pytest.mark.parametrize("b", [2.0, -4.0, LARGEST, 2 * LARGEST, 0.5, 3.0])
def test_bits_stay(total: Any, dtype: str, same_sign: bool, b: float) -> None:
    args, a = points(dtype), 0.7
    first = a / b if same_sign else -a / b

    def both(x: Any, w: Any, z: Any) -> Any:
        return first * x, total(x, w, z, a, b)

    f = rg.jit(both)
    with np.errstate(invalid="ignore"):
        found, wanted = f(*args), both(*args)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == dtype
    taken_out = b in (2.0, -4.0, LARGEST)
    assert operations(f, *args).count("mul") == (3 if taken_out else 4)


@pytest.mark.parametrize("total", SUMS.values(), ids=SUMS)
def test_nothing_is_taken_out_if_the_rest_is_not_there(total: Any) -> None:
    args = points("f8")
    f = rg.jit(lambda x, w, z: (0.3 * x, total(x, w, z, 0.7, 2.0)))
    assert operations(f, *args).count("mul") == 4
    g = rg.jit(lambda x, w, z: (0.35 * x, total(x, w, z, 0.7, 2.0)))
    with rg.config(exact=True):
        assert operations(g, *args).count("mul") == 4


def test_numbers_and_integers_stay() -> None:
    f = rg.jit(lambda x, w, z: (100 * x, (200 * x) * w + 2 * z))
    i = np.arange(20)
    np.testing.assert_array_equal(f(i, i, i)[1], 200 * i * i + 2 * i)
    assert operations(f, i, i, i).count("mul") == 4
    g = rg.jit(lambda x, w, z: (100.0 * x, (200.0 * x) * w + 2.0 * z))
    assert operations(g, 1.5, 2.5, 3.5).count("mul") == 4


def test_the_adjoint_of_rosenbrocks_function() -> None:
    def f(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    x = np.random.default_rng(0).normal(size=40)
    grad = rg.grad(f)
    r, wanted = x[1:] - x[:-1] ** 2, np.zeros(40)
    wanted[1:] = 200 * r
    wanted[:-1] -= 400 * r * x[:-1] + 2 * (1 - x[:-1])
    np.testing.assert_allclose(grad(x), wanted, rtol=1e-14)
    assert operations(grad, x).count("mul") == 3
    rg.check_grads(f, (x,), order=2)
    np.testing.assert_array_equal(rg.vmap(grad)(np.stack([x, 2 * x])), [grad(x), grad(2 * x)])
