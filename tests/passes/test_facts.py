"""Facts of matrices are true of their values, and the rewrites that need them give the values of plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.api.gradients import before_derivatives
from retrograd.ir.builder import Symbol
from retrograd.ir.evaluate import evaluate
from retrograd.ir.graph import Graph
from retrograd.ir.parser import parse
from retrograd.ops.linalg.positive import FEWEST
from retrograd.passes import facts as facts_module
from retrograd.passes.facts import Fact, facts
from retrograd.passes.simplify import Simplifier
from tests.support.seeds import SEED

N = 5
TRIANGLES = (Fact.LOWER, Fact.UPPER)


def known(graph: Graph) -> dict[Any, Fact]:
    """The facts of all values of a graph that have any."""
    b = Simplifier(())
    b.inputs.extend(graph.inputs)
    for node in graph.nodes:
        b.nodes.append(node)
        b.made.update(dict.fromkeys(node.outputs, node))
    values = [v for node in graph.nodes for v in node.outputs if v.aval.ndim > 1]
    return {v: found for v in values if (found := facts(Symbol(b, v)))}


def check(function: Callable[..., Any], *args: Any) -> dict[str, int]:
    """Compare each fact of a program with the values; how many there are of each."""
    graph = rg.trace(function)(*args)
    found = known(graph)
    whole = Graph(graph.name, graph.inputs, graph.nodes, tuple(found))
    counts: dict[str, int] = {}
    with np.errstate(all="ignore"):
        values = evaluate(whole, args)
    largest = max((np.abs(x).max() for x in values if np.isfinite(x).all()), default=0.0)  # of terms that may cancel
    for fact, x in zip(found.values(), values, strict=True):
        for one in fact:
            counts[one.name or ""] = counts.get(one.name or "", 0) + 1
        if Fact.LOWER in fact:
            assert not np.triu(x, 1).any()
        if Fact.UPPER in fact:
            assert not np.tril(x, -1).any()
        if Fact.SYMMETRIC in fact:
            np.testing.assert_allclose(x, np.swapaxes(x, -1, -2), rtol=1e-12, atol=1e-13 * largest)
    return counts


def drawn(rng: np.random.Generator, matrices: list[Any], v: Any, eye: Any) -> Any:
    """A matrix from operations on others."""
    x, y = (matrices[i] for i in rng.integers(0, len(matrices), 2))
    makers: list[Callable[[], Any]] = [
        lambda: x + y,
        lambda: x - y,
        lambda: x * y,
        lambda: x * 0.5,
        lambda: -2.0 * x,
        lambda: x / 4.0,
        lambda: -x,
        lambda: x @ y,
        lambda: x @ x.T,
        lambda: x.T @ x,
        lambda: x.T @ y,
        lambda: x.T,
        lambda: x + x.T,
        lambda: x - x.T,
        lambda: x * x.T,
        lambda: np.exp(-x * x),
        lambda: np.cos(x),
        lambda: np.maximum(x, y),
        lambda: np.where(x > 0, x, y),
        lambda: np.tril(x, int(rng.integers(-1, 2))),
        lambda: np.triu(x, int(rng.integers(-1, 2))),
        lambda: np.diag(x[0]),
        lambda: v[:, None] + v,
        lambda: v[:, None] - v,
        lambda: v[:, None] * (3.0 * v),
        lambda: v[:, None] + 3.0 * v,
        lambda: v[:, None] * x,
        lambda: x[0][:, None] * v,
        lambda: np.outer(v, -v),
        lambda: np.sum(x) * y,
        lambda: np.linalg.cholesky(x @ x.T + 50.0 * eye),
        lambda: written(x),
        lambda: np.diag(np.sign(v)) + x,
        lambda: x[::-1],
        lambda: np.broadcast_to(x[:1], (N, N)),
    ]
    return makers[rng.integers(0, len(makers))]()


def written(x: Any) -> Any:
    y = x.copy()
    y[0, N - 1] = 2.0
    return y


def program(seed: int) -> Callable[..., Any]:
    def run(x: Any, v: Any, eye: Any) -> Any:
        rng = np.random.default_rng(seed)
        matrices = [x]
        for _ in range(25):
            made = drawn(rng, matrices, v, eye)
            matrices.append(made / (1.0 + np.sum(np.abs(made))) if rng.random() < 0.3 else made)
        return matrices[-1] + sum(np.sum(np.abs(m) < 1e-300) for m in matrices)

    return run


ARGS = (np.random.default_rng(5).uniform(-1.0, 1.0, (N, N)), np.linspace(0.3, 1.4, N), np.eye(N))


def test_facts_are_true_of_random_programs() -> None:
    counts: dict[str, int] = {}
    for k in range(16):
        for name, n in check(program(SEED + k), *ARGS).items():
            counts[name] = counts.get(name, 0) + n
    assert all(counts[str(fact.name)] > 5 for fact in (*TRIANGLES, Fact.SYMMETRIC))


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(facts_module.RULES, rg.trace(lambda x: x - x.T)(ARGS[0]).nodes[-1].prim, facts_module._sum)
    monkeypatch.setattr(facts_module, "_adds_axes", lambda node: True)
    with pytest.raises(AssertionError):
        check(lambda x, v, eye: x - x.T, *ARGS)


def test_a_write_ends_facts() -> None:
    x = np.eye(FEWEST) + 0.1 * np.random.default_rng(0).standard_normal((FEWEST, FEWEST))

    def solved(x: Any) -> Any:
        low = np.tril(x)
        before = np.linalg.solve(low, x[0])
        low[0, 3] = 0.5
        return before, np.linalg.solve(low, x[0])

    f = rg.jit(solved)
    for found, expected in zip(f(x), solved(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert f.at(x).source.count("solve_triangular(") == 1
    assert f.at(x).source.count("= solve_by_lu(") == 1


def likelihood(k: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(k)
    weights = np.linalg.solve(factor.T, np.linalg.solve(factor, y))
    return 0.5 * (y @ weights) + np.sum(np.log(np.diag(factor)))


def matrix(n: int, dtype: str = "f8") -> Any:
    """Positive definite in its lower triangle; the upper one is not read."""
    x = np.random.default_rng(n).standard_normal((n, n))
    return (x @ x.T + n * np.eye(n) + np.triu(np.full((n, n), 7.0), 1)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [1, FEWEST - 1, FEWEST, 40])
def test_a_likelihood_with_a_cholesky_factor(n: int, dtype: str) -> None:
    k, y = matrix(n, dtype), np.linspace(1.0, 2.0, n).astype(dtype)
    gradient = rg.value_and_grad(likelihood, argnums=(0, 1))
    found = gradient(k, y)
    with rg.config(exact=True):
        value, (dk, dy) = gradient(k, y)
        assert "half_inverse" not in gradient.at(k, y).source
        assert "potrf" not in gradient.at(k, y).source
    tolerance = {"rtol": 1e3 * np.finfo(dtype).eps, "atol": 50 * np.finfo(dtype).eps}
    np.testing.assert_allclose(found[0], value, **tolerance)
    np.testing.assert_allclose(found[1][0], dk, **tolerance)
    np.testing.assert_allclose(found[1][1], dy, **tolerance)
    assert not np.triu(found[1][0], 1).any()
    assert found[1][0].dtype == dtype
    assert ("potri" in gradient.at(k, y).source) == (n >= FEWEST)


@pytest.mark.parametrize("n", [3, 17])
def test_derivatives_of_a_likelihood(n: int) -> None:
    k, y = matrix(n), np.linspace(1.0, 2.0, n)
    rg.check_grads(likelihood, (k, y), order=2)
    ks = np.stack([k, 2.0 * k, k + np.eye(n)])
    found = rg.vmap(rg.grad(likelihood, argnums=(0, 1)), (0, None))(ks, y)
    for lane, one in enumerate(ks):
        for a, b in zip(found, rg.grad(likelihood, argnums=(0, 1))(one, y), strict=True):
            np.testing.assert_allclose(a[lane], b, rtol=1e-10, atol=1e-12)


def dotted(k: Any, y: Any) -> Any:
    z = np.linalg.solve(np.linalg.cholesky(k), y)
    return z @ z


def halved(k: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(k)
    z = np.linalg.solve(factor, y)
    return 0.5 * z @ z + np.sum(np.log(np.diag(factor)))


def squared(k: Any, y: Any) -> Any:
    return np.sum(np.linalg.solve(np.linalg.cholesky(k), y) ** 2)


def columns(k: Any, y: Any) -> Any:
    z = np.linalg.solve(np.linalg.cholesky(k), np.stack([y, y * y], axis=1))
    return np.sum(np.sum(z**2, axis=0) * np.sin(y[:1])) + np.sum(z**2)


def by_scipy(k: Any, y: Any) -> Any:
    factor = scipy.linalg.cholesky(k, lower=True)
    z = scipy.linalg.solve_triangular(factor, y, lower=True)
    return z @ z + np.sum(z**2) + np.sin(y) @ scipy.linalg.solve_triangular(factor, z, lower=True, trans=1)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [1, FEWEST - 1, FEWEST, 40])
@pytest.mark.parametrize("form", [dotted, halved, squared, columns, by_scipy])
def test_squares_of_half_a_solution(form: Callable[..., Any], n: int, dtype: str) -> None:
    k, y = matrix(n, dtype), np.linspace(1.0, 2.0, n).astype(dtype)
    found = rg.value_and_grad(form, argnums=(0, 1))(k, y)
    with rg.config(exact=True):
        value, (dk, dy) = rg.value_and_grad(form, argnums=(0, 1))(k, y)
    tolerance = {"rtol": 1e3 * np.finfo(dtype).eps, "atol": 50 * np.finfo(dtype).eps}
    np.testing.assert_allclose(found[0], value, **tolerance)
    np.testing.assert_allclose(found[1][0], dk, **tolerance)
    np.testing.assert_allclose(found[1][1], dy, **tolerance)
    assert found[1][0].dtype == dtype


@pytest.mark.parametrize("form", [halved, columns, by_scipy])
def test_further_derivatives_of_squares_of_half_a_solution(form: Callable[..., Any]) -> None:
    k, y = matrix(5), np.linspace(1.0, 2.0, 5)
    rg.check_grads(form, (k, y), order=2)
    ks, ys = np.stack([k, 2.0 * k]), np.stack([y, y + 1.0])
    for axes, args in (((0, None), (ks, y)), ((None, 0), (k, ys)), ((0, 0), (ks, ys))):
        found = rg.vmap(rg.grad(form, argnums=(0, 1)), axes)(*args)
        for lane in range(2):
            one = [x if axis is None else x[lane] for x, axis in zip(args, axes, strict=True)]
            for a, b in zip(found, rg.grad(form, argnums=(0, 1))(*one), strict=True):
                np.testing.assert_allclose(a[lane], b, rtol=1e-10, atol=1e-12)


def test_squares_of_other_solutions_stay() -> None:
    k = matrix(5).astype("c16")
    rows = [lambda k, y: np.sum(np.linalg.solve(np.linalg.cholesky(k), k) ** 2, axis=1)]
    rows += [lambda k, y: np.linalg.solve(np.linalg.cholesky(k), y) @ np.linalg.solve(np.linalg.cholesky(k), y[::-1])]
    rows += [lambda k, y: 1e9 * np.linalg.solve(np.linalg.cholesky(k), y) @ np.linalg.solve(np.linalg.cholesky(k), y)]
    for function in rows:
        graph = rg.trace(function)(k.real, k.real[0])
        assert "inverse_form" not in str(before_derivatives(graph))
    assert "inverse_form" not in str(before_derivatives(rg.trace(dotted)(k, k[0])))


@pytest.mark.parametrize("n", [5, 40])
def test_scipy_still_refuses_nan(n: int) -> None:
    y = np.ones(n)
    y[0] = np.nan
    with pytest.raises(ValueError, match="infs or NaNs"):
        rg.grad(by_scipy)(matrix(n), y)
    ks, ys = np.stack([matrix(n)] * 2), np.stack([np.ones(n), y])
    for args, axes in (((ks, y), (0, None)), ((ks[0], ys), (None, 0)), ((ks, ys), (0, 0))):
        with pytest.raises(ValueError, match="infs or NaNs"):
            rg.vmap(rg.grad(by_scipy), axes)(*args)
    assert np.isnan(rg.grad(dotted)(matrix(n), y)).any()


def test_tangents_go_by_the_whole_matrix_too() -> None:
    k, y = matrix(20), np.linspace(1.0, 2.0, 20)
    dk, dy = np.cos(np.arange(400.0)).reshape(20, 20), np.sin(y)

    def pushed(k: Any, y: Any) -> Any:
        return rg.jvp(halved, (k, y), (dk, dy))

    value, slope = pushed(k, y)
    expected, (by_k, by_y) = rg.value_and_grad(halved, argnums=(0, 1))(k, y)
    assert value == expected
    np.testing.assert_allclose(slope, np.sum(by_k * dk) + by_y @ dy, rtol=1e-12)
    compiled = rg.jit(pushed)
    assert "half_inverse" in compiled.source(k, y)
    with rg.config(exact=True):
        assert "half_inverse" not in compiled.source(k, y)
        np.testing.assert_allclose(slope, pushed(k, y)[1], rtol=1e-12)


NESTED: dict[str, Callable[..., Any]] = {
    "grad": rg.grad(halved),
    "jvp": lambda k, y: rg.jvp(halved, (k, y), (k, y)),
    "linearize": lambda k, y: rg.linearize(halved, k, y)[1](k, y),
    "vjp": lambda k, y: rg.vjp(halved, k, y)[1](1.0),
}


@pytest.mark.parametrize("derivative", NESTED)
def test_settings_reach_derivatives_inside(derivative: str) -> None:
    """Inner traces are kept, and were once found under settings that they were not made with."""
    k, y = matrix(20), np.ones(20)
    compiled = rg.jit(NESTED[derivative])
    for exact in (False, True, False):
        with rg.config(exact=exact):
            assert ("half_inverse" in compiled.source(k, y)) != exact


def test_a_budget_changes_no_bit() -> None:
    k, y = matrix(200), np.linspace(1.0, 2.0, 200)

    def loss(k: Any, y: Any) -> Any:
        return likelihood(np.exp(-0.01 * np.abs(k)) + 50.0 * np.eye(200), y)

    plain = rg.grad(loss, argnums=(0, 1))
    tight = rg.grad(loss, argnums=(0, 1), memory=int(0.95 * plain.plan(k, y).peak_bytes))
    for a, b in zip(plain(k, y), tight(k, y), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [4, 40])
def test_matrices_without_a_factor_or_an_inverse(n: int) -> None:
    k, y = matrix(n), np.ones(n)
    k[n // 2, n // 2] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        rg.grad(likelihood)(k, y)
    low = np.tril(matrix(n))
    low[1, 1] = 0.0
    for function in (lambda x: np.linalg.inv(np.tril(x)), lambda x: np.linalg.solve(np.tril(x), x[0])):
        with pytest.raises(np.linalg.LinAlgError):
            rg.jit(function)(low)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_stays_that(bad: float) -> None:
    k, y = matrix(40), np.ones(40)
    y[3] = bad
    with np.errstate(all="ignore"):
        found = rg.grad(likelihood, argnums=1)(k, y)
        with rg.config(exact=True):
            expected = rg.grad(likelihood, argnums=1)(k, y)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8"])
@pytest.mark.parametrize("n", [FEWEST - 1, FEWEST, 50])
def test_inverses_and_equations_of_triangles(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((n, n)) * 0.1 + np.eye(n)).astype(dtype)
    if x.dtype.kind == "c":
        x = x + np.dtype(dtype).type(0.2j) * x.T

    def function(x: Any) -> Any:
        low, up = np.tril(x), np.triu(x).T
        factor = np.linalg.cholesky(low @ low.conj().T)
        return np.linalg.inv(low), np.linalg.inv(up.T), np.linalg.solve(up, x[0]), np.linalg.solve(low, -x), factor

    f = rg.jit(function)
    for found, expected in zip(f(x), function(x), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=200 * np.finfo(dtype).eps)
    assert ("trtri" in f.at(x).source) == (n >= FEWEST)


@pytest.mark.parametrize(("operation", "number"), [("mul", 1e300), ("div", 1e-300)])
def test_numbers_beyond_a_dtype_keep_no_triangle(operation: str, number: float) -> None:
    """A number that is finite in double precision may be infinite or zero in single precision: 0 · inf is no number."""
    graph = parse(
        "graph f(%m: f32[3,3]) {\n  %0 = tril %m {k=0} : f32[3,3]\n"
        f"  %1 = const {{value={number}}} : f32[3,3]\n  %2 = {operation} %0, %1 : f32[3,3]\n  return %2\n}}\n"
    )
    with np.errstate(all="ignore"):
        (found,) = evaluate(graph, [np.ones((3, 3), "f4")])
    assert np.isnan(found[0, 1])
    assert graph.outputs[0] not in known(graph)


def test_other_derivatives_have_the_facts_of_gradients() -> None:
    """``vjp``, ``linearize`` and ``jacrev`` go by the same rewrites; with a budget and under ``exact``, too."""
    k, y = matrix(40), np.linspace(1.0, 2.0, 40)
    gradients = rg.grad(likelihood, argnums=(0, 1))(k, y)
    value, pullback = rg.vjp(likelihood, k, y)
    assert value == rg.jit(likelihood)(k, y)
    for found, wanted in zip(pullback(1.0), gradients, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(rg.jacrev(likelihood)(k, y), gradients[0])
    tangents = np.cos(k), np.sin(y)
    slope = rg.linearize(likelihood, k, y)[1](*tangents)
    total = sum(np.sum(g * t) for g, t in zip(gradients, tangents, strict=True))
    np.testing.assert_allclose(slope, total, rtol=1e-9)
    with rg.config(exact=True):
        exact = rg.vjp(likelihood, k, y)[1](1.0)
        assert np.triu(exact[0], 1).any() == np.triu(rg.grad(likelihood)(k, y), 1).any()
    for found, wanted in zip(exact, gradients, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("offset", [0, -1])
def test_only_the_diagonal_of_a_factor_has_a_determinant(offset: int) -> None:
    factor = np.tril(np.linspace(1.0, 2.0, 25).reshape(5, 5)) + 3.0 * np.eye(5)

    def loss(k: Any) -> Any:
        return np.sum(np.log(np.diag(np.linalg.cholesky(k), offset)))

    value, slope = rg.value_and_grad(loss)(factor @ factor.T)
    np.testing.assert_allclose(value, loss(factor @ factor.T), rtol=1e-13)
    with rg.config(exact=True):
        np.testing.assert_allclose(slope, rg.grad(loss)(factor @ factor.T), rtol=1e-9, atol=1e-12)


ADVERSARIES: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "a vector and its reverse": (lambda m: m[0][:, None] + m[0][::-1][None], set()),
    "scaled unlike": (lambda m: (2 * m[0])[:, None] + m[0][None], set()),
    "scaled unlike, multiplied": (lambda m: (2 * m[0])[:, None] * -m[0][None], {"SYMMETRIC"}),
    "a difference of pairs": (lambda m: m[0][:, None] - m[0][None], set()),
    "a quotient of pairs": (lambda m: m[0][:, None] / m[0][None], set()),
    "two ways to flatten": (lambda m: np.outer(m[:2, :2].reshape(4), m[:2, :2].T.reshape(4)), set()),
    "another order": (lambda m: np.outer(m[:2, :2].reshape(4), m[:2, :2].reshape(4, order="F")), set()),
    "a conjugate": (lambda m: np.outer(m[0] + 1j * m[1], (m[0] + 1j * m[1]).conj()), set()),
    "a mirrored triangle": (lambda m: np.tril(m)[::-1], {"LOWER"}),  # of the triangle, not of its mirror
    "off the diagonal": (lambda m: np.diag(m[0, 1:], 1) + np.diag(m[0, 1:], -1), set()),
    "infinite multiples": (lambda m: np.tril(m) * np.inf, {"LOWER", "SYMMETRIC"}),
    "zero divisors": (lambda m: np.tril(m) / 0.0, {"LOWER", "UPPER", "SYMMETRIC"}),
    "cosines of a triangle": (lambda m: np.cos(np.tril(m)), {"LOWER"}),
    "a choice among others": (lambda m: np.where(m + m.T > 0.5, m + m.T, m), {"SYMMETRIC"}),  # of the sum alone
    "a choice by others": (lambda m: np.where(m > 0.5, m + m.T, 1.0), {"SYMMETRIC"}),
    "axes of a stack": (lambda m: (np.tril(m)[None] * np.ones((4, 1, 1))).transpose(2, 1, 0), {"LOWER", "SYMMETRIC"}),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_programs_that_look_as_if_they_had_a_fact(name: str) -> None:
    program, most = ADVERSARIES[name]
    with np.errstate(all="ignore"):
        found = check(program, np.random.default_rng(SEED).standard_normal((4, 4)))
    assert set(found) <= most
