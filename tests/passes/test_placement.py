"""What plans of memory mean: the very schedules that are emitted, replayed by the model machine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from retrograd.errors import OptionError
from retrograd.ir.schedule import Machine, Step
from retrograd.ops.structural.sweeps import schedule_of
from retrograd.passes.checkpoint.binomial import binomial_advances
from retrograd.passes.checkpoint.ctz import ctz_states
from retrograd.passes.checkpoint.mixed import mixed_steps
from retrograd.passes.checkpoint.placement import place, place_open

Plan = tuple[Any, ...]
MILLION = 1_000_000


def known(plan: Plan, n: int, tape: int = 0) -> Machine:
    """All that the two sweeps of a known length run; the machine has the slots that the placement speaks of."""
    placed = place(plan, n, tape)

    def steps() -> Iterator[Step]:
        kept = []
        for step in schedule_of(placed.forth):
            yield step
            if step[0] in ("save", "store"):
                kept.append(step[1])
        yield ("back", n - 1, n)
        yield from schedule_of(placed.way, kept)

    disk = plan[2] if plan[0] == "tiered" else 0
    return Machine(n, placed.slots, disk=disk, tapes=tape).run(steps())


def late(plan: Plan, n: int, slots: int) -> Machine:
    """All that the two sweeps of a loop run whose length is found at run time."""
    room, way = place_open(plan)

    def steps() -> Iterator[Step]:
        kept: list[int] = []
        for i, old in zip(range(n), schedule_of(room), strict=False):
            if old >= 0:
                yield ("drop", old, old)
                kept.remove(old)
            if old > -2:
                yield ("save", i, i)
                kept.append(i)
            yield ("advance", i, i + 1)
        yield from schedule_of(way, kept, n)

    return Machine(n, slots).run(steps())


small = pytest.mark.parametrize("n", range(1, 61))


@small
def test_snapshots_take_the_fewest_steps_in_their_slots(n: int) -> None:
    for slots in range(1, n + 3):
        machine = known(("snapshots", slots), n)
        assert machine.advances == binomial_advances(n, slots)
        assert machine.peak == min(slots, n - 1)
        assert machine.tape_steps == n


@small
def test_logarithmic_plans_keep_what_they_say(n: int) -> None:
    assert known(("log", "binomial"), n).peak <= len(ctz_states(n)) - 1
    assert known(("log", "ctz"), n).peak <= len(ctz_states(n))
    for how in ("binomial", "ctz"):
        machine = late(("log", how), n, (n - 1).bit_length() + 1)
        assert machine.tape_steps == n


@small
def test_periods_repeat_each_step_at_most_once(n: int) -> None:
    for every in (None, *range(1, n + 2)):
        assert known(("periodic", every), n).advances <= 2 * max(n - 1, 0)
        taped = known(("periodic", every), n, tape=1)
        assert taped.tape_steps == n
        assert taped.advances <= n - 1
        assert taped.peak == place(("periodic", every), n, tape=1).slots <= n
    assert known(("periodic", None), n, tape=1).peak <= 2 * n**0.5
    for every in range(1, n + 2):
        assert late(("periodic", every), n, n).advances <= 2 * n


@small
def test_mixed_plans_take_the_fewest_steps_and_no_more_than_their_slots(n: int) -> None:
    for slots, tape in itertools.product((1, 3, 8, 60), (1, 3)):
        machine = known(("mixed", slots), n, tape)
        assert machine.advances + machine.tape_steps == mixed_steps(n, slots, tape)
        assert machine.peak <= slots


@small
def test_tiers_hold_both_limits_and_take_the_steps_of_all_slots(n: int) -> None:
    for ram, disk in itertools.product((1, 2, 5, 60), repeat=2):
        assert known(("tiered", ram, disk, "", False), n).advances == binomial_advances(n, ram + disk)


@small
def test_slots_for_an_unknown_length_are_never_too_few(n: int) -> None:
    for slots in range(1, n + 2):
        machine = late(("snapshots", slots), n, slots)
        assert machine.peak == min(slots, n)
        early = n < (slots + 1) * (slots + 2) // 2
        assert machine.advances - 1 <= binomial_advances(n, slots) + (1 if early else n)  # the last step runs, too


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "advances"),
    [
        (lambda: known(("snapshots", 20), MILLION), 6_815_960),
        (lambda: known(("snapshots", 1000), MILLION), binomial_advances(MILLION, 1000)),
        (lambda: known(("tiered", 8, 12, "", False), MILLION), 6_815_960),
        (lambda: known(("log", "binomial"), MILLION), 7_124_743),
        (lambda: late(("log", "binomial"), MILLION, 21), 7_124_744),
        (lambda: known(("periodic", None), MILLION), 1_998_998),
    ],
)
def test_a_million_steps_take_the_known_number_of_advances(run: Callable[[], Machine], advances: int) -> None:
    assert run().advances == advances


@pytest.mark.slow
@pytest.mark.parametrize("slots", [20, 100])
def test_a_million_steps_of_unknown_length_in_fixed_slots(slots: int) -> None:
    machine = late(("snapshots", slots), MILLION, slots)
    assert machine.peak == slots
    assert machine.advances + MILLION <= 1.25 * (binomial_advances(MILLION, slots) + MILLION)


def test_a_million_steps_are_too_many_for_a_mixed_plan() -> None:
    with pytest.raises(OptionError, match="takes too long to find"):
        place(("mixed", 20), MILLION)
