"""Arguments in the less usual forms that NumPy takes: bools as places, lists beside traced numbers, arrays as axes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.support.functions import assert_differentiable, assert_traced

X = np.array([0.3, -0.7, 1.1])
FIXED = np.array([5.0, 6.0])
MARKS = [True, False, True]


def written(write: Any) -> Any:
    """The function that writes into a copy of its argument."""

    def function(x: Any) -> Any:
        y = x * 1.0
        write(y, x)
        return y

    return function


BOOLS_AS_PLACES: dict[str, Any] = {
    "take": lambda x: np.take(x, x > 0),
    "take, wrap": lambda x: np.take(x, x > 0, mode="wrap"),
    "take of a constant": lambda x: np.take(FIXED, x > 0) * x,
    "take by a list": lambda x: np.take(x, MARKS),
    "take by a bool": lambda x: np.take(x, True),
    "take along an axis": lambda x: np.take(np.stack([x, 2 * x]), x > 0, axis=0),
    "x.take": lambda x: x.take(x > 0),
    "put": written(lambda y, x: np.put(y, x > 0, 5.0)),
    "put by a list": written(lambda y, x: np.put(y, MARKS, [7.0, x[0], 8.0])),
    "put by a bool": written(lambda y, x: np.put(y, True, 7.0)),
    "y.put": written(lambda y, x: y.put(x > 0, [1.0, 2.0, 3.0])),
}
TRUNCATED: dict[str, Any] = {
    "take by a number": lambda x: np.take(x, 1.7),
    "take by a list": lambda x: np.take(x, [1.0, 0.0]),
    "take by an empty list": lambda x: np.take(x, []),
    "take by an array": lambda x: np.take(x, np.array([1.0])),  # TypeError
    "put by a number": written(lambda y, x: np.put(y, 1.5, 7.0)),
    "put by an array": written(lambda y, x: np.put(y, np.array([1.0]), 7.0)),  # TypeError
    "put by unsigned numbers": written(lambda y, x: np.put(y, np.array([1], np.uint64), 7.0)),  # TypeError
    "put_along_axis by bools": written(lambda y, x: np.put_along_axis(y, x > 0, 5.0, 0)),  # IndexError
}
LISTS_BESIDE_TRACED: dict[str, Any] = {
    "delete": lambda x: np.delete([1.0, 2.0, 3.0], np.argmax(x)) * x[0],
    "delete of an array": lambda x: np.delete(FIXED, np.argmax(x[:2])) * x[0],
    "compress": lambda x: np.compress(x > 0, [1.0, 2.0, 3.0]) * x[0],
    "extract": lambda x: np.extract(x > 0, [1.0, 2.0, 3.0]) * x[0],
    "insert": lambda x: np.insert([1.0, 2.0], np.argmax(x), x[0]),
    "repeat": lambda x: np.repeat([1.0, 2.0, 3.0], x > 0) * x[0],
}
PLACES = np.array([1, 2])
ORDER = np.array([1, 0])
PAIRS = ((0, 1), (1, 0))


def grid(x: Any) -> Any:
    """A matrix of the argument."""
    return np.stack([x, x**2])


def pairs_written(x: Any) -> Any:
    y = grid(x)
    y[(0, 1), (1, 0)] = 5.0
    y[(0, 1), (1, 0)] += x[2]
    return y


ARRAYS_AS_PLACES: dict[str, Any] = {
    "split": lambda x: [2 * part for part in np.split(x, PLACES)],
    "array_split": lambda x: [2 * part for part in np.array_split(x, PLACES)],
    "hsplit": lambda x: [2 * part for part in np.hsplit(grid(x), PLACES)],
    "vsplit": lambda x: [2 * part for part in np.vsplit(grid(x), PLACES[:1])],
    "dsplit": lambda x: [2 * part for part in np.dsplit(grid(x)[None], PLACES)],
    "split at a traced place": lambda x: np.split(x, [np.argmax(x[:2]) + 1])[0],
    "the number of parts": lambda x: np.split(x, np.array(3))[1],
    "x.transpose": lambda x: grid(x).transpose(ORDER) * 1.0,
    "x.transpose by a traced array": lambda x: grid(x).transpose(np.array([1, 0])) * 1.0,
    "the axis of concatenate": lambda x: np.concatenate([x, x], np.array(0)),
}
TUPLES_IN_INDICES: dict[str, Any] = {
    "pairs": lambda x: grid(x)[(0, 1), (1, 0)],
    "pairs in one tuple": lambda x: grid(x)[PAIRS],
    "rows": lambda x: grid(x)[(0, 1),],
    "rows and a slice": lambda x: grid(x)[(0, 1), 1:],
    "tuples of tuples": lambda x: grid(x)[((0, 1), (0, 1)), ((1, 0), (2, 1))],
    "a mask": lambda x: grid(x)[:, (True, False, True)],
    "a traced place": lambda x: grid(x)[(0, np.argmin(x[:2])), (1, 0)],
    "nothing": lambda x: grid(x)[(),],
    "written": pairs_written,
}
FORMS = {
    f"{kind}: {name}": form
    for kind, forms in {
        "bools as places": BOOLS_AS_PLACES,
        "truncated places": TRUNCATED,
        "lists": LISTS_BESIDE_TRACED,
        "arrays as places": ARRAYS_AS_PLACES,
        "tuples in indices": TUPLES_IN_INDICES,
    }.items()
    for name, form in forms.items()
}
RAISING = {
    name
    for name in FORMS
    if name.startswith("truncated") and name.endswith(("by an array", "by unsigned numbers", "by bools"))
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_arguments_mean_what_they_mean_in_numpy(name):
    assert_traced(FORMS[name], X)


@pytest.mark.parametrize("name", sorted(FORMS.keys() - RAISING))
def test_forms_of_arguments_are_differentiated(name):
    assert_differentiable(FORMS[name], X, order=1)


DTYPES = {
    "bools": np.array([[True, False, True], [False, False, True]]),
    "bytes": np.array([[200, 100, 3], [0, 7, 255]], np.uint8),
    "ints": np.array([[3, -1, 2], [2**40, 0, 9]]),
    "floats": np.array([[0.3, -0.7, 1.1], [0.0, 2.0, 5.5]]),
}
ACCUMULATING = ("sum", "prod", "cumsum", "cumprod", "mean", "nansum", "nanprod", "nancumsum", "nancumprod", "nanmean")
SPREADING = ("var", "std", "nanvar", "nanstd")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, int, np.float32, complex])
@pytest.mark.parametrize("name", [*ACCUMULATING, *SPREADING])
def test_reductions_accumulate_in_the_dtype_that_is_asked_for(name, dtype):
    function = getattr(np, name)
    for kind, x in DTYPES.items():
        if np.dtype(dtype).kind == "u" and kind not in {"bytes", "bools"}:
            continue  # C does not say what a negative or large number becomes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_traced(lambda x: function(x, dtype=dtype), x)
            assert_traced(lambda x: function(x, axis=0, dtype=dtype), x)


WHOLE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation", "linear")


@pytest.mark.parametrize("method", WHOLE)
@pytest.mark.parametrize("kind", ["bools", "bytes", "ints"])
def test_quantiles_of_whole_numbers_have_the_dtype_that_numpy_gives(kind, method):
    for q in (0, 1, [0, 1], 0.5, [0.2, 0.4]):
        for axis in (None, 0, (0, 1)):
            if method == "linear" and kind == "bools" and q not in (0, 1):
                continue  # NumPy subtracts bools there
            assert_traced(lambda x, q=q, axis=axis: np.quantile(x, q, axis, method=method), DTYPES[kind])
            assert_traced(
                lambda x, q=q: np.percentile(x, np.multiply(q, 100), method=method, keepdims=True), DTYPES[kind]
            )


def test_quantiles_of_large_whole_numbers_are_exact():
    x = np.array([2**60 + 1, 2**60 + 3, 5])
    assert_traced(lambda x: np.quantile(x, [0.5, 1.0], method="lower"), x)
