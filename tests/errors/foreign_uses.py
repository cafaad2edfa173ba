"""Traced values in the hands of other libraries: each call is refused by name, with what to do instead."""

# ruff: noqa: NPY002, PLW0108, PTH123, SIM115 - they are written as users write them

from __future__ import annotations

import cmath
import datetime as dt
import decimal
import fractions
import io
import json
import pickle
import random
import statistics
from collections.abc import Callable
from json import dumps
from struct import pack
from types import ModuleType
from typing import Any

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.special
import scipy.stats

import retrograd as rg
from retrograd import errors

W = np.array([4.0, 5.0, 6.0])


def library(name: str, source: str) -> ModuleType:
    """A module as an installed package has it."""
    module = ModuleType(name)
    exec(compile(source, f"/site-packages/{name}.py", "exec"), vars(module))
    return module


NUMBA = """
class TypingError(Exception):
    pass

def compiled(x):
    raise TypingError(f"Cannot determine Numba type of {type(x)}")
"""
PANDAS = """
def Series(data):
    return bytes(memoryview(data))
"""
compiled = library("numba", NUMBA).compiled
pandas = library("pandas", PANDAS)

log_density = scipy.stats.norm.logpdf
softmax = [scipy.special.softmax]  # where no trace finds it

# how the call is named, the call, and a part of the remedy
HANDED_OVER: dict[str, tuple[Callable[[Any], Any], str]] = {
    "json.dumps": (lambda x: json.dumps(x), "store the result"),
    "json.dumps of a dict": (lambda x: json.dumps({"loss": x[0]}), "store the result"),
    "dumps": (lambda x: dumps([x]), "store the result"),
    "json.dump": (lambda x: json.dump(x, io.StringIO()), "store the result"),
    "pickle.dumps": (lambda x: pickle.dumps(x), "store the result"),
    "pickle.dump": (lambda x: pickle.dump({"x": x}, io.BytesIO()), "store the result"),
    "random.Random": (lambda x: random.Random(x), "loc + scale"),
    "np.ma.array": (lambda x: np.ma.array(x, mask=[True, False, False]), "two arrays"),
    "np.ma.masked_less": (lambda x: np.ma.masked_less(x, 2.0).mean(), "two arrays"),
    "np.ma.masked_invalid": (lambda x: np.ma.masked_invalid(x), "two arrays"),
    "statistics.mean": (lambda x: statistics.mean(x), "np.mean"),
    "statistics.stdev": (lambda x: statistics.stdev(x), "np.mean"),
    "decimal.Decimal": (lambda x: decimal.Decimal(x[0]), "floating point"),
    "fractions.Fraction": (lambda x: fractions.Fraction(x[0]), "floating point"),
    "dt.timedelta": (lambda x: dt.timedelta(x[0]), "plain numbers"),
    "cmath.exp": (lambda x: cmath.exp(x[0]), "NumPy function"),
    "cmath.polar": (lambda x: cmath.polar(x[0]), "NumPy function"),
    "bytes": (lambda x: bytes(x), "store the result"),
    "bytearray": (lambda x: bytearray(x), "store the result"),
    "memoryview": (lambda x: memoryview(x), "store the result"),
    "pack": (lambda x: pack("d", x), "store the result"),
    "open": (lambda x: open(x), "store the result"),
    "np.genfromtxt": (lambda x: np.genfromtxt(x), "outside"),
    "a function compiled by numba": (lambda x: compiled(x), "py_func"),
    "a series": (lambda x: pandas.Series(x), "to_numpy"),
    "scipy.optimize.minimize": (
        lambda x: scipy.optimize.minimize(lambda y: np.sum((y - x) ** 2), np.zeros(3)).x,
        "value_and_grad",
    ),
    "scipy.optimize.brentq": (lambda x: scipy.optimize.brentq(lambda y: y - x[0], 0.0, 9.0), "rg.scipy.brentq"),
    "scipy.optimize.ridder": (lambda x: scipy.optimize.ridder(lambda y: y - x[0], 0.0, 9.0), "rg.scipy.root"),
    "scipy.optimize.linear_sum_assignment": (
        lambda x: scipy.optimize.linear_sum_assignment(np.outer(x, x)),
        "value_and_grad",
    ),
    "scipy.optimize.rosen": (lambda x: scipy.optimize.rosen(x), "its formula with NumPy"),
    "scipy.integrate.quad": (lambda x: scipy.integrate.quad(lambda t: t * x[0], 0, 1)[0], "trapezoid"),
    "scipy.interpolate.PchipInterpolator": (lambda x: scipy.interpolate.PchipInterpolator(W, x), "rg.lens"),
    "scipy.ndimage.gaussian_filter": (lambda x: scipy.ndimage.gaussian_filter(x, 1.0), "rg.lens"),
    "scipy.signal.medfilt": (lambda x: scipy.signal.medfilt(x), "rg.lens"),
    "scipy.linalg.schur": (lambda x: scipy.linalg.schur(np.outer(x, x)), "rg.lens"),
    "scipy.sparse.csr_array": (lambda x: scipy.sparse.csr_array(np.outer(x, x)), "rg.lens"),
    "a function that was put away": (lambda x: softmax[0](x), "the NumPy function"),
    "scipy.stats.gaussian_kde": (lambda x: scipy.stats.gaussian_kde(x), "rg.lens"),
    "scipy.special.perm": (lambda x: scipy.special.perm(x, 2), "rg.lens"),
}

