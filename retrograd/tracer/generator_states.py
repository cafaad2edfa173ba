"""The states of random generators: comparable and restorable, to find out whether code has drawn from one.

Each trace asks twice for the state of NumPy's hidden generator. NumPy copies its 624 numbers one by one, which takes
longer than to trace three operations. So the last state is remembered with the bytes that it was read from: those of
the twister, and those of the object around it, which keeps half of a pair of normal numbers. While these bytes are the
same, so is the state.
"""

from __future__ import annotations

from ctypes import string_at
from typing import Any

import numpy as np
from numpy.random import MT19937, Generator, RandomState

TWISTER = 624 * 4 + 4  # bytes of a twister: its numbers, and the position in them
HEAD = object.__basicsize__  # bytes that every object begins with, such as the count of its references
Bytes = tuple[bytes, bytes]

_latest: list[tuple[Bytes, Any]] = []  # the last state of a RandomState, and what it was read from


def state_of(generator: Any) -> Any:
    """The state of a generator; nobody changes it."""
    if isinstance(generator, Generator):
        return generator.bit_generator.state
    now = _bytes_of(generator)
    for known, state in _latest:
        if known == now:
            return state
    state = generator.get_state(legacy=False)
    if now is not None and now == _bytes_of(generator):  # no other thread has drawn meanwhile
        _latest[:] = [(now, state)]
    return state


def _bytes_of(generator: Any) -> Bytes | None:
    """All bytes that the state of a RandomState is read from; None for one with another source or of a subclass."""
    twister = generator._bit_generator if type(generator) is RandomState else None
    if type(twister) is not MT19937:
        return None
    own = string_at(id(generator) + HEAD, RandomState.__basicsize__ - HEAD)
    return own, string_at(twister.ctypes.state_address, TWISTER)


def restore(generator: Any, state: Any) -> None:
    """Set a generator back to a state."""
    if isinstance(generator, Generator):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def same_state(a: Any, b: Any) -> bool:
    """Whether two states of one generator are equal."""
    if a is b:
        return True
    if isinstance(a, dict):
        return all(same_state(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)
