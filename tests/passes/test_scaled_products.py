"""Products and sums of a matrix with scaled rows and columns are those of plain NumPy, on both sides of thresholds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes import scaled_products
from retrograd.passes.product_rules import LEAST_WORK
from retrograd.passes.rules import REASSOCIATE
from retrograd.passes.scaled_products import NARROW
from retrograd.passes.simplify import simplify
from tests.support.seeds import SEED

SIDE = math.isqrt(LEAST_WORK)  # of the smallest square matrix whose scales leave it
OWN = [rule for rule in REASSOCIATE if rule.then.__module__ == scaled_products.__name__]
READERS: dict[str, Callable[[Any, Any], Any]] = {
    "times a matrix": lambda m, z: m @ z,
    "times a vector": lambda m, z: m @ z[:, 0],
    "a matrix times it": lambda m, z: z.T @ m.T,
    "a vector times it": lambda m, z: z[:, 0] @ m.T,
    "sums over columns": lambda m, z: m.sum(axis=1),
    "sums over rows": lambda m, z: m.sum(axis=0, keepdims=True),
    "the sum": lambda m, z: m.sum(),
}
FORMS: dict[str, Callable[..., Any]] = {
    "column, row": lambda e, c, r, s: c[:, None] * r * e,
    "outer": lambda e, c, r, s: np.outer(c, r) * np.cos(e),
    "both sides": lambda e, c, r, s: (c[:, None] * e) * r,
    "quotients": lambda e, c, r, s: e / c[:, None] / r,
    "numbers": lambda e, c, r, s: -(2.5 * (c[:, None] * e) * s) * r / s,
    "a number": lambda e, c, r, s: e * s,
    "divided by a number": lambda e, c, r, s: np.cos(e) / s,
    "two matrices": lambda e, c, r, s: e * (c[:, None] * np.sin(e) * r),
    "a column alone": lambda e, c, r, s: c[:, None] * e,
    "a divisor": lambda e, c, r, s: c[:, None] / (e + 3.0) * r,
}


def values(n: int, m: int, width: int, dtype: str = "f8") -> tuple[Any, ...]:
    rng = np.random.default_rng(SEED)
    e, z = rng.uniform(-1, 1, (n, m)), rng.standard_normal((m, width))
    c, r = rng.uniform(0.5, 2, n), rng.uniform(-2, -0.5, m)
    return (*(x.astype(dtype) for x in (e, c, r, z)), np.dtype(dtype).type(1.3))


def fired(function: Callable[..., Any], *args: Any) -> int:
    """How many of the rules here apply to a program."""
    counts: Counter[str] = Counter()
    simplify(rg.trace(function)(*args), REASSOCIATE, counts)
    return sum(counts[rule.name] for rule in OWN)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", FORMS)
def test_products_and_sums_of_scaled_matrices(form: str, reader: str, dtype: str) -> None:
    for n, m in ((SIDE, SIDE), (SIDE + 5, SIDE), (SIDE, SIDE + 7), (SIDE, SIDE - 1), (LEAST_WORK, 1), (1, LEAST_WORK)):
        e, c, r, z, s = values(n, m, 3, dtype)

        def program(e: Any, c: Any, r: Any, z: Any, s: Any) -> Any:
            return READERS[reader](FORMS[form](e, c, r, s), z)

        plain = program(e, c, r, z, s)
        terms = READERS[reader](np.abs(FORMS[form](e, c, r, s)), np.abs(z))  # the sums of the sizes of all terms
        found = rg.jit(program)(e, c, r, z, s)
        assert found.dtype == plain.dtype
        assert found.shape == plain.shape
        assert (np.abs(found - plain) <= 40 * np.finfo(dtype).eps * terms).all()
        with rg.config(exact=True):
            np.testing.assert_array_equal(rg.jit(program)(e, c, r, z, s), plain)


def test_a_wrong_scale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law above can fail."""
    scaled = scaled_products._scaled
    monkeypatch.setattr(scaled_products, "_scaled", lambda x, scales, shape: scaled(x, scales[1:], shape))
    with pytest.raises(AssertionError):
        test_products_and_sums_of_scaled_matrices("column, row", "times a matrix", "f8")


@pytest.mark.parametrize(("n", "width", "times"), [(SIDE, 1, 1), (SIDE - 1, 1, 0), (256, 32, 1), (256, 33, 0)])
def test_small_matrices_and_wide_factors_stay(n: int, width: int, times: int) -> None:
    assert n * n >= LEAST_WORK or not times
    assert (NARROW * 2 * n * width <= n * n) == bool(times) or n < SIDE

    def program(e: Any, c: Any, r: Any, z: Any, s: Any) -> Any:
        return (c[:, None] * e * r) @ z

    args = values(n, n, width)
    assert fired(program, *args) == times
    np.testing.assert_allclose(rg.jit(program)(*args), program(*args), rtol=1e-12, atol=1e-12)


