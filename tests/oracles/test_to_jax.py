"""Compiled functions in JAX's programs: the same numbers as the same function in JAX."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrograd as rg
from retrograd import errors
from tests.support.changing_model import Model

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.array([0.3, -0.7, 1.1])
M = np.array([[1.0, 0.5, -0.2], [0.3, 2.0, 0.1]])
METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")


class Case(NamedTuple):
    """A function of an array namespace and arguments, all of which are differentiated."""

    run: Callable[..., Any]
    args: tuple[Any, ...]


class Pair(NamedTuple):
    left: Any
    right: Any


CASES = {
    "a number": Case(lambda np, x: np.sum(np.sin(x) * x), (X,)),
    "a vector": Case(lambda np, x: np.tanh(x[::-1] * x), (X,)),
    "two arguments": Case(lambda np, a, x: np.exp(a @ x), (M, X)),
    "trees": Case(
        lambda np, p, q: {"y": p["m"] @ p["x"] * q[0], "z": (np.sum(p["x"]), [q[1] ** 2])},
        ({"m": M, "x": X}, (2.0, 3.0)),
    ),
    "a named tuple": Case(lambda np, p: Pair(p.right * 2.0, np.sum(p.left)), (Pair(X, M),)),
    "a number of Python's": Case(lambda np, x: x**3, (2.0,)),
    "nothing that depends": Case(lambda np, x: (x * 2.0, np.ones(2)), (X,)),
    "complex": Case(lambda np, z: np.exp(z) * np.conj(z), (X + 1j * X[::-1],)),
    "complex from real": Case(lambda np, x: np.exp(1j * x), (X,)),
    "real from complex": Case(lambda np, z: np.sum(np.abs(z) ** 2 + np.real(z * z * 1j)), (X + 2j,)),
    "empty": Case(lambda np, x: np.sum(x) + x * 2.0, (np.zeros(0),)),
}
every_case = pytest.mark.parametrize("name", CASES)


def both(name: str, **options: Any) -> tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]:
    """Ours, theirs, and the arguments."""
    run, args = CASES[name]
    return rg.to_jax(lambda *args: run(np, *args), **options), lambda *args: run(jnp, *args), args


def close(found: Any, wanted: Any, rtol: float = 1e-12) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def pulled(f: Callable[..., Any]) -> Callable[..., Any]:
    """Value and cotangents of a function, for cotangents that differ from entry to entry."""

    def both_ways(*args: Any) -> Any:
        out, pullback = jax.vjp(f, *args)
        cts = jax.tree.map(lambda y: (jnp.arange(y.size).reshape(y.shape) + 1.5).astype(y.dtype), out)
        return out, pullback(cts)

    return both_ways


def number(f: Callable[..., Any]) -> Callable[..., Any]:
    """A real number made of all results."""
    return lambda *args: sum(jnp.sum(jnp.sin(jnp.abs(y) + 0.5)) for y in jax.tree.leaves(f(*args)))


@every_case
@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_pullbacks_are_those_of_jax(name, compiled):
    ours, theirs, args = both(name)
    wrap = jax.jit if compiled else lambda f: f
    close(wrap(ours)(*args), jax.jit(theirs)(*args))
    args = jax.tree.map(jnp.asarray, args)
    close(wrap(pulled(ours))(*args), pulled(theirs)(*args))


@every_case
def test_single_precision_stays_single(name):
    ours, theirs, args = both(name)
    args = jax.tree.map(lambda x: jnp.asarray(x, np.complex64 if np.iscomplexobj(x) else np.float32), args)
    close(pulled(ours)(*args), pulled(theirs)(*args), rtol=2e-6)


@every_case
def test_gradients_have_gradients(name):
    ours, theirs, args = both(name)
    at = tuple(range(len(args)))

    def second(f: Callable[..., Any]) -> Any:
        slope = jax.grad(number(f), at)
        squares = jax.grad(lambda *args: sum(jnp.sum(jnp.abs(g) ** 2) for g in jax.tree.leaves(slope(*args))), at)
        return jax.jit(squares)(*args)

    close(second(ours), second(theirs), rtol=1e-10)


def test_without_doubles_everything_is_single():
    with jax.enable_x64(False):
        for name in CASES:
            ours, theirs, args = both(name)
            args = jax.tree.map(jnp.asarray, args)
            close(pulled(ours)(*args), pulled(theirs)(*args), rtol=2e-6)
            close(jax.jit(ours)(*args), jax.jit(theirs)(*args), rtol=2e-6)


def test_third_derivatives():
    ours, theirs, (x,) = both("a number")
    for f in (jax.jacrev, lambda f: jax.jacrev(jax.jacrev(f)), lambda f: jax.jacrev(jax.jacrev(jax.jacrev(f)))):
        close(f(ours)(x), f(theirs)(x))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["a number", "a vector", "two arguments", "complex", "trees"])
def test_lanes(name, method):
    ours, theirs, args = both(name, vmap_method=method)
    stacked = jax.tree.map(lambda x: jnp.stack([x, x * 0.5, x - 0.25]), args)
    close(jax.vmap(ours)(*stacked), jax.vmap(theirs)(*stacked))
    close(jax.jit(jax.vmap(pulled(ours)))(*stacked), jax.vmap(pulled(theirs))(*stacked))
    first = (0, *(None for _ in args[1:]))
    close(jax.vmap(pulled(ours), first)(stacked[0], *args[1:]), jax.vmap(pulled(theirs), first)(stacked[0], *args[1:]))


@pytest.mark.parametrize("method", METHODS)
def test_lanes_of_lanes(method):
    ours, theirs, _ = both("two arguments", vmap_method=method)
    a, x = jnp.stack([M, 2 * M]), jnp.stack([X, X + 1.0, X - 1.0])

    def table(f: Callable[..., Any]) -> Any:
        return jax.vmap(jax.vmap(pulled(f), (None, 0)), (0, None))(a, x)

    close(table(ours), table(theirs))


def test_integers_have_no_derivative():
    def run(np: Any, x: Any, i: Any, n: Any) -> Any:
        return {"y": x[i] * n, "largest": np.argmax(x), "even": n % 2 == 0}

    ours, theirs = rg.to_jax(lambda *args: run(np, *args)), lambda *args: run(jnp, *args)
    args = (jnp.array(X), jnp.array([2, 0, 2]), jnp.array(3))
    (mine, pull), (other, wanted) = jax.vjp(ours, *args), jax.vjp(theirs, *args)
    close(mine, other)
    none = {"largest": np.zeros((), jax.dtypes.float0), "even": np.zeros((), jax.dtypes.float0)}
    found, expected = (p({"y": jnp.array([1.0, 2.0, 3.0]), **none}) for p in (pull, wanted))
    close(found[0], expected[0])
    assert [x.dtype for x in found[1:]] == [x.dtype for x in expected[1:]] == [jax.dtypes.float0] * 2
    assert [x.shape for x in found[1:]] == [(3,), ()]


def test_static_arguments_are_handed_on():
    power = rg.to_jax(lambda x, n, *, scale, how: getattr(np, how)(np.stack([x] * n) ** n) * scale)
    for n, how in ((2, "sum"), (3, "max"), (2, "max")):
        slope = jax.grad(lambda x: power(x, n, scale=2.0, how=how))(jnp.array(3.0))  # noqa: B023 - it runs at once
        assert slope == pytest.approx(2.0 * n * 3.0 ** (n - 1) * (n if how == "sum" else 1))


SCALE = [2.0]


@pytest.mark.parametrize("method", METHODS)
def test_what_the_function_reads_is_read_anew_by_compiled_programs(method):
    model = Model(2.0)
    read = rg.to_jax(lambda x: np.sum(SCALE[0] * x * x), vmap_method=method)
    passed = rg.to_jax(lambda m, x: np.sum(m.k * x * x), vmap_method=method)
    programs = [
        jax.jit(jax.grad(read)),
        jax.jit(jax.grad(lambda x: passed(model, x))),
        jax.jit(lambda x: jax.vmap(read)(jnp.stack([x, x]))),
        jax.jit(lambda x: jax.vmap(lambda x: jax.grad(passed, 1)(model, x))(jnp.stack([x, x]))),
    ]
    x = jnp.array(X)
    before = [program(x) for program in programs]
    SCALE[0] = model.k = 5.0
    try:
        for program, old in zip(programs, before, strict=True):
            np.testing.assert_allclose(program(x), 2.5 * old, rtol=1e-12)
    finally:
        SCALE[0] = 2.0
    assert passed(Model(7.0), x) == pytest.approx(7.0 * np.sum(X * X))


@pytest.mark.parametrize("method", METHODS)
def test_settings_hold_in_the_threads_of_jax(method):
    root = rg.to_jax(lambda x: np.where(x > 0, np.sqrt(x), 0.0), vmap_method=method)
    slope = jax.jit(jax.vmap(jax.grad(root)))
    with np.errstate(all="ignore"), rg.config(nan_safe=True):
        assert slope(jnp.array([0.0, 4.0])).tolist() == [0.0, 0.25]
    again = jax.jit(jax.vmap(jax.grad(root)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert np.isnan(again(jnp.array([0.0, 4.0]))).tolist() == [True, False]


def test_dataclasses_are_containers():
    @dataclass
    class Weights:
        w: Any
        name: str = "w"

    assert jax.grad(lambda w: rg.to_jax(lambda p: np.sum(p.w**2))(Weights(w))[()])(jnp.array(3.0)) == 6.0


class Weights:
    """A container of JAX's."""

    def __init__(self, w: Any) -> None:
        self.w = w


