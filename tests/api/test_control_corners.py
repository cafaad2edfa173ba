"""Choices and loops under every transform, with every dtype and kind of carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from tests.support import values

EXACT = 1e-11
W = np.array([[0.3, -0.2, 0.1], [0.0, 0.4, 0.2], [-0.5, 0.1, 0.3]])
X = np.array([0.5, -1.25, 2.0])


def settle(w: Any, x: Any) -> Any:
    """As many steps as it takes."""
    return rg.while_loop(lambda c: np.sum(c * c) > 0.1, lambda c: np.tanh(w @ c) + 0.3 * c, x)


def settle_plain(w: Any, x: Any) -> Any:
    while np.sum(x * x) > 0.1:
        x = np.tanh(w @ x) + 0.3 * x
    return x


def branch(w: Any, x: Any) -> Any:
    return rg.cond(np.sum(x) > 0, lambda v: np.sin(w @ v), lambda v: v * np.exp(-v), x)


def branch_plain(w: Any, x: Any) -> Any:
    return np.sin(w @ x) if np.sum(x) > 0 else x * np.exp(-x)


def counted(w: Any, x: Any) -> Any:
    n = np.sum(x > 0)
    return rg.fori_loop(n, lambda i, c: np.sin(w @ c) + i * x, x)


def counted_plain(w: Any, x: Any) -> Any:
    c = x
    for i in range(int(np.sum(x > 0))):
        c = np.sin(w @ c) + i * x
    return c


PAIRS = {"while": (settle, settle_plain), "cond": (branch, branch_plain), "fori": (counted, counted_plain)}
pairs = pytest.mark.parametrize(("ours", "plain"), PAIRS.values(), ids=PAIRS.keys())
POINTS = (X, -X, X * 0.1)


@pairs
@pytest.mark.parametrize("x", POINTS, ids=["first", "second", "third"])
def test_matrices_of_derivatives(ours: Any, plain: Any, x: Any) -> None:
    for jacobian in (rg.jacfwd, rg.jacrev):
        values.assert_close(jacobian(ours, (0, 1))(W, x), rg.jacrev(plain, (0, 1))(W, x), EXACT)
    f, g = (lambda w, x, h=h: np.sum(h(w, x) ** 2) for h in (ours, plain))
    values.assert_close(rg.hessian(f, (0, 1))(W, x), rg.hessian(g, (0, 1))(W, x), EXACT)


@pairs
@pytest.mark.parametrize("x", POINTS, ids=["first", "second", "third"])
def test_pullbacks_are_values(ours: Any, plain: Any, x: Any) -> None:
    """A pullback holds its residuals, lists of any length among them, and works again inside other functions."""
    out, pullback = rg.vjp(ours, W, x)
    values.assert_close(out, plain(W, x), EXACT)
    jacobian = rg.jacrev(plain, (0, 1))(W, x)
    for ct in np.eye(3):
        expected = [np.tensordot(ct, j, 1) for j in jacobian]
        values.assert_close(list(pullback(ct)), expected, EXACT)
        values.assert_close(list(rg.jit(lambda ct: pullback(ct))(ct)), expected, EXACT)  # noqa: PLW0108 - a function
    lanes = rg.vmap(pullback)(np.eye(3))
    values.assert_close(list(lanes), list(jacobian), EXACT)
    _, linear = rg.linearize(ours, W, x)
    values.assert_close(linear(W, x), rg.jvp(plain, (W, x), (W, x))[1], EXACT)
    values.assert_close(rg.jit(linear)(W, x), linear(W, x), EXACT)


@pairs
def test_a_derivative_of_a_pullback_inside_a_loop(ours: Any, plain: Any) -> None:
    def run(f: Any, loop: Any) -> Any:
        def g(w: Any, x: Any) -> Any:
            def body(c: Any) -> Any:
                _, pullback = rg.vjp(lambda v: f(w, v), c)
                return pullback(x * 0.5)[0]

            return np.sum(loop(body, x) ** 2)

        return rg.value_and_grad(g, (0, 1))

    found = run(ours, lambda body, x: rg.fori_loop(2, lambda i, c: body(c), x))(W, X)
    values.assert_close(found, run(plain, lambda body, x: body(body(x)))(W, X), EXACT)


@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")  # no steps ignore the matrix
@pairs
def test_lanes_of_lanes(ours: Any, plain: Any) -> None:
    ws = np.stack([W, W * 0.5])
    xs = np.stack([X, -X, X * 0.1, X * 2])
    found = rg.vmap(rg.vmap(ours, (None, 0)), (0, None))(ws, xs)
    expected = np.stack([[plain(w, x) for x in xs] for w in ws])
    values.assert_close(found, expected, EXACT)
    f, g = (lambda w, x, h=h: np.sum(h(w, x) ** 2) for h in (ours, plain))
    for function, other in ((rg.grad(f), rg.grad(g)), (rg.grad(f, 1), rg.grad(g, 1))):
        found = rg.vmap(rg.vmap(function, (None, 0)), (0, None))(ws, xs)
        values.assert_close(found, np.stack([[other(w, x) for x in xs] for w in ws]), EXACT)


def test_lanes_that_part_warn_of_nothing_and_end() -> None:
    """A lane is not computed in a branch that it does not take, where the loop would never end."""

    def f(x: Any) -> Any:
        return rg.cond(
            x > 0, lambda v: rg.while_loop(lambda c: c < 10, lambda c: c * 2, v) + np.log(v), lambda v: np.sqrt(-v), x
        )

    xs = np.array([1.0, -4.0, 3.0])
    with np.errstate(all="raise"):
        values.assert_close(rg.vmap(f)(xs), np.array([f(x) for x in xs]), EXACT)
        values.assert_close(rg.vmap(rg.grad(f))(xs), np.array([rg.grad(f)(x) for x in xs]), EXACT)


def test_a_loop_in_a_branch_that_is_not_taken_need_not_end() -> None:
    def f(x: Any) -> Any:
        slope = rg.grad(lambda v: rg.while_loop(lambda c: c < 10, lambda c: c * 2, v))
        forever = rg.jit(lambda v: rg.while_loop(lambda c: c < 10, lambda c: c * 2, v))
        return rg.cond(x > 0, lambda: slope(x) + forever(x), lambda: x * x)

    for g, expected in ((rg.jit(f), 16.0), (rg.grad(f), -8.0), (rg.jit(rg.vmap(f)), np.array([16.0]))):
        at = np.array([-4.0]) if np.ndim(expected) else -4.0
        values.assert_close(g(at), expected, EXACT)
    values.assert_close(rg.jit(f)(3.0), 4.0 + 12.0, EXACT)


@pytest.mark.parametrize("size", [0, 1])
def test_few_lanes(size: int) -> None:
    for f in (settle, branch, counted):
        xs = np.stack([X, -X])[:size] if size else np.zeros((0, 3))
        values.assert_close(rg.vmap(f, (None, 0))(W, xs), np.stack([f(W, x) for x in xs]) if size else xs, EXACT)
        g = rg.vmap(rg.grad(lambda w, x, f=f: np.sum(f(w, x)), 1), (None, 0))
        assert g(W, xs).shape == (size, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.complex64])
@pairs
def test_dtypes_stay(ours: Any, plain: Any, dtype: Any) -> None:
    if ours is not settle and np.dtype(dtype).kind == "c":
        pytest.skip("it compares")
    w, x = W.astype(dtype), X.astype(dtype)
    if np.dtype(dtype).kind == "c":
        ours, plain = (lambda w, x, f=f: f(w, x) for f in (absolute, absolute_plain))
    tolerance = 1e-5 if dtype in (np.float32, np.complex64) else EXACT
    values.assert_close(ours(w, x), plain(w, x), tolerance)
    assert ours(w, x).dtype == dtype
    f, g = (lambda w, x, h=h: np.sum(np.abs(h(w, x)) ** 2) for h in (ours, plain))
    for a, b in zip(rg.grad(f, (0, 1))(w, x), rg.grad(g, (0, 1))(w, x), strict=True):
        assert a.dtype == dtype
        values.assert_close(a, b, tolerance)


def absolute(w: Any, x: Any) -> Any:
    return rg.while_loop(lambda c: np.sum(np.abs(c) ** 2) > 0.1, lambda c: np.tanh(w @ c) + 0.3j * c, x)


def absolute_plain(w: Any, x: Any) -> Any:
    while np.sum(np.abs(x) ** 2) > 0.1:
        x = np.tanh(w @ x) + 0.3j * x
    return x


def test_linear_functions_with_choices_and_loops_are_transposed() -> None:
    n = np.int64(3)

    def by_loop(x: Any) -> Any:
        return rg.fori_loop(3, lambda i, c: W @ c * (i + 1.0), x)

    def by_count(x: Any) -> Any:
        return rg.fori_loop(n + 0 * x.shape[0], lambda i, c: W @ c, x)

    def by_condition(x: Any) -> Any:
        return rg.while_loop(lambda c: c[1] < 3, lambda c: (W @ c[0] * (c[1] + 1.0), c[1] + 1), (x, 0))[0]

    def by_choice(x: Any) -> Any:
        return rg.cond(W[0, 0] > 0, lambda v: W @ v, lambda v: v * 2, x)

    cube = W @ W @ W
    for f, matrix in ((by_loop, 6 * cube), (by_count, cube), (by_condition, 6 * cube), (by_choice, W)):
        (found,) = rg.linear_transpose(f, X)(np.arange(3.0))
        values.assert_close(found, matrix.T @ np.arange(3.0), EXACT)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class State:
    x: Any
    n: Any


@pytest.mark.parametrize("make", [Pair, State, lambda a, b: {"x": a, "n": b}, lambda a, b: [a, (b, None)]])
def test_carries_of_any_container(make: Any) -> None:
    def parts(c: Any) -> tuple[Any, Any]:
        if isinstance(c, dict):
            return c["x"], c["n"]
        if isinstance(c, list):
            return c[0], c[1][0]
        return (c.a, c.b) if isinstance(c, Pair) else (c.x, c.n)

    def again(x: Any, n: Any) -> Any:
        made = make(x, n)
        return [made[0], (made[1][0], None)] if isinstance(made, list) else made

    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            v, n = parts(c)
            return again(np.sin(v) * x, n + 1)

        first = rg.while_loop(lambda c: parts(c)[1] < 3, body, again(x, 0))
        second = rg.fori_loop(2, lambda i, c: body(c), first)
        third = rg.cond(parts(second)[1] > 3, body, lambda c: c, second)
        return np.sum(parts(third)[0])

    def plain(x: Any) -> Any:
        v = x
        for _ in range(6):
            v = np.sin(v) * x
        return np.sum(v)

    values.assert_close(rg.value_and_grad(f)(X), rg.value_and_grad(plain)(X), EXACT)


def test_rules_of_ones_own_and_stopped_gradients_inside() -> None:
    @rg.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, ()), lambda _, ct: (np.clip(ct, -0.5, 0.5),))

    def f(x: Any) -> Any:
        y = rg.fori_loop(3, lambda i, c: clipped(c) * 0.9 + rg.stop_gradient(c) * 0.1, x)
        z = rg.cond(np.sum(y) > 0, clipped, lambda v: v * 2, y)
        return np.sum(z * rg.while_loop(lambda c: np.sum(c) < 9, lambda c: clipped(c) + 1, rg.stop_gradient(x)))

    def plain(x: Any) -> Any:
        y = x
        for _ in range(3):
            y = clipped(y) * 0.9 + rg.stop_gradient(y) * 0.1
        z = clipped(y) if np.sum(y) > 0 else y * 2
        c = rg.stop_gradient(x)
        while np.sum(c) < 9:
            c = clipped(c) + 1
        return np.sum(z * c)

    for x in (X, -X):
        values.assert_close(rg.value_and_grad(f)(x), rg.value_and_grad(plain)(x), EXACT)


def test_reductions_of_a_loop_without_results() -> None:
    assert rg.fori_loop(3, lambda i, c: c, ()) == ()
    assert rg.while_loop(lambda c: False, lambda c: c, None) is None
    assert rg.cond(True, lambda: None, lambda: None) is None
    assert rg.jit(lambda x: rg.cond(x > 0, lambda: None, lambda: None))(1.0) is None


def test_python_numbers_take_the_dtype_of_the_others() -> None:
    x = np.float32(2.0)
    for f in (
        lambda x: rg.cond(x > 0, lambda: 0.0, lambda: x),
        lambda x: rg.cond(x < 0, lambda: 1, lambda: x),
        lambda x: rg.fori_loop(2, lambda i, c: 1.0, x),
        lambda x: rg.fori_loop(2, lambda i, c: c * i, x),
    ):
        assert rg.jit(f)(x).dtype == np.float32
    assert isinstance(rg.jit(lambda x: rg.fori_loop(2, lambda i, c: c * i, x))(x), np.float32)


def test_a_loop_index_behaves_as_the_int_of_range() -> None:
    x = np.arange(6.0, dtype=np.float32)

    def ours(x: Any) -> Any:
        return rg.fori_loop(3, lambda i, c: c + x[i] * i + x[i + 1 : i + 2][0] / (i + 1) + x[-i - 1] * (i % 2), x[0])

    def plain(x: Any) -> Any:
        c = x[0]
        for i in range(3):
            c = c + x[i] * i + x[i + 1 : i + 2][0] / (i + 1) + x[-i - 1] * (i % 2)
        return c

    with pytest.raises(rg.errors.ControlFlowError):  # the ends of a slice must be known
        rg.jit(ours)(x)

    def without_slices(f: Any) -> Any:
        return lambda x: f(lambda i, c: c + x[i] * i + x[i + 1] / (i + 1) + x[-i - 1] * (i % 2), x[0])

    def loop(body: Any, c: Any) -> Any:
        for i in range(3):
            c = body(i, c)
        return c

    found = rg.jit(without_slices(lambda body, c: rg.fori_loop(3, body, c)))(x)
    expected = without_slices(loop)(x)
    assert found.dtype == np.float32
    values.assert_close(found, expected, 1e-6)
    assert plain(x) == expected


BEYOND = 2**63  # the first number that an int64 does not hold


@pytest.mark.parametrize("transform", [lambda f: f, rg.jit, rg.grad], ids=["plain", "jit", "grad"])
@pytest.mark.parametrize(
    "bounds", [(BEYOND,), (0, BEYOND), (BEYOND, BEYOND + 3), (-BEYOND - 1, 1 - BEYOND), (2**70, 1)]
)
def test_bounds_beyond_int64_are_a_named_error(bounds: Any, transform: Any) -> None:
    def step(c: Any, _: Any) -> Any:
        return rg.fori_loop(*bounds, lambda i, c: c * 1.1, c), None

    for f in (lambda x: step(x, None)[0], lambda x: rg.scan(step, x, None, 2)[0]):
        with pytest.raises(rg.errors.OptionError, match="the index is an int64") as caught:
            transform(f)(1.0)
        assert "test_control_corners.py" in str(caught.value)


@pytest.mark.parametrize("bounds", [(BEYOND - 3, BEYOND - 1), (-BEYOND, 2 - BEYOND)])
def test_bounds_within_int64_count_as_range_does(bounds: Any) -> None:
    found = rg.fori_loop(*bounds, lambda i, c: (c[0] + (i - bounds[0]), i), (0, 0))
    assert found == (1, bounds[1] - 1)
