"""The simulation of many workers gives what can be said without it, and the model finds the costs that it is given."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bench.shards import Kind, fitted
from bench.shards_at_scale import Costs, Plan, simulated

FREE = Costs(step=0.0, task=0.0, byte=0.0, latency=0.0, wire=0.0)


def plan(**changes: Any) -> Plan:
    return Plan(**{"workers": 10, "shards": 40, "group": 1, "seconds": 2.0, "slow": 0.0, "life": 1e30, **changes})


@pytest.mark.parametrize("workers", [1, 10, 40])
def test_without_costs_only_the_shards_count(workers: int) -> None:
    found = simulated(plan(workers=workers), FREE)
    assert found.seconds == pytest.approx(40 / workers * 2.0)
    assert found.busy == pytest.approx(1.0)
    assert found.again == 0


def test_a_scheduler_that_is_too_slow_is_what_counts() -> None:
    costs = Costs(step=0.0, task=0.1, byte=0.0, latency=0.0, wire=0.0)
    found = simulated(plan(workers=10_000, shards=10_000, seconds=1.0), costs)
    assert found.seconds == pytest.approx(0.1 * (10_000 + 1250 + 157 + 20 + 3 + 1) + 1.0, rel=0.05)
    assert found.waits_for == "the scheduler"
    assert simulated(plan(workers=10_000, shards=10_000, seconds=1.0, group=16), costs).seconds < found.seconds / 2


def test_the_tree_costs_its_depth() -> None:
    costs = Costs(step=0.0, task=0.0, byte=0.0, latency=1.0, wire=0.0)
    seconds = [simulated(plan(workers=512, shards=512, fan_in=n), costs).seconds for n in (2, 8, 512)]
    assert [round(b - a) for a, b in pairwise(seconds)] == [-6, -2]  # nine levels, three, and one


def test_stragglers_and_deaths_cost_time_and_nothing_else() -> None:
    steady = simulated(plan(), FREE)
    slow = simulated(plan(slow=0.2), FREE)
    deadly = simulated(plan(life=20.0), FREE)
    assert slow.seconds > steady.seconds
    assert slow.waits_for == "stragglers"
    assert deadly.again > 0
    assert deadly.seconds > steady.seconds


def test_clusters_of_clusters_relieve_the_scheduler() -> None:
    costs = Costs(step=0.0, task=1e-3, byte=1e-9)
    one, many = (simulated(plan(workers=10_000, shards=40_000, clusters=n), costs).seconds for n in (1, 20))
    assert many < one / 2


def test_a_simulation_is_the_same_again() -> None:
    costs = Costs(step=0.0, task=1e-3, byte=1e-9)
    assert simulated(plan(slow=0.1, life=50.0), costs) == simulated(plan(slow=0.1, life=50.0), costs)


def test_the_model_finds_the_costs_that_were_put_in() -> None:
    kinds = []
    for workers in (1, 2):
        for shards in (2, 8, 32, 128):
            for size in (1000, 10**6):
                tasks = shards + -(-shards // 8) + 2
                seconds = 0.02 + 1e-3 * tasks + 2e-9 * 8 * size * (workers + tasks)
                kinds.append(Kind(workers, shards, size, seconds, tasks, 0, 0))
    costs, error = fitted(kinds)
    np.testing.assert_allclose([costs.step, costs.task, costs.byte], [0.02, 1e-3, 2e-9], rtol=1e-6)
    assert error < 1e-9