def test_containers_of_jax_must_be_known():
    jax.tree_util.register_pytree_node(Weights, lambda x: ((x.w,), None), lambda _, parts: Weights(*parts))
    slope = jax.grad(rg.to_jax(lambda p: np.sum(p.w**2)))
    with pytest.raises(errors.TreeError, match=r"a Weights is a container to JAX.*\n.*\n.*rg\.register_container"):
        slope(Weights(jnp.array(X)))
    rg.register_container(Weights, lambda x: ((x.w,), None), lambda _, parts: Weights(*parts))
    np.testing.assert_allclose(slope(Weights(jnp.array(X))).w, 2 * X)


EXACTLY = {"rtol": 1e-11, "atol": 1e-11}
SOLVED = {
    "inverse": lambda x: np.linalg.inv(np.outer(x, x) + np.eye(3)),
    "cholesky": lambda x: np.linalg.cholesky(np.outer(x, x) + np.eye(3)),
    "eigenvalues": lambda x: np.linalg.eigh(np.outer(x, x) + np.diag(np.arange(3.0)))[0],
    "a root": lambda x: rg.scipy.root(lambda y: y**3 + y - np.sum(x), 1.0).x,
    "a minimum": lambda x: rg.scipy.minimize(lambda y: np.sum((y - x) ** 4 + (y - x) ** 2), np.zeros(3), tol=1e-10).x,
    "an equation": lambda x: solve_ivp(
        lambda t, y: -x * y, (0.0, 1.0), np.ones(3), t_eval=[1.0], rtol=1e-11, atol=1e-11
    ).y[:, 0],
    "a quantile": lambda x: np.quantile(x, 0.3),
}


