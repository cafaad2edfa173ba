"""Programs of vision and of long sequences: their gradients are those of differences and of the NumPy target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workload import leaves
from bench.workloads import WORKLOADS
from tests.support.native import needs_compiler

NAMES = ["bundle", "hand", "long-lstm"]


def gradient(name: str, backend: str) -> tuple[Any, list[Any]]:
    workload = WORKLOADS[name]
    function = workload.in_retrograd(rg) if workload.in_retrograd else workload.function
    value, slopes = rg.value_and_grad(function, argnums=workload.argnums, backend=backend)(*workload.inputs())
    return value, leaves(slopes)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_differences(name: str) -> None:
    """Along a random direction in each argument, by central differences of the plain function in two sizes."""
    workload, rng = WORKLOADS[name], np.random.default_rng(1)
    args = workload.inputs()
    value, slopes = gradient(name, "numpy")
    assert value == pytest.approx(workload.function(*args), rel=1e-12)
    assert isinstance(workload.argnums, tuple)
    for k, slope in zip(workload.argnums, slopes, strict=True):
        along = rng.standard_normal(args[k].shape) * (1.0 + np.abs(args[k]))
        along /= np.linalg.norm(along)
        steps = []
        for h in (2e-4, 1e-4):
            ahead, behind = ((*args[:k], args[k] + sign * h * along, *args[k + 1 :]) for sign in (1, -1))
            steps.append((workload.function(*ahead) - workload.function(*behind)) / (2 * h))
        extrapolated = (4 * steps[1] - steps[0]) / 3
        assert np.vdot(slope, along) == pytest.approx(extrapolated, rel=1e-5, abs=1e-9 * np.linalg.norm(slope) + 1e-11)


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_targets_agree(name: str) -> None:
    value, slopes = gradient(name, "native")
    expected, others = gradient(name, "numpy")
    assert value == pytest.approx(expected, rel=1e-12)
    for slope, other in zip(slopes, others, strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11 * np.linalg.norm(other))
