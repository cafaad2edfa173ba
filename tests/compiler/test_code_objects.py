"""Code that is made again and again, as cells of a notebook are, goes with all that was noted of it."""

from __future__ import annotations

import gc
import weakref
from types import CodeType
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import where
from retrograd.tracer import interception

CELL = """
def f(x):
    y = np.zeros(3)
    y[0] = float(x[0])
    for i in range(3):
        y = y + np.sin(x) * i
    return np.sum(y) if x[0] > 0 else np.prod(y)

slope = rg.grad(f)(np.ones(3))
pulled = rg.vjp(f, np.ones(3))[1](1.0)
"""


def run_cell(k: int) -> weakref.ref[CodeType]:
    names: dict[str, Any] = {"np": np, "rg": rg}
    exec(compile(CELL, f"<cell {k}>", "exec"), names)
    return weakref.ref(names["f"].__code__)


def test_nothing_keeps_the_code_of_a_function_that_is_gone() -> None:
    run_cell(0)
    gc.collect()
    before = len(where._sites), len(interception._loads)
    codes = [run_cell(k) for k in range(5)]
    gc.collect()
    assert [code() for code in codes] == [None] * 5
    assert (len(where._sites), len(interception._loads)) == before
