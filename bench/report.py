"""The tables of a run: times, and ratios with the time to compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from bench import table
from bench.contestants import COMPILERS
from bench.turns import Times
from bench.workloads import WORKLOADS

RIVALS = ("jax", "torch", "autograd", "hand")
NATIVE_RIVALS = ("jax", "retrograd", "c")


def report(results: Mapping[str, Times], contestants: Sequence[str], *, markdown: bool) -> str:
    """`results` are the times of each workload by its name."""
    rivals = [rival for rival in RIVALS if rival in contestants]
    natives = [rival for rival in NATIVE_RIVALS if rival in contestants and "native" in contestants]
    compilers = [compiler for compiler in COMPILERS if compiler in contestants]
    in_seconds = table.render(
        ["median [minimum]", *contestants],
        [
            [WORKLOADS[name].title, *(time_cell(times, contestant) for contestant in contestants)]
            for name, times in results.items()
        ],
        markdown=markdown,
    )
    in_ratios = table.render(
        [
            "ratio of medians [of minima]",
            *(f"retrograd / {rival}" for rival in rivals),
            *(f"native / {rival}" for rival in natives),
            "gradient / function",
            *(f"{compiler} compiles in" for compiler in compilers),
        ],
        [
            [
                WORKLOADS[name].title,
                *(ratio_cell(times, "retrograd", rival) for rival in rivals),
                *(ratio_cell(times, "native", rival) for rival in natives),
                ratio_cell(times, "retrograd", "function"),
                *(ready_cell(times, compiler) for compiler in compilers),
            ]
            for name, times in results.items()
        ],
        markdown=markdown,
    )
    return f"{in_seconds}\n\n{in_ratios}"


def time_cell(times: Times, contestant: str) -> str:
    """Median of the rounds' medians and the least time of all."""
    if contestant not in times:
        return table.MISSING
    turns = times[contestant]
    return table.time(median(turn.median for turn in turns), min(turn.minimum for turn in turns)) if turns else "failed"


def ratio_cell(times: Times, ours: str, theirs: str) -> str:
    """Median of the rounds' ratios of medians, and the ratio of the least times."""
    above, below = times.get(ours), times.get(theirs)
    if not above or not below:
        return table.MISSING
    ratios = [a.median / b.median for a, b in zip(above, below, strict=True)]
    return table.ratio(median(ratios), min(turn.minimum for turn in above) / min(turn.minimum for turn in below))


def ready_cell(times: Times, contestant: str) -> str:
    """Median over the rounds of the time from a function to its first result, a later call taken off."""
    turns = times.get(contestant)
    return table.time(median(turn.ready for turn in turns)) if turns else table.MISSING
