"""Python ints among arguments: traced once they vary, and static where Python must know them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])
VALUES = [2, 1, 2, 0, -1, 3, -2, 5, 7, 1, 0, 100, 2, 2**40, -(2**53), 2**53 + 1, 3]
MOST = len(set(VALUES)) + 1


def loop(x: Any, n: Any) -> Any:
    for k in range(min(n, 9)):
        x = np.sin(x) * (k + 1)
    return x


def label(x: Any, n: Any) -> Any:
    return {f"layer{n}": x * 2.0, "n": n}


def entry(x: Any, n: Any) -> Any:
    return x * {0: 1.0, 1: 2.0, 2: 3.0}[n]


def caught(x: Any, n: Any) -> Any:
    try:
        return x * [1.0, 2.0, 3.0][n]
    except IndexError:
        return -x


def raised(x: Any, n: Any) -> Any:
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    return x / (n + 1)


def kind(x: Any, n: Any) -> Any:
    return (x * n, type(n).__name__) if isinstance(n, int) and type(n) is int else x


# The most compilations that the values above may take: 2 where the int only enters arithmetic or decisions.
PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "sum": (lambda x, n: x + n, 2),
    "product": (lambda x, n: n * x * n, 2),
    "quotient": (lambda x, n: x / (n * n + 1), 2),
    "remainder": (lambda x, n: x % (abs(n) + 1) + n // 3, 2),
    "decay": (lambda x, n: x / (1.5 - 0.9 ** abs(n)), 2),
    "its own arithmetic": (lambda x, n: (n + 1) * 3 - n // 2, 2),
    "beyond 64 bits": (lambda x, n: x * float(n * n * n * n), 2),
    "result": (lambda x, n: (x, n, -n), 2),
    "float32": (lambda x, n: x.astype(np.float32) * n, 2),
    "root": (lambda x, n: np.sqrt(np.abs(n)) * x, 2),
    "larger": (np.maximum, 2),
    "chosen": (lambda x, n: np.where(x > n, x, n), 2),
    "two ways": (lambda x, n: x * n if n % 2 else -x, 3),
    "many ways": (lambda x, n: x * sum(2.0 if abs(n) > k else 1.0 for k in range(20)), MOST + 6),
    "small ints": (lambda x, n: x.astype(np.int8) * n, MOST),
    "exponent": (lambda x, n: x ** (n % 5 - 2), MOST),
    "loop": (loop, MOST),
    "label": (label, MOST),
    "entry": (entry, MOST),
    "caught": (caught, MOST),
    "raised": (raised, MOST),
    "axis": (lambda x, n: np.sum(np.stack([x, x]), axis=n % 2), MOST),
    "length": (lambda x, n: np.zeros(n % 7) + x[0], MOST),
    "slice": (lambda x, n: x[: n % 4], MOST),
    "element": (lambda x, n: x[n % 3], 2),
    "kind": (kind, 2),
}


def outcome(f: Callable[..., Any], *args: Any) -> str:
    """What a call gives, to the last bit, or raises."""
    try:
        with np.errstate(all="ignore"):
            return repr(f(*args))
    except (ArithmeticError, LookupError, ValueError) as fault:
        return repr(fault)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::retrograd.errors.ManyPathsWarning")
def test_every_value_gives_what_python_gives(name: str) -> None:
    f, most = PROGRAMS[name]
    g = rg.jit(f)
    assert [outcome(g, X, n) for n in VALUES] == [outcome(f, X, n) for n in VALUES]
    assert g.cache_info().misses <= most + 1  # one is too large to be traced


@pytest.mark.parametrize("transform", [rg.grad, rg.jacobian, rg.hessian, rg.value_and_grad, rg.jacfwd])
def test_derivatives_are_those_of_static_ints(transform: Any) -> None:
    def f(x: Any, n: Any) -> Any:
        return np.sum(np.sin(x * n) / (n + 2)) * 0.5 ** (n + 1)

    g = transform(f)
    for n in [1, 2, 3, 0, 4, 1]:
        anew = transform(lambda x, n=n: f(x, n))(X)
        assert repr(g(X, n)) == repr(anew)
    assert g.cache_info().misses == 2


def test_a_gradient_has_none_for_an_int_that_varies() -> None:
    g = rg.grad(lambda p: np.sum(p["w"] ** 2) * p["n"])
    for n in (1, 2, 3):
        found = g({"w": X, "n": n})
        assert found["n"] is None
        assert np.array_equal(found["w"], 2 * X * n)


def test_one_varies_and_the_other_stays_static() -> None:
    def f(x: Any, steps: Any, t: Any) -> Any:
        for _ in range(steps):
            x = x + 1.0 / (t + 1)
        return x

    g = rg.jit(f)
    for t in range(6):
        assert np.array_equal(g(X, 3, t), f(X, 3, t))
    assert g.cache_info().misses == 2
    for steps in (1, 2, 4):
        assert np.array_equal(g(X, steps, 5), f(X, steps, 5))


def test_what_happens_in_the_function_happens_once_a_recording() -> None:
    told: list[str] = []

    def f(x: Any, n: Any) -> Any:
        told.append("called")
        return x[: n % 3]

    g = rg.jit(f)
    counts = []
    for n in (1, 2, 3, 4):
        assert np.array_equal(g(X, n), X[: n % 3])
        counts.append(len(told))
    assert all(b - a == 1 for a, b in pairwise(counts))


def test_bools_and_subclasses_stay_static() -> None:
    class Level(int):
        pass

    g = rg.jit(lambda x, flag: (x, type(flag).__name__, flag is True))
    assert [g(X, v)[1:] for v in (True, False, 1, 2, Level(3), Level(4), True)] == [
        ("bool", True),
        ("bool", False),
        ("int", False),
        ("int", False),
        ("Level", False),
        ("Level", False),
        ("bool", True),
    ]
