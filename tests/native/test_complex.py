"""Complex numbers in C: NumPy's values, special ones too; derivatives; what is called with them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native.target import REFUSALS
from retrograd.ir import Aval, Graph
from retrograd.ir.primitive import REGISTRY
from tests.support import values
from tests.support.graphs import one_node
from tests.support.native import as_kernels, far_off, needs_compiler, results, taken, units

pytestmark = needs_compiler
COMPLEX = [np.dtype(np.complex128), np.dtype(np.complex64)]
PARTS = [0.0, -0.0, 1.0, -1.5, 1e-40, 5e-324, 3e38, -1e300, np.inf, -np.inf, np.nan]
PRODUCTS = {"mul", "square", "annihilating_mul"}  # NumPy contracts them, or not: special values hang on the position
NAMES = sorted(
    name
    for name, prim in REGISTRY.items()
    if (text := prim.texts.get("native")) is not None and text.c and (text.of_complex or "c" in text.kinds)
)
RNG = np.random.default_rng(7)
Z, W = (RNG.normal(size=(3, 14)) + 1j * RNG.normal(size=(3, 14)) for _ in range(2))
X = RNG.normal(size=(3, 14))


def numbers(dtype: np.dtype[Any], name: str) -> list[np.ndarray[Any, Any]]:
    """Pairs of complex numbers, special ones with each other, and others of many sizes."""
    with np.errstate(all="ignore"):
        points = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)]).astype(dtype)
    sizes = 10.0 ** RNG.uniform(-6, 2, (4, 900))
    x, y = (RNG.normal(size=(2, 900)) * sizes[k : k + 2] for k in (0, 2))
    left, right = (np.repeat(points, len(points)), np.tile(points, len(points)))
    ordinary = [(part[0] + 1j * part[1]).astype(dtype) for part in (x, y)]
    if name in PRODUCTS:
        return ordinary
    found = [np.concatenate([a, b]) for a, b in zip((left, right), ordinary, strict=True)]
    if name == "exp":  # else NumPy computes the kernel
        x = found[0]
        return [x[(np.abs(x.real) < 79) & (np.abs(x.imag) < 1e13)]]
    return found


def case(name: str, dtype: np.dtype[Any]) -> tuple[Graph, list[Any]]:
    given = numbers(dtype, name)
    arity = {"where": 3}.get(name) or (2 if name in BINARY else 1)
    operands = [given[0].real > 0, *given] if name == "where" else given[:arity]
    return one_node(REGISTRY[name], [Aval(x.shape, x.dtype) for x in operands], {}), operands


BINARY = {
    *("add", "sub", "mul", "div", "eq", "ne", "annihilating_mul"),
    *("logical_and", "logical_or", "logical_xor"),
}


def test_values_are_those_of_numpy_special_ones_too() -> None:
    cases = [(f"{name} {dtype}", *case(name, dtype)) for name in NAMES for dtype in COMPLEX]
    assert len(cases) >= 48
    assert all(taken(graph) for _, graph, _ in cases)
    found = far_off(cases)
    assert not found, found


def test_wrong_values_are_found() -> None:
    z = np.array([1 + 1j])
    assert 3 < units(z * (1 + 1e-15), z) < 50
    assert units(np.array([complex(np.nan, 1)]), np.array([complex(1, np.nan)])) == float("inf")
    assert units(np.array([complex(np.inf, 1)]), np.array([complex(-np.inf, 1)])) == float("inf")


@pytest.mark.parametrize("dtype", COMPLEX)
def test_products_are_rounded_once_for_each_operation_at_every_position(dtype: np.dtype[Any]) -> None:
    """NumPy's own have other bits at other positions. C's operators, which look for infinities, are not used."""
    x, y = (a.astype(dtype) for a in numbers(dtype, "mul"))
    special = numbers(dtype, "div")
    x, y = np.concatenate([x, special[0]]), np.concatenate([y, special[1]])
    with np.errstate(all="ignore"):
        real = x.real * y.real - x.imag * y.imag
        imag = x.real * y.imag + x.imag * y.real
    graph = one_node(REGISTRY["mul"], [Aval(x.shape, dtype)] * 2, {})
    (function,) = as_kernels([graph])
    (found,) = results(function, graph, [x, y])
    assert np.array_equal(found.real, real, equal_nan=True)
    assert np.array_equal(found.imag, imag, equal_nan=True)


def moduli(z: Any, w: Any, x: Any) -> Any:
    return np.sum(np.abs(z * w + x) * x)


def quotients(z: Any, w: Any, x: Any) -> Any:
    return np.sum((z / w).real * x) + np.sum(np.conj(1 / z).imag)


def waves(z: Any, w: Any, x: Any) -> Any:
    return np.sum(np.abs(np.exp(1j * x) * z + w) ** 2)


def angles(z: Any, w: Any, x: Any) -> Any:
    return np.sum(np.angle(z * w) * x)


def parts_of_arrays(z: Any, w: Any, x: Any) -> Any:
    rolled = np.roll(z, 1, axis=1)[:, ::2] - np.concatenate([w, z], axis=1)[:, 7:14]
    kept = np.where(x[:, ::2] > 0, rolled, 0.5j)
    return np.sum(np.abs(np.sum(kept, axis=0))) + np.mean(kept.T.reshape(-1)).real


def written(z: Any, w: Any, x: Any) -> Any:
    out = np.zeros(z.shape, complex)
    out.real = x
    out[1] += w[0] * 2
    out[:, 3:5] = z[:, :2]
    return np.sum((out * np.conj(out)).real) + np.sum(out.imag * x)


def by_steps(z: Any, w: Any, x: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        state = state * np.exp(1j * row) * 0.9 + 0.1
        return state, np.abs(state)

    last, sizes = rg.scan(step, z[:, 0] / w[:, 0], x.T)
    return np.sum(sizes) + np.sum(last).imag


def signs(z: Any, w: Any, x: Any) -> Any:
    return np.sum((np.sign(z) * w).real) + np.sum(np.isfinite(z) * x)


PROGRAMS = [moduli, quotients, waves, angles, parts_of_arrays, written, by_steps, signs]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_and_their_gradients(program: Callable[..., Any], single: bool) -> None:
    args = (Z.astype(np.complex64), W.astype(np.complex64), X.astype(np.float32)) if single else (Z, W, X)
    near = 3e-4 if single else 1e-11
    value, slopes = rg.value_and_grad(program, (0, 1, 2))(*args)
    made = rg.value_and_grad(program, (0, 1, 2), backend="native")
    found, ours = made(*args)
    assert made.executable(*args).module.kernels
    assert np.asarray(found).dtype == np.asarray(value).dtype
    np.testing.assert_allclose(found, value, rtol=near)
    for a, b in zip(ours, slopes, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


def test_second_derivatives() -> None:
    def curved(x: Any) -> Any:
        return np.sum(np.abs(np.exp(1j * x) + 0.3 * x) ** 2)

    x = X[0]
    np.testing.assert_allclose(rg.hessian(curved, backend="native")(x), rg.hessian(curved)(x), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(rg.hvp(curved, backend="native")(x, x), rg.hvp(curved)(x, x), rtol=1e-11, atol=1e-11)


def test_lanes_have_the_bits_of_single_calls() -> None:
    with rg.config(backend="native"):
        together = rg.vmap(rg.grad(waves, (0, 1, 2)))(Z, W, X)
        single = rg.grad(waves, (0, 1, 2))
        for k in range(3):
            values.assert_same_bits([row[k] for row in together], list(single(Z[k], W[k], X[k])))


def test_elements_have_the_same_bits_in_arrays_of_every_length() -> None:
    def f(z: Any, w: Any) -> Any:
        return np.exp(z * w) / (w + np.abs(z)) + np.sign(z)

    z, w = Z.reshape(-1), W.reshape(-1)
    whole = rg.jit(f, backend="native")(z, w)
    for n in (1, 2, 3, 5, 8, 17):
        values.assert_same_bits([rg.jit(f, backend="native")(z[:n], w[:n])], [whole[:n]])


def test_kernels_take_numpys_and_pythons_numbers() -> None:
    def f(z: Any, x: Any) -> Any:
        return x * z * np.conj(z) + z

    for z in (1 + 2j, np.complex128(1 + 2j), np.complex64(1 + 2j), np.array(1 + 2j)):
        made = rg.jit(f, backend="native")
        for _ in range(3):
            found, expected = made(z, X), f(z, X)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6 if isinstance(z, np.complex64) else 1e-14)


def test_exponentials_far_out_are_numpys() -> None:
    made = rg.jit(lambda z: np.exp(z) * 1.0, backend="native")
    for z in (np.array([1j, -np.inf + 1j * np.inf]), np.array([complex(800, 1)]), np.array([complex(1, 2.0**50)])):
        with np.errstate(all="ignore"):
            values.assert_same_bits([made(z)], [np.exp(z) * 1.0])


def test_pythons_errors_are_pythons() -> None:
    made = rg.jit(lambda z: z / (z - z), backend="native")
    with pytest.raises(ZeroDivisionError):
        made(1 + 2j)


def test_what_loses_its_imaginary_part_is_numpys() -> None:
    made = rg.jit(lambda z: z.astype(float) * 2.0, backend="native")
    with pytest.warns(np.exceptions.ComplexWarning):
        np.testing.assert_array_equal(made(Z), Z.real * 2.0)


def test_large_nests_fall_into_parts() -> None:
    def f(z: Any, w: Any, x: Any) -> Any:
        return np.sum(np.abs(np.exp(1j * x) * z + w / (z + 3.0)) ** 2)

    args = [np.resize(a, 200_003) for a in (Z, W, X)]
    made = rg.value_and_grad(f, (0, 1, 2), backend="native")
    REFUSALS.clear()
    assert "part1" in made.source(*args, language="c")
    found, slopes = made(*args)
    value, expected = rg.value_and_grad(f, (0, 1, 2))(*args)
    np.testing.assert_allclose(found, value, rtol=1e-12)
    for a, b in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    assert not REFUSALS
