"""Gradients of linear algebra and Fourier transforms against JAX, for real and complex matrices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrograd as rg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 3))
Z = X + 1j * RNG.normal(size=(3, 3))
B = RNG.normal(size=(3, 2))
W = RNG.normal(size=20) + 1j * RNG.normal(size=20)


def gram(m: Any, x: Any) -> Any:
    """A Hermitian positive definite matrix, so that triangles need no convention."""
    return x @ m.conj(x).T + m.eye(3)


# Functions of a module and a matrix; of vectors only what does not depend on their phases.
BOTH: dict[str, Any] = {
    "inv": lambda m, x: m.linalg.inv(x),
    "solve": lambda m, x: m.linalg.solve(x, B),
    "det": lambda m, x: m.linalg.det(x),
    "slogdet": lambda m, x: m.linalg.slogdet(x)[1],
    "cholesky": lambda m, x: m.linalg.cholesky(gram(m, x)),
    "qr": lambda m, x: m.linalg.qr(x)[0] * m.linalg.qr(x)[1],
    "svd": lambda m, x: m.linalg.svd(x[:, :2], full_matrices=False)[1],
    "singular subspace": lambda m, x: m.linalg.svd(x)[0][:, :1] @ m.linalg.svd(x)[2][:1],
    "eigh": lambda m, x: m.linalg.eigh(gram(m, x))[0],
    "projector": lambda m, x: m.abs(m.linalg.eigh(gram(m, x))[1]) ** 2,
    "eigvalsh": lambda m, x: m.linalg.eigvalsh(x + m.conj(x).T),
    "pinv": lambda m, x: m.linalg.pinv(x[:, :2]),
    "pinv, wide": lambda m, x: m.linalg.pinv(x[:2]),
    "matrix_power": lambda m, x: m.linalg.matrix_power(x, 5),
    "multi_dot": lambda m, x: m.linalg.multi_dot([x, B, m.conj(x)[:2]]),
    "cond": lambda m, x: m.linalg.cond(x),
    "fft": lambda m, x: m.fft.fft(x, 5, axis=0),
    "ifftn": lambda m, x: m.fft.ifftn(x, norm="ortho"),
    "irfft": lambda m, x: m.fft.irfft(x + 0j, 4),
    "hfft": lambda m, x: m.fft.hfft(x + 0j, 5),
    "fftshift": lambda m, x: m.fft.fftshift(x),
    **{f"norm {o}": lambda m, x, o=o: m.linalg.norm(x, o) for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf)},
    **{f"norm {o} of rows": lambda m, x, o=o: m.linalg.norm(x, o, axis=1) for o in (None, 1, 3, np.inf, -np.inf)},
}
REAL: dict[str, Any] = {
    "lstsq": lambda m, x: m.linalg.lstsq(x[:, :2], B)[0],
    "rfft": lambda m, x: m.fft.rfft2(x, norm="forward"),
    "ihfft": lambda m, x: m.fft.ihfft(x),
}
COMPLEX: dict[str, Any] = {
    "eigvals": lambda m, x: m.linalg.eigvals(x) ** 2,
    "sign of slogdet": lambda m, x: m.linalg.slogdet(x)[0],
}


def loss(module: Any, function: Any, x: Any, ordered: bool = True) -> Any:
    """A real function of all results, which tells real from imaginary parts, but not their order."""
    y = function(module, x)
    weights = np.resize(W, np.shape(y)) if ordered else 1 - 2j
    return module.sum(module.real(module.sin(y / 4) * weights))


CASES = [(name, X) for name in BOTH | REAL] + [(name, Z) for name in BOTH | COMPLEX]


@pytest.mark.parametrize(("name", "point"), CASES, ids=[f"{n}-{p.dtype}" for n, p in CASES])
def test_gradients_are_those_of_jax(name: str, point: Any) -> None:
    function, ordered = (BOTH | REAL | COMPLEX)[name], name != "eigvals"
    expected = jax.grad(lambda x: loss(jnp, function, x, ordered))(jnp.asarray(point))
    found = rg.grad(lambda x: loss(np, function, x, ordered))(point)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["inv", "solve", "slogdet", "cholesky", "qr", "svd", "projector", "pinv", "fft"])
def test_second_derivatives_are_those_of_jax(name: str) -> None:
    v = RNG.normal(size=(3, 3))
    expected = jax.jvp(jax.grad(lambda x: loss(jnp, BOTH[name], x)), (jnp.asarray(X),), (jnp.asarray(v),))[1]
    found = rg.jvp(rg.grad(lambda x: loss(np, BOTH[name], x)), (X,), (v,))[1]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_of_symmetric_matrices_the_gradients_are_those_of_jax_folded_to_the_triangle_that_numpy_reads() -> None:
    s = gram(np, X)
    for name in ("cholesky", "eigvalsh"):
        expected = np.asarray(jax.grad(lambda a, n=name: jnp.sum(jnp.sin(getattr(jnp.linalg, n)(a))))(jnp.asarray(s)))
        found = rg.grad(lambda a, n=name: np.sum(np.sin(getattr(np.linalg, n)(a))))(s)
        folded = np.tril(expected) + np.triu(expected, 1).T
        np.testing.assert_allclose(found, folded, rtol=1e-9, atol=1e-12)
