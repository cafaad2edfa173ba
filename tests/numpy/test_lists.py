"""Every row of the table of NumPy that takes nested lists takes nested lists of traced numbers, too."""

from __future__ import annotations

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
