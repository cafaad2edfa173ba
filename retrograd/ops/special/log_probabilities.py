"""Logarithms of the incomplete gamma and beta functions and of Student's distribution function.

The derivative of log f is not f'/f here, which overflows where f is tiny, but the exponential function of a difference
of logarithms.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Derivative, Primitive, primitive, push
from ..batching import elementwise
from ..elementary import exp
from ..elementwise import function
from .densities import log_beta_density, log_gamma_density
from .incomplete import gammainc_slope
from .incomplete_beta import betainc_slope
from .student import freedom_slope, log_student_density

# the rest has the digits where it is small
LOG_PROBABILITY = """
def log_probability(part, rest, *operands):
    found = part(*operands)
    large = found > 0.5
    if np.isscalar(found):
        return np.log1p(-rest(*operands)) if large else np.log(found)
    if large.any():
        tail = rest(*(v[large] for v in np.broadcast_arrays(*operands)))
        np.log(found, where=~large, out=found)
        found[large] = np.log1p(-tail)
        return found
    return np.log(found, out=found)
"""


LOG_STDTR = f"""
def log_stdtr(df, t):
{indent(LOG_PROBABILITY.strip(), "    ")}

    def above(df, t):
        return scipy.special.stdtr(df, -t)

    return log_probability(scipy.special.stdtr, above, df, t)
"""


def _log(name: str, code: str, helper: str, *diff: Derivative) -> Primitive:
    loose = tuple(range(len(diff)))
    return primitive(name, function, code, helper=helper, loose=loose, batch=elementwise, diff=diff)


def _over(slope: Symbol, out: Symbol) -> Any:
    """A slope over a probability, whose logarithm is ``out``; the inverse of the probability may overflow."""
    root = exp(out * -0.5)
    return slope * root * root


def _of_gamma(name: str, part: str, rest: str, sign: float) -> Primitive:
    return _log(
        name,
        f"log_probability(scipy.special.{part}, scipy.special.{rest}, {{0}}, {{1}})",
        LOG_PROBABILITY,
        push(lambda t, out, a, x: t * (_over(gammainc_slope(a, x), out) * sign)),
        push(lambda t, out, a, x: t * (exp(log_gamma_density(a, x) - out) * sign)),
    )


def _of_beta(name: str, part: str, rest: str, sign: float) -> Primitive:
    def by_parameter(t: Symbol, out: Symbol, a: Symbol, b: Symbol, x: Symbol, first: bool) -> Any:
        return t * (_over(betainc_slope(a, b, x, first=first), out) * sign)

    return _log(
        name,
        f"log_probability(scipy.special.{part}, scipy.special.{rest}, {{0}}, {{1}}, {{2}})",
        LOG_PROBABILITY,
        push(lambda t, out, a, b, x: by_parameter(t, out, a, b, x, True)),
        push(lambda t, out, a, b, x: by_parameter(t, out, a, b, x, False)),
        push(lambda t, out, a, b, x: t * (exp(log_beta_density(a, b, x) - out) * sign)),
    )


log_gammainc = _of_gamma("log_gammainc", "gammainc", "gammaincc", 1.0)
log_gammaincc = _of_gamma("log_gammaincc", "gammaincc", "gammainc", -1.0)
log_betainc = _of_beta("log_betainc", "betainc", "betaincc", 1.0)
log_betaincc = _of_beta("log_betaincc", "betaincc", "betainc", -1.0)
log_stdtr = _log(
    "log_stdtr",
    "log_stdtr({0}, {1})",
    LOG_STDTR,
    push(lambda t, out, df, x: t * _over(freedom_slope(df, x), out)),
    push(lambda t, out, df, x: t * exp(log_student_density(df, x) - out)),
)
