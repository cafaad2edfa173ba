"""Random calls of the functions of SciPy that ``docs/scipy.md`` lists."""

# ruff: noqa: E501, SIM905 - a row of a table stands on one line, and long lists of names are texts

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fuzz.calls import Call, Draft, draw_call
from tests.fuzz.operands import Operand

# {a} is an operand, {b} one that broadcasts with it, {p} and {q} a positive one and one in the unit interval, {t} a vector,
# {m} and {w} square matrices, {h} a positive definite one, {l} a triangular one, {x} an axis, {n} a natural number.
UNARY = """
    gamma gammaln loggamma rgamma gammasgn digamma psi erf erfc erfcx erfi erfinv erfcinv dawsn ndtr ndtri
    log_ndtr ndtri_exp expit logit log_expit entr exp2 exp10 expm1 log1p cbrt cosm1 j0 j1 y0 y1 i0 i1 i0e i1e k0
    k1 k0e k1e exp1 expi exprel ellipk ellipe spence wofz
""".split()
BINARY = """
    beta betaln poch binom gammainc gammaincc gammaincinv gammainccinv stdtr stdtrit xlogy xlog1py rel_entr
    kl_div huber pseudo_huber boxcox jn jv yn yv iv ive kn kv kve zeta expn hyp0f1
""".split()
DISTRIBUTIONS = {
    "norm": "",
    "t": "{p}",
    "beta": "{p}, {p}",
    "gamma": "{p}",
    "chi2": "{p}",
    "laplace": "",
    "expon": "",
    "uniform": "",
}
FORMS = [
    *(f"scipy.special.{name}({{a}})" for name in UNARY),
    *(f"scipy.special.{name}({{p}})" for name in UNARY),
    *(f"scipy.special.{name}({{a}}, {{b}})" for name in BINARY),
    *(f"scipy.special.{name}({{p}}, {{q}})" for name in BINARY),
    *(f"scipy.special.{name}({{n}}, {{p}})" for name in ["jn", "jv", "yv", "iv", "kv", "expn", "polygamma", "zeta"]),
    *(f"scipy.special.{name}({{p}}, {{p}}, {{q}})" for name in ["betainc", "betaincc", "betaincinv", "betainccinv", "hyp1f1"]),
    "scipy.special.hyp2f1({p}, {p}, {p}, {q})",
    *(f"scipy.special.{name}({{a}})" for name in ["logsumexp", "softmax", "log_softmax", "softplus"]),
    *(f"scipy.special.{name}({{a}}, axis={{x}})" for name in ["logsumexp", "softmax", "log_softmax"]),
    "scipy.special.logsumexp({a}, axis={x}, keepdims=True)", "scipy.special.logsumexp({a}, b={b})",
    "scipy.special.logsumexp({a}, b={b}, return_sign=True)", "scipy.special.multigammaln({p} + 2, 2)",
    "scipy.special.lambertw({p})", "scipy.special.comb({n}, {n})", "scipy.special.comb({p}, {q})",
    "scipy.special.factorial({n})", "scipy.special.factorial({p})",
    "scipy.linalg.solve({m}, {t})", "scipy.linalg.solve({h}, {m}, assume_a='pos')", "scipy.linalg.inv({m})",
    "scipy.linalg.det({m})", "scipy.linalg.pinv({m})", "scipy.linalg.norm({a})", "scipy.linalg.norm({m}, 1)",
    "scipy.linalg.norm({a}, axis={x})", "scipy.linalg.cholesky({h})", "scipy.linalg.cholesky({h}, lower=True)",
    "scipy.linalg.svdvals({m})", "scipy.linalg.svd({m}, full_matrices=False)[1]", "scipy.linalg.qr({m})",
    "scipy.linalg.qr({m}, mode='economic')", "scipy.linalg.eigvalsh({h})", "scipy.linalg.eigh({h}, eigvals_only=True)",
    "scipy.linalg.solve_triangular({l}, {t}, lower=True)", "scipy.linalg.solve_triangular({l}, {m}, trans='T', lower=True)",
    "scipy.linalg.solve_triangular({l}, {t}, lower=True, unit_diagonal=True)", "scipy.linalg.cho_factor({h})[0]",
    "scipy.linalg.cho_solve((scipy.linalg.cholesky({h}, lower=True), True), {t})",
    "scipy.linalg.lu_solve(scipy.linalg.lu_factor({h}), {t})", "scipy.linalg.lu_solve(scipy.linalg.lu_factor({h}), {t}, 1)",
    "scipy.linalg.solve_banded((1, 1), {h} + 3, {t})", "scipy.linalg.solve_sylvester({h}, {h}, {m})",
    "scipy.linalg.expm({m})", "scipy.linalg.logm({h})", "scipy.linalg.sqrtm({h})", "scipy.linalg.toeplitz({t})",
    "scipy.linalg.toeplitz({t}, {t})", "scipy.linalg.block_diag({m}, {t})",
    *(
        f"scipy.stats.{name}.{method}({x}, {shapes})".replace(", )", ")")
        for name, shapes in DISTRIBUTIONS.items()
        for method, x in [*((m, "{p}") for m in ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"]), ("ppf", "{q}"), ("pdf", "{q}")]
    ),
    *(f"scipy.stats.norm.{method}({{a}}, {{b}}, {{p}})" for method in ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"]),
    *(f"scipy.stats.norm(loc={{b}}, scale={{p}}).{method}({{a}})" for method in ["logpdf", "cdf"]),
    *(f"scipy.stats.gamma.{method}({{p}}, {{p}}, scale={{p}})" for method in ["logpdf", "cdf", "sf"]),
    *(f"scipy.stats.poisson.{method}({{n}}, {{p}})" for method in ["logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"]),
    "scipy.stats.multivariate_normal.logpdf({t}, {t}, {h})", "scipy.stats.multivariate_normal.pdf({m}, {t}, {h})",
    *(f"scipy.fft.{name}({{a}})" for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn", "fftshift", "ifftshift"]),
    *(f"scipy.fft.{name}({{a}}, {{n}}, {{x}})" for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]),
    *(f"scipy.fft.{name}({{a}}, norm='ortho')" for name in ["fft2", "ifft2", "rfft2", "irfft2", "fft", "rfft"]),
    *(f"scipy.signal.{name}({{t}}, {{t}}{mode})" for name in ["convolve", "correlate", "fftconvolve"]
      for mode in ("", ", mode='same'", ", 'valid'")),
    "scipy.signal.convolve({m}, {m})", "scipy.signal.correlate({m}, {m}, 'same')", "scipy.signal.fftconvolve({m}, {m})",
    *(f"scipy.ndimage.{name}({{m}}, {{m}}{mode})" for name in ["convolve", "correlate"]
      for mode in ("", ", mode='constant'", ", mode='wrap'", ", mode='nearest'", ", mode='mirror'")),
    "scipy.integrate.trapezoid({a})", "scipy.integrate.trapezoid({t}, {t})", "scipy.integrate.simpson({t})",
    "scipy.integrate.cumulative_trapezoid({t})", "scipy.integrate.cumulative_trapezoid({a}, axis={x}, initial=0)",
    "scipy.integrate.simpson({t}, dx=0.5)", "scipy.integrate.trapezoid({a}, dx=0.5, axis={x})",
]  # fmt: skip
REAL = ("float64", "float64", "float64", "float32", "int64")


def _inside(d: Draft, shape: tuple[int, ...], low: float, high: float) -> str:
    """An operand whose entries lie between bounds."""
    rng, texts = d.rng, []
    for _ in range(2):
        values = np.array([round(rng.uniform(low, high), 3) for _ in range(int(np.prod(shape)))]).reshape(shape)
        texts.append(
            f"np.array({values.tolist()})"
            if values.size and shape
            else f"np.zeros({shape})"
            if shape
            else repr(float(values))
        )
    role = rng.choice(("traced", "traced", "captured", "literal")) if d.operands else "traced"
    if role == "literal":
        return texts[0]
    name = f"{'t' if role == 'traced' else 'g'}{len(d.operands)}"
    d.operands[name] = Operand((texts[0], texts[1]), role)
    return name


def _of_form(d: Draft) -> str:
    form = d.rng.choice(FORMS)
    if "linalg" in form:
        d.special = 0.0  # LAPACK may never end on nan and infinities
    drawers: dict[str, Callable[[], str]] = {
        "a": lambda: d.array(None, REAL if d.rng.random() < 0.8 else ()),
        "b": lambda: d.array(d.near(), REAL),
        "p": lambda: _inside(d, d.shape if d.rng.random() < 0.6 else (), 0.3, 4.0),
        "q": lambda: _inside(d, d.shape if d.rng.random() < 0.6 else (), 0.05, 0.9),
        "t": lambda: d.array((3,), REAL, array=True),
        "m": lambda: d.array((3, 3), REAL, array=True),
        "h": lambda: f"({(name := d.array((3, 3), ('float64',), array=True))} @ {name}.T + 3 * np.eye(3))",
        "l": lambda: f"({d.array((3, 3), ('float64',), array=True)} + 4 * np.eye(3))",
        "x": d.axis,
        "n": lambda: d.of("1", "2", "3", "0", "4"),
    }
    text = ""
    while "{" in form:
        head, _, rest = form.partition("{")
        text, form = text + head + drawers[rest[0]](), rest[2:]
    return text + form


def draw_scipy_call(seed: int, smooth: bool = False) -> Call:
    """The call of that number."""
    return draw_call(seed, [_of_form], smooth)
