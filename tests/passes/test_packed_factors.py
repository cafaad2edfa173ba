"""Transposed factors of products in loops are copied once; plans, maps and `exact` keep their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.graph import Graph
from retrograd.ir.loop_node import loop_of
from retrograd.passes.packed_factors import LARGEST, LEAST, STEPS

from ..support.values import assert_close, assert_same_bits


def recurrent(h: Any, w: Any, xs: Any) -> Any:
    """The adjoint of each step multiplies by the transpose of ``w``."""
    h, _ = rg.scan(lambda h, x: (np.tanh(h @ w + x), None), h, xs)
    return np.sum(h**2)


def by_rows(h: Any, w: Any, xs: Any) -> Any:
    """Each step itself multiplies by the transpose of ``w``."""
    return recurrent(h, w.T, xs)


def unrolled(h: Any, w: Any, xs: Any) -> Any:
    for x in xs:
        h = np.tanh(h @ w + x)
    return np.sum(h**2)


def inputs(rows: int = 4, size: int = 40, steps: int = STEPS, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    shapes = ((rows, size), (size, size), (steps, rows, size))
    return tuple(np.asarray(rng.standard_normal(s) / np.sqrt(size), dtype) for s in shapes)  # type: ignore[return-value]  # of three


def copies(graph: Graph) -> int:
    """The factors of loops that are copies."""
    made = graph.producer
    loops = [loop for node in graph.nodes if (loop := loop_of(node)) is not None]
    operands = [made.get(v) for loop in loops for v in loop.operands[: loop.layout.consts]]
    return sum(node is not None and node.prim.name == "copy" for node in operands)


def of(f: Any, *args: Any) -> int:
    slope = rg.grad(f, argnums=(0, 1))
    slope(*args)
    return copies(slope.at(*args).graph)


@pytest.mark.parametrize("f", [recurrent, by_rows])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values(f: Any, dtype: Any) -> None:
    args = inputs(dtype=dtype)
    slope = rg.value_and_grad(f, argnums=(0, 1, 2))
    found = slope(*args)
    expected = rg.value_and_grad(lambda h, w, xs: unrolled(h, w.T if f is by_rows else w, xs), argnums=(0, 1, 2))(*args)
    assert_close(found, expected, 1e-12 if dtype is np.float64 else 1e-4)
    assert slope.source(*args).count(".T") >= 1


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (recurrent, inputs(), 1),
        (by_rows, inputs(), 1),
        (recurrent, inputs(steps=STEPS - 1), 0),
        (recurrent, inputs(rows=1), 0),  # a vector's product walks along the rows of either
        (recurrent, inputs(rows=2, size=46), 1),
        (recurrent, inputs(rows=2, size=45), 0),
        (recurrent, inputs(rows=2, size=362), 1),
        (recurrent, inputs(rows=2, size=363), 0),
    ],
)
def test_what_is_copied(f: Any, args: Any, expected: int) -> None:
    assert 2 * 45**2 <= LEAST < 2 * 46**2
    assert 362**2 <= LARGEST < 363**2
    assert of(f, *args) == expected


def test_plans_and_maps_have_the_same_bits() -> None:
    h, w, xs = inputs(steps=24)
    free = rg.grad(recurrent, argnums=(0, 1))(h, w, xs)
    with pytest.raises(rg.errors.MemoryBudgetError) as raised:
        rg.grad(recurrent, argnums=(0, 1), memory=1)(h, w, xs)
    within = rg.grad(recurrent, argnums=(0, 1), memory=raised.value.minimum)
    assert_same_bits(within(h, w, xs), free)
    assert_same_bits(rg.vjp(lambda h, w: recurrent(h, w, xs), h, w)[1](1.0), free)
    mapped = rg.vmap(rg.grad(recurrent, argnums=(0, 1)), (0, None, None))(np.stack([2.0 * h, h]), w, xs)
    assert_same_bits([x[1] for x in mapped], free)


def test_exact_keeps_bits_of_numpy() -> None:
    h, w, xs = inputs()

    def states(h: Any, w: Any, xs: Any) -> Any:
        return rg.scan(lambda h, x: (np.tanh(h @ w.T + x), None), h, xs)[0]

    expected = h
    for x in xs:
        expected = np.tanh(expected @ w.T + x)
    with rg.config(exact=True):
        assert_same_bits(rg.jit(states)(h, w, xs), expected)


def test_second_derivatives() -> None:
    rg.check_grads(recurrent, inputs(rows=4, size=33), order=2)