@pytest.mark.parametrize("name", SOLVED)
def test_what_jax_has_in_no_such_form_goes_in(name):
    f, x = SOLVED[name], jnp.array(X)
    found = jax.jit(jax.jacrev(rg.to_jax(f)))(x)
    np.testing.assert_allclose(found, rg.jacobian(f)(X), rtol=1e-8, atol=1e-9)


def test_derivatives_of_rg_and_compiled_functions_go_in():
    slope = rg.to_jax(rg.grad(lambda x: np.sum(x**3)))
    np.testing.assert_allclose(jax.jit(slope)(X), 3 * X**2)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(slope(x)))(X), 6 * X)


def test_it_is_the_function_itself_in_a_trace():
    f = rg.to_jax(lambda x: np.sum(x**3))
    np.testing.assert_allclose(rg.grad(f)(X), 3 * X**2)


def test_it_goes_through_scan_checkpoint_and_cond():
    f = rg.to_jax(lambda c, x: np.tanh(c + x))

    def rolled(g: Callable[..., Any], x: Any) -> Any:
        last = jax.lax.scan(lambda c, x: (g(c, x), c), jnp.zeros(()), x)[0]
        return jax.lax.cond(last > 0, jax.checkpoint(lambda c: g(c, c)), lambda c: c, last)

    close(jax.grad(lambda x: rolled(f, x))(X), jax.grad(lambda x: rolled(lambda c, x: jnp.tanh(c + x), x))(X))