def test_numbers_leave_stacks_and_scaled_columns_if_the_result_is_small() -> None:
    rng = np.random.default_rng(SEED)
    stack, thin, column = (rng.standard_normal(shape) for shape in ((3, 80, 60), (3, 60, 5), (80, 1)))
    programs: list[tuple[Callable[..., Any], Any, int]] = [
        (lambda e, z, c: (0.3 * e) @ z, thin, 1),
        (lambda e, z, c: (e / 0.3) @ z, thin, 1),
        (lambda e, z, c: np.swapaxes(z, 1, 2) @ np.swapaxes(0.3 * e, 1, 2), thin, 0),  # seen through a permutation
        (lambda e, z, c: z @ (0.3 * e), np.ones((3, 5, 80)), 1),
        (lambda e, z, c: (0.3 * e) @ z, np.ones((3, 60, 60)), 0),
        (lambda e, z, c: (0.3 * e) @ z, np.ones((60, 5)), 0),  # one matrix for all
        (lambda e, z, c: (c * e) @ z, thin, 0),
        (lambda e, z, c: e[0].T @ (0.3 * z), np.ones((80, 3)), 0),
        (lambda e, z, c: z.T @ (0.3 * (c * e[0])), np.ones((80, 3)), 1),
    ]
    for program, z, times in programs:
        assert fired(program, stack, z, column) == times
        np.testing.assert_allclose(rg.jit(program)(stack, z, column), program(stack, z, column), rtol=1e-12, atol=1e-12)


def test_sums_in_single_precision_stay() -> None:
    def program(e: Any, c: Any, r: Any, z: Any, s: Any) -> Any:
        return (c[:, None] * e * r).sum(axis=1)

    assert fired(program, *values(SIDE, SIDE, 1)) == 1
    assert fired(program, *values(SIDE, SIDE, 1, "f4")) == 0
    assert fired(program, *(x.astype("c16") for x in values(SIDE, SIDE, 1))) == 0


def quadratic(x: Any, y: Any, length: Any) -> Any:
    """A form in a kernel matrix."""
    squares = (x**2).sum(axis=1)
    apart = squares[:, None] + squares - 2.0 * (x @ x.T)
    return y @ np.exp(-0.5 * apart / length**2) @ y


def test_a_form_multiplies_the_points_once() -> None:
    """The adjoint of the kernel matrix is never computed, and its products from both sides are one."""
    rng = np.random.default_rng(SEED)
    x, y = rng.standard_normal((SIDE + 1, 3)), rng.standard_normal(SIDE + 1)
    gradient = rg.grad(quadratic, argnums=(0, 1, 2))
    rg.check_grads(quadratic, (x, y, 1.5), order=2)
    source = gradient.source(x, y, 1.5)
    assert source.count(" @ ") + source.count("np.matmul") == 5, "one of them is of two vectors"
    with rg.config(exact=True):
        exact = rg.grad(quadratic, argnums=(0, 1, 2))(x, y, 1.5)
    for found, wanted in zip(gradient(x, y, 1.5), exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
    checkpointed = rg.grad(rg.checkpoint(quadratic), argnums=(0, 1, 2))(x, y, 1.5)
    for found, wanted in zip(gradient(x, y, 1.5), checkpointed, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
    lanes = rg.vmap(lambda y: rg.grad(quadratic)(x, y, 1.5))(np.stack([y, 2 * y]))
    np.testing.assert_allclose(lanes[0], gradient(x, y, 1.5)[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["e", "c", "r", "z"])
def test_what_is_no_number_stays_that(place: str, bad: float) -> None:
    def program(e: Any, c: Any, r: Any, z: Any, s: Any) -> Any:
        return (c[:, None] * e * r) @ z

    args = dict(zip("ecrzs", values(SIDE, SIDE, 2), strict=True))
    args[place].flat[3] = bad
    with np.errstate(all="ignore"):
        plain = program(**args)
        found = rg.jit(program)(*args.values())
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(plain))


def test_no_row() -> None:
    def program(e: Any, c: Any, r: Any, z: Any, s: Any) -> Any:
        return (c[:, None] * e * r) @ z

    assert rg.jit(program)(*values(0, 5000, 2)).shape == (0, 2)
    assert not rg.jit(program)(*values(5000, 0, 2)).any()
