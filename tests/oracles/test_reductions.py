"""Gradients of reductions, cumulative operations and sorts against JAX, over real and complex numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrograd as rg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
Z = X + 1j * RNG.normal(size=(3, 4))
W = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))

SMOOTH: dict[str, Any] = {
    "sum": lambda m, x: m.sum(x, axis=0),
    "prod": lambda m, x: m.prod(x, axis=1),
    "mean": lambda m, x: m.mean(x, axis=1, keepdims=True),
    "average": lambda m, x: m.average(x, axis=0, weights=np.array([1.0, 2.0, 3.0])),
    "var": lambda m, x: m.var(x, axis=0, ddof=1),
    "std": lambda m, x: m.std(x),
    "nansum": lambda m, x: m.nansum(x, axis=0),
    "cumsum": lambda m, x: m.cumsum(x, axis=1),
    "cumprod": lambda m, x: m.cumprod(x, axis=0),
    "diff": lambda m, x: m.diff(x, axis=0),
    "gradient": lambda m, x: m.gradient(x, axis=0),
    "trapezoid": lambda m, x: m.trapezoid(x),
}
ORDERED: dict[str, Any] = {
    "max": lambda m, x: m.max(x, axis=0),
    "ptp": lambda m, x: m.ptp(x, axis=1),
    "median": lambda m, x: m.median(x, axis=1),
    "nanmedian": lambda m, x: m.nanmedian(x, axis=0),
    "quantile": lambda m, x: m.quantile(x, m.asarray([0.2, 0.7]), axis=0),
    "percentile": lambda m, x: m.percentile(x, 30, method="midpoint"),
    "nanvar": lambda m, x: m.nanvar(x, axis=0),
    "sort": lambda m, x: m.sort(x, axis=0),
}


def loss(module: Any, function: Any, x: Any) -> Any:
    """A real function of all results, which tells real from imaginary parts."""
    y = function(module, x)
    return module.sum(module.real(module.sin(y) * np.resize(W, np.shape(y))))


@pytest.mark.parametrize(
    ("name", "point"), [*((name, X) for name in SMOOTH | ORDERED), *((name, Z) for name in SMOOTH)]
)
def test_gradients_are_those_of_jax(name: str, point: Any) -> None:
    function = (SMOOTH | ORDERED)[name]
    expected = jax.grad(lambda x: loss(jnp, function, x))(jnp.asarray(point))
    np.testing.assert_allclose(rg.grad(lambda x: loss(np, function, x))(point), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["max", "sort", "median", "quantile", "ptp"])
def test_ties_are_treated_as_in_jax(name: str) -> None:
    point = np.round(X)
    expected = jax.grad(lambda x: loss(jnp, ORDERED[name], x))(jnp.asarray(point))
    np.testing.assert_allclose(rg.grad(lambda x: loss(np, ORDERED[name], x))(point), expected, rtol=1e-9, atol=1e-9)
