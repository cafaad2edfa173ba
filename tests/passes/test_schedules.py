"""Schedules reach the closed forms, stay in their slots after every action, and leave nothing stored."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from retrograd.ir.embedded import EMBEDDED
from retrograd.ir.embedded_functions import EmbeddedFunction, function_of
from retrograd.ir.schedule import Machine, Step
from retrograd.passes.checkpoint.binomial import binomial, binomial_advances, binomial_states, keeping
from retrograd.passes.checkpoint.ctz import ctz, ctz_room, ctz_states
from retrograd.passes.checkpoint.mixed import mixed, mixed_steps
from retrograd.passes.checkpoint.online import online_room
from retrograd.passes.checkpoint.periodic import period, periodic_slots

KNOWN = {
    (5, 1): 10,
    (5, 2): 6,
    (10, 1): 45,
    (10, 2): 20,
    (10, 3): 15,
    (10, 4): 14,
    (10, 9): 9,
    (16, 4): 27,
    (16, 5): 25,
    (20, 3): 45,
    (50, 7): 105,
    (56, 5): 140,
    (100, 3): 490,
    (100, 5): 316,
    (100, 8): 245,
    (100, 10): 222,
    (128, 9): 318,
    (225, 15): 522,
    (250, 25): 473,
    (500, 4): 3213,
    (1000, 5): 6284,
    (1000, 10): 3636,
    (1000, 20): 2747,
    (1024, 10): 3755,
    (10000, 10): 57624,
    (10000, 100): 24747,
    (13465, 116): 33374,
}


def online_states(n: int, slots: int) -> tuple[int, ...]:
    """The states that are kept when n steps have run."""
    kept: list[int] = []
    for i, old in zip(range(n), online_room(slots), strict=False):
        if old >= 0:
            kept.remove(old)
        if old >= -1:
            kept.append(i)
    return tuple(kept)


def swept(n: int, states: Any, reverse: Any, *args: int) -> Iterator[Step]:
    """A whole schedule: a first sweep that keeps ``states``, the last step, and the way back."""
    kept = [i for i in states if i < n - 1]
    if n:
        yield from keeping(kept, n - 1)
        yield ("back", n - 1, n)
        yield from reverse(kept, n - 1, *args)


def offline(n: int, slots: int) -> Machine:
    return Machine(n, slots).run(swept(n, binomial_states(n, slots), binomial, slots))


def repeated(machine: Machine) -> int:
    """Advances that ran again."""
    return machine.advances - max(machine.n - 1, 0)


@pytest.mark.parametrize(("n", "slots"), KNOWN)
def test_binomial_schedules_have_the_known_number_of_advances(n: int, slots: int) -> None:
    assert binomial_advances(n, slots) == KNOWN[n, slots] == offline(n, slots).advances


@pytest.mark.slow
def test_a_million_steps_in_twenty_slots() -> None:
    assert offline(1_000_000, 20).advances == binomial_advances(1_000_000, 20) == 6815960


@pytest.mark.parametrize("n", range(61))
def test_binomial_schedules_reach_the_closed_form_for_all_small_sizes(n: int) -> None:
    best = [[0.0] * (n + 1) for _ in range(n + 2)]
    for m in range(2, n + 1):
        best[0][m] = float("inf")
        for c in range(1, n + 2):
            best[c][m] = min(k + best[c - 1][m - k] + best[c][k] for k in range(1, m))
    for slots in range(1, n + 2):
        machine = offline(n, slots)
        assert machine.advances == binomial_advances(n, slots) == best[slots][n]
        assert machine.peak <= slots


@given(st.integers(2, 300), st.data())
@settings(deadline=None, max_examples=60)
def test_binomial_placement_goes_on_from_any_kept_states(n: int, data: Any) -> None:
    slots = data.draw(st.integers(1, 20))
    states = data.draw(st.sets(st.integers(1, n - 1), max_size=slots - 1))
    machine = Machine(n, slots).run(swept(n, sorted({0, *states}), binomial, slots))
    assert machine.advances >= binomial_advances(n, slots)


CTZ = {8: 4, 10: 5, 16: 14, 100: 221, 1000: 3780, 1024: 3842, 10000: 52830}
CTZ_BINOMIAL = {100: 187, 128: 246, 1000: 2945, 1024: 2997, 4096: 14498, 10000: 37874}


@pytest.mark.parametrize(("n", "states"), [(8, (0, 4, 6, 7)), (16, (0, 8, 12, 14, 15)), (32, (0, 16, 24, 28, 30, 31))])
def test_the_states_kept_by_trailing_zeros(n: int, states: tuple[int, ...]) -> None:
    assert ctz_states(n) == states


@pytest.mark.parametrize("n", [*range(1, 130), 1000, 1023, 1024, 1025])
def test_trailing_zeros_keep_a_logarithm_of_states_at_every_moment(n: int) -> None:
    assert len(ctz_states(n)) == (n - 1).bit_length() + 1 or n == 1
    Machine(n, len(ctz_states(n))).run(swept(n, ctz_states(n), ctz))


@pytest.mark.parametrize("n", CTZ)
def test_replaying_by_trailing_zeros_takes_the_known_number_of_steps(n: int) -> None:
    slots = len(ctz_states(n))
    assert repeated(Machine(n, slots).run(swept(n, ctz_states(n), ctz))) == CTZ[n]


@pytest.mark.parametrize("k", range(2, 12))
def test_replaying_a_power_of_two_follows_the_formula(k: int) -> None:
    machine = Machine(2**k, k + 1).run(swept(2**k, ctz_states(2**k), ctz))
    assert repeated(machine) == 2**k * (2 * k - 5) // 4 + 2


@pytest.mark.parametrize("n", CTZ_BINOMIAL)
def test_binomial_placement_in_the_slots_of_trailing_zeros(n: int) -> None:
    slots = len(ctz_states(n)) - 1  # the working state has one of them
    machine = Machine(n, slots).run(swept(n, ctz_states(n), binomial, slots))
    assert repeated(machine) == CTZ_BINOMIAL[n]


@pytest.mark.parametrize("n", range(2, 400, 7))
def test_logarithmic_memory_costs_little_more_than_knowing_the_length(n: int) -> None:
    slots = len(ctz_states(n)) - 1
    machine = Machine(n, slots).run(swept(n, ctz_states(n), binomial, slots))
    total, best = (t + n for t in (machine.advances, binomial_advances(n, slots)))
    assert total <= 1.143 * best


@pytest.mark.parametrize(("n", "slots", "bound"), [(1000, 10, 3597), (1000, 20, 1967), (10000, 100, 14950)])
def test_an_unknown_number_of_steps_in_fixed_slots_stays_below_the_known_bounds(n: int, slots: int, bound: int) -> None:
    machine = Machine(n, slots).run(swept(n, online_states(n, slots), binomial, slots))
    assert repeated(machine) <= bound


@pytest.mark.parametrize("slots", range(1, 13))
def test_early_online_schedules_are_optimal_up_to_one_step(slots: int) -> None:
    for n in range(1, (slots + 1) * (slots + 2) // 2):
        machine = Machine(n, slots).run(swept(n, online_states(n, slots), binomial, slots))
        assert machine.advances <= binomial_advances(n, slots) + 1


def test_the_states_kept_of_an_unknown_number_of_steps() -> None:
    assert online_states(10, 3) == (0, 4, 7)


@pytest.mark.parametrize("slots", [1, 2, 3, 7])
def test_online_schedules_hold_their_slots_at_every_length(slots: int) -> None:
    for n in range(200):
        assert len(online_states(n, slots)) == min(n, slots)
        Machine(n, slots).run(swept(n, online_states(n, slots), binomial, slots))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 99, 100, 101, 10_000])
def test_a_period_of_the_root_repeats_each_step_at_most_once(n: int) -> None:
    every = period(n)
    slots = periodic_slots(n, every)
    machine = Machine(n, slots).run(swept(n, range(0, n, every), binomial, slots))
    assert repeated(machine) <= n
    assert slots <= 2 * np.sqrt(n) + 1


@pytest.mark.parametrize(("n", "every"), [(20, 1), (20, 3), (20, 19), (20, 20), (20, 50), (7, 2)])
def test_any_period_is_reversed_with_one_repetition(n: int, every: int) -> None:
    slots = periodic_slots(n, every)
    machine = Machine(n, slots).run(swept(n, range(0, n, every), binomial, slots))
    assert repeated(machine) <= n


def plain_mixed(n: int, slots: int) -> float:
    """The recurrence as it was published, without weights."""
    p = {(m, s): float(m) for s in range(slots + 1) for m in range(1, s + 2)}
    for m in range(2, n + 1):
        p[m, 1] = m * (m + 1) / 2 - 1
    for s, m in itertools.product(range(2, slots + 1), range(1, n + 1)):
        if (m, s) not in p:
            p[m, s] = min(1 + p[m - 1, s - 1], *(i + p[i, s] + p[m - i, s - 1] for i in range(2, m)))
    return p[n, slots]


@pytest.mark.parametrize(("n", "slots", "steps"), [(10, 3, 19), (100, 5, 352), (100, 10, 237), (250, 25, 486)])
def test_mixed_schedules_take_the_known_number_of_steps(n: int, slots: int, steps: int) -> None:
    machine = Machine(n, slots).run(mixed(n, slots))
    assert machine.advances + machine.tape_steps == steps == mixed_steps(n, slots)


@pytest.mark.parametrize("slots", range(1, 8))
def test_mixed_schedules_follow_the_published_recurrence(slots: int) -> None:
    for n in range(1, 30):
        assert mixed_steps(n, slots) == plain_mixed(n, slots)


@pytest.mark.parametrize("tape", [1, 2, 5])
def test_heavier_residuals_take_more_of_the_slots(tape: int) -> None:
    for n, slots in itertools.product((0, 1, 2, 9, 40), (1, 4, 9)):
        machine = Machine(n, slots, tapes=tape).run(mixed(n, slots, tape))
        assert machine.advances + machine.tape_steps == mixed_steps(n, slots, tape)
        assert mixed_steps(n, slots, tape) <= binomial_advances(n, slots) + n


PLACERS = sorted(
    n
    for n, part in EMBEDDED.items()
    if isinstance(part, EmbeddedFunction) and n not in {"in_blocks", "in_steps", "workspace"}
)


@pytest.mark.parametrize("name", PLACERS)
def test_placers_are_self_contained_source(name: str) -> None:
    scope: dict[str, Any] = {}
    exec("\n\n".join(EMBEDDED[name].sources), scope)
    args = {
        "binomial": ((0, 6, 9), 14, 4),
        "binomial_states": (15, 4),
        "ctz": (ctz_states(20), 19),
        "ctz_room": (0,),
        "keeping": ((0, 3), 9),
        "online_room": (4,),
        "periodic": ((0, 5, 10), 12, 5),
        "periodic_room": (3,),
        "periodic_replay": ((0, 5), 10, 12),
        "periodic_taping": ((0, 5, 10), 12),
        "shrinking": (ctz_states(20), 20),
        "scheduled": ("save 0 0, advance 0 3",),
        "split": (15, 4),
        "tiering": ([("save", 0, 0), ("advance", 0, 2), ("load", 0, 0), ("drop", 0, 0)], (), 1),
    }[name]
    found, expected = scope[name](*args), function_of(name)(*args)
    if name == "split":
        assert found == expected
    else:
        assert list(itertools.islice(found, 50)) == list(itertools.islice(expected, 50))


def test_rooms_agree_with_the_states_that_they_leave() -> None:
    for room, n in itertools.product((ctz_room(0), online_room(3)), (30,)):
        kept: list[int] = []
        for i, old in zip(range(n), room, strict=False):
            kept = [k for k in kept if k != old] + ([i] if old > -2 else [])
            assert kept == sorted(set(kept))
