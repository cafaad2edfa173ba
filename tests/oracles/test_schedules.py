"""Step counts against the public package checkpoint-schedules, where it is installed."""

from __future__ import annotations

import pytest

from retrograd.ir.schedule import Machine
from retrograd.passes.checkpoint.binomial import binomial_advances
from retrograd.passes.checkpoint.mixed import mixed

pytestmark = pytest.mark.oracle
peer = pytest.importorskip("checkpoint_schedules")

SIZES = [(n, slots) for n in (2, 5, 10, 37, 100, 250) for slots in (1, 2, 5, 10, 25) if slots < n]


def steps(schedule: object) -> int:
    """Forward steps that a schedule of the peer runs."""
    return sum(action.n1 - action.n0 for action in schedule if isinstance(action, peer.Forward))  # type: ignore[attr-defined]  # it is an iterator


@pytest.mark.parametrize(("n", "slots"), SIZES)
def test_binomial_schedules_take_as_many_steps(n: int, slots: int) -> None:
    theirs = steps(peer.MultistageCheckpointSchedule(n, slots, 0))
    assert binomial_advances(n, slots) + n == theirs


@pytest.mark.filterwarnings("ignore:Numba not available:RuntimeWarning")
@pytest.mark.parametrize(("n", "slots"), SIZES)
def test_mixed_schedules_take_as_many_steps(n: int, slots: int) -> None:
    machine = Machine(n, slots).run(mixed(n, slots))
    theirs = steps(peer.MixedCheckpointSchedule(n, slots, storage=peer.StorageType.RAM))
    assert machine.advances + machine.tape_steps == theirs
