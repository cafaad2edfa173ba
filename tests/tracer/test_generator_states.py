"""The state that is remembered of NumPy's hidden generator is the one that NumPy tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.tracer.generator_states import restore, same_state, state_of

DRAWS: dict[str, Callable[[np.random.RandomState], Any]] = {
    "normal": lambda r: r.normal(),
    "random": lambda r: r.random(),
    "randint": lambda r: r.randint(5),
    "a byte": lambda r: r.randint(0, 255, dtype=np.uint8),
    "binomial": lambda r: r.binomial(10, 0.3),
    "poisson": lambda r: r.poisson(3.0),
    "gamma": lambda r: r.gamma(2.0),
    "shuffle": lambda r: r.shuffle([1, 2, 3]),
    "bytes": lambda r: r.bytes(1),
    "nothing": lambda r: None,
}


def told(r: np.random.RandomState) -> Any:
    return r.get_state(legacy=False)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("half", [False, True])  # whether one of a pair of normal numbers is left
@pytest.mark.parametrize("source", [np.random.MT19937, np.random.PCG64])
def test_a_draw_changes_the_state_and_restoring_undoes_it(name: str, half: bool, source: Any) -> None:
    r = np.random.RandomState(source(7))
    if half:
        r.normal()
    before, plainly = state_of(r), told(r)
    assert same_state(before, plainly)
    assert same_state(state_of(r), plainly)
    first = DRAWS[name](r)
    assert same_state(state_of(r), told(r))
    assert same_state(before, state_of(r)) == (name == "nothing")
    restore(r, before)
    assert same_state(told(r), plainly)
    assert DRAWS[name](r) == first


def test_a_half_pair_at_the_same_place_in_the_stream_is_told_apart() -> None:
    r = np.random.RandomState(3)
    r.normal()
    half = told(r)
    r.normal()  # does not move the stream
    assert not same_state(state_of(r), half)
    r.set_state(half)
    assert same_state(state_of(r), half)


def test_generators_do_not_share_a_state() -> None:
    r, s = np.random.RandomState(1), np.random.RandomState(2)
    for _ in range(3):
        assert same_state(state_of(r), told(r))
        assert same_state(state_of(s), told(s))
    s.set_state(told(r))
    assert same_state(state_of(s), told(r))
    r.random()
    assert not same_state(state_of(s), state_of(r))
