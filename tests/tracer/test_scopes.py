"""Scopes of Python: comprehensions, classes in functions, ``eval`` and ``exec``, as they are in each version of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([1.0, 2.0, 3.0])
Program = Callable[[Any], Any]
PROGRAMS: dict[str, Callable[[], Program]] = {}


def scope(make: Callable[[], Program]) -> Callable[[], Program]:
    """Into the table, by its name."""
    PROGRAMS[make.__name__.strip("_").replace("_", " ")] = make
    return make


@scope
def _a_comprehension_in_a_class_and_a_class_in_it() -> Program:
    q = 3.0

    def f(x: Any) -> Any:
        class C:
            z = tuple([q * i for i in range(3)])

            class D:
                b = q

        return np.sum(x) * sum(C.z) * C.D.b

    return f


@scope
def _a_comprehension_in_a_class_and_a_method() -> Program:
    q = 3.0

    def f(x: Any) -> Any:
        class C:
            z = tuple([q for _ in range(2)])

            def own(self) -> float:
                return q

        return np.sum(x) * C().own() * C.z[0]

    return f


@scope
def _a_comprehension_in_a_class_and_a_lambda() -> Program:
    q = np.array([1.0, 5.0])

    def f(x: Any) -> Any:
        class C:
            z = tuple([q[i] for i in range(2)])
            own = staticmethod(lambda: q)

        return np.sum(x) * C.own()[1] * C.z[0]

    return f


@scope
def _a_variable_of_a_comprehension_with_the_name_of_one_outside() -> Program:
    y = 10.0

    def f(x: Any) -> Any:
        z = y * 2.0
        fs = [lambda: y * 2.0 for y in x]  # noqa: B023 - the last one
        return fs[0]() * z

    return f


@scope
def _comprehensions_within_comprehensions() -> Program:
    y = 10.0
    return lambda x: sum([sum([a * y for a in x]) * b for b in [c for c in x if y > 5.0]])


@scope
def _exec_leaves_the_variables_of_a_function() -> Program:
    def f(x: Any) -> Any:
        y = 2.0
        exec("y = 3.0")
        return np.sum(x) * y

    return f


@scope
def _exec_in_a_dict() -> Program:
    def f(x: Any) -> Any:
        names = {"x": x, "np": np}
        exec("y = np.sum(x * x)", names)
        return names["y"]

    return f


@scope
def _eval_of_variables() -> Program:
    def f(x: Any) -> Any:
        y = 2.0
        return eval("x * y", None, {"x": x, "y": y})

    return f


@scope
def _locals_of_a_function() -> Program:
    def f(x: Any) -> Any:
        y = 2.0 * x
        return sum(np.sum(v) for v in locals().values()) * y[0]

    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_scopes_are_those_of_python(name: str) -> None:
    f = PROGRAMS[name]()
    wanted = np.array(f(X))
    jitted = rg.jit(f)
    for _ in range(3):
        assert np.array_equal(jitted(X), wanted)
    slopes = rg.jacobian(f)(X)
    assert np.allclose(slopes, [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(3)], rtol=1e-5)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="these are arguments by position up to 3.12")
def test_names_by_keyword() -> None:
    def f(x: Any) -> Any:
        names = {"np": np, "x": x}
        exec("y = np.sum(x)", globals=names)
        return eval("x * y", globals=names, locals={"x": x, "y": names["y"]})

    assert np.array_equal(rg.jit(f)(X), f(X))
