"""The table of NumPy against JAX: gradients of each row that JAX has too, of real and complex arrays."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import outcome
from tests.support.table import LENGTHS, Row
from tests.support.table_rows import ROWS

# What JAX does otherwise, or not at all; reasons stand in docs/edges.md where they are a matter of choice.
OTHERWISE = {
    "numpy.linalg.cholesky": "both triangles",
    "numpy.linalg.eigh": "both triangles",
    "numpy.linalg.eigvalsh": "both triangles",
    "numpy.sign": "zero for complex numbers",
    "numpy.fft.fftfreq": "real spacings only",
    "numpy.fft.rfftfreq": "real spacings only",
    **{
        f"numpy.{name}": "zero for all sets"
        for name in (
            "unique",
            "unique_values",
            "unique_counts",
            "unique_inverse",
            "unique_all",
            "union1d",
            "intersect1d",
            "setdiff1d",
            "setxor1d",
        )
    },
}
SMOOTH = [row for row in ROWS if row.derivative == "any order" and row.name not in OTHERWISE and ":=" not in row.code]


def loss(row: Row, module: Any, *args: Any) -> Any:
    """A function with one real result, of all floating-point results of the row."""
    call = eval(f"lambda {', '.join(row.arguments)}: {row.code}", {"np": module})
    total = 0.0
    for y in leaves(call(*args)):
        if np.dtype(y.dtype).kind in "fc":
            total = total + module.sum(module.real(y * (1 - 0.5j)) + 0.1 * module.square(module.real(y)))
    return total


def leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("row", SMOOTH, ids=[row.code for row in SMOOTH])
def test_gradients_are_those_of_jax(row: Row) -> None:
    compared = False
    for dtype in "dD":
        args = row.arrays(dtype, LENGTHS)
        every = tuple(range(len(args)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = outcome(rg.grad(lambda *xs: loss(row, np, *xs), argnums=every), args)
            theirs = outcome(jax.grad(lambda *xs: loss(row, jnp, *xs), argnums=every), list(map(jnp.asarray, args)))
        if isinstance(mine, type) or isinstance(theirs, type):
            continue
        compared = True
        for found, expected in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    if not compared:
        pytest.skip("JAX does not have it in this form")
