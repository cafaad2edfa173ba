"""The benchmark's rows: gradients written by hand are those of the plain functions, and calls leave nothing behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.contestants import takes_part
from bench.turns import compare
from bench.workload import Workload, leaves
from bench.workloads import WORKLOADS

LARGE = {"heat-512", "sde"}
SMOOTH = {"attention", "layernorm", "softmax"}  # in float32; what the others have from a relu may hang on the rounding
ROWS = [
    pytest.param(workload, id=name, marks=[pytest.mark.slow] if name in LARGE else [])
    for name, workload in WORKLOADS.items()
    if workload.by_hand
]


def arrays(tree: Any) -> list[Any]:
    """Every leaf as an array."""
    return [np.asarray(leaf) for leaf in leaves(tree)]


@pytest.mark.parametrize("workload", ROWS)
def test_the_gradient_by_hand_is_retrograds_and_stays_as_it_is(workload: Workload) -> None:
    assert workload.by_hand
    arguments, again = workload.inputs(), workload.inputs()
    first = arrays(workload.by_hand(*arguments))
    before = [array.copy() for array in first]
    second = arrays(workload.by_hand(*again))
    for given, given_again in zip(arrays(arguments), arrays(again), strict=True):
        np.testing.assert_array_equal(given, given_again)  # by a fresh copy: no call wrote into its arguments
    for one, copy, other in zip(first, before, second, strict=True):
        np.testing.assert_array_equal(one, copy)
        np.testing.assert_array_equal(one, other)
        assert not np.shares_memory(one, other)

    function = workload.in_retrograd(rg) if workload.in_retrograd else workload.function
    found = arrays(rg.value_and_grad(function, argnums=workload.argnums)(*arguments))
    compare(workload, found, first)
    if workload.name in SMOOTH:
        for one, other in zip(found, first, strict=True):
            assert np.linalg.norm(one - other) < 1e-5 * np.linalg.norm(other)
    compare(workload, [np.asarray(workload.function(*arguments))], first[:1])


def test_autograd_takes_no_part_where_arrays_are_written() -> None:
    assert not takes_part("autograd", WORKLOADS["stencil"])
    assert not takes_part("hand", WORKLOADS["kernel-lu"])
    assert takes_part("hand", WORKLOADS["stencil"])
