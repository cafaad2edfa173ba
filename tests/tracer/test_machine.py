"""A machine that creates, views, reads, computes and writes at random, on NumPy's arrays and then on traced ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import retrograd as rg
from tests.programs.mutation import run
from tests.support.seeds import SEED
from tests.tracer.test_mutation import INPUTS, total

CREATE, READ, VIEW, COMPUTE, WRITE = 0, 1, 3, 4, 6
which = st.integers(0, 9)
choice = st.integers(0, 11)


class Arrays(RuleBasedStateMachine):
    """Keeps the instructions so far and what NumPy makes of them; at the end a trace must make the same."""

    def __init__(self) -> None:
        super().__init__()
        self.instructions: list[tuple[int, int, int, int]] = []
        self.x = INPUTS[0]
        self.made: list = []

    @initialize(k=st.integers(0, len(INPUTS) - 1))
    def begin(self, k: int) -> None:
        self.x = INPUTS[k]
        self.made = [self.x.copy()]

    def do(self, *instruction: int) -> None:
        """Add an instruction; earlier arrays may change through their views, so all is run anew."""
        instructions = [*self.instructions, instruction]
        self.made = run(instructions, self.x.copy())  # which may turn the instruction down
        self.instructions = instructions

    @rule(a=which, b=which, c=choice)
    def create(self, a: int, b: int, c: int) -> None:
        self.do(CREATE, a, b, c)

    @rule(a=which, b=which, c=choice)
    def read(self, a: int, b: int, c: int) -> None:
        self.do(READ, a, b, c)

    @rule(a=which, c=choice)
    def view(self, a: int, c: int) -> None:
        self.do(VIEW, a, 0, c)

    @rule(a=which, b=which, c=choice)
    def compute(self, a: int, b: int, c: int) -> None:
        self.do(COMPUTE, a, b, c)

    @rule(a=which, b=which, c=choice, kind=st.integers(WRITE, 10))
    @precondition(lambda self: any(v.ndim for v in self.made))
    def write(self, a: int, b: int, c: int, kind: int) -> None:
        self.do(kind, a, b, c)

    @invariant()
    def no_array_holds_objects(self) -> None:
        assert all(v.dtype != object for v in self.made)

    def teardown(self) -> None:
        if not self.instructions:
            return
        program, x = tuple(self.instructions), self.x
        before = x.copy()
        with rg.config(exact=True):
            found = rg.jit(lambda x: run(program, x))(x)
        np.testing.assert_array_equal(x, before)
        assert len(found) == len(self.made)
        sums = any(kind in {4, 5} and c % 12 == 5 for kind, _, _, c in program)  # their order is that of memory
        for a, b in zip(found, self.made, strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-13 if sums else 0, atol=1e-15 if sums else 0, strict=True)
        self.check_derivative(program)

    def check_derivative(self, program: tuple[tuple[int, int, int, int], ...]) -> None:
        v = np.cos(np.arange(1.0, self.x.size + 1)).reshape(self.x.shape)

        def f(x):
            return total(program, x * 1.0)

        slopes = [(f(self.x + h * v) - f(self.x - h * v)) / (2 * h) for h in (1e-4, 5e-5)]
        slope = (4 * slopes[1] - slopes[0]) / 3
        if abs(slopes[0] - slopes[1]) > 1e-4 * (1 + abs(slope)):
            return  # a comparison changes its outcome nearby
        assert np.sum(rg.vjp(f, self.x)[1](1.0)[0] * v) == pytest.approx(slope, rel=1e-6, abs=1e-7)


def sequences(count: int) -> None:
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    run_state_machine_as_test(
        Arrays,
        settings=settings(
            max_examples=count,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=quiet,
            derandomize=not SEED,
            print_blob=True,
        ),
    )


def test_sequences_of_operations_on_traced_arrays_do_what_they_do_on_numpys():
    sequences(40)


@pytest.mark.slow
def test_very_many_sequences_of_operations():
    sequences(5000)
