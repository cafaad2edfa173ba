"""The benchmark's programs in CasADi compute what they compute in NumPy."""

from __future__ import annotations

import pytest

from bench.systems import in_casadi
from bench.turns import agreeing
from bench.workloads import WORKLOADS
from tests.support.native import needs_compiler

pytest.importorskip("casadi")
pytestmark = [pytest.mark.oracle, needs_compiler]
QUICK = ["rosenbrock-2", "rosenbrock-100", "scalar-chain", "logsumexp"]


@pytest.mark.parametrize("row", QUICK)
def test_value_and_gradient(row: str) -> None:
    assert agreeing(WORKLOADS[row], ["native", "casadi"]) == ["native", "casadi"]


def test_each_row_is_one_of_the_benchmark() -> None:
    assert in_casadi.ROWS.keys() <= WORKLOADS.keys()
