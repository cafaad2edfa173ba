"""Rewriting keeps signed zeros, infinities and nan of complex numbers, part by part."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

EXTREME = (0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan)
PROGRAMS: dict[str, list[Callable[[Any], Any]]] = {
    "powers": [
        *[lambda z, n=n: z**n for n in (0, 1, 1.0, 2, 2.0, -1, -1.0, 0.5, 3, -2, 1.5, 1 + 0j, 2 + 0j)],
        *[lambda z, n=n: np.power(z, n) for n in (0, 1, 1.0, 2, 2.0, -1, 0.5, 3)],
        *[np.square, np.reciprocal, np.positive, lambda z: z * z * z, lambda z: np.angle(z**1)],
    ],
    "neutral elements": [
        *[lambda z, a=a: z + a for a in (0, 0.0, -0.0, 0j)],
        *[lambda z, a=a: z - a for a in (0, 0.0, -0.0, 0j)],
        *[lambda z, a=a: z * a for a in (0, 0.0, 1, 1.0, -1, 1 + 0j, 1j, 2)],
        *[lambda z, a=a: z / a for a in (1, 1.0, 2, 1 + 0j, 1j)],
        *[lambda z, a=a: a - z for a in (0, 1, 0j)],
        *[lambda z, a=a: a / z for a in (1, 1.0, 2)],
    ],
    "signs": [
        *[
            lambda z: np.negative(-z),
            lambda z: np.negative(-z * 2),
            lambda z: z - (-z),
            lambda z: z + (-z),
            lambda z: -(z - 1),
        ],
        *[lambda z: -(1 - z), lambda z: 1 + -z, lambda z: z * (-z), lambda z: (-z) * (-z), lambda z: 2 / (-z)],
    ],
    "parts": [
        *[lambda z: np.conj(np.conj(z)), lambda z: np.real(np.conj(z)), lambda z: np.imag(np.conj(z))],
        *[lambda z: np.real(-z), lambda z: np.imag(-z), lambda z: np.abs(-z), lambda z: np.abs(np.conj(z))],
        *[lambda z: np.abs(np.abs(z)), lambda z: np.abs(z) ** 2, lambda z: np.conj(z) * z, lambda z: np.conj(-z)],
        *[lambda z: np.real(z) + 1j * np.imag(z), lambda z: np.real(z * 1j), lambda z: np.conj(np.real(z))],
        *[lambda z: np.conj(z + 1), lambda z: np.conj(z * 2), lambda z: z + np.conj(z), lambda z: z - np.conj(z)],
    ],
    "what cancels": [
        *[lambda z: z - z, lambda z: z / z, lambda z: 1 / (1 / z), lambda z: (z * 2) * 0.5, lambda z: (z / 2) / 2],
        *[lambda z: (z * 2) * 2, lambda z: np.sqrt(z**2), lambda z: np.exp(np.log(z)), lambda z: np.log(np.exp(z))],
    ],
}


def numbers(dtype: type[Any]) -> Any:
    """Each extreme real part with each extreme imaginary part."""
    pairs = np.array([*itertools.product(EXTREME, EXTREME)])
    z = np.empty(len(pairs), dtype)
    z.real, z.imag = pairs.T
    return z


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("family", PROGRAMS)
@pytest.mark.filterwarnings("ignore::retrograd.errors.NoCompilerWarning")
def test_complex_numbers_keep_their_parts(family: str, dtype: type[Any], backend: Any, exact: bool) -> None:
    z, tolerance = numbers(dtype), 1e-14 if dtype is np.complex128 else 1e-5
    for k, f in enumerate(PROGRAMS[family]):
        with np.errstate(all="ignore"), rg.config(exact=exact):
            expected, found = np.asarray(f(z)), np.asarray(rg.jit(f, backend=backend)(z))
        assert found.dtype == expected.dtype
        for a, b in ((expected.real, found.real), (expected.imag, found.imag)):
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance, err_msg=f"{family} {k}")
            np.testing.assert_array_equal(np.signbit(b[a == 0]), np.signbit(a[a == 0]), err_msg=f"{family} {k}")
