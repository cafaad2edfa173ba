"""numpy.fft inside traced functions: all its functions, lengths, axes and norms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import LAYOUTS, assert_differentiable, assert_same, assert_traced, outcome

fft = np.fft
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4))
COMPLEX = REAL + 1j * RNG.normal(size=(3, 4))
STACK = RNG.normal(size=(2, 3, 4))
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
MANY = ("fftn", "ifftn", "rfftn", "irfftn")
NORMS = (None, "backward", "ortho", "forward")


def point(name: str) -> Any:
    """A stack for the transform: real where it wants real numbers."""
    return STACK if name.startswith(("rfft", "ihfft")) else STACK + 1j * STACK[::-1]


@pytest.mark.costly
@pytest.mark.sampled(2)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_transforms_of_one_axis(name, norm):
    function = getattr(fft, name)
    for axis in (0, 1, -1):
        for n in (None, 1, 2, 3, 4, 7):
            program = lambda x, a=axis, n=n: function(x, n, axis=a, norm=norm)  # noqa: E731 - one of many
            if outcome(program, [point(name)]) is ValueError:  # one number is too few for half a spectrum
                continue
            assert_traced(program, point(name))
            assert_differentiable(program, point(name), order=1)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", [*TWO, *MANY])
def test_transforms_of_several_axes(name, norm):
    function = getattr(fft, name)
    for s, axes in (
        (None, (0, 1)),
        (None, (2, 0)),
        ((4, 3), (1, 2)),
        ((2, -1), (-1, -2)),
        (None, (1, 1)),
        (None, (1,)),
    ):
        program = lambda x, s=s, axes=axes: function(x, s, axes, norm)  # noqa: E731 - one of many
        assert_traced(program, point(name))
        assert_differentiable(program, point(name), order=1)
    assert_traced(function, point(name))
    assert_differentiable(function, point(name))


@pytest.mark.parametrize("name", [*ONE, *TWO, *MANY])
def test_dtypes_layouts_and_errors(name):
    function = getattr(fft, name)
    for dtype in "fdFDeli?":
        x = COMPLEX.astype(dtype) if dtype in "FD" else (REAL > 0) if dtype == "?" else (3 * REAL).astype(dtype)
        coarse = 1e-3 if dtype == "e" else 0.0  # NumPy rounds 1/n to half precision
        assert_same(outcome(rg.jit(function), [x]), outcome(function, [x]), coarse)
    compiled = rg.jit(function)
    for layout in LAYOUTS.values():
        x = layout(REAL)
        assert_same(compiled(x), function(x))
    for wrong in ({"norm": "x"}, {"axes" if name[-1] in "2n" else "axis": (7,) if name[-1] in "2n" else 7}):
        call = lambda x, w=wrong: function(x, **w)  # noqa: E731 - one of many
        assert_same(outcome(rg.jit(call), [REAL]), outcome(call, [REAL]))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 4096])
def test_transposes_are_exact(n):
    """<u, F x> = <Fᵀ u, x>, for lengths on both sides of the sizes at which storage is used again."""
    rng = np.random.default_rng(n)
    x, z = rng.normal(size=n), rng.normal(size=n) + 1j * rng.normal(size=n)
    for function, a in (
        (fft.fft, z),
        (fft.ifft, z),
        (fft.rfft, x),
        (fft.ihfft, x),
        (lambda z: fft.irfft(z, n), z),
        (lambda z: fft.hfft(z, n), z),
    ):
        y, pullback = rg.vjp(function, a)
        u = rng.normal(size=y.shape) + (1j * rng.normal(size=y.shape) if np.iscomplexobj(y) else 0)
        (back,) = pullback(u)
        np.testing.assert_allclose(np.sum(u * y).real, np.sum(back * a).real, rtol=1e-10)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name):
    function = getattr(fft, name)
    for axes in (None, 0, (0, 1), (-1,)):
        assert_traced(lambda x, a=axes: function(x, a), REAL)
        assert_differentiable(lambda x, a=axes: function(x, axes=a), REAL)


def test_frequencies_of_a_traced_spacing():
    for function in (fft.fftfreq, fft.rfftfreq):
        assert_traced(lambda d, f=function: f(5, d), 0.25)
        assert_differentiable(lambda d, f=function: f(5, d), 0.25)


def test_results_are_written_into_out():
    def program(z):
        out = np.zeros((3, 4), complex)
        same = fft.fft(z, out=out)
        return out, same

    assert_traced(program, COMPLEX)
    assert_traced(lambda z: fft.ihfft(z.real, out=np.zeros((3, 3), complex)), COMPLEX)


@pytest.mark.parametrize("function", [fft.fftn, fft.ifftn, fft.fft2])
def test_over_no_axes_the_result_is_the_operand(function):
    def program(x):
        x = +x
        found = function(x, axes=())
        found[0] = 2.0
        return x, found

    for x in (REAL, COMPLEX):
        assert_traced(program, x)


def test_lanes_are_one_transform():
    for function in (fft.fft, fft.rfft2, lambda x: fft.irfftn(x + 0j)):
        source = rg.vmap(function).source(STACK)
        assert "for " not in source
        assert_same(rg.vmap(function)(STACK), np.stack([function(x) for x in STACK]))


def test_the_source_reads_like_numpy():
    assert "np.fft.fft(z)" in rg.jit(lambda z: fft.fft(z, 4)).source(COMPLEX)
    assert "np.fft.irfft(z, 6, norm='ortho')" in rg.jit(lambda z: fft.irfft(z, norm="ortho")).source(COMPLEX)
