"""Whatever argument of a NumPy function is traced, alone or in a list, the result is NumPy's or a named error.

A traced value that NumPy takes apart would give arrays of objects, or be read as the number that it was when traced.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_same, outcome
from tests.support.table import LENGTHS, Row
from tests.support.table_rows import ROWS

NUMPYS_OWN = ("np.fft.fftfreq(4, s)", "np.fft.rfftfreq(4, s)")  # NumPy asks for the type of the number itself


class Literals(ast.NodeTransformer):
    """Replaces the number at one place of a call by the name ``number``."""

    def __init__(self, place: int) -> None:
        self.place, self.count = place, 0
        self.value: int | float | None = None

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) not in (int, float):
            return node
        self.count += 1
        if self.count - 1 != self.place:
            return node
        self.value = node.value
        return ast.copy_location(ast.Name("number", ast.Load()), node)


def with_number(row: Row, place: int) -> tuple[Callable[..., Any], int | float] | None:
    """The row's call with the number at a place as its first argument; None where there are fewer numbers."""
    literals = Literals(place)
    tree = ast.fix_missing_locations(literals.visit(ast.parse(row.code, mode="eval")))
    if literals.value is None:
        return None
    code = f"lambda number, {', '.join(row.arguments)}: {ast.unparse(tree)}"
    return eval(code, {"np": np}), literals.value


def programs(row: Row) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Programs of one argument: each array of the row alone, and each number in its code."""
    arrays = row.arrays("d", LENGTHS)
    for k, name in enumerate(row.arguments):
        yield name, lambda x, k=k: row.call(*arrays[:k], x, *arrays[k + 1 :]), arrays[k]
    place = 0
    while (found := with_number(row, place)) is not None:
        call, value = found
        given = np.int64(value) if isinstance(value, int) else value
        yield f"number {place} as {given!r}", lambda n, call=call: call(n, *(np.copy(x) for x in arrays)), given
        place += 1


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("row", ROWS, ids=[row.code for row in ROWS])
def test_each_argument_alone_is_traced_right_or_refused(row):
    for name, program, value in programs(row):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = rg.jit(program)
            for point in (value, value + 1 if np.ndim(value) == 0 else value * 1.25):
                expected, found = (outcome(f, [point]) for f in (program, compiled))
                try:
                    if isinstance(found, type):
                        assert not issubclass(found, rg.errors.InternalError)
                        named = issubclass(found, rg.RetrogradError) or row.code in NUMPYS_OWN
                        assert named or isinstance(expected, type)
                    else:
                        assert_same(plain(found), plain(expected), 1e-13)
                except Exception as fault:
                    fault.add_note(f"{row.code} with {name} traced: {found!r}")
                    raise
