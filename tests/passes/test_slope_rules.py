"""Leaky relus without choices, and maxima with one mask of ties: bits, ties, derivatives, and what fires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

Kink = tuple[Callable[[Any, float], Any], Callable[[Any], Any]]  # and where it is x itself
KINKS: dict[str, Kink] = {
    "above": (lambda x, a: np.where(x > 0, x, a * x), lambda x: x > 0),
    "above, number last": (lambda x, a: np.where(x > 0, x, x * a), lambda x: x > 0),
    "from zero": (lambda x, a: np.where(x >= 0, x, a * x), lambda x: x >= 0),
    "from zero, number last": (lambda x, a: np.where(x >= 0, x, x * a), lambda x: x >= 0),
    "below": (lambda x, a: np.where(x < 0, a * x, x), lambda x: ~(x < 0)),
    "below, number last": (lambda x, a: np.where(x < 0, x * a, x), lambda x: ~(x < 0)),
    "to zero": (lambda x, a: np.where(x <= 0, a * x, x), lambda x: ~(x <= 0)),
    "to zero, number last": (lambda x, a: np.where(x <= 0, x * a, x), lambda x: ~(x <= 0)),
}
over_kinks = pytest.mark.parametrize(("kink", "is_x"), KINKS.values(), ids=KINKS)
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, -5e-324, 1e-300, -1e-300, 1.0, -1.0, 3.5, -2.25]


def points(dtype: str, n: int = 60) -> Any:
    with np.errstate(under="ignore"):
        return np.concatenate([np.array(SPECIAL), np.random.default_rng(n).normal(size=n)]).astype(dtype)


def operations(f: Any, *args: Any) -> list[str]:
    return [node.prim.name for node in f.at(*args).graph.nodes]


def same_bits(found: Any, wanted: Any) -> bool:
    nan = np.isnan(wanted)
    return bool((np.isnan(found) == nan).all()) and found[~nan].tobytes() == wanted[~nan].tobytes()


@over_kinks
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("a", [0.1, 0.999, 1e-310, 0.0, 1.0, 1.5, -0.3])
def test_values_keep_their_bits_and_derivatives_their_sides(kink: Any, is_x: Any, dtype: str, a: float) -> None:
    x = points(dtype)
    ct = np.random.default_rng(1).normal(size=x.shape).astype(dtype)
    f, g = rg.jit(lambda x: kink(x, a)), rg.grad(lambda x: np.sum(ct * kink(x, a)))
    with np.errstate(invalid="ignore", under="ignore"):
        assert same_bits(f(x), kink(x, a))
        np.testing.assert_array_equal(g(x), np.where(is_x(x), ct, x.dtype.type(a) * ct))
        assert f(x).dtype == g(x).dtype == x.dtype
    between = 0 < x.dtype.type(a) < 1  # the least number is zero in single precision
    assert ("where" in operations(f, x)) == (not between)
    assert operations(g, x).count("where") == (0 if between else 2)


@over_kinks
def test_cotangents_that_are_not_finite(kink: Any, is_x: Any) -> None:
    x = np.array([1.0, -1.0, 0.0, 2.0, -2.0, 3.0])
    ct = np.array([np.inf, -np.inf, np.nan, -0.0, -0.0, np.nan])
    found = rg.grad(lambda x: np.sum(ct * kink(x, 0.25)))(x)
    np.testing.assert_array_equal(found, np.where(is_x(x), ct, 0.25 * ct))


@over_kinks
def test_further_derivatives_batches_and_exact_mode(kink: Any, is_x: Any) -> None:
    x = np.append(np.random.default_rng(0).normal(size=20), 0.0)
    f = lambda x: np.sum(np.sin(kink(x, 0.1)) * x)  # noqa: E731 - of each kink
    grad, side = rg.grad(f), np.where(is_x(x), 1.0, 0.1)
    y = kink(x, 0.1)
    np.testing.assert_allclose(grad(x), np.cos(y) * side * x + np.sin(y), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(
        rg.grad(lambda x: np.sum(rg.grad(f)(x)))(x), 2 * np.cos(y) * side - np.sin(y) * side**2 * x, rtol=1e-13
    )
    stack = np.stack([x, -x, 2 * x])
    np.testing.assert_array_equal(rg.vmap(rg.grad(f))(stack), np.stack([grad(v) for v in stack]))
    with rg.config(exact=True):
        np.testing.assert_allclose(rg.grad(f)(x), grad(x), rtol=1e-14)
        assert operations(rg.grad(f), x).count("where") == 3
    rg.check_grads(f, (x[:20],), order=2)


def test_a_slope_that_is_an_operand_stays() -> None:
    x = points("f8")[5:]
    for a in (0.5, np.full(x.shape, 0.5)):
        assert "where" in operations(rg.jit(lambda x, a: np.where(x > 0, x, a * x)), x, a)
    assert "where" in operations(rg.jit(lambda x: np.where(x > 0.0, x, 0.5 * np.sin(x))), x)
    assert "where" in operations(rg.jit(lambda x: np.where(x > 1.0, x, 0.5 * x)), x)
    assert "where" in operations(rg.jit(lambda x: np.where(np.sin(x) > 0.0, x, 0.5 * x)), x)


@pytest.mark.parametrize("of", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_operands_of_an_extremum_share_a_mask_of_ties(of: Any) -> None:
    x, y = points("f8"), points("f8")[::-1].copy()
    y[20:30] = x[20:30]
    grad = rg.grad(lambda x, y: np.sum(of(x, y)), (0, 1))
    one, two = np.ones(1), np.zeros(1)
    single = rg.grad(lambda x, y: of(x, y)[0], (0, 1))  # of each place alone
    with np.errstate(invalid="ignore"):
        found = grad(x, y)
        wanted = [single(one * p + two, one * q) for p, q in zip(x, y, strict=True)]
    np.testing.assert_array_equal(found[0], np.concatenate([w[0] for w in wanted]))
    np.testing.assert_array_equal(found[1], np.concatenate([w[1] for w in wanted]))
    assert found[0][25] == found[1][25] == 0.5
    assert operations(grad, x, y).count("putmask") == 2
    written = {node.inputs[1] for node in grad.at(x, y).graph.nodes if node.prim.name == "putmask"}
    assert len(written) == 1
