"""equal_parts: what repeats is cut into equal parts, the rest stays whole, and no bit changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, evaluate, verify
from retrograd.ops.structural.kernel import kernel
from retrograd.passes.equal_parts import equal_parts, operations
from retrograd.passes.fuse import Policy, fuse
from retrograd.passes.reroll.find_repeats import kinds_of
from tests.support import values

STEPS = 40


def diffused(u: Any, speed: Any) -> Any:
    """Decides after each step, so that it stays a row of steps."""
    for _ in range(STEPS):
        u = u.copy()
        u[1:-1] += speed * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.01 * u[1:-1] ** 2
        if np.sum(u) > 1e6:
            u = u / 2.0
    return np.sum(np.sin(u))


def gradient(*shape: int) -> Graph:
    return rg.value_and_grad(diffused, argnums=(0, 1)).graph(np.ones(shape), 0.2)


@pytest.mark.parametrize("most", [100, 250, 10**6])
def test_every_node_is_in_one_part_in_the_same_order(most: int) -> None:
    nodes = [node for node in gradient(12, 12).nodes if not node.effect]
    parts = equal_parts(nodes, most)
    assert [node for part in parts for node in part] == nodes
    assert all(parts)
    assert (len(parts) > 1) == (most < 10**6)
    assert equal_parts([], most) == []


@pytest.mark.parametrize(("shape", "steps"), [((150, 150), 1), ((12, 2), 8)])
def test_parts_are_single_steps_on_large_arrays_and_longer_on_small_ones(shape: tuple[int, int], steps: int) -> None:
    nodes = [node for node in gradient(*shape).nodes if not node.effect]
    parts = equal_parts(nodes, 150)
    kinds = [tuple(kinds_of([*parts[0], *part], exact=True)[len(parts[0]) :]) for part in parts]
    common = max(set(kinds), key=kinds.count)
    assert kinds.count(common) >= STEPS // steps // 2
    assert sum(map(operations, parts[kinds.index(common)])) <= 150


def test_kernels_in_parts_have_the_same_bits_and_are_few_functions() -> None:
    graph, args = gradient(9, 7), [np.linspace(0.1, 1.0, 63).reshape(9, 7), 0.2]
    whole, cut = (verify(fuse(graph, Policy(takes=lambda node: not node.effect, most=n))) for n in (10**6, 100))
    values.assert_same_bits(evaluate(cut, args), evaluate(graph, args))
    values.assert_same_bits(evaluate(whole, args), evaluate(graph, args))
    bodies = [node.attrs["body"] for node in cut.nodes if node.prim is kernel]
    assert len(bodies) > sum(node.prim is kernel for node in whole.nodes)
