"""Programs as people have them in drawers: unmodified, differentiated, optimised."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg

from . import bayes, networks, physics
from .catalogue import Program

PROGRAMS = [*bayes.PROGRAMS, *networks.PROGRAMS, *physics.PROGRAMS]
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])


def differences(program: Program, x: np.ndarray[Any, Any], along: np.ndarray[Any, Any]) -> float:
    """The derivative along a direction by Richardson's extrapolation of central differences."""

    def central(h: float) -> float:
        up, down = program.function(x + h * along, *program.rest), program.function(x - h * along, *program.rest)
        return float((up - down) / (2 * h))

    return (4 * central(5e-6) - central(1e-5)) / 3


@every_program
def test_the_value_is_numpys(program: Program) -> None:
    found = rg.jit(program.function)(program.start, *program.rest)
    np.testing.assert_allclose(found, program.function(program.start, *program.rest), rtol=1e-12)


@every_program
def test_the_gradient_agrees_with_differences(program: Program) -> None:
    random = np.random.default_rng(0)
    gradient = rg.grad(program.function)
    for scale in (0.0, 0.05):
        x = program.start + scale * random.standard_normal(program.start.shape)
        found = gradient(x, *program.rest)
        assert found.shape == x.shape
        for _ in range(3):
            along = random.standard_normal(x.shape)
            expected = differences(program, x, along)
            np.testing.assert_allclose(np.sum(found * along), expected, rtol=program.rtol, atol=1e-7)


@every_program
def test_forward_mode_agrees(program: Program) -> None:
    forward = rg.jacfwd(program.function)(program.start, *program.rest)
    backward = rg.grad(program.function)(program.start, *program.rest)
    np.testing.assert_allclose(forward, backward, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.minimise is not None], ids=lambda p: p.name)
def test_it_is_minimised_with_the_gradient(program: Program) -> None:
    both = rg.value_and_grad(program.function)
    found = scipy.optimize.minimize(both, program.start, program.rest, method="BFGS", jac=True, options={"maxiter": 99})
    assert program.minimise is not None
    assert found.fun < program.minimise < program.function(program.start, *program.rest)


@pytest.mark.oracle
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.autograd], ids=lambda p: p.name)
def test_autograd_agrees(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    autograd = pytest.importorskip("autograd")
    module = importlib.import_module(program.function.__module__)
    monkeypatch.setattr(module, "np", importlib.import_module("autograd.numpy"))
    theirs = autograd.grad(program.function)(program.start, *program.rest)
    monkeypatch.undo()
    np.testing.assert_allclose(rg.grad(program.function)(program.start, *program.rest), theirs, rtol=1e-9, atol=1e-12)
