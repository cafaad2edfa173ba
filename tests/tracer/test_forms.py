"""Every form of creation and of writing: the values of NumPy at two points, and derivatives in both modes."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.programs.forms import CREATION, WRITES
from tests.tracer.test_right_or_refused import assert_same

X = np.array([0.25, 2.0, 3.0])
OTHER = np.array([1.5, 0.5, 3.5])  # another order: what was baked shows


def floats(results):
    """The results that have derivatives, as arrays."""
    flat = list(results) if isinstance(results, (list, tuple)) else [results]
    arrays = [v if isinstance(v, np.ndarray) else np.asarray(v) for v in flat]
    assert all(a.dtype != object for a in arrays)
    return [a for a in arrays if a.dtype.kind in "fc"]


def floats_of(results):
    """The same of traced results."""
    flat = list(results) if isinstance(results, (list, tuple)) else [results]
    return [v for v in flat if v.dtype.kind in "fc"]


def weights(k, a):
    return np.cos(np.arange(1.0, a.size + 1) * (k + 1)).reshape(a.shape)


def slope_of(program, v):
    """The derivative along ``v`` of the weighted sum of all results, by Richardson's extrapolation."""

    def total(x):
        return sum(np.sum(a.real * weights(k, a)) for k, a in enumerate(floats(program(x))))

    h = 1e-4
    first, second = ((total(X + s * v) - total(X - s * v)) / (2 * s) for s in (h, h / 2))
    return (4 * second - first) / 3


def check_derivatives(program, rel=1e-6):
    """Forward and reverse mode against finite differences, in a direction."""
    v = np.array([0.3, -0.7, 0.4])
    expected = slope_of(program, v)
    primals, tangents = rg.jvp(program, (X,), (v,))
    forward = sum(np.sum(a.real * weights(k, a)) for k, a in enumerate(floats(tangents)))
    assert forward == pytest.approx(expected, rel=rel, abs=1e-7)
    cotangents = [weights(k, a).astype(a.dtype) for k, a in enumerate(floats(primals))]
    single = not isinstance(primals, (list, tuple))
    (gradient,) = rg.vjp(program, X)[1](cotangents[0][()] if single else type(primals)(cotangents))
    assert gradient.shape == X.shape
    assert np.sum(gradient * v) == pytest.approx(expected, rel=rel, abs=1e-7)


FORMS = {**CREATION, **{f"write: {name}": program for name, program in WRITES.items()}}


@pytest.mark.costly
@pytest.mark.parametrize("program", FORMS.values(), ids=FORMS.keys())
def test_a_form_gives_what_numpy_gives(program):
    compiled = rg.jit(program)
    for x in (X, OTHER):
        assert_same(compiled(x), program(x.copy()))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WRITES)
def test_second_derivatives_of_writes_agree(name):
    def total(x):
        return sum(np.sum(np.real(a) ** 2 * weights(k, a)) for k, a in enumerate(floats_of(WRITES[name](x))))

    forward = rg.jacfwd(rg.grad(total))(X)
    np.testing.assert_allclose(forward, rg.jacrev(rg.grad(total))(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(forward, forward.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_derivatives(name):
    program = FORMS[name]
    if floats(program(X.copy())):
        single = any(a.dtype == np.float32 for a in floats(program(X.copy())))
        check_derivatives(program, 1e-2 if single else 1e-6)
