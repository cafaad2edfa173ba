"""Every row of the table of NumPy that takes nested lists takes nested lists of traced numbers, and other sequences."""

from __future__ import annotations

import ast
import collections
import inspect
import re
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


BESIDE = [row for row in ROWS if len(row.arguments) > 1 and not row.code.startswith(SPLITS)]


@pytest.mark.parametrize("row", BESIDE, ids=[row.code for row in BESIDE])
def test_nested_lists_of_traced_numbers_beside_arrays_are_arrays(row: Row) -> None:
    arrays = row.arrays("d", LENGTHS)
    for k, x in enumerate(arrays):
        given = [*arrays[:k], x.tolist(), *arrays[k + 1 :]]
        expected = outcome(row.call, given)
        if not isinstance(expected, type):
            assert_same(rg.jit(row.call)(*given), expected)


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


UFUNC_METHOD = re.compile(r"\.(reduce|accumulate|reduceat)\(")  # see the limits


def by_keyword(row: Row) -> Any:
    """The call of a row with every argument by its name; None if NumPy's function has no names for them."""
    call: Any = ast.parse(row.code, mode="eval").body
    if not isinstance(call, ast.Call) or not re.fullmatch(r"np[.\w]+", ast.unparse(call.func)):
        return None
    try:
        names = list(inspect.signature(eval(ast.unparse(call.func), {"np": np})).parameters)
    except ValueError:
        return None
    call.keywords[:0] = [ast.keyword(name, x) for name, x in zip(names, call.args, strict=False)]
    call.args = []
    return eval(f"lambda {', '.join(row.arguments)}: {ast.unparse(call)}", {"np": np})


@pytest.mark.parametrize("row", ROWS, ids=[row.code for row in ROWS])
def test_arrays_and_lists_of_traced_numbers_may_be_given_by_keyword(row: Row) -> None:
    call = by_keyword(row)
    if call is None or row.code.startswith((*SPLITS, "np.array(")) or UFUNC_METHOD.search(row.code):
        return
    arrays = row.arrays("d", LENGTHS)
    for given in (arrays, [x.tolist() for x in arrays]):
        expected = outcome(call, given)
        if not isinstance(expected, type):
            assert_same(rg.jit(call)(*given), expected)


X, EYE, MASKS = np.array([1.0, 2.0]), np.eye(2), [np.array([True, False]), np.array([False, True])]
BESIDE_ARRAYS: dict[str, Any] = {
    "solve": lambda x: np.linalg.solve(EYE, [x[0], x[1]]),
    "select": lambda x: np.select(MASKS, [[x[0], 1.0], (x[1], x[0])], 0.0),
    "select, one list": lambda x: np.select([x > 1.5, x > 0.5], [x, [x[1], 3.0]], 0.5),
    "select, the default": lambda x: np.select([x > 1.5], [x], [x[1], x[0]]),
    "choose": lambda x: np.choose([0, 1], [x, [1.0, x[0]]]),
    "einsum": lambda x: np.einsum("i,i", x, (x[0], 2.0)),
    "einsum with lists of axes": lambda x: np.einsum(x, [0], [x[0], 2.0], [0]),
    "block of a queue": lambda x: np.block(collections.deque([x, 2 * x])),
    "block of queues": lambda x: np.block([collections.deque([x[0], x[1]]), x]),
    "block of a tuple": lambda x: np.block([(x[0], x[1]), x]),
    "unwrap": lambda x: np.unwrap([x[0], 5 * x[0]], period=4 * x[1]) + np.unwrap([x[0], x[1]], discont=x[1]),
    "weights of polyfit": lambda x: np.polyfit([0.0, 1.0, x[0]], [1.0, x[1], 2.0], 1, w=[1.0, x[0], x[1]]),
    "a list of weights beside an array": lambda x: np.polyfit(np.arange(x.size), x, 1, w=list(x)),
    "polyint": lambda x: np.polyint([x[0], 1.0], k=x[1]),
    "isclose": lambda x: x[0] * np.isclose([x[0], 0.2], [x[0], 0.3], atol=x[1]),
    "histogram": lambda x: np.histogram([x[0], 1.0], 2, range=(0.0, x[1] + 3.0))[1],
    "memory": lambda x: x * np.may_share_memory([x[0]], x) + np.shares_memory(x, [x[0], x[1]]),
}


@pytest.mark.parametrize("call", BESIDE_ARRAYS.values(), ids=BESIDE_ARRAYS)
def test_lists_of_traced_numbers_among_other_arguments(call: Any) -> None:
    assert_same(outcome(rg.jit(call), [X]), outcome(call, [X]))


