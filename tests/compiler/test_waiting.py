"""Ways beyond the first few are interpreted until they come back, and are compiled many at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import kept_ways
from retrograd.compiler.paths import Paths


@pytest.fixture(autouse=True)
def nothing_kept_with_code() -> Iterator[None]:
    """Compilations are kept as long as the code of a function lives, for functions made anew of it."""
    before, rg.config.cache_size = rg.config.cache_size, 0
    yield
    rg.config.cache_size = before


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ways each compilation had."""
    seen: list[int] = []
    compile_ways = Paths._compile

    def counted(paths: Paths) -> None:
        seen.append(len(paths.known))
        compile_ways(paths)

    monkeypatch.setattr(Paths, "_compile", counted)
    return seen


def power(x: Any, n: Any) -> Any:
    """A long way for each n."""
    y = x
    for k in range(60):
        y = y + 0.01 * k * np.tanh(y)
    while n > 1.0:
        y, n = y * x, n - 1.0
    return y


def powers() -> Any:
    """The derivative in the first argument, of a function made anew."""

    def f(x: Any, n: Any) -> Any:
        return power(x, n)

    return rg.grad(f)


def slope(x: float, n: int) -> float:
    """The same by a complex step."""
    return float(np.imag(power(x + 1e-30j, float(n))) / 1e-30)


def check(g: Any, n: int, x: float = 1.25) -> None:
    assert g(x, float(n)) == pytest.approx(slope(x, n), rel=1e-12)


def test_ways_that_are_gone_once_are_not_compiled(compilations: list[int]) -> None:
    g = powers()
    for n in range(1, 40):
        check(g, n)
    assert compilations == list(range(1, len(compilations) + 1))
    assert 2 <= len(compilations) <= 6


def test_ways_that_come_back_are_compiled_many_at_a_time(compilations: list[int]) -> None:
    g = powers()
    for _ in range(5):
        for n in range(1, 40):
            check(g, n)
    assert len(compilations) <= 12
    assert compilations == sorted(compilations)
    known = len(compilations)
    for n in range(1, compilations[-1] + 1):
        check(g, n, 0.75)
    assert len(compilations) <= known + 1


def test_two_ways_that_alternate_are_compiled_at_once(compilations: list[int]) -> None:
    g = powers()
    for _ in range(3):
        check(g, 1)
        check(g, 2)
    assert compilations == [1, 2]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 6, 9])
def test_no_more_ways_are_compiled_than_allowed(
    most: int, compilations: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_ways, "RENT", 0.5)
    with rg.config(max_traces=most), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g = powers()
        for _ in range(4):
            for n in range(1, 15):
                check(g, n)
    assert max(compilations) == most


def test_a_function_that_goes_many_ways_once_warns_of_nothing() -> None:
    with rg.config(max_traces=4), warnings.catch_warnings():
        warnings.simplefilter("error")
        g = powers()
        for n in range(1, 15):
            check(g, n)


def test_a_way_that_waits_follows_the_state() -> None:
    scale = 2.0
    g = rg.grad(lambda x, n: scale * power(x, n))
    for scale in (2.0, 3.0, 3.0, 2.0, 5.0, 5.0):
        for n in range(1, 12):
            assert g(1.25, float(n)) == pytest.approx(scale * slope(1.25, n), rel=1e-12)


def test_a_way_that_waits_reads_what_the_others_do_not() -> None:
    table = {n: 1.0 + n for n in range(1, 12)}

    def f(x: Any, n: Any) -> Any:
        k = 1
        while n > k:
            k += 1
        return table[k] * power(x, n)

    g = rg.grad(f)
    for changed in (None, 7, None, 9, 7, None, None):
        if changed is not None:
            table[changed] *= 2.0
        for n in range(1, 12):
            assert g(1.25, float(n)) == pytest.approx(table[n] * slope(1.25, n), rel=1e-12)


def test_errors_of_ways_that_wait_are_those_of_plain_python() -> None:
    def f(x: Any, n: Any) -> Any:
        y = power(n, n)
        k = 0
        while n > 1.0:
            n, k = n - 1.0, k + 1
        if k == 7:
            raise KeyError("seven")
        return np.linalg.inv(x)[0, 0] * (k + 1.0) + 0.0 * y

    g = rg.jit(f)
    singular, regular = np.ones((2, 2)), np.diag([2.0, 4.0])
    for _ in range(4):
        for n in range(1, 12):
            if n == 8:
                with pytest.raises(KeyError, match="seven"):
                    g(regular, float(n))
                continue
            assert g(regular, float(n)) == pytest.approx(n / 2.0)
            with pytest.raises(np.linalg.LinAlgError):
                g(singular, float(n))
            assert g(regular, float(n)) == pytest.approx(n / 2.0)


def test_pullbacks_of_ways_that_wait() -> None:
    for _ in range(3):
        for n in range(1, 12):
            value, pull = rg.vjp(power, 1.25, float(n))
            assert value == pytest.approx(power(1.25, float(n)))
            assert pull(1.0)[0] == pytest.approx(slope(1.25, n))
            assert rg.jvp(power, (1.25, float(n)), (1.0, 0.0))[1] == pytest.approx(slope(1.25, n))