def test_large_arrays_do_not_block():
    x = jnp.ones((1500, 1500))
    f = rg.to_jax(lambda x: np.sum(x * x))
    assert jax.jit(jax.grad(f))(x)[0, 0] == 2.0
    assert jax.jit(jax.vmap(jax.grad(f)))(x)[0, 0] == 2.0


def test_python_may_decide_where_shapes_are_given():
    def f(x: Any) -> Any:
        return x * x if x > 0 else -3.0 * x

    with pytest.raises(errors.ControlFlowError, match=r"remedy: give rg\.to_jax the shapes of the results"):
        rg.to_jax(f)(jnp.array(1.0))
    given = rg.to_jax(f, result_shape_dtypes=jax.ShapeDtypeStruct((), np.float64))
    assert [float(jax.jit(jax.grad(given))(x)) for x in (2.0, -2.0)] == [4.0, -3.0]
    np.testing.assert_allclose(jax.vmap(jax.grad(given))(jnp.array([2.0, -2.0])), [4.0, -3.0])
    np.testing.assert_allclose(jax.grad(jax.grad(given))(2.0), 2.0)


def test_a_shape_that_changes_is_an_error_that_names_the_line():
    sizes = [2]
    f = jax.jit(rg.to_jax(lambda x: x[: sizes[0]]))
    f(X)
    sizes[0] = 3
    with pytest.raises(Exception, match=r"a result is float64\[3\], but JAX expects float64\[2\]\n  at .*test_to_jax"):
        np.asarray(f(X))


def test_draws_are_refused():
    rng = np.random.default_rng(0)

    def noisy(x):
        return np.sum(x * rng.normal(size=3))

    with pytest.raises(errors.UnsupportedError, match="a draw"):
        rg.to_jax(noisy)(X)
    with pytest.raises(Exception, match="draws random numbers, and JAX runs it again"):
        np.asarray(rg.to_jax(noisy, result_shape_dtypes=jax.ShapeDtypeStruct((), np.float64))(X))
    together = rg.to_jax(noisy, vmap_method="broadcast_all", result_shape_dtypes=jax.ShapeDtypeStruct((), np.float64))
    with pytest.raises(Exception, match="draws random numbers, and JAX runs it again"):
        np.asarray(jax.vmap(together)(np.stack([X, X])))


def test_errors_are_named():
    with pytest.raises(errors.UnsupportedError, match="a result is a str, which JAX does not support"):
        rg.to_jax(lambda x: (x, "text"))(X)
    with pytest.raises(errors.OptionError, match="vmap_method='fast'"):
        rg.to_jax(np.sin, vmap_method="fast")
    with pytest.raises(errors.UnsupportedError, match="bfloat16"):
        rg.to_jax(np.sin)(jnp.ones(2, jnp.bfloat16))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(rg.to_jax(np.sin), (1.0,), (1.0,))


def test_without_jax_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(errors.UnsupportedError, match=r"(?s)the package jax, .*python -m pip install jax"):
        rg.to_jax(np.sin)


def test_a_random_key_is_refused_by_name() -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="key_data"):
        rg.to_jax(lambda key, x: 2.0 * x)(jax.random.key(0), jax.numpy.ones(2))
