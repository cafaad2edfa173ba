"""Schedules are data; the model machine replays them and refuses what could not be run."""

from __future__ import annotations

import pytest

from retrograd.errors import InternalError
from retrograd.ir.schedule import Action, Machine, Schedule


def keep_everything(n: int) -> Schedule:
    """The schedule without recomputation: every state is kept. Needs n slots."""
    forward = [a for i in range(n) for a in (Action("save", i, i), Action("advance", i, i + 1))]
    backward = [
        a for i in reversed(range(n)) for a in (Action("load", i, i), Action("drop", i, i), Action("back", i, i + 1))
    ]
    return (*forward[:-1], *backward)


def schedule(text: str) -> Schedule:
    """``"save 0, advance 0 3, ..."`` as actions."""
    actions = []
    for item in text.split(", "):
        verb, *numbers = item.split()
        i, j = (*map(int, numbers), int(numbers[0]))[:2]
        actions.append(Action(verb, i, i + 1 if verb == "back" else j))
    return tuple(actions)


BINOMIAL_5_2 = schedule(
    "save 0, advance 0 3, save 3, advance 3 4, back 4, load 3, drop 3, back 3, "
    "load 0, advance 0 1, save 1, advance 1 2, back 2, load 1, drop 1, back 1, load 0, drop 0, back 0"
)


@pytest.mark.parametrize("n", range(9))
def test_keeping_everything_advances_each_step_but_the_last_once(n: int) -> None:
    machine = Machine(n, n).run(keep_everything(n))
    assert (machine.advances, machine.peak) == (max(n - 1, 0), n)


def test_keeping_everything_needs_as_many_slots_as_steps() -> None:
    with pytest.raises(InternalError, match="4 states in 3 slots"):
        Machine(4, 3).run(keep_everything(4))


def test_a_binomial_schedule_of_five_steps_in_two_slots_advances_six_times() -> None:
    machine = Machine(5, 2).run(BINOMIAL_5_2)
    assert (machine.advances, machine.peak, machine.kept) == (6, 2, set())


def test_one_slot_is_quadratic() -> None:
    text = "save 0, advance 0 4, back 4, load 0, advance 0 3, back 3, load 0, advance 0 2, back 2, "
    machine = Machine(5, 1).run(schedule(text + "load 0, advance 0 1, back 1, load 0, drop 0, back 0"))
    assert (machine.advances, machine.peak) == (10, 1)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("advance 1 2", "advance 1 2 from state 0"),
        ("advance 0 0", "advance 0 0"),
        ("advance 0 4", "advance 0 4"),
        ("save 1", "save 1 at state 0"),
        ("save 0, save 0", "save 0 at state 0"),
        ("save 0, advance 0 1, save 1, advance 1 2, save 2", "3 states in 2 slots"),
        ("load 0", "load 0, which is not kept"),
        ("drop 0", "drop 0, which is not kept"),
        ("save 0, drop 0, load 0", "load 0, which is not kept"),
        ("back 0", "back 0 with adjoint 3"),
        ("save 0, advance 0 2, back 2, back 1", "back 1"),
        ("save 0, advance 0 2, back 2, load 0, back 0", "back 0 with adjoint 2"),
        ("save 0, advance 0 2, back 2, advance 2 3", "advance 2 3 from state None"),
        ("save 0, advance 0 2, back 2, save 2", "save 2 at state None"),
        ("save 0, advance 0 2, back 2, load 0, advance 0 1, back 1, load 0, back 0", r"states \[0\] are left stored"),
        ("save 0, advance 0 2, back 2, load 0, drop 0", "stops at state 2, not at 0"),
    ],
)
def test_an_action_that_cannot_be_carried_out_is_refused(text: str, what: str) -> None:
    with pytest.raises(InternalError, match=what):
        Machine(3, 2).run(schedule(text))


def test_an_empty_schedule_reverses_no_step() -> None:
    assert Machine(0, 0).run(()).advances == 0
    with pytest.raises(InternalError, match="stops at state 1"):
        Machine(1, 1).run(())


@pytest.mark.parametrize("at", range(len(BINOMIAL_5_2)))
def test_no_action_of_a_good_schedule_can_be_left_out_unnoticed(at: int) -> None:
    with pytest.raises(InternalError):
        Machine(5, 2).run(BINOMIAL_5_2[:at] + BINOMIAL_5_2[at + 1 :])
