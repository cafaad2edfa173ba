"""Random programs: compiled = plain NumPy, reverse = forward = finite differences, with every table of rewrites."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import retrograd as rg
from tests.fuzz.programs import programs
from tests.support.tiny_blocks import tiny_blocks

FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
SEEDS = st.integers(0, 2**16)


def compiled(source: str) -> Callable[..., Any]:
    """The program as a function whose source tracebacks can show."""
    name = f"<fuzz {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict[str, Any] = {"np": np, "rg": rg, "__name__": "fuzzed"}
    exec(compile(source, name, "exec"), scope)
    function: Callable[..., Any] = scope["f"]
    return function


def inputs(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, 3), rng.uniform(-1.5, 1.5, (3, 3))


def slope(f: Callable[..., Any], args: tuple[Any, ...], v: tuple[Any, ...]) -> float | None:
    """The derivative along v by central differences; None where two step sizes disagree: a kink or a jump."""
    found = []
    for h in (1e-4, 5e-5):
        plus = f(*(a + h * d for a, d in zip(args, v, strict=True)))
        minus = f(*(a - h * d for a, d in zip(args, v, strict=True)))
        found.append((plus - minus) / (2 * h))
    coarse, fine = found
    return float((4 * fine - coarse) / 3) if abs(coarse - fine) < 1e-5 * (1 + abs(fine)) else None


@FUZZ
@given(programs(), SEEDS)
def test_compiled_programs_give_numpys_bits(source: str, seed: int) -> None:
    f, args = compiled(source), inputs(seed)
    before = [a.copy() for a in args]
    with rg.config(exact=True):
        assert float(rg.jit(f)(*args)) == pytest.approx(float(f(*args)), rel=1e-13, abs=1e-13)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


@FUZZ
@given(programs(), SEEDS, st.sampled_from([{}, {"exact": True}, {"fast": True}, {"verify": 2}]))
def test_reverse_forward_and_differences_agree(source: str, seed: int, config: dict[str, Any]) -> None:
    f, args = compiled(source), inputs(seed)
    v = inputs(seed + 1)
    with rg.config(**config):
        value, grads = rg.value_and_grad(f, (0, 1))(*args)
        out, forward = rg.jvp(f, args, v)
    assert float(value) == pytest.approx(float(f(*args)), rel=1e-12, abs=1e-12)
    assert float(out) == pytest.approx(float(value), rel=1e-12, abs=1e-12)
    reverse = sum(float(np.sum(g * d)) for g, d in zip(grads, v, strict=True))
    scale = 1 + sum(float(np.sum(np.abs(g * d))) for g, d in zip(grads, v, strict=True))
    assert abs(reverse - float(forward)) < 1e-10 * scale
    expected = slope(f, args, v)
    if expected is not None:
        assert abs(reverse - expected) < 1e-5 * scale


@FUZZ
@given(programs(most=12), SEEDS)
def test_second_derivatives_are_symmetric(source: str, seed: int) -> None:
    f, args = compiled(source), inputs(seed)
    u, v = inputs(seed + 1), inputs(seed + 2)

    def curvature(a: tuple[Any, ...], b: tuple[Any, ...]) -> float:
        bent = rg.jvp(rg.grad(f, (0, 1)), args, a)[1]
        return sum(float(np.sum(g * d)) for g, d in zip(bent, b, strict=True))

    left, right = curvature(u, v), curvature(v, u)
    assert abs(left - right) < 1e-8 * (1 + abs(left) + abs(right))


@FUZZ
@given(programs(most=15), SEEDS)
def test_lanes_are_single_calls(source: str, seed: int) -> None:
    f = compiled(source)
    points = [inputs(seed + k) for k in range(3)]
    xs, ws = (np.stack(part) for part in zip(*points, strict=True))
    gx, gw = rg.vmap(rg.grad(f, (0, 1)))(xs, ws)
    for k, (x, w) in enumerate(points):
        ex, ew = rg.grad(f, (0, 1))(x, w)
        np.testing.assert_allclose(gx[k], ex, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(gw[k], ew, rtol=1e-9, atol=1e-9)


@FUZZ
@given(programs(), SEEDS)
def test_blocks_of_small_arrays_change_no_number(source: str, seed: int) -> None:
    f, args = compiled(source), inputs(seed)
    with rg.config(exact=True):
        expected = rg.value_and_grad(f, (0, 1))(*args)
    with tiny_blocks():
        found = rg.value_and_grad(compiled(source), (0, 1))(*args)
    for x, y in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
