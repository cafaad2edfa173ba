"""A loop of a graph has the line of the Python loop that made it, also if the operations stand in other functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.python_loops import loop_line
from retrograd.ir.rewrite import walk
from retrograd.where import Where


def step(u, k):
    return u + k * (np.roll(u, 1) - 2 * u + np.roll(u, -1))


def few(u, k):
    for _ in range(3):
        u = u + k * np.sin(u)
    return u


def within(u, k):
    for _ in range(200):  # the loop
        u = u + k * np.sin(u)
        u = step(u, k) * 0.5
    return np.sum(u)


def called(u, k):
    for _ in range(200):  # the loop
        u = step(u, k)
    return np.sum(u)


def also_called(u, k):
    for _ in range(200):
        u = step(u, k)
    return np.sum(u)


def around_a_short_one(u, k):
    total = 0.0
    for _ in range(200):  # the loop
        u = few(u, k)
        total = total + u[0]
    return total


def in_a_comprehension(u, k):
    return sum([np.sum(np.sin(u * j) * k) * 2.0 for j in range(200)])  # the loop


def compared(u, k):
    n = 0
    while n < 3000:  # the loop
        n += 1
        u = u + k * np.sin(u)
    return np.sum(u)


@pytest.mark.parametrize("function", [within, called, around_a_short_one, in_a_comprehension, compared])
def test_a_folded_loop_has_the_line_of_the_loop(function: Callable[..., Any]) -> None:
    u, k = np.sin(np.arange(5.0)), np.full(5, 0.1)
    lines, first = inspect.getsourcelines(function)
    (expected,) = (first + i for i, line in enumerate(lines) if "# the loop" in line)
    loops = [node.where for node in walk(rg.trace(function)(u, k)) if node.prim.name == "scan"]
    assert loops == [Where(__file__, expected)]
    adjoint = [node.where for node in walk(rg.grad(function).graph(u, k)) if node.prim.name == "scan"]
    assert {*adjoint} == {Where(__file__, expected)}
    assert any(r.where.endswith(f":{expected}") for r in rg.grad(function).explain(u, k, check=False).remarks)


def test_lines_in_no_loop_and_in_files_that_are_gone_have_none() -> None:
    line = Where(__file__, inspect.getsourcelines(step)[1] + 1)
    assert loop_line([line], [line]) is None  # no function that calls it has a line in the program
    gone = Where("/nowhere/at/all.py", 3)
    assert loop_line([gone], [gone]) is None
    assert loop_line([], [line]) is None


def test_two_loops_that_call_one_function_are_told_apart_by_the_program() -> None:
    body = Where(__file__, inspect.getsourcelines(step)[1] + 1)
    one, other = (Where(__file__, inspect.getsourcelines(f)[1] + 3) for f in (called, also_called))
    assert loop_line([body], [body, one]) == Where(__file__, one.line - 2)
    assert loop_line([body], [body, other]) == Where(__file__, other.line - 2)
    assert loop_line([body], [body, one, other]) is None
