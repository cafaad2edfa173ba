"""Every row of the table of NumPy that takes nested lists takes nested lists of traced numbers, and other sequences."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_same, outcome
from tests.support.table import LENGTHS, Row
from tests.support.table_rows import ROWS

SPLITS = ("np.hsplit", "np.dsplit")  # of a list, NumPy takes the length of the first axis for that of the one it splits
TAKEN = [row for row in ROWS if not row.code.startswith(SPLITS)]
TAKEN = [
    row for row in TAKEN if not isinstance(outcome(row.call, [x.tolist() for x in row.arrays("d", LENGTHS)]), type)
]


@pytest.mark.parametrize("row", TAKEN, ids=[row.code for row in TAKEN])
def test_nested_lists_of_traced_numbers_are_arrays(row: Row) -> None:
    lists = [x.tolist() for x in row.arrays("d", LENGTHS)]
    assert_same(rg.jit(row.call)(*lists), row.call(*lists))


class Numbered:
    """A sequence as NumPy sees it: it has a length and elements."""

    def __init__(self, items: Any) -> None:
        self.items = list(items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, k: int) -> Any:
        return self.items[k]


# a deque has methods of its own, np.block takes lists apart itself, and these multiply a number and a sequence
OTHERS = ("x.", "np.block", "np.polynomial.legendre.legval", "np.polynomial.hermite")
OF_SEQUENCES = [row for row in TAKEN if not row.code.startswith(OTHERS)]
SEQUENCES = (collections.deque, collections.UserList, Numbered)


@pytest.mark.parametrize("row", OF_SEQUENCES, ids=[row.code for row in OF_SEQUENCES])
def test_every_sequence_of_traced_numbers_is_an_array(row: Row) -> None:
    lists = [x.tolist() for x in row.arrays("d", LENGTHS)]
    for kind in SEQUENCES:

        def call(*lists: Any, kind: Any = kind) -> Any:
            return row.call(*map(kind, lists))

        expected = outcome(call, lists)
        if not isinstance(expected, type):
            assert_same(rg.jit(call)(*lists), expected)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_a_moving_window_has_a_gradient(kind: Any) -> None:
    def energy(x: Any) -> Any:
        window = collections.deque(maxlen=3)
        for element in x:
            window.append(element)
        return np.sum(np.array(kind(window)) ** 2) + x @ kind([0.0, *window]) + np.interp(1.5, [0, 1, 2], kind(window))

    rg.check_grads(energy, (np.arange(4.0),), order=2)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_a_sequence_from_outside_may_change(kind: Any) -> None:
    held = kind([1.0, 2.0, 3.0])
    uses = {
        "alone": lambda x: np.sum(x * np.array(held)),
        "nested": lambda x: np.sum(x * np.array([held, held])),
        "operator": lambda x: x @ held,
        "beside": lambda x: np.sum(np.concatenate([x, held]) ** 2),
    }
    x, compiled = np.array([0.5, 1.0, 2.0]), {name: rg.jit(f) for name, f in uses.items()}
    for last in (3.0, 5.0, 7.0):
        (held.items if kind is Numbered else held)[2] = last
        for name, f in uses.items():
            assert compiled[name](x) == compiled[name](x) == f(x)
