"""Every function of the table of NumPy goes into files, and gives there every bit of the compiled call."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.export.committed import exported
from retrograd.export.frozen import freeze
from retrograd.export.loading import LoadedFunction
from retrograd.export.saving import from_bytes, saved_form, to_bytes
from retrograd.export.written_module import run_module
from tests.export.alone import bits
from tests.support.table import LENGTHS, Row
from tests.support.table_rows import ROWS

LAYOUTS = {"in C order": lambda x: x, "in another order": lambda x: x.T.copy().T}


def check_files(f: Any, args: list[Any]) -> bool:
    """Compare a call with the module and the saved function; whether there is such a call, whose result is data."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            wanted = bits(f(*args))
            made = exported("made.py", f, args, {})
        except (rg.RetrogradError, ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError):
            return False
        assert bits(run_module(made.text, made.arrays)[made.function](*args)) == wanted
        saved = from_bytes(to_bytes(saved_form(freeze(f, args, {}, "saved"), "0.1.0")))
        assert bits(LoadedFunction(saved).compiled(*args)) == wanted
    return True


def total(row: Row) -> Any:
    return lambda *args: sum(np.sum(np.real(x)) for x in rg.tree.leaves(row.call(*args)))


@pytest.mark.sampled(80)
@pytest.mark.parametrize("row", ROWS, ids=[row.code for row in ROWS])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_calls_and_gradients_go_into_files(row: Row, layout: str) -> None:
    for dtype in "dfD":
        args = [LAYOUTS[layout](x) for x in row.arrays(dtype, LENGTHS)]
        there = check_files(rg.jit(row.call), args)
        if dtype == "d":
            assert there or row.derivative == "facts" or row.code == "v.choose([v, w])"  # which is for integers
            check_files(rg.grad(total(row), argnums=tuple(range(len(args)))), args)
