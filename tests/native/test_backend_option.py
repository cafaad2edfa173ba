"""The option ``backend`` of the transforms: code for one target, whatever the settings are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError
from tests.support import values
from tests.support.native import needs_compiler

pytestmark = needs_compiler
X = np.linspace(0.1, 1.0, 12)


def wave(x: Any) -> Any:
    return np.sum(np.sin(x) * np.exp(x))


def entries(x: Any) -> Any:
    return np.sin(x) * np.exp(x)


TRANSFORMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "jit": (rg.jit, entries, (X,)),
    "grad": (rg.grad, wave, (X,)),
    "value_and_grad": (rg.value_and_grad, wave, (X,)),
    "vmap": (rg.vmap, wave, (X.reshape(3, 4),)),
    "jacfwd": (rg.jacfwd, entries, (X,)),
    "jacrev": (rg.jacrev, entries, (X,)),
    "jacobian": (rg.jacobian, entries, (X,)),
    "hessian": (rg.hessian, wave, (X,)),
    "hvp": (rg.hvp, wave, (X, X)),
}
over_transforms = pytest.mark.parametrize("name", TRANSFORMS)


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


@over_transforms
def test_the_option_chooses_the_target(name: str) -> None:
    transform, function, args = TRANSFORMS[name]
    with rg.config(backend="native"):
        expected = leaves(transform(function)(*args))
        plainly = transform(function, backend="numpy")
        assert plainly.at(*args).executable.target.name == "numpy"
    made = transform(function, backend="native")
    assert made.at(*args).executable.target.name == "native"
    assert made.executable(*args).module.kernels
    values.assert_same_bits(leaves(made(*args)), expected)
    values.assert_close(leaves(plainly(*args)), expected, 1e-12)
    assert transform(function).at(*args).executable.target.name == "numpy"


@over_transforms
def test_an_unknown_backend_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="backend='fortran'"):
        TRANSFORMS[name][0](TRANSFORMS[name][1], backend="fortran")


def test_as_a_decorator() -> None:
    @rg.grad(backend="native")
    def slope(x: Any) -> Any:
        return np.sum(np.sin(x) * x)

    assert slope.at(X).executable.target.name == "native"
    np.testing.assert_allclose(slope(X), np.cos(X) * X + np.sin(X), rtol=1e-14)


@pytest.mark.parametrize("at_a_point", [rg.vjp, rg.linearize])
def test_both_halves_of_a_derivative_at_a_point(at_a_point: Callable[..., Any]) -> None:
    def made(**options: Any) -> list[Any]:
        value, rest = at_a_point(entries, X, **options)
        return [value, *leaves(rest(X))]

    with rg.config(backend="native"):
        expected = made()
    values.assert_same_bits(made(backend="native"), expected)
    values.assert_close(made(), expected, 1e-13)


def test_tangents() -> None:
    with rg.config(backend="native"):
        expected = rg.jvp(entries, (X,), (X,))
    values.assert_same_bits(list(rg.jvp(entries, (X,), (X,), backend="native")), list(expected))


def test_what_is_made_later_is_made_by_the_settings_of_the_call() -> None:
    with rg.config(backend="native"):
        made = rg.grad(wave).at(X)
        _, pullback = rg.vjp(entries, X)
        expected = rg.vjp(entries, X)[1](X)[0]
    assert made.executable.target.name == "native"
    values.assert_same_bits([pullback(X)[0]], [expected])


def test_one_function_under_several_settings() -> None:
    made = rg.grad(wave, backend="native")
    first = made(X)
    with rg.config(backend="native"):
        second = made(X)
    with rg.config(exact=True):
        assert made.at(X).executable.target.name == "numpy"
        exact = made(X)
    values.assert_same_bits([second, made(X)], [first, first])
    with rg.config(exact=True):
        values.assert_same_bits([exact], [rg.grad(wave)(X)])


def test_a_known_call_is_found_at_once() -> None:
    made = rg.grad(wave, backend="native")
    made(X)
    before = made.cache_info()
    assert {type(serve).__name__ for serve in made._servers} == {"builtin_function_or_method", "function"}
    made(X)
    assert made.cache_info().hits == before.hits + 1
    assert made.cache_info().misses == before.misses
    assert "nothing would be compiled" in made.explain_retrace(X)


def test_within_another_trace_the_outer_function_decides() -> None:
    inner = rg.jit(entries, backend="native")
    outer = rg.grad(lambda x: np.sum(inner(x)))
    assert outer.at(X).executable.target.name == "numpy"
    inner = rg.jit(entries, backend="numpy")
    outer = rg.grad(lambda x: np.sum(inner(x)), backend="native")
    assert outer.at(X).executable.target.name == "native"


def four_gates(h: Any, w: Any) -> Any:
    def step(_: Any, h: Any) -> Any:
        gates = h @ np.concatenate([w, w.T, -w, w @ w], axis=1)
        n = h.shape[1]
        a, b, c, d = (1.0 / (1.0 + np.exp(-gates[:, k * n : (k + 1) * n])) for k in range(4))
        return a * h + b * c - 0.5 * d

    return np.sum(rg.fori_loop(100, step, h) ** 2)


def kept(made: Any) -> int:
    """How many values a gradient keeps in each step of its loop."""
    return int(made.source.count(".append("))


def test_a_gradient_within_a_function_is_made_for_the_target_of_that() -> None:
    rng = np.random.default_rng(3)
    h, w = rng.standard_normal((20, 6)), rng.standard_normal((6, 6))
    inner = rg.grad(four_gates)
    made = rg.jit(inner, backend="native")
    in_c, for_numpy = kept(rg.grad(four_gates, backend="native").at(h, w)), kept(inner.at(h, w))
    assert in_c > for_numpy  # C keeps the exponentials of gates
    assert kept(made.at(h, w)) == in_c
    assert kept(rg.jit(inner).at(h, w)) == for_numpy  # the trace for C is not that for NumPy
    values.assert_close([made(h, w)], [inner(h, w)], 1e-12)


def test_copies_and_pickles_keep_the_option() -> None:
    made = rg.grad(wave, backend="native")
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other.at(X).executable.target.name == "native"
    sparse = pickle.loads(pickle.dumps(rg.jacobian(entries, sparse=True, backend="native")))
    assert sparse._push.at(np.eye(1, 12), X).executable.target.name == "native"
    np.testing.assert_allclose(sparse(X).toarray(), rg.jacfwd(entries)(X), rtol=1e-13)


def test_static_arguments_beside_the_option() -> None:
    power = rg.jit(lambda x, n: np.sin(x) * x**n, static_argnums=1, backend="native")
    assert power.at(X, 3).executable.target.name == "native"
    np.testing.assert_allclose(power(X, 3), np.sin(X) * X**3, rtol=1e-14)
