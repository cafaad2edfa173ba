"""numpy.linalg inside traced functions: NumPy's results, derivatives to second order, ranks and spectra at their edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.numpy import spectra
from tests.support.functions import assert_differentiable, assert_same, assert_traced, outcome

la = np.linalg
RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
C = A + 1j * RNG.normal(size=(4, 4))
S = A @ A.T + 4 * np.eye(4)
H = C @ C.conj().T + 4 * np.eye(4)
B = RNG.normal(size=(4, 3))
TALL = RNG.normal(size=(5, 3))
WIDE = RNG.normal(size=(3, 5))
STACK = RNG.normal(size=(2, 3, 3))
REAL = np.array([[2.0, 1.0, 0.0], [0.3, 5.0, 1.0], [0.1, 0.2, 9.0]])  # its eigenvalues are real
TURNING = np.array([[0.0, 1.0, 0.1], [-2.0, 0.0, 0.2], [0.3, 0.1, 1.0]])  # and of this one not all

Function = Callable[..., Any]
SMOOTH: dict[str, tuple[Function, Any]] = {
    "inv": (la.inv, A),
    "inv of a complex matrix": (la.inv, C),
    "inv of a stack": (la.inv, STACK),
    "solve": (lambda a: la.solve(a, B), A),
    "solve for a vector": (lambda a: la.solve(a, B[:, 0]), A),
    "solve for one vector and many matrices": (lambda a: la.solve(a, B[:3, 0]), STACK),
    "solve for many": (lambda a: la.solve(a, B[:3]), STACK),
    "solve for the right side": (lambda b: la.solve(A, b), B),
    "solve for complex sides": (lambda b: la.solve(A, b), B * (1 - 2j)),
    "det": (la.det, A),
    "det of a complex matrix": (la.det, C),
    "det of a stack": (la.det, STACK),
    "slogdet": (lambda a: la.slogdet(a)[1], A),
    "slogdet of a complex matrix": (la.slogdet, C),
    "cholesky": (la.cholesky, S),
    "cholesky, upper": (lambda a: la.cholesky(a, upper=True), S),
    "cholesky of a complex matrix": (la.cholesky, H),
    "cholesky of a complex matrix, upper": (lambda a: la.cholesky(a, upper=True), H),
    "cholesky of one triangle": (lambda a: la.cholesky(np.tril(a)), S),
    "qr": (la.qr, TALL),
    "qr of a wide matrix": (la.qr, WIDE),
    "qr, r": (lambda x: la.qr(x, "r"), TALL),
    "qr of a wide matrix, r": (lambda x: la.qr(x, "r"), WIDE),
    "qr of a wide matrix, complete": (lambda x: la.qr(x, mode="complete"), WIDE),
    "qr of a complex matrix": (la.qr, C),
    "qr of a stack": (la.qr, STACK),
    "svd": (la.svd, A),
    "svd, reduced": (lambda x: la.svd(x, full_matrices=False), TALL),
    "svd of a wide matrix": (lambda x: la.svd(x, full_matrices=False), WIDE),
    "svd of a hermitian matrix": (lambda x: la.svd(x, hermitian=True), S - 5 * np.eye(4)),
    "svd, values alone": (lambda x: la.svd(x, compute_uv=False), WIDE),
    "svd of a hermitian matrix, values alone": (lambda x: la.svd(x, compute_uv=False, hermitian=True), A),
    "svdvals": (la.svdvals, A),
    "svdvals of a complex matrix": (la.svdvals, C),
    "eigh": (la.eigh, S),
    "eigh of the upper triangle": (lambda a: la.eigh(a, "U"), A),
    "eigh of a stack": (la.eigh, STACK),
    "eigvalsh": (la.eigvalsh, A),
    "eigvalsh of a complex matrix": (lambda a: la.eigvalsh(a, "u"), C),
    "eig": (la.eig, REAL),
    "eig with complex eigenvalues": (la.eig, TURNING),
    "eig of a complex matrix": (la.eig, C),
    "eigvals": (la.eigvals, TURNING),
    "eigvals of a complex stack": (la.eigvals, STACK + 1j),
    "pinv": (la.pinv, TALL),
    "pinv of a complex wide matrix": (la.pinv, WIDE * (1 + 0.5j)),
    "pinv with a cut": (lambda x: la.pinv(x, rtol=0.5), TALL),
    "pinv of a hermitian matrix": (lambda a: la.pinv(a, hermitian=True), A),
    "lstsq": (lambda a: la.lstsq(a, TALL[:, :2])[0], TALL + 1),
    "lstsq with residuals": (lambda a: la.lstsq(a, TALL[:, 0])[1], TALL + RNG.normal(size=(5, 3))),
    "lstsq for the right side": (lambda b: la.lstsq(TALL, b)[0], RNG.normal(size=5)),
    "lstsq of a wide matrix": (lambda a: la.lstsq(a, B[:3])[0], WIDE),
    "matrix_power 3": (lambda a: la.matrix_power(a, 3), A),
    "matrix_power -2": (lambda a: la.matrix_power(a, -2), A),
    "matrix_power 7": (lambda a: la.matrix_power(a, 7), C),
    "multi_dot": (lambda a: la.multi_dot([a, B, TALL.T]), A),
    "tensorinv": (lambda a: la.tensorinv(a.reshape(2, 2, 2, 2)), A),
    "tensorsolve": (lambda a: la.tensorsolve(a.reshape(2, 2, 2, 2), B[:, 0].reshape(2, 2)), A),
    "tensorsolve with axes": (lambda a: la.tensorsolve(a.reshape(2, 2, 2, 2), B[:2, :2], axes=(0,)), A),
    "cond": (la.cond, A),
    "cond of a stack": (lambda a: la.cond(a, -2), STACK),
    "cond of order 1": (lambda a: la.cond(a, 1), A),
    "cond of Frobenius": (lambda a: la.cond(a, "fro"), STACK),
}
FLAT: dict[str, tuple[Function, Any]] = {
    "matrix_power 0": (lambda a: la.matrix_power(a, 0), A),
    "matrix_rank": (la.matrix_rank, A),
    "matrix_rank of a stack": (la.matrix_rank, STACK),
    "matrix_rank with tol": (lambda a: la.matrix_rank(a, tol=0.9), TALL),
    "matrix_rank with rtol": (lambda a: la.matrix_rank(a, rtol=0.5), TALL),
    "matrix_rank of a hermitian matrix": (lambda a: la.matrix_rank(a, hermitian=True), S),
    "matrix_rank of a vector": (la.matrix_rank, A[0]),
    "sign of a determinant": (lambda a: la.slogdet(a)[0], A),
    "norm of order 0": (lambda a: la.norm(a, 0, axis=1), A),
    "qr, complete": (lambda x: la.qr(x, "complete"), TALL),
    "svd, full": (la.svd, WIDE),
    "all of lstsq": (lambda a: la.lstsq(a, TALL[:, 0]), TALL + 1),
    "all of lstsq, wide": (lambda a: la.lstsq(a, B[:3], rcond=-1), WIDE),
}
for _order in (None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2):
    SMOOTH[f"norm {_order}"] = lambda x, o=_order: la.norm(x, o), TALL
    SMOOTH[f"norm {_order} of a complex matrix"] = lambda x, o=_order: la.norm(x, o, axis=(1, 0)), C
    SMOOTH[f"norm {_order} of a stack"] = lambda x, o=_order: la.norm(x, o, axis=(0, 2), keepdims=True), STACK
    SMOOTH[f"matrix_norm {_order}"] = lambda x, o=_order or "fro": la.matrix_norm(x, ord=o), STACK
for _order in (None, np.inf, -np.inf, 1, -1, 2, -2, 3, 2.5):
    SMOOTH[f"norm {_order} of rows"] = lambda x, o=_order: la.norm(x, o, axis=1), TALL
    SMOOTH[f"norm {_order} of a complex vector"] = lambda x, o=_order: la.norm(x, o), C[0]
    SMOOTH[f"vector_norm {_order}"] = (
        lambda x, o=_order or 2: la.vector_norm(x, ord=o, axis=(0, 2), keepdims=True),
        STACK,
    )
SMOOTH["norm of a small order"] = lambda x: la.norm(x, 0.5), np.array([1.0, -2.0, 3.0])


def plain(value: Any) -> Any:
    """Named tuples as tuples."""
    return tuple(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", [*SMOOTH, *FLAT])
def test_results_are_those_of_numpy(name):
    function, x = (SMOOTH | FLAT)[name]
    compiled = rg.jit(function)
    for point in (x, np.ascontiguousarray(x.T).T, x + 0.01):
        found, expected = compiled(point), function(point)
        assert type(found) is type(expected)
        assert_same(plain(found), plain(expected), 1e-13)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_hold_to_second_order(name):
    function, x = SMOOTH[name]
    assert_differentiable(lambda x: plain(function(x)), x)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int64, np.float16])
@pytest.mark.parametrize(
    "name", ["inv", "det", "cholesky", "svdvals", "eigh", "solve", "norm None", "norm fro", "cond"]
)
def test_dtypes_are_those_of_numpy(name, dtype):
    function, x = (SMOOTH | FLAT)[name]
    point = np.rint(3 * x).astype(dtype) if dtype == np.int64 else x.astype(dtype)
    found, expected = (outcome(f, [point]) for f in (rg.jit(function), function))
    assert_same(plain(found), plain(expected), 1e-4)
    if dtype == np.float32:
        slope = rg.grad(lambda x: np.sum(plain(function(x))[0]) if isinstance(expected, tuple) else np.sum(function(x)))
        assert slope(point).dtype == dtype


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "solve", "cholesky", "qr", "svd", "eigh", "pinv", "lstsq"])
def test_lanes_are_a_loop(name):
    function, x = SMOOTH[name]
    several = np.stack([x, x * 1.5, x + 0.1 * np.eye(*x.shape)])
    for f in (function, rg.grad(lambda x: sum(np.sum(np.sin(np.real(y))) for y in _results(function(x))))):
        found = plain(rg.vmap(f)(several))
        each = [plain(f(one)) for one in several]
        expected = tuple(map(np.stack, zip(*each, strict=True))) if isinstance(found, tuple) else np.stack(each)
        assert_same(found, expected, 1e-12)


def _results(value: Any) -> Any:
    return value if isinstance(value, tuple) else (value,)


def test_jacobians_factorize_a_matrix_once():
    jacobian = rg.jacfwd(lambda b: la.solve(A, b))
    assert jacobian.source(B[:, 0]).count("solve") == 1
    np.testing.assert_allclose(jacobian(B[:, 0]), la.inv(A), atol=1e-13)


def test_values_alone_are_computed_where_vectors_are_not_used():
    assert "eigvalsh" in rg.jit(lambda a: la.eigh(a)[0]).source(S)
    assert "compute_uv=False" in rg.jit(lambda a: la.svd(a)[1]).source(WIDE)
    assert "'r'" in rg.jit(lambda a: la.qr(a)[1]).source(TALL)
    assert "eigvals" in rg.jit(lambda a: la.eig(a)[0]).source(C)


def test_the_triangle_that_is_not_read_has_no_influence():
    for function in (lambda a: np.sum(la.cholesky(a)), lambda a: np.sum(la.eigvalsh(a) ** 3)):
        slope = rg.grad(function)(S)
        np.testing.assert_array_equal(np.triu(slope, 1), 0)
        both = rg.grad(lambda a, f=function: f((a + a.T) / 2))(S)
        np.testing.assert_allclose(both, (slope + slope.T) / 2, rtol=1e-12)
    upper = rg.grad(lambda a: np.sum(la.eigvalsh(a, UPLO="U") ** 3))(S)
    np.testing.assert_array_equal(np.tril(upper, -1), 0)


# ------------------------------------------------------------------ where rank is lost and spectra coincide


def test_det_has_a_gradient_and_a_hessian_at_singular_matrices():
    """The determinant is a polynomial: its derivatives are cofactors and minors, whatever the rank."""
    for rank in (3, 2, 1, 0):
        factor = RNG.normal(size=(4, rank))
        x = factor @ RNG.normal(size=(rank, 4)) if rank else np.zeros((4, 4))
        x[np.abs(x) < 1e-12] = 0
        minors = [[np.delete(np.delete(x, i, 0), j, 1) for j in range(4)] for i in range(4)]
        cofactors = [[(-1) ** (i + j) * la.det(minors[i][j]) for j in range(4)] for i in range(4)]
        np.testing.assert_allclose(rg.grad(la.det)(x), cofactors, atol=1e-12)
    rg.check_grads(la.det, (np.zeros((2, 2)),), order=2)
    rg.check_grads(la.det, (np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, 1.0, -1.0]]),), order=2)
    rg.check_grads(la.det, (np.diag([1.0, 1.0, 0.0, 0.0]),), order=2)


@pytest.mark.parametrize("function", [la.inv, lambda a: la.solve(a, np.ones(2)), lambda a: la.slogdet(a)[1]])
def test_singular_matrices_are_refused_as_by_numpy(function):
    slope = rg.grad(lambda a: np.sum(function(a)))
    assert np.all(np.isfinite(slope(np.array([[2.0, 1.0], [0.0, 1.0]]))))
    with pytest.raises(la.LinAlgError):
        slope(np.ones((2, 2)))


def test_symmetric_functions_of_a_degenerate_spectrum_have_gradients():
    for x in (np.eye(3), np.diag([1.0, 1.0, 2.0])):
        np.testing.assert_allclose(rg.grad(lambda a: np.sum(la.eigvalsh(a) ** 3))(x), 3 * x @ x, atol=1e-14)
        np.testing.assert_allclose(rg.grad(lambda a: np.sum(la.svdvals(a) ** 2))(x), 2 * x, atol=1e-14)
    np.testing.assert_allclose(rg.grad(la.norm)(np.zeros((2, 2))), 0)


def test_derivatives_that_do_not_exist_at_a_degenerate_spectrum_are_nan():
    with np.errstate(all="ignore"):
        assert np.isnan(rg.grad(lambda a: la.eigh(a)[1][0, 1])(np.eye(3))).any()
        assert np.isnan(rg.hessian(lambda a: np.sum(la.eigvalsh(a) ** 2))(np.eye(2))).any()
        assert np.isnan(rg.grad(lambda a: la.svd(a)[0][0, 1])(np.eye(3))).any()


def test_pinv_and_lstsq_keep_a_rank_that_does_not_change():
    tall, right = RNG.normal(size=(4, 2)), RNG.normal(size=4)
    for function in (la.pinv, lambda x: la.lstsq(x, right, rcond=1e-10)[0]):
        rg.check_grads(lambda a, f=function: f(a @ a.T), (tall,), order=1)


@pytest.mark.parametrize(
    "program",
    [lambda x: np.sum(la.qr(x, mode="complete")[0]), lambda x: np.sum(la.svd(x)[0]), lambda x: np.sum(la.svd(x)[2])],
)
def test_bases_that_are_free_have_no_derivative(program):
    point = TALL if "qr" in program.__code__.co_names or "svd" in program.__code__.co_names else WIDE
    with pytest.raises(rg.errors.NonDifferentiableError, match="any basis"):
        rg.grad(program)(point)


def test_the_dtype_of_eigenvalues_follows_the_matrix():
    compiled = rg.jit(la.eigvals)
    for x in (REAL, TURNING, REAL):
        assert_same(compiled(x), la.eigvals(x), 1e-13)


def test_eigenvalues_of_real_matrices_in_a_loop_are_complex_where_numpys_are_and_else_refused():
    def total(stack):
        return rg.scan(lambda c, a: (c + np.sum(np.abs(la.eigvals(a)) ** 3), None), 0.0, stack)[0]

    stack = np.stack([REAL, TURNING])
    expected = sum(np.sum(np.abs(la.eigvals(a)) ** 3) for a in stack)
    slope = rg.grad(lambda a: np.sum(np.abs(la.eigvals(a.astype(complex))) ** 3))
    if la.eigvals(np.eye(2)).dtype == complex:  # since NumPy 2.5
        np.testing.assert_allclose(rg.jit(total)(stack), expected, rtol=1e-13)
        np.testing.assert_allclose(rg.grad(total)(stack), [slope(a) for a in stack], rtol=1e-12, atol=1e-12)
    else:
        with pytest.raises(rg.errors.UnsupportedError, match="data decide whether its results are real"):
            total(stack)


@pytest.mark.parametrize("coefficients", [[1.0, -3.0, 2.0], [1.0, 0.0, 2.0, 0.0]])
def test_roots_are_real_where_all_are(coefficients):
    p = np.array(coefficients)
    assert_same(rg.jit(np.roots)(p), np.roots(p), 1e-13)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: la.inv(x[:2]),
        lambda x: la.solve(x, x[:2]),
        lambda x: la.cholesky(-x @ x.T),
        lambda x: la.norm(x, 3),
        lambda x: la.norm(x, axis=(0, 0)),
        lambda x: la.norm(x, "nuc", axis=0),
        lambda x: la.matrix_power(x, 0.5),
        lambda x: la.qr(x, "none"),
        lambda x: la.eigh(x, "X"),
        lambda x: la.det(x[0]),
        lambda x: la.tensorinv(x, 0),
        lambda x: la.pinv(x, 0.1, rtol=0.1),
        lambda x: la.matrix_rank(x, 0.1, rtol=0.1),
        lambda x: la.cond(x[:0]),
    ],
)
def test_errors_are_those_of_numpy(call):
    assert_same(outcome(rg.jit(call), [A]), outcome(call, [A]))


def test_options_that_are_not_traced_are_refused_by_name():
    for call in (
        lambda x: la.pinv(x, rcond=x[0, 0]),
        lambda x: la.qr(x, "raw"),
    ):
        with pytest.raises(rg.errors.UnsupportedError):
            rg.jit(call)(A)


@pytest.mark.parametrize("function", [la.solve, lambda a, b: la.lstsq(a, b)[0]])
def test_mixed_dtypes_are_those_of_numpy(function):
    a, b = A[:3, :3] + 3 * np.eye(3), STACK[0]
    for left in "fdFDlb":
        for right in "fdFDlb?":
            given = [np.rint(3 * x).astype(t) if t in "lb?" else x.astype(t) for x, t in ((a, left), (b, right))]
            found, expected = (outcome(f, given) for f in (rg.jit(function), function))
            assert_same(found, expected, 1e-5)


def test_plain_numbers_stay_plain():
    assert_traced(lambda x: la.inv(np.eye(3) * 2.0) @ x + la.eigh(np.diag(np.arange(3.0)))[0], A[0, :3])


# ------------------------------------------------------------------------------------------- loops and branches


def test_loops_and_branches():
    def repeated(x):
        x = rg.scan(lambda c, a: (la.inv(c) + a, None), x, np.stack([x, x @ x]))[0]
        return np.sum(rg.fori_loop(2, lambda _, c: la.cholesky(c @ c.T + np.eye(4)), x))

    assert_differentiable(repeated, S / 4)

    def solved(x):
        return rg.while_loop(lambda c: la.norm(c) > 0.1, lambda c: la.solve(c + np.eye(4), c), x)

    x, expected = rg.jit(solved)(S), S
    while la.norm(expected) > 0.1:
        expected = la.solve(expected + np.eye(4), expected)
    np.testing.assert_allclose(x, expected, rtol=1e-10)


def test_a_branch_that_is_not_taken_may_be_singular():
    def chosen(x):
        return rg.cond(la.det(x) == 0, np.sum, lambda x: np.sum(la.inv(x)), x)

    gradient = rg.grad(chosen)
    np.testing.assert_array_equal(gradient(np.zeros((2, 2))), 1)
    np.testing.assert_allclose(gradient(np.eye(2) * 2), -np.ones((2, 2)) / 4)


@pytest.mark.parametrize("n", [20, 50, 92])  # below and above the sizes from which storage is used again
def test_large_matrices(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, n)) + 2 * n * np.diag(np.linspace(1, 2, n))
    v = rng.normal(size=(n, n))

    def loss(x):
        w, q = la.eigh(x @ x.T / n**2)
        u, s, vh = la.svd(x)
        return np.sum(np.sin(la.inv(x))) + la.slogdet(x)[1] + np.sum(q**4) + np.sum(w) + np.sum((u * s) @ vh)

    assert rg.jit(loss)(x) == pytest.approx(loss(x), rel=1e-12)
    slope = rg.jvp(loss, (x,), (v,))[1]
    assert slope == pytest.approx(np.sum(rg.grad(loss)(x) * v), rel=1e-8)
    assert slope == pytest.approx((loss(x + 1e-5 * v) - loss(x - 1e-5 * v)) / 2e-5, rel=1e-5)


def test_eigenvalues_of_real_matrices_are_complex_where_numpy_makes_them_so(monkeypatch):
    a = np.array([[2.0, 1.0], [0.5, 3.0]])
    assert (np.linalg.eigvals(a).dtype.kind == "c") == spectra.ALWAYS_COMPLEX
    programs = {False: lambda a: (*np.linalg.eig(a), np.linalg.eigvals(a))}
    programs[True] = lambda a: (*np.linalg.eig(a), np.linalg.eigvals(a))  # compiled apart: its code is another
    for always, program in programs.items():
        monkeypatch.setattr(spectra, "ALWAYS_COMPLEX", always)
        w, v, only = rg.jit(program)(a)
        assert {x.dtype.kind for x in (w, v, only)} == {"c" if always else "f"}
        np.testing.assert_allclose(np.sort(w.real), np.sort(np.linalg.eigvals(a).real))
        np.testing.assert_allclose(a @ v, v * w)


def test_tolerances_may_be_numbers_of_arrays_from_outside() -> None:
    a, tolerances = np.diag([1.0, 0.5, 1e-3]), np.array([1e-9])
    inverse = rg.jit(lambda a: np.linalg.pinv(a, tolerances[0]))
    for tolerance in (1e-9, 0.1):
        tolerances[0] = tolerance
        assert_same(inverse(a), np.linalg.pinv(a, tolerance))
