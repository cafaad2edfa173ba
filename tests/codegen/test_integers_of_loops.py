"""Integers of NumPy wrap at 64 bits in loops on numbers, and lists that such loops collect hold NumPy's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

Step = Callable[[int, tuple[Any, ...]], tuple[Any, ...]]
BACKENDS = "numpy", "native"
ONE, HALF = np.int64(1), np.float64(0.5)
LCG = np.int64(6364136223846793005), np.int64(1442695040888963407)


def plainly(n: int, step: Step, carry: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same loop in Python."""
    with np.errstate(all="ignore"):
        for t in range(n):
            carry = step(t, carry)
    return carry


# What each function multiplies x by depends on integers that leave 64 bits, so its slope in x does, too.
WRAPPING: dict[str, tuple[int, Any, tuple[Any, ...]]] = {
    "Fibonacci": (
        100,
        lambda x: lambda t, c: (c[1], c[0] + c[1], c[2] * 0.9 + x * (c[0] > 0)),
        (0 * ONE, ONE, 0 * HALF),
    ),
    "congruences": (40, lambda x: lambda t, c: (c[0] * LCG[0] + LCG[1], c[1] * 0.9 + x * (c[0] > 0)), (ONE, 0 * HALF)),
    "factorial": (25, lambda x: lambda t, c: (c[0] * (t + 1), c[1] + x / (c[0] * (t + 1))), (ONE, 0 * HALF)),
    "powers of three": (70, lambda x: lambda t, c: (c[0] * 3, c[1] * 0.9 + (c[0] % 5) * x), (ONE, 0 * HALF)),
    "doubled difference": (70, lambda x: lambda t, c: (c[0] - -c[0], c[1] * 0.9 + (c[0] < 9) * x), (ONE, 0 * HALF)),
    "great steps": (9, lambda x: lambda t, c: (c[0] + (1 << 61), c[1] + (c[0] > 0) * x), (ONE, 0 * HALF)),
}
over_wrapping = pytest.mark.parametrize(("n", "step", "first"), WRAPPING.values(), ids=WRAPPING)


@pytest.mark.parametrize("backend", BACKENDS)
@over_wrapping
def test_integers_wrap_as_numpys(backend: str, n: int, step: Any, first: tuple[Any, ...]) -> None:
    def loop(x: Any) -> Any:
        return rg.fori_loop(n, step(x), first)[-1]

    expected = plainly(n, step(3.0), first)[-1]
    with np.errstate(all="ignore"):
        assert np.isclose(rg.jit(loop, backend=backend)(3.0), expected, rtol=1e-14)
        assert np.isclose(rg.grad(loop, backend=backend)(3.0), expected / 3.0, rtol=1e-13)  # they are linear in x
        np.testing.assert_allclose(rg.vmap(loop, backend=backend)(np.array([3.0])), [expected], rtol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_that_ends_since_an_integer_wraps(backend: str) -> None:
    def doubled(x: Any) -> Any:
        return rg.while_loop(lambda c: c[0] > 0, lambda c: (c[0] * 2, c[1] * 0.5 + x), (ONE, 0.0))[1]

    with np.errstate(over="ignore"):
        assert (
            rg.jit(doubled, backend=backend)(3.0) == plainly(63, lambda _, c: (c[0], c[1] * 0.5 + 3.0), (ONE, 0.0))[1]
        )


COUNTING: dict[str, Callable[[Any], Any]] = {
    "steps": lambda x: rg.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 0.5 + x * c[0]), (0, 0.0))[1],
    "backwards": lambda x: rg.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 2, c[1] + x * c[0]), (9, 0.0))[1],
    "numbers of steps": lambda x: rg.fori_loop(9, lambda t, c: (c[0] + t * 3, c[1] + x * c[0]), (0, 0.0))[1],
    "in branches": lambda x: rg.fori_loop(
        9, lambda t, c: (rg.cond(c[1] > 2.0, lambda k: k + 1, lambda k: k, c[0]), c[1] + x * c[0]), (1, 0.0)
    )[1],
    "events": lambda x: rg.fori_loop(9, lambda t, c: (c[0] + (c[1] > 2.0), c[1] + x * c[0]), (1, 0.0))[1],
    "loops in loops": lambda x: rg.fori_loop(
        3, lambda t, y: rg.fori_loop(4, lambda s, c: (c[0] + 1, c[1] + x * (c[0] + 2 * s)), (t, y))[1], 0.0
    ),
}


