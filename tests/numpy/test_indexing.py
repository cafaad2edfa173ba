"""Reads and writes by index in all of NumPy's forms, and the functions that take or put elements."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import LAYOUTS, assert_differentiable, assert_same, assert_traced, distinct, outcome

s_ = np.s_
ROWS = np.array([2, 0, 2])
PLACES = np.array([4, 1, 2])
COLUMNS = np.array([[0], [3], [-1]])
MASK = np.array([[True, False, True, False], [False, False, False, True], [True, True, False, False]])

# of an array of shape (3, 4, 2)
BASIC: list[Any] = [
    1,
    -1,
    np.int64(2),
    np.int8(0),
    s_[1:],
    s_[::-1],
    s_[::2, 1:],
    s_[0, 1],
    s_[0, 1, 1],
    s_[:, 2],
    s_[..., 0],
    s_[0, ..., 1],
    s_[...],
    s_[()],
    s_[None],
    s_[:, None, 1:],
    s_[1, None, ..., None],
    s_[-1, -2, -1],
    s_[0, 0, 0, ...],
    s_[2:0:-1],
    s_[5:],
    s_[:0],
    s_[1:2, 3:, ::-1],
    s_[::-1, ::-1],
    True,
    s_[True, ...],
    s_[:, True],
    s_[False],
    s_[1, False],
    s_[0, :, True],
    s_[True, True],
    s_[0, ..., True],
    s_[..., 1, True],
    s_[:, True, 1],
    s_[True, 0, None, 1],
    s_[None, 0, 1, ..., False],
    s_[True, ..., np.False_],
]
ARRAYS: list[Any] = [
    ROWS,
    [0, 2],
    [[0, 1], [2, 2]],
    [],
    s_[[1]],
    (ROWS, 1),
    (0, [1, 2]),
    s_[:, [0, 3, 3]],
    s_[:, :, [1, 0]],
    (ROWS, [1, 1, 2]),
    (ROWS, COLUMNS),
    (ROWS, slice(None), [0, 1, 0]),
    (0, slice(None), [0, 1]),
    (slice(1), [3, 0], 1),
    (ROWS, None, [0, 1, 2]),
    (None, ROWS),
    (ROWS, slice(None, None, -1)),
    (slice(None), ROWS, slice(None), None),
    (ROWS, ..., 0),
    (..., [0, 1, 1]),
    ([0, 1], [1, 1], [0, 1]),
    ([[0], [2]], [[1, 3]]),
    np.array(1),
    s_[:, np.array(2)],
    (np.array(0), np.array(1), np.array(1)),
    (np.array(2), ..., np.array(0)),
    (np.array(0), np.array(1), np.array(1), ...),
    MASK,
    MASK[:, 0],
    s_[:, MASK[0]],
    (MASK, 1),
    (MASK[:, 2], 3),
    (MASK[:, 0], [1, 2]),
    (MASK.tolist(), 0),
    np.zeros((3, 4), bool),
    np.ones((3, 4, 2), bool),
    [True, False, True],
    (ROWS.astype(np.uint8), ROWS.astype(np.int32)),
    range(2),
    (..., MASK[0], slice(None)),
    np.zeros((0, 2), int),
]
ALL = {str(i): i for i in (*BASIC, *ARRAYS)}
TRACED: dict[str, tuple[Any, ...]] = {  # functions that make the index, and the integers to make it of
    "number": (lambda i: i, np.int64(1)),
    "negative number": (lambda i: (slice(None), i), np.int64(-1)),
    "numbers": (lambda i, j: (i, j, 0), np.int64(1), np.int64(3)),
    "number and slices": (lambda i: (slice(1, None), i, None), np.int64(2)),
    "number and ellipsis": (lambda i: (i, ..., 1), np.int64(2)),
    "element": (lambda i, j: (i, j, 1, ...), np.int64(2), np.int64(-3)),
    "0-d array": (lambda i: i, np.array(1)),
    "0-d arrays": (lambda i, j: (i, slice(None), j), np.array(1), np.array(-2)),
    "0-d element": (lambda i: (i, i, i), np.array(1)),
    "vector": (lambda i: i, ROWS),
    "vector on the second axis": (lambda i: (slice(None), i), np.array([3, -1, 3])),
    "matrix": (lambda i: i, np.array([[0, 1], [-1, 0]])),
    "vectors": (lambda i, j: (i, j), ROWS, np.array([3, 1, 3])),
    "apart": (lambda i, j: (i, slice(None), j), ROWS, np.array([0, 1, 0])),
    "stretched": (lambda i, j: (i, j), ROWS, COLUMNS),
    "vector and number": (lambda i, j: (i, j), np.int64(0), np.array([3, 1, 3])),
    "list of numbers": (lambda i, j: [i, j, 0], np.int64(2), np.int64(2)),
    "vector of nothing": (lambda i: i, np.zeros(0, int)),
    "computed": (lambda i: (i + 1, np.arange(3)), np.array([0, 1, 0])),
}


def assert_index(make: Any, ints: Any, order: int = 2) -> None:
    """Reads, writes of numbers, rows and parts, and sums in place, by an index that is made of integers."""
    x = distinct((3, 4, 2))
    part = outcome(lambda x: x[make(*ints)], [x])
    v = distinct(np.shape(part), seed=1)

    def read(x: Any, *ints: Any) -> Any:
        return x[make(*ints)]

    def write(x: Any, v: Any, *ints: Any) -> Any:
        y, z = x * 2.0, np.zeros_like(x)
        y[make(*ints)] = v * 3.0
        z[make(*ints)] += np.sin(v)
        y[make(*ints)] *= x[0, 0, 0]
        z[make(*ints)] = 1.5
        return y, z

    def add(x: Any, v: Any, *ints: Any) -> Any:
        y = x * 2.0
        np.add.at(y, make(*ints), v)
        np.subtract.at(y, make(*ints), 0.5)
        return y

    assert_traced(read, x, *ints)
    assert_traced(write, x, v, *ints)
    assert_traced(add, x, v, *ints)
    assert_traced(read, distinct((3, 4, 2), "F"), *ints)
    assert_differentiable(lambda x: read(x, *ints), x, order=order)
    assert_differentiable(lambda x, v: write(x, v, *ints), x, v, order=order)
    assert_differentiable(lambda x, v: add(x, v, *ints), x, v, order=1)


@pytest.mark.parametrize("name", ALL)
def test_an_index_does_what_it_does_in_numpy(name: str) -> None:
    assert_index(lambda: ALL[name], (), order=2 if len(name) % 3 == 0 else 1)


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_index_does_what_it_does_in_numpy(name: str) -> None:
    make, *ints = TRACED[name]
    assert_index(make, ints, order=1)


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_index_is_read_at_each_call(name: str) -> None:
    make, *ints = TRACED[name]
    x, others = distinct((3, 4, 2)), [np.asarray(i * 0 + 1 if i.ndim else 0, i.dtype)[()] for i in ints]

    def both(x: Any, *ints: Any) -> Any:
        y = x * 1.0
        y[make(*ints)] = y[make(*ints)] * x[make(*ints)]
        return y

    compiled, gradient = rg.jit(both), rg.grad(lambda x, *ints: np.sum(np.sin(both(x, *ints))))
    for args in (ints, others):
        given = [np.asarray(i)[...] if isinstance(j, np.ndarray) else i for i, j in zip(args, ints, strict=True)]
        assert_same(compiled(x, *given), both(x, *given))
        expected = rg.grad(lambda x, g=given: np.sum(np.sin(both(x, *g))))(x)
        np.testing.assert_allclose(gradient(x, *given), expected, rtol=1e-12)
    assert compiled.cache_info().misses == 1


def test_the_last_of_repeated_writes_wins() -> None:
    def write(x: Any, v: Any, i: Any) -> Any:
        y = x * 1.0
        y[i] = v
        return y

    x, v = distinct((4,)), distinct((5,), seed=1)
    for index in (np.array([1, 0, 1, 3, 0]), [1, 0, 1, 3, 0], [2, 2, 2, 2, 2], np.array([-1, 3, 0, -4, 1])):
        place = np.asarray(index)
        assert_traced(lambda x, v, i=index: write(x, v, i), x, v)
        assert_traced(write, x, v, place)
        assert_differentiable(lambda x, v, i=index: write(x, v, i), x, v)
        pulled = rg.vjp(lambda x, v, i=place: write(x, v, i), x, v)[1](np.ones(4))[1]
        last = [k == max(j for j in range(5) if place[j] % 4 == place[k] % 4) for k in range(5)]
        np.testing.assert_array_equal(pulled, np.array(last, float))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_make_no_difference(layout: str) -> None:
    x = LAYOUTS[layout](distinct((3, 4)))
    for index in (1, s_[:, ::-1], s_[ROWS], s_[:, [1, 1]], MASK, s_[ROWS, ROWS]):
        assert_traced(lambda x, i=index: x[i], x)
        assert_traced(lambda x, i=index: np.sin(x)[i], x)


@pytest.mark.parametrize("dtype", ["d", "f", "D", "i", "?"])
def test_written_values_are_cast_as_numpy_casts_them(dtype: str) -> None:
    x = (distinct((3, 4)) * 3).astype(dtype)

    def write(x: Any) -> Any:
        y = x.copy()
        y[0] = 2
        y[1, :2] = x[0, 2:]
        y[2] = [True, False, True, True]
        y[:, -1] = np.float32(1.5)
        y[MASK] = x[MASK]
        y[ROWS, 1] = np.arange(3)
        return y

    assert_traced(write, x)


def test_views_by_traced_numbers_are_views() -> None:
    def write(x: Any, i: Any) -> Any:
        y = x * 1.0
        row = y[i]
        column = y[:, i]
        row *= column[:3].sum()
        y[i, i] = 7.0
        row[1:] += column[0]
        return y, row, column

    x = distinct((4, 4))
    for i in (np.int64(2), np.int64(-1)):
        assert_traced(lambda x, i: write(x, i)[0], x, i)
        assert_traced(write, x, i)
    assert_differentiable(lambda x: write(x, np.int64(1)), x)
    assert_differentiable(lambda x: rg.jit(write)(x, np.int64(1)), x, order=1)


def test_a_view_by_a_traced_number_of_plain_numbers_is_traced() -> None:
    def pick(i: Any) -> Any:
        table = np.array([1.0, 4.0, 9.0])
        rows = np.arange(6.0).reshape(3, 2)
        return table[i], rows[i], np.take(LIST, i, axis=0)

    assert_traced(pick, np.int64(1))
    compiled = rg.jit(pick)
    for i in (0, 2):
        assert_same(compiled(np.int64(i)), pick(np.int64(i)))


LIST = np.arange(6.0).reshape(3, 2)

MASKED: dict[str, Any] = {
    "number": lambda y, m, v: (m, 5.0),
    "traced number": lambda y, m, v: (m, v[0]),
    "row": lambda y, m, v: (m[:, 0], v),
    "column": lambda y, m, v: (m[:, :1] & (y > -9), 2.0),
    "part": lambda y, m, v: ((slice(1, None), m[0]), 3.0),
    "columns": lambda y, m, v: ((slice(None), m[0]), v[:3, None]),
    "trailing": lambda y, m, v: ((..., m[1]), v[0]),
    "within a row": lambda y, m, v: ((1, m[1]), v[2]),
    "one": lambda y, m, v: (m, v[:1]),
    "new axis": lambda y, m, v: ((None, m), v[0]),
    "all or nothing": lambda y, m, v: (m[0, 0], v),
}


@pytest.mark.parametrize("name", MASKED)
def test_writes_by_a_traced_mask(name: str) -> None:
    def write(x: Any, v: Any) -> Any:
        y = x * 1.0
        index, value = MASKED[name](y, x > 0, v)
        y[index] = value
        return y

    x, v = distinct((3, 4)), distinct((4,), seed=1)
    assert_traced(write, x, v)
    assert_traced(write, x.astype("f"), v)
    assert_same(rg.jit(write)(-x, v), write(-x, v))
    assert_differentiable(write, x, v)


FUNCTIONS: dict[str, Any] = {
    "take": lambda x: np.take(x, [0, 5, 5]),
    "take axis": lambda x: np.take(x, ROWS, axis=1),
    "take one": lambda x: np.take(x, 1, axis=0),
    "take number": lambda x: np.take(x, 1),
    "take matrix": lambda x: x.take([[0, 1], [2, 0]], axis=0),
    "take wrap": lambda x: np.take(x, [-1, 13, 25], mode="wrap"),
    "take clip": lambda x: np.take(x, [-7, 1, 9], axis=1, mode="clip"),
    "take traced": lambda x: np.take(x, np.argmax(x, axis=0), axis=0),
    "take traced clip": lambda x: np.take(x, np.argmax(x, axis=1) + 1, axis=1, mode="clip"),
    "take of plain numbers": lambda x: np.take(LIST, np.argmin(x, axis=0), axis=0) * x[0, 0],
    "compress": lambda x: np.compress([True, False, True], x, axis=0),
    "compress flat": lambda x: x.compress([False, True, True]),
    "compress method": lambda x: x.compress(MASK[0], axis=1),
    "extract": lambda x: np.extract(MASK, x),
    "choose": lambda x: np.choose([0, 2, 1, 1], x),
    "choose stretched": lambda x: np.choose(np.array([[0], [1], [0]]), [x, 2.0 * x[0]]),
    "choose traced": lambda x: np.choose((x > 0).astype(int), (x, -1.0)),
    "choose wrap": lambda x: np.choose([0, -1, 4, 1], x, mode="wrap"),
    "choose clip": lambda x: (
        np.array([0, 3, 1, -1]).choose(x, mode="clip")
        if isinstance(x, np.ndarray)
        else np.choose([0, 3, 1, -1], x, mode="clip")
    ),
    "choose number": lambda x: np.choose(1, x),
    "ix_": lambda x: x[np.ix_([0, 2], MASK[0])] * x[np.ix_(np.argsort(x[:, 0]), [1, 0])][:2],
    "interp": lambda x: np.interp(np.abs(x), [0.0, 0.6, 1.2, 9.0], x[1]),
    "interp outside": lambda x: np.interp(x, [-0.6, 0.05, 0.6], x[:, 1], left=-1.0, right=x[0, 0]),
    "interp places": lambda x: np.interp([0.33, 0.77, 2.0, -3.0], np.sort(np.abs(x[0])), x[1]),
    "interp number": lambda x: np.interp(0.4, np.sort(np.abs(x[0])), x[1]),
    "interp period": lambda x: np.interp(x, [190.0, -190.0, 350.0, -350.0], x[0], period=360.0),
    "interp of one": lambda x: np.interp(x, [0.05], x[0, :1]),
    "interp of many": lambda x: np.interp(0.9, np.arange(12.0), np.ravel(x)),
}
WRITING: dict[str, Any] = {
    "put": lambda y, x: np.put(y, [0, 5, -1], [1.0, 2.0]),
    "put method": lambda y, x: y.put(3, x[0, 0]),
    "put clip": lambda y, x: np.put(y, [2, 30], x[1], mode="clip"),
    "put traced": lambda y, x: np.put(y, np.argmax(x), x[0] * 2),
    "put in the transpose": lambda y, x: np.put(y.T, [1, 2], x[0]),
    "place": lambda y, x: np.place(y, MASK, [1.0, 2.0]),
    "place traced": lambda y, x: np.place(y, x > 0, [x[0, 0]]),
    "putmask": lambda y, x: np.putmask(y, x > 0, 2 * x),
    "putmask number": lambda y, x: np.putmask(y, MASK, x[0, 1]),
    "putmask cyclic": lambda y, x: np.putmask(y, x > 0, [1.0, 2.0, 3.0]),
    "copyto": lambda y, x: np.copyto(y, x[0]),
    "copyto where": lambda y, x: np.copyto(y[1:], x[:1], where=x[1:] > 0),
    "put_along_axis": lambda y, x: np.put_along_axis(y, np.argsort(x, axis=1), x * 2, axis=1),
    "put_along_axis first": lambda y, x: np.put_along_axis(y, np.argmax(x, axis=0, keepdims=True), 9.0, axis=0),
    "put_along_axis flat": lambda y, x: np.put_along_axis(y, np.array([1, 7]), x[0, :2], axis=None),
    "fill_diagonal": lambda y, x: np.fill_diagonal(y, x[0, 0]),
    "fill_diagonal several": lambda y, x: np.fill_diagonal(y, x[0, :2]),
    "fill_diagonal wrapped": lambda y, x: np.fill_diagonal(y.T, [1, 2, 3], wrap=True),
    "fill_diagonal of the transpose": lambda y, x: np.fill_diagonal(y.T, x[1]),
    "add.at": lambda y, x: np.add.at(y, ROWS, x * x),
    "add.at pairs": lambda y, x: np.add.at(y, (ROWS, [1, 1, 1]), x[:, 0]),
    "add.at traced": lambda y, x: np.add.at(y, (slice(None), np.argsort(x[0])), x),
    "subtract.at": lambda y, x: np.subtract.at(y, [0, 0, 1], x[0]),
    "multiply.at": lambda y, x: np.multiply.at(y, [2, 0], x[1]),
    "maximum.at": lambda y, x: np.maximum.at(y, MASK, 0.33),
    "negative.at": lambda y, x: np.negative.at(y, [0, 2]),
    "itemset by ellipsis": lambda y, x: y[..., 0].__setitem__(..., x[:, 1]),
    "fill": lambda y, x: y[1].fill(x[0, 0]),
    "setdiag": lambda y, x: np.einsum("ii->i", y[:, :3]).__setitem__(slice(None), x[0, :3]),
}


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["d", "f", "D"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_take_elements(name: str, dtype: str) -> None:
    x = distinct((3, 4), dtype)
    if dtype == "D" and ("interp" in name or "traced" in name):
        return
    assert_traced(FUNCTIONS[name], x)
    if dtype != "f" or "interp" not in name:  # single precision would step across the corners
        assert_differentiable(FUNCTIONS[name], x, order=2 if dtype == "d" else 1)


@pytest.mark.parametrize("name", WRITING)
def test_functions_that_write(name: str) -> None:
    def write(x: Any) -> Any:
        y = x * 2.0
        WRITING[name](y, x)
        z = np.zeros((3, 4))
        WRITING[name](z, x)
        return y, z

    assert_traced(write, distinct((3, 4)))
    assert_differentiable(write, distinct((3, 4)))


CYCLIC: dict[str, Any] = {
    "put": lambda y, v: np.put(y, [0, 2], v),
    "place nothing": lambda y, v: np.place(y, y > 99, v),
    "place": lambda y, v: np.place(y, y > 0, v),
    "place by a mask": lambda y, v: np.place(y, np.eye(3, 4) > 0, v),
    "putmask": lambda y, v: np.putmask(y, y > 0, v),
    "putmask by a flat mask": lambda y, v: np.putmask(y, np.ravel(y) > 0, v),
    "fill_diagonal": np.fill_diagonal,
    "flat": lambda y, v: y.flat.__setitem__(slice(None, None, 2), v),
    "flat by a list": lambda y, v: y.flat.__setitem__([4, 1, 2], v),
    "flat by an array": lambda y, v: y.flat.__setitem__(PLACES, v),
    "flat by a number": lambda y, v: y.flat.__setitem__(1, v),
    "all of flat": lambda y, v: setattr(y, "flat", v),
}


@pytest.mark.parametrize("n", [None, 0, 1, 2, 20])
@pytest.mark.parametrize("name", CYCLIC)
def test_values_that_are_repeated_may_be_none_one_or_too_many(name: str, n: int | None) -> None:
    def program(x: Any, v: Any) -> Any:
        y = +x
        CYCLIC[name](y, v)
        return y

    values = np.array(0.4) if n is None else np.linspace(0.1, 0.7, n)
    for x in (distinct((3, 4)), distinct((3, 4))[::-1]):
        assert_same(outcome(rg.jit(program), [x, values]), outcome(program, [x, values]))
        assert_same(outcome(rg.jit(partial(program, v=values.tolist())), [x]), outcome(program, [x, values]))


@pytest.mark.parametrize("shape", [(), (4,), (3, 1), (2, 4)])
@pytest.mark.parametrize("function", [np.putmask, np.place])
def test_a_mask_of_another_size_is_refused_as_in_numpy(function: Any, shape: tuple[int, ...]) -> None:
    def program(x: Any, mask: Any) -> None:
        function(+x, mask > 0, [1.0])

    args = [distinct((3, 4)), np.ones(shape)]
    assert_same(outcome(rg.jit(program), args), outcome(program, args))


def test_where_a_later_mask_has_places_no_values_are_an_error() -> None:
    def program(x: Any, v: Any) -> Any:
        y = +x
        np.place(y, y > 1, v)
        return y

    compiled = rg.jit(program)
    np.testing.assert_array_equal(compiled(np.zeros(3), np.zeros(0)), np.zeros(3))
    with pytest.raises(ValueError, match="empty array"):
        compiled(np.full(3, 2.0), np.zeros(0))


def _write_into(x: Any) -> None:
    x[()] = 1.0


ERRORS: dict[str, Any] = {
    "row": lambda x: x[3],
    "column": lambda x: x[0, -5],
    "axes": lambda x: x[0, 0, 0],
    "rows": lambda x: x[[0, 3]],
    "shapes": lambda x: x[[0, 1], [0, 1, 2]],
    "mask": lambda x: x[np.ones((3, 3), bool)],
    "traced mask": lambda x: x.__setitem__(x[:, 1:] > 0, 1.0),
    "ellipses": lambda x: x[..., ...],
    "float": lambda x: x[1.0],
    "float array": lambda x: x[np.array([1.0])],
    "text": lambda x: x["a"],
    "written shape": lambda x: x.copy().__setitem__(0, [1.0, 2.0]),
    "written row": lambda x: x.copy().__setitem__(5, 0.0),
    "written rows": lambda x: x.copy().__setitem__([0, 1], x),
    "number": lambda x: np.sum(x)[0],
    "number written": lambda x: _write_into(np.sum(x)),
    "take": lambda x: np.take(x, 12),
    "take mode": lambda x: np.take(x, 1, mode="most"),
    "choose": lambda x: np.choose([0, 3, 1, 0], x),
    "put": lambda x: np.put(x.copy(), 20, 1.0),
    "put_along_axis": lambda x: np.put_along_axis(x.copy(), np.array([0]), 1.0, axis=1),
    "fill_diagonal": lambda x: np.fill_diagonal(x[0].copy(), 1.0),
    "copyto": lambda x: np.copyto(x.copy(), x[:, :2]),
    "nothing by a bool": lambda x: x.copy().__setitem__((0, False), x),
    "copyto type": lambda x: np.copyto(x.astype(int), x),
    "add.at": lambda x: np.add.at(x.copy(), [3], 1.0),
    "interp": lambda x: np.interp(x, x, x),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_numpy(name: str) -> None:
    x = distinct((3, 4))
    expected = outcome(ERRORS[name], [x])
    assert isinstance(expected, type), expected
    assert_same(outcome(rg.jit(ERRORS[name]), [x]), expected)


def test_a_traced_index_out_of_bounds_fails_when_it_runs() -> None:
    x = distinct((3, 4))
    for function in (lambda x, i: x[i], lambda x, i: np.take(x, i, axis=1), lambda x, i: np.sum(x[:, i], axis=0)):
        for kind in (np.int64, lambda i: np.array([i, 0])):
            compiled = rg.jit(function)
            compiled(x, kind(1))
            with pytest.raises(IndexError, match="out of bounds"):
                compiled(x, kind(7))

    def accumulated(x: Any, i: Any) -> Any:
        y = np.zeros((3, 4))
        np.add.at(y, (i, i), x[0, 0])
        return y

    compiled = rg.jit(accumulated)
    compiled(x, np.array([1]))
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, np.array([3]))


def test_an_element_that_was_just_written_out_of_bounds_fails() -> None:
    def written(x: Any, i: Any, j: Any) -> Any:
        a = x.copy()
        a[i, j] = 2.0
        return a[i, j] * x[0, 0]

    for function in (rg.jit(written), rg.grad(written)):
        function(np.ones((4, 5)), 1, 2)
        for i, j in ((9, 2), (1, -6)):
            with pytest.raises(IndexError, match="out of bounds"):
                function(np.ones((4, 5)), i, j)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("shape", [(4,), (4, 2)], ids=["an element", "a row"])
def test_what_was_just_written_at_one_index_out_of_bounds_fails(shape: Any, backend: Any) -> None:
    def written(x: Any, i: Any) -> Any:
        a = x.copy()
        a[i] = 2.0 * x[0]
        return np.sum(a[i])

    for transform in (rg.jit, rg.grad):
        function = transform(written, backend=backend)
        for i in (1, 2):  # an int is traced from its second value on
            function(np.ones(shape), i)
        for i in (9, -6):
            with pytest.raises(IndexError, match="out of bounds"):
                function(np.ones(shape), i)


NAMED: dict[str, tuple[Any, type[Exception]]] = {
    "add.at type": (lambda x: np.add.at(x.astype(int), [0], 1.5), rg.errors.UnsupportedError),
    "repeated": (lambda x: np.multiply.at(x.copy(), np.argmax(x, axis=0), 2.0), rg.errors.UnsupportedError),
    "outside": (lambda x: np.put(LIST, 0, x), rg.errors.CapturedWriteError),
    "outside at": (lambda x: np.add.at(LIST, 0, x[0, 0]), rg.errors.CapturedWriteError),
    "outside copyto": (lambda x: np.copyto(LIST, x[:, :2]), rg.errors.CapturedWriteError),
    "outside diagonal": (lambda x: np.fill_diagonal(LIST, x[0, 0]), rg.errors.CapturedWriteError),
    "bool and array": (lambda x: x[True, [0, 1]], rg.errors.UnsupportedError),
}


OF_DATA: dict[str, Any] = {
    "traced mask": lambda x: x[x > 0],
    "traced masks": lambda x: x[x[:, 0] > 0, 1],
    "bound": lambda x: x[: np.argmax(x[:, 0]) + 1],
    "compress": lambda x: np.compress(x[:, 0] > 0, x, axis=0),
    "extract": lambda x: np.extract(x > 0, x),
    "values by a traced mask": lambda x: (y := x.copy(), y.__setitem__(x[:, 0] > 0, x[x[:, 0] > 0] * 2))[0],
    "mask and array": lambda x: (y := x.copy(), y.__setitem__((x[:, 0] > 0, [0]), 1.0))[0],
}


@pytest.mark.parametrize("name", OF_DATA)
def test_shapes_that_depend_on_data_are_those_of_the_call(name: str) -> None:
    function, x = OF_DATA[name], distinct((3, 4))
    compiled = rg.jit(function)
    for point in (x, -x, x[::-1].copy(), np.abs(x)):
        assert_same(compiled(point), function(point))
    assert_differentiable(function, x)


@pytest.mark.parametrize("name", NAMED)
def test_what_is_not_traced_says_so(name: str) -> None:
    function, error = NAMED[name]
    with pytest.raises(error, match="remedy"):
        rg.jit(function)(distinct((3, 4)))


def test_arrays_of_indices_from_outside_are_read_at_each_call() -> None:
    index, table = np.array([0, 1]), np.arange(4.0)[None]

    def both(x: Any) -> Any:
        y, z = x * 1.0, np.zeros(4)
        y[index] = x[index] * 2.0 + np.matvec(table, x)
        z[index] = 1.0
        return y, z

    compiled, x = rg.jit(both), distinct((4,))
    assert_same(compiled(x), both(x))
    index[:], table[:] = [3, 3], 7.0
    assert_same(compiled(x), both(x))


def test_reads_and_writes_over_lanes() -> None:
    x, i = distinct((3, 4, 2)), np.array([1, 3, 0])

    def written(x: Any, i: Any) -> Any:
        y = np.cos(x)
        y[i, 0] = x[i, 1] * x[-1, 0]
        y[[i, 0]] += x[:2]
        return y, x[i], x[1:, 1], np.take(x, i, axis=0)

    for axes in ((0, 0), (0, None), (None, 0)):
        args = [x if axes[0] == 0 else x[0], i if axes[1] == 0 else i[0]]
        found = rg.vmap(written, in_axes=axes)(*args)
        lanes = [written(x[k if axes[0] == 0 else 0], i[k if axes[1] == 0 else 0]) for k in range(3)]
        assert_same(found, tuple(np.stack(column) for column in zip(*lanes, strict=True)))
    gradient = rg.grad(lambda x, i: np.sum(np.sin(written(x, i)[0])))
    assert_same(rg.vmap(gradient)(x, i), np.stack([gradient(x[k], i[k]) for k in range(3)]))


def test_the_gradient_of_rows_is_added_flat_and_of_different_rows_by_index() -> None:
    x = distinct((5, 3))
    repeated = rg.grad(lambda x, i: np.sum(x[i] ** 2)).source(x, ROWS)
    assert repeated.count("np.add.at(") == 1
    assert "np.add.at(v" in repeated.replace(" ", "")
    assert ".reshape((15,))" not in repeated
    different = rg.grad(lambda x: np.sum(x[[3, 0]] ** 2)).source(x)
    assert "np.add.at" not in different
    assert "] += " in different
