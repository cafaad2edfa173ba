"""Results are the caller's own: never tracers, never views of arguments, captures or each other; arguments stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.arange(1.0, 7.0).reshape(2, 3)
CAPTURED = np.arange(6.0).reshape(2, 3)
MANY = np.cos(np.arange(40.0))


def made_in_the_trace(x):
    y = np.zeros((2, 3))
    y[0] = x[0]
    return y, y[0], y.T, y


def overwritten(x):
    y = x * 1.0
    z = y[0]
    y[1] = 5.0
    x[0, 0] = 7.0
    return y, z, x


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "the argument": lambda x: x,
    "the argument twice": lambda x: (x, x),
    "a slice": lambda x: x[0],
    "a transpose": lambda x: x.T,
    "a reshape": lambda x: x.reshape(-1),
    "reversed": lambda x: x[::-1, ::-1],
    "views of each other": lambda x: (x[0], x.T, x.reshape(3, 2)),
    "a value and its views": lambda x: (y := x * 2.0, y[0], y.T, y.reshape(-1)),
    "one value twice": lambda x: (y := x * 2.0, y, [y]),
    "a broadcast": lambda x: np.broadcast_to(x[0], (4, 3)),
    "a broadcast number": lambda x: np.broadcast_to(x[0, 0] * 2.0, (4, 3)),
    "a captured array": lambda x: (CAPTURED, x),
    "a view of a captured array": lambda x: (CAPTURED[0], CAPTURED.T, x),
    "constants": lambda x: (np.zeros(3), np.ones(3), np.arange(40.0), np.eye(3), x),
    "one constant twice": lambda x: (c := np.zeros(3), c, np.zeros(3), x),
    "many numbers made outside": lambda x: (MANY, MANY[:20], x),
    "many numbers made inside": lambda x: (np.linspace(0.0, 1.0, 50), x),
    "an array written into": made_in_the_trace,
    "overwritten": overwritten,
    "aliases": lambda x: (np.asarray(x), np.ravel(x), np.squeeze(x), x + 0.0),
    "a sum and its operand": lambda x: (s := np.sum(x, axis=0), s[1:], x),
    "results that are kept for the derivative": lambda x: (e := np.exp(x), e[0], np.sin(x)),
}
each_function = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, (tuple, list)):
        return [x for v in tree for x in leaves(v)]
    return [] if tree is None else [tree]


def jvp_of(f, x):
    return rg.jvp(f, (x,), (np.ones_like(x),))


def vjp_of(f, x):
    out, pullback = rg.vjp(f, x)
    ct = [np.ones_like(y) for y in leaves(out)]
    restored = rebuilt(out, iter(ct))
    return out, pullback(restored), pullback(restored)


def linearize_of(f, x):
    out, linear = rg.linearize(f, x)
    return out, linear(np.ones_like(x)), linear(np.ones_like(x))


def transposed(f, x):
    linear = rg.linearize(f, x)[1]
    out = linear(x)
    turn = rg.linear_transpose(linear, x)
    ct = rebuilt(out, iter([np.ones_like(y) for y in leaves(out)]))
    return out, turn(ct), turn(ct)


def rebuilt(tree: Any, values: Any) -> Any:
    if isinstance(tree, (tuple, list)):
        return type(tree)(rebuilt(v, values) for v in tree)
    return next(values)


def looped(f, x):
    return rg.scan(lambda c, row: (c, f(row.reshape(2, 3))), x, np.stack([x.reshape(-1)] * 2))


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "jit": lambda f, x: rg.jit(f)(x),
    "jit of jit": lambda f, x: rg.jit(rg.jit(f))(x),
    "value_and_grad": lambda f, x: rg.value_and_grad(lambda v: (np.sum(v), f(v)), has_aux=True)(x),
    "vmap": lambda f, x: rg.vmap(f)(np.stack([x, x])),
    "vmap over shared": lambda f, x: rg.vmap(lambda v, k: (f(v), k), in_axes=(None, 0))(x, np.ones(2)),
    "jvp": jvp_of,
    "vjp": vjp_of,
    "linearize": linearize_of,
    "linear_transpose": transposed,
    "scan": looped,
    "jacrev": lambda f, x: rg.jacrev(f)(x),
    "jacfwd": lambda f, x: rg.jacfwd(f)(x),
}
each_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS.keys())


@each_transform
@each_function
def test_results_share_no_memory_and_arguments_stay(transform, f):
    x = X.copy()
    before = [x.copy(), CAPTURED.copy(), MANY.copy()]
    found = leaves(transform(f, x))
    arrays = [y for y in found if isinstance(y, np.ndarray)]
    assert all(type(y) is np.ndarray or isinstance(y, (np.generic, float)) for y in found)
    for k, y in enumerate(arrays):
        assert y.flags.writeable
        for other in (x, CAPTURED, MANY, *arrays[:k]):
            assert not np.may_share_memory(y, other) or not np.shares_memory(y, other)
    for array, kept in zip((x, CAPTURED, MANY), before, strict=True):
        np.testing.assert_array_equal(array, kept)


@each_function
def test_results_may_be_written_into_without_changing_later_calls(f):
    compiled = rg.jit(f)
    first = leaves(compiled(X))
    expected = [np.copy(y) for y in first]
    for y in first:
        if isinstance(y, np.ndarray):
            y[...] = np.nan
    for y, e in zip(leaves(compiled(X)), expected, strict=True):
        np.testing.assert_array_equal(y, e)


def test_read_only_arguments_are_enough():
    x = X.copy()
    x.flags.writeable = False
    for transform in TRANSFORMS.values():
        for f in FUNCTIONS.values():
            transform(f, x)


def test_writing_into_an_argument_changes_only_the_copy_in_the_trace():
    @rg.jit
    def f(x, y):
        x[0] = 9.0
        y += 1.0
        return x, y

    x = X.copy()
    for _ in range(2):
        a, b = f(x, x.copy())
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(a[0], [9.0, 9.0, 9.0])
        np.testing.assert_array_equal(b, X + 1)


def test_a_captured_array_is_read_when_the_function_runs():
    w = np.ones(3)
    f = rg.jit(lambda x: x * w)
    g = rg.grad(lambda x: np.sum(x * w))
    np.testing.assert_array_equal(f(np.ones(3)), np.ones(3))
    np.testing.assert_array_equal(g(np.ones(3)), np.ones(3))
    w[:] = 5.0
    np.testing.assert_array_equal(f(np.ones(3)), np.full(3, 5.0))
    np.testing.assert_array_equal(g(np.ones(3)), np.full(3, 5.0))


def test_a_value_that_is_a_python_number_stays_one():
    found = rg.jit(lambda x: (3, True, 2.5, 1j, x, "s"))(1.0)
    assert found == (3, True, 2.5, 1j, 1.0, "s")
    assert [type(v) for v in found] == [int, bool, float, complex, float, str]