UNTRACED_SCIPY: dict[str, tuple[Callable[[Any], Any], type[errors.RetrogradError]]] = {
    "the order of a Bessel function": (lambda x: scipy.special.jv(x, 1.0), errors.NonDifferentiableError),
    "the parameter of an incomplete beta function, twice": (
        lambda x: rg.grad(lambda a: scipy.special.betainc(a, 1.0, 0.5))(x[0]),
        errors.NonDifferentiableError,
    ),
    "a parameter of a hypergeometric function": (
        lambda x: scipy.special.hyp2f1(x, 1.0, 2.0, 0.5),
        errors.NonDifferentiableError,
    ),
    "the order of a scaled Bessel function": (lambda x: scipy.special.ive(x, 1.0), errors.NonDifferentiableError),
    "the exponent of zeta": (lambda x: scipy.special.zeta(x + 1.0, 2.0), errors.NonDifferentiableError),
    "an unknown special function": (lambda x: scipy.special.airy(x)[0], errors.UnsupportedError),
    "an unknown distribution": (lambda x: scipy.stats.cauchy.logpdf(x), errors.UnsupportedError),
    "the function of an unknown distribution": (lambda x: scipy.stats.weibull_min.cdf(x, 3.0), errors.UnsupportedError),
    "a sparse matrix times elements": (
        lambda x: scipy.sparse.eye_array(3, format="csr").multiply(x).sum(),
        errors.UnsupportedError,
    ),
    "a sparse matrix plus a vector": (
        lambda x: scipy.sparse.eye_array(3, format="csr") + x,
        errors.UnsupportedError,
    ),
    "a convolution along some axes": (
        lambda x: scipy.signal.fftconvolve(x, x, axes=0),
        errors.UnsupportedError,
    ),
    "a filter with several modes": (
        lambda x: scipy.ndimage.convolve(x, W, mode=["reflect"]),
        errors.UnsupportedError,
    ),
    "a filter into an array": (
        lambda x: scipy.ndimage.convolve(x, W, output=np.zeros(3)),
        errors.UnsupportedError,
    ),
    "a matrix that is said to be symmetric": (
        lambda x: scipy.linalg.solve(np.outer(x, x) + np.eye(3), W, assume_a="sym"),
        errors.UnsupportedError,
    ),
    "the real logarithm of a rotation by half a turn": (
        lambda x: scipy.linalg.logm(np.diag(-x)),
        errors.UnsupportedError,
    ),
    "a polygamma function of traced order": (lambda x: scipy.special.polygamma(x, W), errors.UnsupportedError),
    "Riemann's zeta function": (lambda x: scipy.special.zeta(x + 1), errors.UnsupportedError),
    "counts that are drawn": (lambda x: np.random.poisson(x), errors.UnsupportedError),
    "np.save": (lambda x: np.save(io.BytesIO(), x), errors.UnsupportedError),
    "np.savetxt": (lambda x: np.savetxt(io.StringIO(), x), errors.UnsupportedError),
}
