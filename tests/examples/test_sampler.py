"""The example of a sampler: its gradient is right, and its draws have the moments that quadrature finds."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

EXAMPLE = "sampler"


def moments(example) -> dict[str, tuple[float, float]]:
    """Means and deviations of the mean and the spread of schools, by quadrature: effects are integrated out."""
    mean, log_spread = np.meshgrid(np.linspace(-15.0, 25.0, 400), np.linspace(-8.0, 4.5, 400), indexing="ij")
    spread = np.exp(log_spread)
    log = -0.5 * (mean / 5.0) ** 2 + log_spread - np.log1p((spread / 5.0) ** 2)
    for effect, error in zip(example.EFFECTS, example.ERRORS, strict=True):
        variance = error**2 + spread**2
        log += -0.5 * np.log(variance) - 0.5 * (effect - mean) ** 2 / variance
    weight = np.exp(log - log.max())
    weight /= weight.sum()

    def of(x: np.ndarray) -> tuple[float, float]:
        average = np.sum(weight * x)
        return float(average), float(np.sqrt(np.sum(weight * (x - average) ** 2)))

    return {"mean": of(mean), "spread": of(spread)}


def test_the_gradient_is_right(example):
    p = {"mean": 4.0, "log_spread": 1.2, "offsets": np.linspace(-1.0, 1.0, 8)}
    rg.check_grads(example.log_density, (p,), order=2)
    flat, unravel = rg.tree.ravel(p)
    assert example.flat_log_density(flat) == example.log_density(unravel(flat))


def test_a_trajectory_runs_back(example):
    density = rg.vmap(rg.value_and_grad(example.flat_log_density))
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(4, 10)), rng.normal(size=(4, 10))
    there, moved, _ = example.trajectory(density, x, v, 0.05, 20)
    back, _, _ = example.trajectory(density, there, -moved, 0.05, 20)
    np.testing.assert_allclose(back, x, atol=1e-12)


def test_the_draws_have_the_moments_of_the_density(example):
    drawn = example.run(1000)
    assert 0.7 < drawn.accepted < 0.9
    assert np.max(example.spread_of_chains(drawn.points)) < 1.05
    points = drawn.points.reshape(-1, example.FLAT.size)
    found = {name: np.array([example.UNRAVEL(x)[name] for x in points[::10]]) for name in ("mean", "log_spread")}
    wanted = moments(example)
    assert np.mean(found["mean"]) == pytest.approx(wanted["mean"][0], abs=0.3)
    assert np.std(found["mean"]) == pytest.approx(wanted["mean"][1], abs=0.3)
    assert np.mean(np.exp(found["log_spread"])) == pytest.approx(wanted["spread"][0], abs=0.3)


def test_it_tells_what_it_found(example, capsys):
    example.main(["--draws", "100"])
    said = capsys.readouterr().out
    assert said.startswith("3,200 draws in ")
    assert "effect in school A" in said
