"""A sample of the random programs against JAX: values, gradients, and second derivatives along a direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import retrograd as rg
from tests.fuzz.programs import programs
from tests.fuzz.test_programs import FUZZ, SEEDS, compiled, inputs

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


def for_jax(source: str) -> Any:
    scope: dict[str, Any] = {"np": jnp}
    exec(source, scope)
    return scope["f"]


@FUZZ
@given(programs(most=15, writes=False), SEEDS)
def test_jax_finds_the_same(source: str, seed: int) -> None:
    f, peer, args, v = compiled(source), for_jax(source), inputs(seed), inputs(seed + 1)
    value, grads = rg.value_and_grad(f, (0, 1))(*args)
    bent = rg.jvp(rg.grad(f, (0, 1)), args, v)[1]
    wanted, slopes = jax.value_and_grad(peer, (0, 1))(*args)
    curved = jax.jvp(jax.grad(peer, (0, 1)), args, v)[1]
    np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-12)
    for found, expected in zip((*grads, *bent), (*slopes, *curved), strict=True):
        scale = 1e-9 * (1 + float(np.max(np.abs(expected))))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=scale)
