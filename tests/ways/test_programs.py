"""Programs whose loops decide give the bits of plain Python from every start, and the derivatives of their own ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.folding import Folding
from tests.ways.generated import generated
from tests.ways.programs import PROGRAMS, Start, counted_hits

pytestmark = pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
# Programs of which one loop serves nearly all starts. The others keep a state that no trace sees, or do not fold yet.
FOLDING = [
    *(
        "ball",
        "nested",
        "metropolis",
        "bisection",
        "stored",
        "three_balls",
        "walls",
        "adaptive",
        "until_small",
        "queue",
    ),
    *("raising", "two_loops"),
]
Plainly = Callable[[Any], Callable[..., Any]]


def outcome(function: Callable[..., Any], start: Start) -> Any:
    """The result, or the text of the exception."""
    try:
        return function(*start)
    except ValueError as fault:
        return str(fault)


def check(program: Callable[..., Any], starts: list[Start], unfolded: Plainly, note: str = "") -> None:
    """Compare values with plain Python's, and gradients with those of ways that are not folded."""
    argnums = tuple(range(len(starts[0])))
    with rg.config(exact=True):
        compiled, gradient = rg.jit(program), rg.value_and_grad(program, argnums)
        plain_gradient = unfolded(rg.value_and_grad(program, argnums))
        for start in [*starts, *starts[:3]]:
            plain, found = outcome(program, start), outcome(compiled, start)
            derived, expected = outcome(gradient, start), outcome(plain_gradient, start)
            if isinstance(plain, str):
                assert [found, derived] == [plain, plain]
                continue
            np.testing.assert_array_equal(found, plain, err_msg=note)
            np.testing.assert_array_equal(derived[0], plain, err_msg=note)
            scale = max(float(np.max(np.abs(x))) for x in expected[1])
            for mine, other in zip(derived[1], expected[1], strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11 * (1.0 + scale), err_msg=note)


def starts_of(name: str, count: int) -> list[Start]:
    rng = np.random.default_rng(7)
    return [PROGRAMS[name][1](rng) for _ in range(count)]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_from_a_few_starts(name: str, unfolded: Plainly) -> None:
    check(PROGRAMS[name][0], starts_of(name, 4), unfolded)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_from_every_start(name: str, unfolded: Plainly) -> None:
    check(PROGRAMS[name][0], starts_of(name, 50), unfolded)


def test_hits_that_python_counts_decide_as_they_should(folds: list[Folding]) -> None:
    """What folds before the sixth hit is wrong after it."""
    with rg.config(exact=True):
        compiled = rg.jit(lambda y, v: 1.0 * counted_hits(y, v))
        starts = starts_of("counted_hits", 16)
        for start in [*starts, *starts]:
            assert compiled(*start) == counted_hits(*start)
    assert any(folding.fold is not None for folding in folds)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", FOLDING)
def test_one_loop_serves_all_starts(name: str, folds: list[Folding]) -> None:
    program = PROGRAMS[name][0]
    gradient = rg.grad(lambda x, y: 1.0 * program(x, y))
    for start in starts_of(name, 12):
        gradient(*start)
    (folding,) = folds
    assert folding.fold is not None
    assert len(folding.fold.proved) >= 4


@pytest.mark.parametrize("seed", range(2))
def test_a_generated_program_is_right(seed: int, unfolded: Plainly) -> None:
    check_generated(seed, unfolded)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 3100, 50))
def test_many_generated_programs_are_right(first: int, unfolded: Plainly) -> None:
    for seed in range(first, first + 50):
        check_generated(seed, unfolded)


def check_generated(seed: int, unfolded: Plainly) -> None:
    source, program = generated(seed)
    rng = np.random.default_rng(seed)
    check(program, [(rng.normal(), rng.normal(), rng.normal(size=5)) for _ in range(6)], unfolded, source)
