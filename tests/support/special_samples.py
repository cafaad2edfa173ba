"""Samples of the functions of ``scipy.special``: both sides of every threshold between a formula and a series."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import Aval

from .graphs import built, op
from .sampling import (
    a,
    between,
    binary,
    case,
    declare,
    ints,
    nonzero,
    normal,
    off_integers,
    positive,
    same,
    small,
    unary,
)

REAL = "df"
COMPLEX = "dfD"
PAIRS = (("fF", (3,)), ("dD", (3,)), ("dD", "scalar"), ("dD", ()))

for _name in ("gamma", "loggamma", "rgamma"):
    declare(_name, unary(positive, dtypes=REAL))
declare("gammaln", unary(positive, dtypes=REAL), unary(off_integers, dtypes="d"))
declare("rgamma", unary(off_integers, dtypes="d"))
declare("digamma", unary(between(1.0, 2.0), dtypes=REAL), unary(between(-0.6, -0.4), dtypes="d"))
declare("gammasgn", unary(off_integers, dtypes=REAL))
declare("zeta", binary(between(1.5, 4.0), between(1.0, 2.0), dtypes=REAL))
for _name in ("beta", "betaln"):
    declare(_name, binary(positive, positive, dtypes=REAL))
declare("poch", binary(positive, positive, dtypes=REAL))
declare("binom", binary(between(3.1, 4.0), positive, dtypes=REAL))
declare("poch", binary(between(-1.8, -1.2), between(2.2, 2.8), dtypes=REAL))  # the sum is right of all poles
declare(
    "binom",
    binary(between(0.2, 0.8), between(2.2, 2.8), dtypes=REAL),
    binary(positive, between(-1.8, -1.2), dtypes=REAL),
)
for _dtype in REAL:
    for _kind in ((2, 3), (3,), (), "scalar"):
        for _domain in (between(-1.8, -1.2), between(0.3, 0.4)):
            _point, _mask = (a(_kind, _dtype, positive), a(_kind, _dtype, _domain)), a(_kind, "?")
            for _name in ("beta_left", "gamma_left"):
                declare(_name, case(*_point, a(_kind, _dtype, between(-0.2, 0.2)), _mask))
            declare("mirrored_rise", case(*_point[::-1], _mask))
            for _order in (2, 3):
                declare("mirrored_drop", case(*_point[::-1], _mask, s=_order))
_far = (a((3,), "d", between(-40.8, -40.2)), a((3,), "d", between(-34.8, -34.2)))
declare("gamma_left", case(*_far, a((3,), "d", between(-0.2, 0.2)), a((3,), "?", positive)))
declare("binom_fall", same(normal, between(3.1, 4.0), positive, dtypes=REAL))
declare("binom_fall", same(normal, between(0.2, 0.8), between(2.2, 2.8), dtypes=REAL))
declare("binom_fall", same(normal, positive, between(-1.8, -1.2), dtypes=REAL))
for _name in ("gammainc", "gammaincc"):
    declare(_name, binary(positive, positive, dtypes=REAL))
for _name in ("gammaincinv", "gammainccinv"):
    declare(_name, binary(positive, between(0.2, 0.8), dtypes="d"))
declare("log_gamma_density", binary(positive, positive, dtypes=REAL), binary(between(20.0, 30.0), positive, dtypes="d"))
declare("log_gamma_density", binary(between(20.0, 22.0), between(18.0, 24.0), dtypes=REAL))
for _domain in (between(0.2, 0.8), between(0.45, 0.55)):
    declare("log_beta_density", same(positive, positive, _domain, dtypes=REAL))
    declare("log_beta_density", same(between(20.0, 22.0), between(20.0, 22.0), _domain, dtypes="d"))
declare("log_student_density", binary(positive, normal, dtypes=REAL), binary(between(21.0, 25.0), normal, dtypes=REAL))
declare("student_rate", unary(positive, dtypes=REAL), unary(between(21.0, 25.0), dtypes=REAL))
declare("student_weight", binary(positive, positive, dtypes=REAL))
declare("student_slope", binary(between(31.0, 40.0), between(0.3, 2.0), dtypes=REAL))
declare("student_slope", binary(between(31.0, 40.0), between(-4.0, -3.0), dtypes="d"))
for _domain in (between(0.01, 0.15), between(0.3, 2.0)):
    declare("log_excess", binary(positive, _domain, dtypes=REAL), binary(between(101.0, 200.0), _domain, dtypes=REAL))
declare("digamma_rise", binary(positive, positive, dtypes=REAL))
for _domain in (between(1.0, 2.0), between(20.0, 22.0)):
    declare("digamma_rise", binary(_domain, between(-0.2, 0.2), dtypes="d"))
for _order in (1, 2):
    declare("zeta_drop", binary(positive, positive, dtypes=REAL, s=_order))
    declare("zeta_drop", binary(between(1.0, 2.0), between(-0.2, 0.2), dtypes="d", s=_order))
declare("stdtrit", binary(between(2.0, 3.0), between(0.55, 0.7), dtypes="d"))
declare("stdtr", binary(positive, normal, dtypes="d"), binary(between(31.0, 40.0), normal, dtypes="d"))
declare("gammainc_slope", binary(positive, positive, dtypes=REAL), binary(positive, between(3.0, 4.0), dtypes="d"))
for _first in (True, False):
    for _domain in (between(0.3, 0.45), between(0.6, 0.75)):
        declare("betainc_slope", same(positive, positive, _domain, dtypes="d", first=_first))
for _name in ("betainc", "betaincc", "betaincinv", "betainccinv"):
    declare(_name, same(positive, positive, between(0.2, 0.8), dtypes="d"))

for _name in ("log_gammainc", "log_gammaincc"):
    declare(_name, binary(positive, positive, dtypes=REAL))
for _name in ("log_betainc", "log_betaincc"):
    declare(_name, same(positive, positive, between(0.2, 0.8), dtypes="d"))
declare("log_stdtr", binary(positive, normal, dtypes="d"), binary(between(31.0, 40.0), normal, dtypes="d"))

for _domain in (between(-0.8, -0.1), between(0.1, 0.8)):
    declare("binormal", same(normal, normal, _domain, dtypes="d"))

for _name in ("erf", "erfc", "erfi", "erfcx", "dawsn"):
    declare(_name, unary(dtypes=COMPLEX))
for _name in ("erfcx", "dawsn"):
    declare(_name, unary(between(13.0, 14.0), dtypes=REAL))
declare("dawsn", unary(between(-14.0, -13.0), dtypes=REAL))
declare("erfinv", unary(between(-0.8, 0.8), dtypes=REAL))
declare("erfcinv", unary(between(0.3, 1.7), dtypes=REAL))
declare("ndtr", unary(dtypes=COMPLEX))
declare("log_ndtr", unary(dtypes=COMPLEX), unary(between(-20.0, -19.0), dtypes=REAL))
declare("normal_ratio", unary(dtypes=COMPLEX), unary(between(-20.0, -19.0), dtypes=REAL))
declare("ndtri", unary(between(0.2, 0.8), dtypes=REAL))
declare("ndtri_exp", unary(between(-3.0, -0.5), dtypes="d"))
for _name in ("expit", "log_expit"):
    declare(_name, unary(dtypes=REAL))
declare("logit", unary(between(0.2, 0.8), dtypes=REAL))

for _name in ("xlogy", "xlog1py"):
    declare(_name, binary(normal, positive, dtypes=COMPLEX))
for _name in ("rel_entr", "kl_div", "log_ratio"):
    declare(_name, binary(positive, positive, dtypes=REAL), binary(between(1.0, 1.1), between(1.0, 1.1), dtypes="d"))
declare("relative_gap", binary(positive, positive, dtypes=REAL))
declare("entr", unary(positive, dtypes=REAL))
for _name in ("huber", "pseudo_huber", "pseudo_huber_pull", "pseudo_huber_by_width"):
    declare(
        _name, binary(between(1.6, 2.0), normal, dtypes=REAL), binary(between(0.5, 1.0), between(1.2, 1.5), dtypes="d")
    )

for _name in ("j0", "j1"):
    declare(_name, unary(dtypes=REAL))
for _name in ("special_i0", "i1", "i0e", "i1e"):
    declare(_name, unary(nonzero, dtypes=REAL))
for _name in ("y0", "y1", "k0", "k1", "k0e", "k1e"):
    declare(_name, unary(positive, dtypes=REAL))
for _name in ("jv", "yv", "iv", "kv"):
    declare(_name, binary(between(1.5, 2.5), positive, dtypes=REAL))
    declare(_name, *(case(a(s, t[0], positive), a(s, t[1], positive)) for t, s in PAIRS))
    declare(_name, case(ints(4, (3,)), a((3,), "d", positive)))
for _name in ("ive", "kve"):
    declare(_name, binary(between(1.5, 2.5), positive, dtypes=REAL))
for _name in ("yn", "kn", "expn"):
    declare(_name, binary(small, positive, dtypes="d"), case(ints(4, (3,)), a((3,), "d", positive)))

declare("hyp2f1", same(positive, positive, between(2.0, 3.0), between(-0.5, 0.5), dtypes="d"))
declare("hyp2f1", case(*(a((3,), "d", positive) for _ in range(3)), a((3,), "D", between(-0.3, 0.3))))
declare("hyp1f1", same(positive, positive, normal, dtypes="d"), case(*(a((3,), t, positive) for t in "ddD")))
declare("hyp0f1", binary(positive, normal, dtypes="d"), case(*(a((3,), t, positive) for t in "dD")))
declare("exp1", unary(positive, dtypes=COMPLEX))
declare("expi", unary(positive, dtypes=COMPLEX))
declare(
    "exprel",
    *(unary(domain, dtypes="d") for domain in (between(-0.4, 0.4), between(0.6, 2.0), between(-2.0, -0.6))),
    unary(dtypes="f"),
)
declare("boxcox", binary(positive, normal, dtypes=REAL), binary(positive, between(-0.01, 0.01), dtypes="d"))
for _domain in (between(0.2, 0.8), between(-0.08, 0.08), between(-3.0, -0.3)):
    for _name in ("ellipk", "ellipe"):
        declare(_name, unary(_domain, dtypes=REAL))
for _domain in (between(0.6, 1.4), between(0.1, 0.4), between(1.6, 4.0)):
    declare("spence", unary(_domain, dtypes=REAL))
declare("wofz", unary(dtypes="D"))
for _branch in (0, -1):
    declare("lambertw", unary(positive, dtypes="D", branch=_branch))
for _name in ("special_exp2", "exp10"):
    declare(_name, unary(dtypes=REAL))
declare("special_expm1", unary(dtypes=COMPLEX))
declare("special_log1p", unary(positive, dtypes=COMPLEX))
declare("special_cbrt", unary(nonzero, dtypes=REAL))
declare("cosm1", unary(dtypes=REAL))

for _dtype in "dfD":
    for _method in ("direct", "fft"):
        for _x, _v, _mode in (((3, 2), (2, 2), "full"), ((4, 3), (2, 2), "valid"), ((2,), (3,), "full")):
            declare("convolve_nd", case(a(_x, _dtype), a(_v, _dtype), mode=_mode, method=_method))
declare("convolve_nd", case(a((2, 3, 2)), a((2, 1, 2)), mode="valid", method="direct"))


def _denominator(shape: Any, dtype: str = "d") -> Any:
    """Coefficients of a stable filter, whose first one is not 1."""

    def draw(rng: Any) -> Any:
        found = np.array(a(shape, dtype)(rng) * np.dtype(dtype).type(0.3))
        found[..., 0] += 2
        return found

    return draw


for _dtype in "dfD":
    for _b, _a, _x in (((3,), (2,), (4,)), ((2,), (1,), (5,)), ((1,), (4,), (3,)), ((4,), (3,), (2, 3))):
        _state = a((*_x[:-1], max(_b[-1], _a[-1]) - 1), _dtype)
        declare("lfilter", case(a(_b, _dtype), _denominator(_a, _dtype), a(_x, _dtype)))
        declare("lfilter_from", case(a(_b, _dtype), _denominator(_a, _dtype), a(_x, _dtype), _state))
    for _count in (1, 3, 6):
        for _shape in ((4,), (2, 3)):
            declare("lagged_products", case(a(_shape, _dtype), a(_shape, _dtype), count=_count))
for _b, _a in (((2, 3), (2,)), ((3,), (2, 2)), ((2, 2), (2, 3))):
    _state = a((2, max(_b[-1], _a[-1]) - 1))
    declare("lfilter", case(a(_b), _denominator(_a), a((2, 4))))
    declare("lfilter_from", case(a(_b), _denominator(_a), a((2, 4)), _state))
declare("lfilter_from", case(a((1,)), _denominator((1,)), a((3,)), a((0,))))

_rows = [lambda rng: np.array([1, 0, 2, 1]), lambda rng: np.array([0, 1, 1, 4])]
_columns = [_rows[0], lambda rng: np.array([0, 2, 3, 4])]
for _dtype in "dfD":
    for _shape in ((3,), (3, 2)):
        declare("sparse_product", case(a((4,), _dtype), *_rows, a(_shape, _dtype), shape=(3, 3), by_rows=True))
        declare("sparse_product", case(a((4,), _dtype), *_columns, a(_shape, _dtype), shape=(4, 3), by_rows=False))


def _matrix(size: int, dtype: str = "d", scale: float = 1.0) -> Any:
    """A well-conditioned matrix whose eigenvalues have positive real parts."""
    return lambda rng: (a((size, size), dtype)(rng) * 0.3 + 2 * np.eye(size, dtype=dtype)) * np.dtype(dtype).type(scale)


declare("solve_triangular", case(_matrix(3, "f8"), a((3,), "f8"), lower=True, unit=False, checked=False))
for _dtype in "dfD":
    for _shape in ((3,), (3, 2)):
        for _lower, _unit in ((True, False), (False, False), (True, True)):
            declare("solve_triangular", case(_matrix(3, _dtype), a(_shape, _dtype), lower=_lower, unit=_unit))
        declare(
            "solve_banded",
            case(
                lambda rng, t=_dtype: np.array([[0.3], [2], [0.2], [0.4]], t) + a((4, 3), t)(rng) * np.array(0.1, t),
                a(_shape, _dtype),
                low=2,
                up=1,
            ),
        )
    declare("lu_factor", case(_matrix(3, _dtype)))
    declare("solve_sylvester", case(_matrix(3, _dtype), _matrix(2, _dtype), a((3, 2), _dtype)))
for _name, _dtypes in (("expm", "dD"), ("sqrtm", "dD"), ("logm", "d")):
    declare(_name, *(case(_matrix(2, t, 0.5)) for t in _dtypes))
for _name in ("expm_frechet", "logm_frechet"):
    declare(_name, case(_matrix(2, "d", 0.5), a((2, 2))))


def _pendulum(t: Any, y: Any, a: Any) -> Any:
    """A pendulum whose length changes, as symbols."""
    angle, speed = (op("getitem", y, index=(slice(k, k + 1),)) for k in range(2))
    pull = op("sin", angle) * op("reshape", a, aval=Aval((1,), np.dtype(float)))
    wind = op("reshape", op("cos", t), aval=Aval((1,), np.dtype(float)))
    return op("concatenate", speed, wind - pull, axis=0)


_state, _number = Aval((2,), np.dtype(float)), Aval((), np.dtype(float), "scalar")
_slope = built(_pendulum, Aval((), np.dtype(float), "python"), _state, _number)
_times = lambda rng: np.cumsum(rng.uniform(0.2, 0.4, 2))  # noqa: E731 - a draw, as others are
_attrs = {"body": _slope, "rtol": 1e-9, "atol": 1e-9}
_point = (a((2,)), _times, a("scalar", "d", positive))
for _method in ("odeint", "DOP853"):
    declare("ode", case(*_point, **_attrs, method=_method))
_known = (*_point[:2], a((2, 2)), _point[2])
declare("ode_tangent", case(*_known, a((2,)), a("scalar"), **_attrs, method="odeint", active=(True,)))
declare("ode_cotangent", case(*_known, a((2, 2)), **_attrs, method="odeint", active=(True,)))
_zeros = built(
    lambda t, y, a: op("concatenate", y, op("reshape", op("sin", t) - 0.5, aval=Aval((1,), np.dtype(float))), axis=0),
    Aval((), np.dtype(float), "python"), _state, _number,
)  # fmt: skip
_found = {"event": _zeros, "directions": (0.0, 0.0, 1.0), "most": (0, 2, 0), "method": "DOP853"}
_ends = lambda rng: np.array([0.0, 0.3, 0.9, 12.0])  # noqa: E731 - a draw, as others are
_swing = (lambda rng: np.array([0.5, 0.2]), _ends, a("scalar", "d", between(2.0, 3.0)))
declare("ode_path", case(*_swing, **_attrs, **_found, asked=True, counts=(2, 2, 1, 2, 1)))
declare("ode_path", case(*_swing, **_attrs, **_found, asked=False, counts=(2, 0, 1, 2, 1)))
declare("crossed", case(lambda rng: np.array([1.0, -2.0, 3.0]), lambda rng: np.array([1.1, -2.0, 2.9])))
declare("pivot_order", case(lambda rng: np.array([2, 2, 3, 3], np.int32)))
_entries = lambda rng: rng.uniform(1.0, 2.0, 4)  # noqa: E731 - a draw, as others are
_lower = [lambda rng: np.array([0, 0, 1, 2]), lambda rng: np.array([0, 1, 3, 4])]
for _shape in ((3,), (3, 2)):
    for _by_rows in (True, False):
        declare("sparse_solve", case(_entries, *_lower, a(_shape), shape=(3, 3), by_rows=_by_rows))
