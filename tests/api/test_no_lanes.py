"""vmap without lanes: the function never runs, so nothing in it hangs, fails, throws, warns or draws."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

Function = Callable[..., Any]
NONE = np.zeros(0)


def doubled(x: Any) -> Any:
    """A loop that never ends for 0."""
    return rg.while_loop(lambda c: c < 100, lambda c: c * 2, x)


def thrown(x: Any) -> Any:
    rg.throw_if(x < 1, x)
    return 2.0 * x


def written(x: Any) -> Any:
    found = np.zeros(3)
    found[x.astype(int) - 5] = 1.0
    return found[0] * x


# None of these functions can run on a zero.
FUNCTIONS: dict[str, Function] = {
    "a while loop": doubled,
    "a loop within a loop": lambda x: rg.scan(lambda c, _: (doubled(c), None), x, None, 2)[0],
    "a throw": thrown,
    "a throw in a branch": lambda x: rg.cond(x < 1, thrown, lambda v: v, x),
    "a caught throw": lambda x: rg.try_catch(lambda: thrown(x), doubled),
    "an inverse": lambda x: np.sum(np.linalg.inv(x * np.eye(2))),
    "a factor": lambda x: np.linalg.cholesky(x * np.eye(2))[0, 0],
    "a root": lambda x: rg.scipy.brentq(lambda z: z**3 - x, 1e-3, 10.0),
    "a read by index": lambda x: x * np.ones(3)[x.astype(int) - 5],
    "a write by index": written,
    "a logarithm": lambda x: math.log(2.0 * x),
    "an inverse cosine": lambda x: math.acos(x + 2.0),
    "a quotient": lambda x: 1.0 / x.item(),
    "a rest": lambda x: 1.0 % x.item(),
    "a mean with weights": lambda x: np.average(np.ones(3), weights=x * np.ones(3)),
}


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", rg.errors.IndependentOutputWarning)
        yield


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_function_does_not_run(f: Function, backend: str) -> None:
    mapped = rg.vmap(f)

    def all_of(x: Any) -> Any:
        return rg.jit(mapped, backend=backend)(x)

    assert mapped(NONE).shape == all_of(NONE).shape == (0,)
    assert rg.vmap(rg.grad(f))(NONE).shape == (0,)
    assert rg.grad(lambda x: np.sum(all_of(x)))(NONE).shape == (0,)
    assert rg.vmap(mapped)(np.zeros((3, 0))).shape == (3, 0)
    assert rg.vmap(mapped)(np.zeros((0, 3))).shape == (0, 3)
    assert rg.scan(lambda c, x: (c, mapped(x)), 0.0, np.zeros((2, 0)))[1].shape == (2, 0)


def test_second_derivatives() -> None:
    assert rg.hessian(lambda x: np.sum(rg.vmap(doubled)(x)))(NONE).shape == (0, 0)
    assert rg.jacobian(lambda n: rg.vmap(lambda x: doubled(x * n))(NONE))(2.0).shape == (0,)


@pytest.mark.parametrize("f", [doubled, thrown, lambda n: 1 / n, np.sqrt], ids=["loop", "throw", "quotient", "root"])
def test_what_depends_on_shared_arguments_alone_does_not_run_either(f: Function) -> None:
    mapped = rg.vmap(lambda x, n: x * f(n), in_axes=(0, None))
    assert mapped(NONE, 0.0).shape == (0,)
    assert rg.grad(lambda n: np.sum(mapped(NONE, n)))(0.0) == 0.0


def test_axes_of_trees() -> None:
    args = {"a": np.zeros((2, 0)), "b": [np.ones(2)]}
    mapped = rg.vmap(lambda d: np.sum(d["b"][0]) * doubled(d["a"][0]), in_axes=({"a": 1, "b": [None]},), out_axes=0)
    assert mapped(args).shape == (0,)
    assert rg.vmap(doubled, in_axes=None, axis_size=0)(0.0).shape == (0,)


def test_python_decides_by_shared_arguments() -> None:
    mapped = rg.vmap(lambda x, n: x if n > 0 else np.stack([x, x]), in_axes=(0, None))
    assert [mapped(NONE, n).shape for n in (1.0, -1.0, 2.0)] == [(0,), (0, 2), (0,)]


def test_nothing_is_drawn() -> None:
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    assert rg.vmap(lambda x: x + rng.normal())(NONE).shape == (0,)
    assert rng.normal() == other.normal()


BRANCHES: dict[str, Function] = {
    "a logarithm": lambda x: math.log(2.0 * x),
    "a quotient": lambda x: 1.0 / (x + 1.0),
    "a rest": lambda x: 1.0 % (x + 1.0),
    "a power": lambda x: (x + 1.0) ** -1.5,
    "a mean with weights": lambda x: np.average(np.ones(2), weights=(x + 1.0) * np.ones(2)),
}


@pytest.mark.parametrize("f", BRANCHES.values(), ids=BRANCHES)
def test_a_branch_that_is_not_taken_cannot_fail(f: Function) -> None:
    choose = rg.jit(lambda x: rg.cond(x > 0, lambda: 1.0 * f(x), lambda: 0.0))
    assert choose(-1.0) == 0.0
    np.testing.assert_allclose(choose(2.0), f(2.0))
    assert rg.grad(choose)(-1.0) == 0.0
