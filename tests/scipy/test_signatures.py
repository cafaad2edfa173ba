"""Substitutes take the arguments of SciPy's functions in SciPy's places, and refuse options that they lack."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import retrograd as rg
from retrograd.scipy.dispatch import _handlers as HANDLERS  # noqa: N812 - a table, whose name is private

MODULES = ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "special", "stats")
for name in MODULES:
    importlib.import_module(f"retrograd.scipy.{name}")
FUNCTIONS = [(module, name) for module, handlers in HANDLERS.items() for name in handlers]
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
A = np.array([[2.0, 0.5], [0.3, 1.0]])


def by_position(function: Callable[..., Any]) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in BY_POSITION]


@pytest.mark.whole
@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_arguments_have_scipys_places(module: str, name: str) -> None:
    scipys = getattr(importlib.import_module(module), name)
    try:
        wanted = by_position(scipys)
    except ValueError:  # a ufunc, whose arguments have no names
        return
    ours = by_position(HANDLERS[module][name])
    assert ours == wanted[: len(ours)]
    assert "_" not in inspect.signature(HANDLERS[module][name]).parameters, "it drops arguments"


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "inv with assume_a=": lambda a: scipy.linalg.inv(a, assume_a="sym", lower=True),
    "solve with assume_a=": lambda a: scipy.linalg.solve(a, a, assume_a="pos"),
    "solve with assume_a= or transposed=": lambda a: scipy.linalg.solve(a, a, False, False, False, True, None, True),
    "svd with lapack_driver=": lambda a: scipy.linalg.svd(a, True, True, False, True, "gesvd"),
    "logm with disp=": lambda a: scipy.linalg.logm(a, disp=False),
    "sqrtm with disp=": lambda a: scipy.linalg.sqrtm(a, disp=False),
    "logm with disp= ": lambda a: scipy.linalg.logm(a, True),
    "sqrtm with disp= ": lambda a: scipy.linalg.sqrtm(a, True),
    "eigvalsh with": lambda a: scipy.linalg.eigvalsh(a, subset_by_index=[0, 0]),
}


def fall(y: Any, t: Any) -> Any:
    return -y


DEFAULTS: dict[str, Callable[[Any], Any]] = {
    "eigvalsh": lambda a: scipy.linalg.eigvalsh(a, overwrite_a=True, overwrite_b=False),
    "eigh": lambda a: scipy.linalg.eigh(a, eigvals_only=True, overwrite_a=True),
    "odeint": lambda a: scipy.integrate.odeint(fall, a[0], [0.0, 1.0], (), None),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_options_that_change_nothing_are_taken(name: str) -> None:
    f = DEFAULTS[name]
    np.testing.assert_allclose(rg.jit(f)(A), f(A.copy()), rtol=1e-12)


def test_options_by_position_that_are_not_followed_are_refused_by_line() -> None:
    with pytest.raises(rg.errors.UnsupportedError, match=r"odeint with Dfun=") as caught:
        rg.jit(lambda y: scipy.integrate.odeint(fall, y, [0.0, 1.0], (), lambda y, t: -1.0))(np.ones(1))
    assert "test_signatures.py" in str(caught.value)


def test_a_wrong_call_raises_pythons_error() -> None:
    for f in (lambda a: scipy.linalg.logm(a, dips=True), lambda a: scipy.linalg.expm(a, a)):
        with pytest.raises(TypeError):
            rg.jit(f)(A)


@pytest.mark.parametrize("what", OPTIONS)
def test_an_option_that_is_not_followed_is_refused(what: str) -> None:
    with pytest.raises(rg.errors.UnsupportedError, match=rf"scipy\.linalg\.{what.strip()}") as caught:
        rg.jit(OPTIONS[what])(A)
    assert "test_signatures.py" in str(caught.value)
    assert "remedy" in str(caught.value)


@pytest.mark.parametrize("form", ["gen", "general", None])
def test_matrices_of_no_known_form_are_inverted_and_solved(form: str | None) -> None:
    np.testing.assert_array_equal(rg.jit(lambda a: scipy.linalg.inv(a, assume_a=form))(A), np.linalg.inv(A))
    found = rg.jit(lambda a: scipy.linalg.solve(a, a[0], assume_a=form))(A)
    np.testing.assert_array_equal(found, np.linalg.solve(A, A[0]))


def test_an_option_that_scipy_lacks_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'shape'"):
        rg.jit(lambda a: scipy.linalg.expm(a, shape=2))(A)
