"""Values and derivatives of programs equal those that JAX and autograd find."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes import place_buffers
from tests.oracles.program import PROGRAMS, Program, python_scan, weights_of
from tests.programs import compared as programs

pytest.importorskip("autograd")
pytest.importorskip("jax")

from tests.oracles.peers import basis, by_autograd, by_jax, pushed_by_jax, third_by_jax

for module in pkgutil.iter_modules(programs.__path__):
    import_module(f"{programs.__name__}.{module.name}")

RTOL = 1e-9
REAL = [p for p in PROGRAMS if not any(np.iscomplexobj(x) for x in p.args)]
MAPS = [p for p in PROGRAMS if np.ndim(p.bound(np, python_scan, writes=True)(*p.args))]
SMALL = [p for p in REAL if sum(map(np.size, p.args)) <= 4]


def each(chosen: list[Program]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("program", chosen, ids=[p.name for p in chosen])


def traced(program: Program) -> Any:
    """The function of one real result, to be traced."""
    return program.scalar(np, rg.scan, writes=True)


def assert_near(found: Any, wanted: Any, rtol: float = RTOL) -> None:
    """Arrays, or tuples of them, are near relative to their entries, or to a thousandth of the largest one."""
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_near(a, b, rtol)
        return
    assert np.shape(found) == np.shape(wanted)
    largest = float(np.max(np.abs(wanted), initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-3 * rtol * max(largest, 1.0))


def test_the_tables_of_all_modules_are_read():
    assert len(PROGRAMS) >= 200


@each(PROGRAMS)
def test_the_value_and_all_gradients_equal_those_of_jax_and_autograd(program):
    value, gradients = rg.value_and_grad(traced(program), program.argnums)(*program.args)
    for peer in (by_jax, by_autograd) if program.autograd else (by_jax,):
        wanted = peer(program)(program.args, program.tangents)
        assert_near(value, wanted.value)
        assert_near(gradients, wanted.gradients)
    for gradient, x in zip(gradients, program.args, strict=True):
        assert np.shape(gradient) == np.shape(x)
        assert np.asarray(gradient).dtype == np.asarray(x).dtype


@each(PROGRAMS)
def test_the_forward_derivative_equals_that_of_jax(program):
    found = rg.jvp(traced(program), program.args, program.tangents)
    wanted = by_jax(program)(program.args, program.tangents)
    assert_near(found, (wanted.value, wanted.slope))


@each(PROGRAMS)
def test_second_derivatives_along_a_direction_equal_those_of_jax_and_autograd(program):
    args, tangents = program.args, program.tangents
    gradients = rg.grad(traced(program), program.argnums)

    def along(*point: Any) -> Any:
        return np.real(sum(np.sum(g * v) for g, v in zip(gradients(*point), tangents, strict=True)))

    forward_over_reverse = rg.jvp(gradients, args, tangents)[1]
    reverse_over_reverse = rg.grad(along, program.argnums)(*args)
    for peer in (by_jax, by_autograd) if program.autograd > 1 else (by_jax,):
        wanted = peer(program)(args, tangents).curvature
        assert_near(forward_over_reverse, wanted)
        assert_near(reverse_over_reverse, wanted)


@each(REAL)
def test_the_hessian_equals_that_of_jax(program):
    args = program.args
    blocks = rg.hessian(traced(program), program.argnums)(*args)
    columns = [by_jax(program)(args, unit).curvature for unit in basis(args)]
    for i, row in enumerate(blocks):
        wanted = np.stack([column[i] for column in columns], axis=-1)
        assert_near(np.concatenate([np.reshape(b, (*np.shape(args[i]), -1)) for b in row], axis=-1), wanted)


@each(SMALL)
def test_third_derivatives_along_a_direction_equal_those_of_jax(program):
    args, tangents = program.args, program.tangents

    def slope(*point: Any) -> Any:
        return rg.jvp(traced(program), point, tangents)[1]

    def curvature(*point: Any) -> Any:
        return rg.jvp(slope, point, tangents)[1]

    wanted = third_by_jax(program)(args, tangents)
    assert_near(rg.grad(curvature, program.argnums)(*args), wanted)
    assert_near(rg.jvp(curvature, args, tangents)[1], sum(np.sum(g * v) for g, v in zip(wanted, tangents, strict=True)))


@each([p for p in MAPS if p in REAL])
def test_the_jacobian_in_both_modes_equals_that_of_jax(program):
    args = program.args
    run = program.bound(np, rg.scan, writes=True)
    wanted = np.stack([pushed_by_jax(program)(args, unit)[1] for unit in basis(args)], axis=-1)
    for jacobian in (rg.jacfwd, rg.jacrev):
        blocks = jacobian(run, program.argnums)(*args)
        assert_near(np.concatenate([np.reshape(b, (*wanted.shape[:-1], -1)) for b in blocks], axis=-1), wanted)


@each(MAPS)
def test_the_linear_map_at_a_point_and_its_adjoint_equal_those_of_jax(program):
    args, tangents = program.args, program.tangents
    run = program.bound(np, rg.scan, writes=True)
    out, linear = rg.linearize(run, *args)
    assert_near((out, linear(*tangents)), pushed_by_jax(program)(args, tangents))
    out, pullback = rg.vjp(run, *args)
    assert_near(pullback(weights_of(out)), by_jax(program)(args, tangents).gradients)


@each(PROGRAMS)
def test_gradients_of_many_samples_at_once_equal_those_of_jax_one_by_one(program):
    samples = program.samples(3)
    stacked = [np.stack(column) for column in zip(*samples, strict=True)]
    found = rg.vmap(rg.value_and_grad(traced(program), program.argnums))(*stacked)
    each_one = [by_jax(program)(args, program.tangents) for args in samples]
    wanted = tuple(np.stack(column) for column in zip(*(d.gradients for d in each_one), strict=True))
    assert_near(found, (np.stack([d.value for d in each_one]), wanted))


@each(PROGRAMS)
def test_storage_that_is_used_again_leaves_gradients_and_arguments_as_they_are(program, monkeypatch):
    monkeypatch.setattr(place_buffers, "REUSE", 1)  # as in large programs
    monkeypatch.setattr(place_buffers, "POOL", 1)
    value_and_gradients = rg.value_and_grad(traced(program), program.argnums)
    for args, again in zip(program.samples(3), program.samples(3), strict=True):
        wanted = by_jax(program)(args, program.tangents)
        assert_near(value_and_gradients(*args), (wanted.value, wanted.gradients))
        for x, y in zip(args, again, strict=True):
            np.testing.assert_array_equal(x, y)
    curvature = rg.jvp(rg.grad(traced(program), program.argnums), program.args, program.tangents)[1]
    assert_near(curvature, by_jax(program)(program.args, program.tangents).curvature)


@each(PROGRAMS)
def test_exact_values_are_those_of_plain_numpy_bit_for_bit(program):
    with rg.config(exact=True):
        value, gradients = rg.value_and_grad(traced(program), program.argnums)(*program.args)
    plain = program.scalar(np, python_scan, writes=True)(*program.args)
    assert value == plain if program.bits else np.isclose(value, plain, rtol=1e-13)
    assert_near(gradients, by_jax(program)(program.args, program.tangents).gradients)


@each(PROGRAMS)
def test_gradients_in_single_precision_are_near_and_of_that_precision(program):
    args = [np.asarray(x).astype(np.complex64 if np.iscomplexobj(x) else np.float32)[()] for x in program.args]
    gradients = rg.grad(traced(program), program.argnums)(*args)
    wanted = by_jax(program)(program.args, program.tangents).gradients
    for found, x, y in zip(gradients, args, wanted, strict=True):
        assert np.asarray(found).dtype == x.dtype
        np.testing.assert_allclose(found, y, rtol=program.single, atol=program.single * np.max(np.abs(y)))
