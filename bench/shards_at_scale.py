"""A simulation of one step over shards on a cluster: a scheduler, workers that straggle and die, and a tree of sums."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Costs:
    """Seconds: of a step as such, of a task in the scheduler, of a byte that is made, sent or summed.

    The others are not measured here, but assumed of a cluster: the latency of its network, a byte on the wire, and how
    long it takes until a dead worker is missed.
    """

    step: float
    task: float
    byte: float
    latency: float = 1e-3
    wire: float = 1 / 1.25e9  # ten gigabits per second
    missed: float = 5.0


class Plan(NamedTuple):
    """A cluster and a job: ``seconds`` of one shard, ``slow`` of all tasks take ``times`` as long.

    ``life`` is the mean time in seconds until a worker dies.
    """

    workers: int
    shards: int
    group: int
    seconds: float
    size: int = 1_000_000
    fan_in: int = 8
    slow: float = 0.01
    times: float = 3.0
    life: float = 30 * 86400.0
    clusters: int = 1


class Outcome(NamedTuple):
    """Seconds of the step, the share of them that workers compute, what most time is lost to, tasks done again."""

    seconds: float
    busy: float
    waits_for: str
    again: int


CLUSTERS = (
    *(Plan(n, 4 * n, 1, 1.0) for n in (10, 100, 1_000, 10_000)),
    *(Plan(n, 4 * n, 4, 1.0) for n in (1_000, 10_000)),
    *(Plan(n, 4 * n, 1, 60.0) for n in (100, 1_000, 10_000)),
    Plan(10_000, 40_000, 1, 1.0, clusters=20),
    Plan(10_000, 40_000, 1, 60.0, clusters=20),
)


def simulated(plan: Plan, costs: Costs, seed: int = 0) -> Outcome:
    """One step; in hierarchies, each cluster sums a block of the tree, and the client sums the blocks."""
    rng = np.random.default_rng(seed)
    parts = [_one_cluster(plan, costs, rng) for _ in range(plan.clusters)]
    ends, again = [end for end, _, _ in parts], sum(n for _, n, _ in parts)
    above = math.ceil(math.log2(plan.clusters)) * (costs.latency + 8 * plan.size * (costs.wire + costs.byte))
    total = costs.step + max(ends) + above
    ideal = plan.shards * plan.seconds / plan.workers
    lost = {
        "the scheduler": costs.task * _tasks(plan) / plan.clusters,
        "stragglers": max(compute for _, _, compute in parts) - ideal,
        "bytes": _depth(plan) * _sum_seconds(plan, costs) + _arrival(plan, costs, plan.workers // plan.clusters),
    }
    return Outcome(total, ideal / total, max(lost, key=lambda name: lost[name]), again)


def _tasks(plan: Plan) -> int:
    """Tasks of a step: blocks of shards, and sums."""
    level = found = -(-plan.shards // plan.group)
    while level > 1:
        level = -(-level // plan.fan_in)
        found += level
    return found


def _depth(plan: Plan) -> int:
    blocks = -(-plan.shards // (plan.group * plan.clusters))
    return math.ceil(math.log(max(blocks, 1), plan.fan_in)) if blocks > 1 else 0


def _sum_seconds(plan: Plan, costs: Costs) -> float:
    """One sum of as many terms as its fan-in has, one of which is there."""
    return costs.latency + (plan.fan_in - 1) * 8 * plan.size * (costs.wire + costs.byte)


def _arrival(plan: Plan, costs: Costs, rank: int) -> float:
    """When parameters are with the worker of this rank: those that have them hand them on."""
    return math.ceil(math.log2(rank + 2)) * (costs.latency + 8 * plan.size * costs.wire)


def _one_cluster(plan: Plan, costs: Costs, rng: np.random.Generator) -> tuple[float, int, float]:
    """When the sum is there, how many tasks were computed again, and the longest that a worker computed."""
    workers, blocks = plan.workers // plan.clusters, -(-plan.shards // (plan.group * plan.clusters))
    length = plan.group * plan.seconds * np.where(rng.random(blocks) < plan.slow, plan.times, 1.0)
    free = [(_arrival(plan, costs, k), k) for k in range(workers)]
    heapq.heapify(free)
    ready, again, work = np.zeros(blocks), 0, np.zeros(workers)
    queue = [(costs.task * (k + 1), k) for k in range(blocks)]  # when the scheduler has sent it, and the block
    heapq.heapify(queue)
    while queue:
        sent, k = heapq.heappop(queue)
        at, worker = heapq.heappop(free)
        start = max(sent + costs.latency, at)
        death = rng.exponential(plan.life)
        if death < length[k]:
            again += 1
            heapq.heappush(queue, (start + death + costs.missed, k))
            heapq.heappush(free, (start + death + costs.missed, worker))
            continue
        ready[k] = start + length[k]
        work[worker] += length[k]
        heapq.heappush(free, (ready[k], worker))
    return _summed(ready, plan, costs, costs.task * blocks), again, float(work.max())


def _summed(ready: NDArray[np.float64], plan: Plan, costs: Costs, scheduled: float) -> float:
    """When the root of the tree is there; the scheduler hands out one sum after the other."""
    clock, level = scheduled, ready
    while len(level) > 1:
        count = -(-len(level) // plan.fan_in)
        padded = np.full(count * plan.fan_in, -np.inf)
        padded[: len(level)] = level
        wanted, above = padded.reshape(count, plan.fan_in).max(axis=1), np.zeros(count)
        for k in np.argsort(wanted):
            clock = max(clock if wanted[k] < clock else 0.0, wanted[k]) + costs.task
            above[k] = clock + _sum_seconds(plan, costs)
        level = above
    return float(level[0])
