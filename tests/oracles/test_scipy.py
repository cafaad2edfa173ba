"""SciPy's functions have the derivatives that JAX, torch and autograd give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.special
import scipy.stats

import retrograd as rg

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")
autograd = pytest.importorskip("autograd")
jax.config.update("jax_enable_x64", True)

POSITIVE, REAL, UNIT = np.array([0.3, 1.1, 4.2]), np.array([-2.3, 0.4, 1.7]), np.array([0.1, 0.45, 0.9])
ONE: dict[str, np.ndarray] = {
    "gammaln": POSITIVE,
    "digamma": POSITIVE,
    "erf": REAL,
    "erfc": REAL,
    "erfinv": UNIT,
    "ndtr": REAL,
    "ndtri": UNIT,
    "log_ndtr": REAL,
    "expit": REAL,
    "logit": UNIT,
    "entr": POSITIVE,
    "i0e": REAL,
    "i1": REAL,
    "i1e": REAL,
    "logsumexp": REAL,
    "softmax": REAL,
    "log_softmax": REAL,
    "gamma": POSITIVE,
}
TWO: dict[str, tuple[Any, Any]] = {
    "xlogy": (REAL, POSITIVE),
    "xlog1py": (REAL, POSITIVE),
    "betaln": (POSITIVE, POSITIVE + 1),
    "beta": (POSITIVE, POSITIVE + 1),
    "rel_entr": (POSITIVE, UNIT),
    "kl_div": (POSITIVE, UNIT),
}


def total(module: Any, *names: str) -> Callable[..., Any]:
    """A weighted sum of the results of a function, which is found in a module by name."""

    def call(*args: Any) -> Any:
        owner = module if len(names) == 1 else getattr(module, names[0])
        return (getattr(owner, names[-1])(*args) * np.array([1.0, -0.7, 0.4])).sum()

    return call


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument_agree_with_jax(name: str) -> None:
    ours, theirs, x = total(scipy.special, name), total(jax.scipy.special, name), ONE[name]
    np.testing.assert_allclose(rg.grad(ours)(x), jax.grad(theirs)(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rg.hessian(ours)(x), jax.hessian(theirs)(x), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arguments_agree_with_jax(name: str) -> None:
    ours, theirs, args = total(scipy.special, name), total(jax.scipy.special, name), TWO[name]
    for k in (0, 1):
        np.testing.assert_allclose(rg.grad(ours, k)(*args), jax.grad(theirs, k)(*args), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e", "erfcx", "log_ndtr", "ndtri", "xlogy", "expit", "psi"])
def test_functions_agree_with_torch(name: str) -> None:
    x = UNIT
    args = (x, x + 1) if name == "xlogy" else (x,)
    tensors = [torch.tensor(a, requires_grad=True) for a in args]
    getattr(torch.special, name)(*tensors).sum().backward()
    found = rg.grad(lambda *a: np.sum(getattr(scipy.special, name)(*a)), tuple(range(len(args))))(*args)
    for slope, tensor in zip(found, tensors, strict=True):
        np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "i0", "i1", "rgamma", "multigammaln", "polygamma", "erfcinv"])
def test_functions_agree_with_autograd(name: str) -> None:
    special = pytest.importorskip("autograd.scipy.special")
    before, after = {"multigammaln": ((), (2,)), "polygamma": ((2,), ())}.get(name, ((), ()))
    x = POSITIVE + 1 if name != "erfcinv" else UNIT
    ours = rg.grad(lambda x: np.sum(getattr(scipy.special, name)(*before, x, *after)))(x)
    theirs = autograd.grad(lambda x: getattr(special, name)(*before, x, *after).sum())(x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_the_incomplete_gamma_function_agrees_with_jax_in_its_first_argument() -> None:
    a, x = np.meshgrid([1e-3, 0.5, 1.0, 3.0, 50.0, 3e3], [1e-8, 0.1, 1.0, 2.0, 12.0, 60.0, 2990.0, 3010.0])
    ours = rg.grad(lambda a: np.sum(scipy.special.gammainc(a, x)))(a)
    theirs = jax.grad(lambda a: jax.scipy.special.gammainc(a, x).sum())(a)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


DENSITIES = {
    "norm": (),
    "t": (3.5,),
    "beta": (2.5, 1.7),
    "gamma": (2.2,),
    "chi2": (3.3,),
    "laplace": (),
    "expon": (),
    "uniform": (),
}


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("method", ["logpdf", "pdf", "cdf"])
def test_distributions_agree_with_jax(name: str, method: str) -> None:
    ours = total(scipy.stats, name, method)
    if not hasattr(getattr(jax.scipy.stats, name), method):
        pytest.skip("JAX has none")
    theirs = total(jax.scipy.stats, name, method)
    args = (UNIT, *DENSITIES[name], -0.05, 1.2)
    for k in (0, len(args) - 2, len(args) - 1):
        expected = jax.grad(theirs, k)(*args)
        np.testing.assert_allclose(rg.grad(ours, k)(*args), expected, rtol=1e-8, atol=1e-12)


A = np.array([[2.0, 0.3, -0.2], [0.1, 1.5, 0.4], [-0.3, 0.2, 1.8]])
B = np.array([[1.0, 0.5], [0.2, -1.0], [0.7, 0.3]])
LINEAR: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve_triangular": (lambda linalg, a, b: linalg.solve_triangular(a, b, lower=True), (A, B)),
    "cho_solve": (lambda linalg, a, b: linalg.cho_solve(linalg.cho_factor(a @ a.T, True), b), (A, B)),
    "expm": (lambda linalg, a: linalg.expm(a), (A,)),
    "sqrtm": (lambda linalg, a: linalg.sqrtm(a @ a.T), (A,)),
    "solve_sylvester": (lambda linalg, a, b, q: linalg.solve_sylvester(a, b, q), (A, A[:2, :2], B)),
    "block_diag": (lambda linalg, a, b: linalg.block_diag(a, b), (A, B)),
    "toeplitz": (lambda linalg, c: linalg.toeplitz(c), (POSITIVE,)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_algebra_agrees_with_jax(name: str) -> None:
    f, args = LINEAR[name]
    if name in ("sqrtm", "solve_sylvester"):
        linalg = pytest.importorskip("autograd.scipy.linalg")
        theirs = [autograd.grad(lambda *a: (f(linalg, *a) ** 2).sum(), k)(*args) for k in range(len(args))]
    else:
        theirs = [jax.grad(lambda *a: (f(jax.scipy.linalg, *a) ** 2).sum(), k)(*args) for k in range(len(args))]
    for k, expected in enumerate(theirs):
        ours = rg.grad(lambda *a: np.sum(f(scipy.linalg, *a) ** 2), k)(*args)
        if name == "cho_solve":  # theirs is the derivative of a matrix that is said to be symmetric
            continue
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-10)


def test_an_equation_agrees_with_jax() -> None:
    odeint = pytest.importorskip("jax.experimental.ode").odeint
    start, times = np.array([1.0, 0.5]), np.linspace(0.0, 1.5, 4)

    def slope(y: Any, t: Any, a: Any) -> Any:
        return y * a - (y * y) * t

    def ours(start: Any, a: Any) -> Any:
        return np.sum(scipy.integrate.odeint(slope, start, times, (a,), rtol=1e-10, atol=1e-10) ** 2)

    def theirs(start: Any, a: Any) -> Any:
        return (odeint(slope, start, times, a, rtol=1e-10, atol=1e-10) ** 2).sum()

    for k in (0, 1):
        np.testing.assert_allclose(rg.grad(ours, k)(start, 0.7), jax.grad(theirs, k)(start, 0.7), rtol=1e-6)
