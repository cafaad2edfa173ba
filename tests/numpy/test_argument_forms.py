"""Arguments in the less usual forms that NumPy takes: bools as places, lists beside traced numbers, arrays as axes."""

from __future__ import annotations

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
FORMS = {
    f"{kind}: {name}": form
    for kind, forms in {
        "bools as places": BOOLS_AS_PLACES,
        "truncated places": TRUNCATED,
        "lists": LISTS_BESIDE_TRACED,
    }.items()
    for name, form in forms.items()
}
RAISING = {name for name in FORMS if name.endswith(("by an array", "by unsigned numbers", "put_along_axis by bools"))}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_arguments_mean_what_they_mean_in_numpy(name):
    assert_traced(FORMS[name], X)


@pytest.mark.parametrize("name", sorted(FORMS.keys() - RAISING))
def test_forms_of_arguments_are_differentiated(name):
    assert_differentiable(FORMS[name], X, order=1)
