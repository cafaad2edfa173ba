"""What stands for a function inside a trace tells the same of itself as the function, and is equal to it."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

ASKED = ("__module__", "__name__", "__qualname__", "__doc__", "__self__", "__text_signature__", "signature", "nin")
NAMES = [
    (math, "exp"),
    (math, "hypot"),
    (np, "exp"),
    (np, "zeros"),
    (np, "where"),
    (np, "linspace"),
    (np.linalg, "inv"),
]


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda f, name=name: getattr(f, name, "missing") for name in ASKED},
    "text": repr,
    "hash": hash,
    "registered": lambda f: getattr(sys.modules.get(f.__module__), f.__name__, "missing"),
    "pickled": lambda f: pickle.loads(pickle.dumps(f)),
    "copied": copy.deepcopy,
}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_it_answers_as_the_function_does(module: Any, name: str) -> None:
    function, found = vars(module)[name], []

    def traced(x: Any) -> Any:
        found.append(getattr(module, name))
        return x

    rg.jit(traced)(2.0)
    (stands,) = found
    assert stands is not function
    for question, asked in QUESTIONS.items():
        assert asked(stands) == asked(function), question
    assert stands == function
    assert function == stands
    assert stands != math.cos
    assert {function: 1}[stands] == {stands: 1}[function] == 1


def test_a_function_that_numba_compiles_at_its_first_call() -> None:
    numba = pytest.importorskip("numba")
    poly = numba.njit(lambda x: x**2 + 1)
    assert rg.grad(lambda x: x * poly(3.0))(2.0) == 10.0
