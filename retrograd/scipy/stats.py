"""Densities and distribution functions of ``scipy.stats``: ``norm.logpdf(x, loc, scale)`` with traced arguments.

These functions stand in for the methods of SciPy's distributions while a trace is active; a distribution or a method
that is not in the tables is refused by name. If the parameters make no distribution the result is nan, as SciPy's is.

>>> import numpy as np, retrograd as rg, scipy.stats
>>> float(rg.grad(lambda mean: np.sum(scipy.stats.norm.logpdf(np.array([1.0, 2.0]), mean, 2.0)))(0.0))
0.75
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..ir.primitive import Primitive
from ..ops.special.densities import log_beta_density, log_gamma_density
from ..ops.special.log_probabilities import log_betainc, log_betaincc, log_gammainc, log_gammaincc, log_stdtr
from ..ops.special.student import log_student_density
from ..tracer.array import apply, shadow_of
from ..tracer.class_methods import Method, methods
from ..tracer.operands import lifted
from ..tracer.trace import unsupported
from ..tracer.ufuncs import as_operand
from .dispatch import Lazy, answered, double, guarded, known, rest_of, where

__getattr__ = rest_of("scipy.stats")

SPECIAL = Lazy("scipy.special")
Formula = Callable[..., Any]


def _function(name: str) -> Formula:
    """A function of ``scipy.special``, which is imported when it is called."""

    def call(*operands: Any) -> Any:
        return getattr(SPECIAL, name)(*operands)

    return call


def _all_positive(*shapes: Any) -> Any:
    return math.prod((s > 0 for s in shapes), start=np.True_)


class Family(NamedTuple):
    """A distribution in its standard form; formulas take the variable, then the shape parameters."""

    log_density: Formula
    cdf: Formula
    sf: Formula
    low: float = -math.inf
    high: float = math.inf
    valid: Formula = _all_positive
    logcdf: Formula | None = None
    logsf: Formula | None = None
    ppf: Formula | None = None  # for continuous distributions


def _laplace_cdf(y: Any) -> Any:
    left = y < 0
    return where(left, 0.5 * np.exp(where(left, y, 0)), 1 - 0.5 * np.exp(-where(left, 0, y)))


def _laplace_logcdf(y: Any) -> Any:
    left = y < 0
    return where(left, y - math.log(2), np.log1p(-0.5 * np.exp(-where(left, 0, y))))


def _laplace_ppf(q: Any) -> Any:
    left = q < 0.5
    return where(left, np.log(2 * where(left, q, 0.5)), -np.log(2 * where(left, 0.5, 1 - q)))


def _recorded(primitive: Primitive) -> Formula:
    """A function of doubles that a primitive computes, whose last operand is the variable."""

    def call(y: Any, *shapes: Any) -> Any:
        operands = (*shapes, y)
        shape = np.broadcast_shapes(*(np.shape(shadow_of(x)) for x in operands))
        return apply(primitive, lifted(*(np.broadcast_to(x, shape) if shape else x for x in operands)))

    return call


_gamma_log_density = _recorded(log_gamma_density)
_log_gammainc, _log_gammaincc, _log_stdtr = map(_recorded, (log_gammainc, log_gammaincc, log_stdtr))


def _chi2_log_density(y: Any, df: Any) -> Any:
    return _gamma_log_density(0.5 * y, 0.5 * df) - math.log(2)


CONTINUOUS: dict[str, Family] = {
    "norm": Family(
        lambda y: -0.5 * (y * y) - 0.5 * math.log(2 * math.pi),
        cdf=_function("ndtr"),
        sf=lambda y: SPECIAL.ndtr(-y),
        ppf=_function("ndtri"),
        logcdf=_function("log_ndtr"),
        logsf=lambda y: SPECIAL.log_ndtr(-y),
    ),
    "t": Family(
        _recorded(log_student_density),
        cdf=lambda y, df: SPECIAL.stdtr(df, y),
        sf=lambda y, df: SPECIAL.stdtr(df, -y),
        logcdf=_log_stdtr,
        logsf=lambda y, df: _log_stdtr(-y, df),
        ppf=lambda q, df: where(q == 0, -math.inf, SPECIAL.stdtrit(df, where(q == 0, 0.5, q))),
    ),
    "beta": Family(
        _recorded(log_beta_density),
        low=0,
        high=1,
        cdf=lambda y, a, b: SPECIAL.betainc(a, b, y),
        sf=lambda y, a, b: SPECIAL.betaincc(a, b, y),
        logcdf=_recorded(log_betainc),
        logsf=_recorded(log_betaincc),
        ppf=lambda q, a, b: SPECIAL.betaincinv(a, b, q),
    ),
    "gamma": Family(
        _gamma_log_density,
        low=0,
        cdf=lambda y, a: SPECIAL.gammainc(a, y),
        sf=lambda y, a: SPECIAL.gammaincc(a, y),
        logcdf=_log_gammainc,
        logsf=_log_gammaincc,
        ppf=lambda q, a: SPECIAL.gammaincinv(a, q),
    ),
    "chi2": Family(
        _chi2_log_density,
        low=0,
        cdf=lambda y, df: SPECIAL.gammainc(0.5 * df, 0.5 * y),
        sf=lambda y, df: SPECIAL.gammaincc(0.5 * df, 0.5 * y),
        logcdf=lambda y, df: _log_gammainc(0.5 * y, 0.5 * df),
        logsf=lambda y, df: _log_gammaincc(0.5 * y, 0.5 * df),
        ppf=lambda q, df: 2 * SPECIAL.gammaincinv(0.5 * df, q),
    ),
    "laplace": Family(
        lambda y: -np.abs(y) - math.log(2),
        cdf=_laplace_cdf,
        sf=lambda y: _laplace_cdf(-y),
        logcdf=_laplace_logcdf,
        logsf=lambda y: _laplace_logcdf(-y),
        ppf=_laplace_ppf,
    ),
    "expon": Family(
        lambda y: -y,
        low=0,
        cdf=lambda y: -np.expm1(-y),
        sf=lambda y: np.exp(-y),
        logsf=lambda y: -y,
        ppf=lambda q: -np.log1p(-q),
    ),
    "uniform": Family(lambda y: y * 0.0, low=0, high=1, cdf=lambda y: y, sf=lambda y: 1 - y, ppf=lambda q: q * 1.0),
}


def _poisson_log_mass(k: Any, mu: Any) -> Any:
    return _gamma_log_density(mu, k + 1)


DISCRETE: dict[str, Family] = {
    "poisson": Family(
        _poisson_log_mass,
        low=0,
        valid=lambda mu: mu >= 0,
        cdf=lambda k, mu: SPECIAL.gammaincc(k + 1, mu),
        sf=lambda k, mu: SPECIAL.gammainc(k + 1, mu),
        logcdf=lambda k, mu: _log_gammaincc(mu, k + 1),
        logsf=lambda k, mu: _log_gammainc(mu, k + 1),
    ),
}


def _within(formula: Formula, family: Family, y: Any, shapes: Any, below: float, above: float) -> Any:
    """A formula on the support and constants beside it; nan stays nan, and the unused branch has finite derivatives."""
    if family.low == -math.inf:
        return formula(y, *shapes)
    outside = y < family.low if family.high == math.inf else (y < family.low) | (y > family.high)
    if known(outside) and not np.any(outside):
        return formula(y, *shapes)
    if known(outside):  # a slope by parameters may be infinite there, at a mean of 0
        shapes = [where(outside, 1.0, x) for x in shapes]
    value = formula(where(outside, family.low + 0.5, y), *shapes)
    beside = below if below == above or family.high == math.inf else where(y < family.low, below, above)
    return where(outside, beside, value)


def _density(family: Family, y: Any, shapes: Any) -> Any:
    return _within(family.log_density, family, y, shapes, -math.inf, -math.inf)


def _cdf(family: Family, y: Any, shapes: Any) -> Any:
    return _within(family.cdf, family, y, shapes, 0.0, 1.0)


def _sf(family: Family, y: Any, shapes: Any) -> Any:
    return _within(family.sf, family, y, shapes, 1.0, 0.0)


def _logcdf(family: Family, y: Any, shapes: Any) -> Any:
    if family.logcdf:
        return _within(family.logcdf, family, y, shapes, -math.inf, 0.0)
    return _log_of(_cdf(family, y, shapes), _sf(family, y, shapes))


def _logsf(family: Family, y: Any, shapes: Any) -> Any:
    if family.logsf:
        return _within(family.logsf, family, y, shapes, 0.0, -math.inf)
    return _log_of(_sf(family, y, shapes), _cdf(family, y, shapes))


def _log_of(part: Any, rest: Any) -> Any:
    """The logarithm of a probability, of which the rest is exact where it is small."""
    large = part > 0.5
    return where(large, np.log1p(-where(large, rest, 0.0)), np.log(where(large, 1.0, part)))


STANDARD: dict[str, Formula] = {"cdf": _cdf, "sf": _sf, "logcdf": _logcdf, "logsf": _logsf}


def _of_array(x: Any) -> Any:
    """An operand as SciPy takes it, as an array: Python's numbers are doubles."""
    return double(x) if isinstance(shadow_of(x), (bool, int, float)) else as_operand(x)


