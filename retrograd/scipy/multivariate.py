"""Distributions of vectors in ``scipy.stats``: multivariate_normal and dirichlet, with traced arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from ..ops.special.binormal import binormal
from ..tracer.array import apply, shadow_of
from ..tracer.class_methods import Method, methods
from ..tracer.trace import unsupported
from .dispatch import Lazy, answered, array, double, guarded, known, stopped, where
from .linalg import solve_triangular

SPECIAL = Lazy("scipy.special")


def _real_array(x: Any) -> Any:
    """An operand as an array of real numbers, of its own precision."""
    x = array(x)
    return double(x) if x.dtype.kind == "c" else x


def _dirichlet_logpdf(self: Any, x: Any, alpha: Any) -> Any:
    """``x`` has a row for each component, or for all but the last."""
    x, alpha = _real_array(x), _real_array(alpha)
    if alpha.ndim != 1 or x.shape[0] not in (alpha.size, alpha.size - 1):
        raise ValueError(f"alpha of shape {alpha.shape} and x of shape {x.shape} do not fit")
    if x.shape[0] == alpha.size - 1:
        x = np.concatenate([x, (1 - np.sum(x, axis=0))[None]])
    column = alpha.reshape((-1, *(1,) * (x.ndim - 1)))
    norm = np.sum(SPECIAL.gammaln(alpha)) - SPECIAL.gammaln(np.sum(alpha))
    found = np.sum(SPECIAL.xlogy(column - 1, x), axis=0) - norm
    return guarded((alpha > 0).all() & (x >= 0).all(), found, math.nan)


def _dirichlet_pdf(self: Any, x: Any, alpha: Any) -> Any:
    return np.exp(_dirichlet_logpdf(self, x, alpha))


def _parameters(mean: Any, cov: Any) -> tuple[Any, Any]:
    """Mean and covariance as a vector and a matrix, from any form that SciPy takes."""
    cov = array(double(cov))
    mean = np.zeros(cov.shape[:1] or 1) if mean is None else np.reshape(array(double(mean)), (-1,))
    n = mean.shape[0]
    if cov.ndim == 0:
        cov = cov * np.eye(n)
    elif cov.ndim == 1:
        cov = np.diag(cov)
    if cov.shape != (n, n):
        raise ValueError(f"a mean of length {n} and a covariance of shape {cov.shape} do not fit")
    return mean, cov


def _log_determinant(factor: Any) -> Any:
    return 2 * np.sum(np.log(np.diagonal(factor)))


class _Support:
    """The subspace on which a normal distribution with a singular covariance lives; cut off where SciPy does so."""

    def __init__(self, cov: np.ndarray[Any, Any]) -> None:
        spectrum, basis = np.linalg.eigh(cov)
        least = 1e6 * np.finfo(float).eps * np.max(np.abs(spectrum))
        if np.min(spectrum) < -least:
            raise ValueError("The input matrix must be symmetric positive semidefinite.")
        on = spectrum > least
        self.rank = int(np.sum(on))
        self._whitening = (basis[:, on] / np.sqrt(spectrum[on])).T
        self._beside = basis[:, ~on].T
        self._constant = -0.5 * (self.rank * math.log(2 * math.pi) + np.sum(np.log(spectrum[on])))
        self._tolerance = 1e3 * least

    def logpdf(self, away: Any) -> Any:
        """For points in columns; -inf beside the subspace."""
        squares = np.sum(np.square(self._whitening @ away), axis=0)
        return where(self.holds(away), self._constant - 0.5 * squares, -math.inf)

    def holds(self, away: Any) -> Any:
        """Whether points lie in the subspace."""
        return np.sum(np.square(stopped(self._beside @ away)), axis=0) < self._tolerance**2


def _normal_logpdf(self: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """By the Cholesky factor of the lower triangle, which SciPy reads, too.

    A singular covariance is an error, unless that is allowed and the covariance does not depend on traced values.
    """
    mean, cov = _parameters(mean, cov)
    n = mean.shape[0]
    rows = _points(x, n)
    away = np.reshape(rows - mean, (-1, n)).T
    if allow_singular and known(cov):
        part = _Support(np.asarray(shadow_of(cov)))
        if part.rank < n:
            return np.squeeze(np.reshape(part.logpdf(away), rows.shape[:-1]))[()]
    factor = np.linalg.cholesky(cov)
    squares = np.sum(np.square(solve_triangular(factor, away, lower=True)), axis=0)
    found = -0.5 * (n * math.log(2 * math.pi) + _log_determinant(factor) + squares)
    return np.squeeze(np.reshape(found, rows.shape[:-1]))[()]


def _points(x: Any, n: int) -> Any:
    """Points of ``n`` variables, the last axis holds these."""
    x = array(double(x))
    rows = np.reshape(x, (-1, 1)) if n == 1 and x.ndim <= 1 else x if x.ndim > 1 else x[None]
    if rows.shape[-1] != n:
        raise ValueError(f"points of shape {x.shape} and a mean of length {n} do not fit")
    return rows


def _normal_cdf(
    self: Any,
    x: Any,
    mean: Any = None,
    cov: Any = 1,
    allow_singular: bool = False,
    maxpts: Any = None,
    abseps: Any = 1e-5,
    releps: Any = 1e-5,
    *,
    lower_limit: Any = None,
    rng: Any = None,
) -> Any:
    """Of one variable or two, which SciPy computes to rounding; it reads the covariance above the diagonal here.

    A singular covariance is an error, which the Cholesky factor raises.
    """
    mean, cov = _parameters(mean, cov)
    n = mean.shape[0]
    if n > 2:
        raise unsupported(
            "scipy.stats.multivariate_normal.cdf of three or more traced variables, which SciPy integrates by random "
            "numbers,",
            "sum the cdf of two variables, given the others, over the nodes of a quadrature",
        )
    rows = _points(x, n)
    first = np.linalg.cholesky(cov)[0, 0]
    deviations = np.stack([first, np.sqrt(cov[1, 1])]) if n == 2 else first
    correlation = cov[0, 1] / (first * deviations[1]) if n == 2 else None
    upper = _in_deviations(rows, mean, deviations)
    found = _below(upper, correlation)
    if lower_limit is not None:
        lower = _in_deviations(array(double(lower_limit)), mean, deviations)
        upper, lower = np.broadcast_arrays(upper, lower)
        found = _below(upper, correlation) - _below(lower, correlation)
        if n == 2:
            mixed = (np.stack([a[..., 0], b[..., 1]], axis=-1) for a, b in ((lower, upper), (upper, lower)))
            found = _below(upper, correlation) + _below(lower, correlation) - sum(_below(x, correlation) for x in mixed)
    return np.squeeze(found)[()]


def _in_deviations(x: Any, mean: Any, deviations: Any) -> Any:
    """The distance from the mean in units of the deviations; infinity stays, and has no slope."""
    if known(x) and np.all(np.isfinite(shadow_of(x))):
        return (x - mean) / deviations
    endless = np.isinf(x)
    return np.where(endless, x, (np.where(endless, 0.0, x) - mean) / deviations)


def _below(corner: Any, correlation: Any) -> Any:
    """The probability below corners, which are in units of the deviations."""
    if corner.shape[-1] == 1:
        return SPECIAL.ndtr(corner[..., 0])
    return apply(binormal, [corner[..., 0], corner[..., 1], np.broadcast_to(correlation, corner.shape[:-1])])


def _normal_pdf(self: Any, *args: Any, **options: Any) -> Any:
    return np.exp(_normal_logpdf(self, *args, **options))


def _normal_entropy(self: Any, mean: Any = None, cov: Any = 1) -> Any:
    mean, cov = _parameters(mean, cov)
    return 0.5 * (mean.shape[0] * (1 + math.log(2 * math.pi)) + _log_determinant(np.linalg.cholesky(cov)))


def _frozen_logpdf(self: Any, x: Any) -> Any:
    return _normal_logpdf(self, x, self.mean, self.cov_object.covariance, self.allow_singular)


def _frozen_cdf(self: Any, x: Any, *, lower_limit: Any = None, rng: Any = None) -> Any:
    return _normal_cdf(self, x, self.mean, self.cov_object.covariance, lower_limit=lower_limit)


def _frozen_pdf(self: Any, x: Any) -> Any:
    return np.exp(_frozen_logpdf(self, x))


@methods("scipy.stats")
def _of_stats(stats: ModuleType) -> Iterable[Method]:
    normal, frozen = type(stats.multivariate_normal), type(stats.multivariate_normal())
    yield Method(type(stats.dirichlet), "logpdf", answered(_dirichlet_logpdf))
    yield Method(type(stats.dirichlet), "pdf", answered(_dirichlet_pdf))
    yield Method(normal, "logpdf", answered(_normal_logpdf))
    yield Method(normal, "pdf", answered(_normal_pdf))
    yield Method(normal, "cdf", answered(_normal_cdf))
    yield Method(normal, "entropy", answered(_normal_entropy))
    yield Method(frozen, "logpdf", answered(_frozen_logpdf))
    yield Method(frozen, "pdf", answered(_frozen_pdf))
    yield Method(frozen, "cdf", answered(_frozen_cdf))
