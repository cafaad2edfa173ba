"""Special functions where formulas of textbooks fail: tails, zeros, poles, and both sides of each threshold."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats

import retrograd as rg

EULER = 0.57721566490153286
SERIES = {  # name: f, and the first two derivatives at some points, from series and from known values
    "log_ndtr far left": (sp.log_ndtr, -1e5, 1e5 + 1e-5, -1 + 1e-10),
    "log_ndtr far right": (sp.log_ndtr, 40.0, 0.0, 0.0),
    "log_ndtr at 0": (sp.log_ndtr, 0.0, math.sqrt(2 / math.pi), -2 / math.pi),
    "expit far left": (sp.expit, -700.0, math.exp(-700), math.exp(-700)),
    "expit far right": (sp.expit, 50.0, math.exp(-50), -math.exp(-50)),
    "expit without end": (sp.expit, 800.0, 0.0, 0.0),
    "log_expit far left": (sp.log_expit, -800.0, 1.0, 0.0),
    "logit near 0": (sp.logit, 1e-200, 1e200, -math.inf),
    "erfcx far right": (sp.erfcx, 1e6, -1e-12 / math.sqrt(math.pi), 2e-18 / math.sqrt(math.pi)),
    "dawsn far right": (sp.dawsn, 1e6, -0.5e-12, 1e-18),
    "dawsn far left": (sp.dawsn, -1e6, -0.5e-12, -1e-18),
    "j1 at 0": (sp.j1, 0.0, 0.5, 0.0),
    "j0 at 0": (sp.j0, 0.0, 0.0, -0.5),
    "jv at 0": (lambda x: sp.jv(2, x), 0.0, 0.0, 0.25),
    "i0 at 0": (sp.i0, 0.0, 0.0, 0.5),
    "i1 at 0": (sp.i1, 0.0, 0.5, 0.0),
    "iv at 0": (lambda x: sp.iv(2.0, x), 0.0, 0.0, 0.25),
    "exprel at 0": (sp.exprel, 0.0, 0.5, 1 / 3),
    "exprel far left": (sp.exprel, -1e8, 1e-16, 2e-24),
    "exprel overflows": (sp.exprel, 800.0, math.inf, math.inf),
    "boxcox at power 0": (lambda p: sp.boxcox(2.0, p), 0.0, math.log(2) ** 2 / 2, math.log(2) ** 3 / 3),
    "boxcox of 0 by power": (lambda p: sp.boxcox(0.0, p), 2.0, 0.25, -0.25),
    "digamma at 1": (sp.digamma, 1.0, math.pi**2 / 6, -2 * 1.2020569031595942),
    "gamma at 1": (sp.gamma, 1.0, -EULER, EULER**2 + math.pi**2 / 6),
    "rgamma at 0": (sp.rgamma, 0.0, 1.0, 2 * EULER),
    "rgamma at a pole": (sp.rgamma, -1.0, -1.0, 2 * (1 - EULER)),
    "gammainc of 1": (lambda x: sp.gammainc(1.0, x), 0.0, 1.0, -1.0),
    "xlogy at 0": (lambda x: sp.xlogy(x, 2.0), 0.0, math.log(2), 0.0),
    "xlogy of 0 and 0": (lambda y: sp.xlogy(0.0, y), 0.0, 0.0, 0.0),
    "xlog1py of 0 and -1": (lambda y: sp.xlog1py(0.0, y), -1.0, 0.0, 0.0),
    "rel_entr of 0": (lambda y: sp.rel_entr(0.0, y), 2.0, 0.0, 0.0),
    "kl_div of equals": (lambda x: sp.kl_div(x, 1.0), 1.0, 0.0, 1.0),
    "kl_div of almost equals": (lambda x: sp.kl_div(x, 1.0), 1.0 + 1e-9, math.log1p(1.0 + 1e-9 - 1.0), 1.0),
    "kl_div of extremes": (lambda x: sp.kl_div(x, 1e200), 1e-200, -400 * math.log(10), 1e200),
    "ndtri_exp near -inf": (sp.ndtri_exp, -1e10, 7.0710678e-06, 3.5355339e-16),
    "expn of order 0": (lambda x: sp.expn(0, x), 1.0, -2 * math.exp(-1), 5 * math.exp(-1)),
    "expn of order 2 at 0": (lambda x: sp.expn(3, x), 0.0, -1.0, math.inf),
    "hyp2f1 as a logarithm": (lambda x: sp.hyp2f1(1.0, 1.0, 2.0, x), 0.0, 0.5, 2 / 3),
    "huber beyond": (lambda r: sp.huber(1.0, r), 3.0, 1.0, 0.0),
    "huber inside": (lambda r: sp.huber(1.0, r), 0.5, 0.5, 1.0),
}


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
@pytest.mark.parametrize("name", SERIES)
def test_first_and_second_derivatives_are_known_there(name: str) -> None:
    f, x, first, second = SERIES[name]
    slope = rg.grad(f)
    np.testing.assert_allclose(slope(x), first, rtol=3e-8, atol=1e-300)
    np.testing.assert_allclose(rg.grad(slope)(x), second, rtol=3e-8, atol=1e-15 if second else 1e-9)
    np.testing.assert_allclose(rg.jvp(f, (x,), (1.0,))[1], first, rtol=3e-8, atol=1e-300)


@pytest.mark.parametrize(
    ("function", "threshold"),
    [(sp.erfcx, 12.0), (sp.dawsn, 12.0), (sp.log_ndtr, -12.0 * math.sqrt(2)), (sp.exprel, 0.5), (sp.exprel, -0.5)],
)
def test_formulas_meet_at_their_thresholds(function, threshold):
    slope = rg.grad(function)
    for derivative in (slope, rg.grad(slope)):
        below, above = (derivative(threshold * (1 + d)) for d in (-1e-12, 1e-12))
        np.testing.assert_allclose(below, above, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["gammaln", "erfcx", "log_ndtr", "expit", "i0e", "digamma", "exprel", "logit"])
def test_gradients_have_the_dtype_of_the_argument(name, dtype):
    x = np.array([0.25, 0.5], dtype)
    assert rg.grad(lambda x: np.sum(getattr(sp, name)(x)))(x).dtype == dtype


def test_what_is_masked_out_does_not_make_a_gradient_nan():
    def f(x):
        return np.sum(sp.gammaln(x, out=np.zeros(3), where=x > 0))

    np.testing.assert_allclose(rg.grad(f)(np.array([-1.0, 0.0, 3.0])), [0.0, 0.0, sp.digamma(3.0)])


def test_a_softmax_of_infinities_has_a_finite_gradient():
    x = np.array([-np.inf, 0.0, 1.0])
    np.testing.assert_allclose(rg.grad(sp.logsumexp)(x), sp.softmax(x))
    np.testing.assert_array_equal(rg.grad(sp.logsumexp)(np.full(2, -np.inf)), [0.0, 0.0])


def test_numbers_in_single_precision_stay_so_in_compiled_code():
    """SciPy's ufuncs that list their double loop first take a Python float beside single precision to be a double."""
    x = np.array([0.2, 0.4], np.float32)
    for f in (sp.ellipk, sp.spence, lambda x: sp.stdtr(np.float32(3), x), lambda x: sp.xlogy(np.float32(2), x)):
        assert rg.grad(lambda x, f=f: np.sum(f(x)))(x).dtype == np.float32
        assert rg.jit(f)(x).dtype == f(x).dtype == np.float32
    assert rg.jit(lambda x: sp.xlogy(2.0, x))(x).dtype == sp.xlogy(2.0, x).dtype


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_gradients_beside_constants_stay_in_single_precision(backend):
    x, half, halves = np.array([0.2, 0.5, 0.7], np.float32), np.float32(0.5), np.full(3, 0.5, np.float32)
    for f in (
        lambda x: sp.betainc(0.5, 0.7, x),
        lambda x: sp.betainc(x, 0.7, 0.3),
        lambda x: sp.betaincinv(0.5, 0.7, x),
        lambda x: sp.betainc(halves, halves, x),
        lambda x: sp.gammainc(half, x),
        lambda x: sp.gammainccinv(half, x),
        lambda x: sp.stdtr(x, 0.5),
    ):
        assert rg.grad(lambda x, f=f: np.sum(f(x)), backend=backend)(x).dtype == np.float32
        assert rg.jvp(f, (x,), (x,))[1].dtype == np.float32


def test_a_coefficient_of_no_choice_has_a_finite_gradient():
    assert rg.grad(lambda k: sp.comb(10.0, k))(11.0) == 0.0


def test_the_dilogarithm_of_complex_numbers():
    z = np.array([-1.7 + 0.0j, complex(-1.7, -0.0), 0.3 + 0.4j, 1.0 + 0.0j, 1.0 + 1e-9j, 2.5 - 1.0j])
    found = rg.jvp(sp.spence, (z,), (np.ones_like(z),))[1]
    differences = (sp.spence(z + 1e-5) - sp.spence(z - 1e-5)) / 2e-5
    differences[1], differences[3] = np.conj(differences[0]), -1.0  # z + h loses the sign of the zero
    np.testing.assert_allclose(found, differences, rtol=1e-6)


@pytest.mark.parametrize("mean", [0.0, 2.0])
@pytest.mark.parametrize("name", ["logcdf", "logsf"])
def test_counts_below_zero_have_no_slope(name: str, mean: float) -> None:
    assert rg.grad(lambda mu: getattr(scipy.stats.poisson, name)(-1.0, mu))(mean) == 0.0
