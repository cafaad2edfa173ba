"""What a call reads counts for each object and each argument, also where one line calls again and again."""

from __future__ import annotations

import functools
import os
from collections import Counter
from typing import Any

import pytest

import retrograd as rg

STATE = {1: 1.0, 2: 2.0}


class Looking:
    """Its method remembers what it has found."""

    @functools.cache  # noqa: B019 - that it lives as long is what is tested
    def up(self, key: int) -> float:
        """The number at present."""
        return STATE[key]


class Scaled:
    """Its method remembers what it has computed."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @functools.cache  # noqa: B019 - as above
    def times(self, number: int) -> float:
        """The product."""
        return self.factor * number


@pytest.mark.parametrize("changed", [0, 1])
def test_methods_of_several_library_objects(changed: int) -> None:
    counters = [Counter(a=1), Counter(a=2)]

    @rg.jit
    def f(x: float) -> Any:
        return sum(x * c.most_common(1)[0][1] for c in counters)

    assert f(1.0) == 3.0
    counters[changed]["a"] = 5
    assert f(1.0) == 5.0 + (2.0, 1.0)[changed]


@pytest.mark.parametrize("changed", ["RETROGRAD_A", "RETROGRAD_B"])
def test_several_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    names = ("RETROGRAD_A", "RETROGRAD_B")
    for name in names:
        monkeypatch.setenv(name, "1")

    @rg.jit
    def f(x: float) -> Any:
        return sum(x * float(os.getenv(name) or 0.0) for name in names)

    assert f(1.0) == 2.0
    monkeypatch.setenv(changed, "4")
    assert f(1.0) == 5.0


@pytest.mark.parametrize("changed", [1, 2])
def test_several_questions_to_a_method_that_remembers(monkeypatch: pytest.MonkeyPatch, changed: int) -> None:
    looking = Looking()

    @rg.jit
    def f(x: float) -> Any:
        return sum(x * looking.up(key) for key in (1, 2))

    assert [looking.up(1), looking.up(2)] == [1.0, 2.0]  # remembered before anything is traced
    assert f(1.0) == 3.0
    monkeypatch.setitem(STATE, changed, 9.0)
    Looking.up.cache_clear()
    assert f(1.0) == 9.0 + STATE[3 - changed]


def test_functions_that_take_turns_on_one_line() -> None:
    factors = [2.0, 3.0]
    functions = [lambda x: x * factors[0], lambda x: x * factors[1]]

    @rg.jit
    def f(x: Any) -> Any:
        for k in range(6):
            x = functions[k % 2](x)
        return x

    assert f(1.0) == 216.0
    factors[1] = 1.0
    assert f(1.0) == 8.0


def test_a_method_that_remembers_of_another_object_with_equal_code() -> None:
    def scaled_by(looking: Scaled) -> Any:
        return rg.jit(lambda x: x * looking.times(1))

    first, second = Scaled(1.0), Scaled(2.0)
    assert (first.times(1), second.times(1)) == (1.0, 2.0)  # remembered before anything is traced
    assert (scaled_by(first)(1.0), scaled_by(second)(1.0)) == (1.0, 2.0)
