"""The benchmark's kernels with loops and writes: gradients against differences, at small sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads import kernels

R = np.random.default_rng(3)
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lu": (kernels.lu, (kernels.regular(6),)),
    "lu by elements": (kernels.lu_by_elements, (kernels.regular(6),)),
    "triangular": (kernels.triangular, (np.tril(kernels.regular(7)), R.standard_normal(7))),
    "gauss seidel": (kernels.gauss_seidel, (R.standard_normal((5, 5)),)),
    "sparse rows": (kernels.sparse_rows, (R.standard_normal(int(kernels.POINTERS[-1])), R.standard_normal(200))),
    "channel flow": (kernels.channel_flow, (R.uniform(0.0, 0.01, (7, 7)), 0.1)),
    "correlation": (kernels.correlation, (R.standard_normal((9, 4)),)),
    "durbin": (kernels.durbin, (0.5 ** np.arange(1.0, 9.0),)),
    "cholesky": (kernels.cholesky, (kernels.positive(6),)),
    "cholesky by rows": (kernels.cholesky_by_rows, (kernels.positive(7),)),
    "n-body": (kernels.n_body, (R.standard_normal((4, 3)), R.standard_normal((4, 3)), np.ones(4))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_kernels_are_slopes(name: str) -> None:
    function, (x, *others) = PROGRAMS[name]
    before = x.copy()
    value, gradient = rg.value_and_grad(function)(x, *others)
    np.testing.assert_array_equal(x, before)
    assert value == pytest.approx(function(x, *others), rel=1e-13)
    along = R.standard_normal(x.shape)
    h = 1e-5 * np.max(np.abs(x))
    slope = (function(x + h * along, *others) - function(x - h * along, *others)) / (2 * h)
    assert np.sum(gradient * along) == pytest.approx(slope, rel=1e-6, abs=1e-9)