class Backwards(list[Any]):
    """A list that shows its elements from the last to the first, if it is iterated."""

    __iter__ = list.__reversed__  # type: ignore[assignment]  # which is an iterator, too


class Turned(list[Any]):
    """One whose places are counted from the end."""

    def __getitem__(self, k: Any) -> Any:
        return super().__getitem__(-1 - k)


class NumberedBackwards(Numbered):
    """A sequence that does so."""

    def __iter__(self) -> Any:
        return reversed(self.items)


JOINING = [np.array, np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.dstack, np.sum, np.exp]
JOINING += [lambda parts: np.choose([0, 1], parts), lambda parts: np.select([[True, False], [False, True]], parts)]


@pytest.mark.parametrize("kind", [Backwards, Turned, NumberedBackwards])
@pytest.mark.parametrize("join", JOINING)
def test_elements_come_in_the_order_in_which_numpy_asks_for_them(join: Any, kind: Any) -> None:
    call = lambda x: 1.0 * join(kind([x, 2 * x]))  # noqa: E731 - it is called twice
    assert_same(rg.jit(call)(X), call(X))


def written(x: Any, dtype: Any, place: Any) -> Any:
    made = np.zeros(2, dtype)
    made[place] = [1j * x[0], x[1]]
    return made


OF_COMPLEX: dict[str, Any] = {
    "array": lambda x, dtype: np.array([1j * x[0], x[1]], dtype),
    "nested": lambda x, dtype: np.asarray([[1j * x[0], x[1]], (1.0, 2.0)], dtype=dtype),
    "queue": lambda x, dtype: np.array(collections.deque([x[0], 1j * x[1]]), dtype),
    "rows": lambda x, dtype: np.array([1j * x, x], dtype),
    "number": lambda x, dtype: np.array(1j * x[0], dtype),
    "written": lambda x, dtype: written(x, dtype, slice(None)),
    "written at places": lambda x, dtype: written(x, dtype, [1, 0]),
    "written by a mask": lambda x, dtype: written(x, dtype, x > 0.5),
}


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("dtype", [float, np.float32, int, np.uint8, bool, complex])
@pytest.mark.parametrize("how", OF_COMPLEX)
def test_complex_numbers_in_lists_that_become_real(how: str, dtype: Any) -> None:
    call = lambda x: OF_COMPLEX[how](x, dtype)  # noqa: E731 - it is called twice
    assert_same(outcome(rg.jit(call), [X]), outcome(call, [X]))


OPTIONS = {
    "np.diff": lambda x, s: np.diff(x, prepend=[s, 2 * s], append=[s]),
    "np.ediff1d": lambda x, s: np.ediff1d(x, to_begin=[[s], [2 * s]], to_end=(s,)),
    "np.gradient": lambda x, s: np.gradient(x, [s, 2 * s, 3 * s, 5 * s]),
    "np.quantile": lambda x, s: np.quantile(x, [s / 4, s / 8]),
    "np.bincount": lambda x, s: np.bincount([0, 1], weights=[s, 2 * s]),
    "bins of np.histogram": lambda x, s: np.histogram(x, [0, s, 2 * s], weights=x)[0],
    "range of np.histogram": lambda x, s: np.histogram(x, 3, (0, s), density=True, weights=x),
    "range of np.histogram of a list": lambda x, s: np.histogram([0.5, 1.5], 4, range=(-s, s))[1],
    "range of np.histogram_bin_edges": lambda x, s: np.histogram_bin_edges([0.5, 1.5], 4, (-s, s)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_may_be_lists_of_traced_numbers(name: str) -> None:
    call, x = OPTIONS[name], np.array([0.3, 1.7, 0.9, 2.5])
    assert_same(rg.jit(call)(x, 2.2), call(x, 2.2))
    assert_same(rg.jit(lambda s: call(x, s))(2.2), call(x, 2.2))
    rg.check_grads(call, (x, 2.2), order=2)


@pytest.mark.parametrize("end", [-1.0, np.nan, np.inf])
def test_the_range_of_a_histogram_is_checked_at_each_call(end: float) -> None:
    f = rg.jit(lambda x, s: np.histogram(x, 3, (0.0, s)))
    assert_same(f(np.arange(3.0), 2.0), np.histogram(np.arange(3.0), 3, (0.0, 2.0)))
    for call in (f, lambda x, s: np.histogram(x, 3, (0.0, s))):
        with pytest.raises(ValueError, match=r"range|finite"):
            call(np.arange(3.0), end)
