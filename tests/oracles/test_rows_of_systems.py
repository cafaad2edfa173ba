"""The benchmark's programs in other systems compute what they compute in NumPy."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from bench.contestants import SYSTEMS
from bench.turns import agreeing
from bench.workloads import WORKLOADS
from tests.support.native import needs_compiler

pytestmark = [pytest.mark.oracle, needs_compiler]
QUICK = {
    "casadi": ("rosenbrock-2", "rosenbrock-100", "scalar-chain", "logsumexp"),
    "pytensor": ("rosenbrock-2",),
    "drjit": ("rosenbrock-100", "scalar-chain", "logsumexp", "softmax", "black-scholes-10000", "lorenz-for"),
}
LONG = ("heat-512", "black-scholes-1000000", "gmm-32")  # half a minute and more, or a gigabyte


@pytest.mark.whole
@pytest.mark.parametrize(
    ("system", "row"),
    [
        pytest.param(system, row, marks=() if row in QUICK[system] else pytest.mark.slow)
        for system, rows in SYSTEMS.items()
        for row in rows
        if row not in LONG
    ],
)
def test_value_and_gradient(system: str, row: str) -> None:
    if find_spec(system) is None:
        pytest.skip(f"{system} is not installed")
    assert agreeing(WORKLOADS[row], ["native", system]) == ["native", system]


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_row_is_one_of_the_benchmark(system: str) -> None:
    assert SYSTEMS[system].keys() <= WORKLOADS.keys()