@pytest.mark.parametrize("f", COUNTING.values(), ids=COUNTING)
def test_counters_stay_pythons_numbers(f: Callable[[Any], Any]) -> None:
    slope = rg.jit(f)
    assert "_numbers(" in slope.at(0.7).source
    rg.check_grads(f, (0.7,), order=2)


# The forward loops run on Python's numbers, and collect what the adjoint, which is on arrays or in C, reads.
COLLECTED: dict[str, tuple[Step, Any, Any]] = {
    "bools": (lambda _, c: (c[0] ^ True, c[1] + (c[0] + c[0])), np.bool_(True), 4),
    "roots of negatives": (lambda _, c: (c[0] - 1.0, c[1] + np.nan_to_num(c[0] ** 0.5)), 1.0, 3),
    "powers that overflow": (lambda _, c: (c[0] * 10, c[1] + 1 / c[0] ** 500), 1.0, 3),
    "quotients by zero": (lambda _, c: (c[0] - 1, c[1] + np.tanh(1 / c[0])), ONE, 3),
    "remainders by zero": (lambda _, c: (c[0] - 1, c[1] + 7 % c[0] + c[0] // (c[0] - 3)), 5 * ONE, 6),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("step", "first", "n"), COLLECTED.values(), ids=COLLECTED)
def test_lists_that_loops_collect_hold_numpys_numbers(backend: str, step: Step, first: Any, n: int) -> None:
    def times(x: Any) -> Any:
        def longer(t: int, c: tuple[Any, Any]) -> tuple[Any, Any]:
            after, added = step(t, (c[0], np.float64(0.0)))
            return after, c[1] + x * added

        return np.sum(rg.fori_loop(n, longer, (first, 0.0 * x))[1])

    strong = first if isinstance(first, np.generic) else np.float64(first)
    factor = plainly(n, step, (strong, np.float64(0.0)))[1]
    for x in (np.array([1.0, 2.0, 3.0]), 1.5):
        found = rg.grad(times, backend=backend)(x)
        assert np.asarray(found).dtype == np.float64
        np.testing.assert_allclose(found, np.full(np.shape(x), float(factor)), rtol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_narrow_integers_are_compared_with_numbers_of_steps_that_they_do_not_hold(backend: str) -> None:
    def f(x: Any) -> Any:
        def step(t: Any, c: Any) -> Any:
            small = np.arange(3, dtype=np.uint8)
            return (
                c
                + x * (np.uint8(3) > t - 2)
                + x * (np.int8(3) < 100 * t)
                + x * np.sum(small >= t - 2)
                + x * (t != np.int8(2))
            )

        return rg.fori_loop(4, step, 0.0)

    plain = sum((t - 2 < 3) + (100 * t > 3) + sum(k >= t - 2 for k in range(3)) + (t != 2) for t in range(4))
    assert rg.jit(f, backend=backend)(1.0) == plain
    assert rg.grad(f, backend=backend)(1.0) == plain


def test_ranges_of_long_chains_take_no_long_time() -> None:
    def f(x: Any) -> Any:
        def step(t: Any, c: Any) -> Any:
            n, m, y = c
            for _ in range(60):
                n, m = n + n, m + n
            return n, m, y * 0.5 + x * (n + m > 0)

        return rg.fori_loop(5, step, (ONE, 2 * ONE, 0.0))[2]

    with np.errstate(over="ignore"):
        assert np.isfinite(rg.jit(f)(1.0))