def _continuous(name: str) -> Formula:
    """The substitute for a method of a continuous distribution: its standard form, moved by loc, stretched by scale."""

    def method(self: Any, x: Any, *args: Any, **options: Any) -> Any:
        family = _family(CONTINUOUS, self, name)
        shapes, loc, scale = self._parse_args(*args, **options)
        x, loc, scale = map(_of_array, (x, loc, scale))
        y, (loc, scale, *shapes) = (x - loc) / scale, map(double, (loc, scale, *shapes))
        fine = family.valid(*shapes) & (scale > 0)
        if name == "ppf":
            assert family.ppf is not None
            x = double(x)
            return guarded(fine & (x >= 0) & (x <= 1), family.ppf(x, *shapes) * scale + loc, math.nan)
        y = double(y)
        if name == "logpdf":
            found = _density(family, y, shapes) - np.log(scale)
        elif name == "pdf":
            found = np.exp(_density(family, y, shapes)) / scale
        else:
            found = STANDARD[name](family, y, shapes)
        return guarded(fine, found, math.nan)

    return answered(method)


def _discrete(name: str) -> Formula:
    """The substitute for a method of a discrete distribution."""

    def method(self: Any, k: Any, *args: Any, **options: Any) -> Any:
        family = _family(DISCRETE, self, name)
        shapes, loc, _ = self._parse_args(*args, **options)
        k, loc, *shapes = map(double, (k, loc, *shapes))
        k = k - loc
        if name in ("logpmf", "pmf"):
            found = guarded(np.logical_not(k - np.floor(k) > 0), _density(family, k, shapes), -math.inf)
            found = found if name == "logpmf" else np.exp(found)
        else:
            found = STANDARD[name](family, np.floor(k), shapes)
        return guarded(family.valid(*shapes), found, math.nan)

    return answered(method)


def _family(families: dict[str, Family], distribution: Any, name: str) -> Family:
    if distribution.name not in families:
        raise unsupported(
            f"scipy.stats.{distribution.name}.{name} of a traced value",
            f"write the formula with scipy.special; known are {', '.join((*CONTINUOUS, *DISCRETE))}",
        )
    return families[distribution.name]


@methods("scipy.stats")
def _of_stats(stats: ModuleType) -> Iterable[Method]:
    for name in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf"):
        yield Method(stats.rv_continuous, name, _continuous(name))
    for name in ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"):
        yield Method(stats.rv_discrete, name, _discrete(name))
