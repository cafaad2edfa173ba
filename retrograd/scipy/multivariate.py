"""Distributions of vectors in ``scipy.stats``: multivariate_normal and dirichlet, with traced arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from ..tracer.array import shadow_of
from ..tracer.class_methods import Method, methods
from .dispatch import Lazy, answered, array, double, guarded, known, stopped, where
from .linalg import solve_triangular

SPECIAL = Lazy("scipy.special")


def _dirichlet_logpdf(self: Any, x: Any, alpha: Any) -> Any:
    """``x`` has a row for each component, or for all but the last."""
    x, alpha = array(double(x)), array(double(alpha))
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
    x, n = array(double(x)), mean.shape[0]
    rows = np.reshape(x, (-1, 1)) if n == 1 and x.ndim <= 1 else x if x.ndim > 1 else x[None]
    if rows.shape[-1] != n:
        raise ValueError(f"points of shape {x.shape} and a mean of length {n} do not fit")
    away = np.reshape(rows - mean, (-1, n)).T
    if allow_singular and known(cov):
        part = _Support(np.asarray(shadow_of(cov)))
        if part.rank < n:
            return np.squeeze(np.reshape(part.logpdf(away), rows.shape[:-1]))[()]
    factor = np.linalg.cholesky(cov)
    squares = np.sum(np.square(solve_triangular(factor, away, lower=True)), axis=0)
    found = -0.5 * (n * math.log(2 * math.pi) + _log_determinant(factor) + squares)
    return np.squeeze(np.reshape(found, rows.shape[:-1]))[()]


def _normal_pdf(self: Any, *args: Any, **options: Any) -> Any:
    return np.exp(_normal_logpdf(self, *args, **options))


def _normal_entropy(self: Any, mean: Any = None, cov: Any = 1) -> Any:
    mean, cov = _parameters(mean, cov)
    return 0.5 * (mean.shape[0] * (1 + math.log(2 * math.pi)) + _log_determinant(np.linalg.cholesky(cov)))


def _frozen_logpdf(self: Any, x: Any) -> Any:
    return _normal_logpdf(self, x, self.mean, self.cov_object.covariance, self.allow_singular)


def _frozen_pdf(self: Any, x: Any) -> Any:
    return np.exp(_frozen_logpdf(self, x))


@methods("scipy.stats")
def _of_stats(stats: ModuleType) -> Iterable[Method]:
    normal, frozen = type(stats.multivariate_normal), type(stats.multivariate_normal())
    yield Method(type(stats.dirichlet), "logpdf", answered(_dirichlet_logpdf))
    yield Method(type(stats.dirichlet), "pdf", answered(_dirichlet_pdf))
    yield Method(normal, "logpdf", answered(_normal_logpdf))
    yield Method(normal, "pdf", answered(_normal_pdf))
    yield Method(normal, "entropy", answered(_normal_entropy))
    yield Method(frozen, "logpdf", answered(_frozen_logpdf))
    yield Method(frozen, "pdf", answered(_frozen_pdf))
