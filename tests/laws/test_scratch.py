"""The workspace that a primitive declares is what NumPy is seen to allocate inside it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.evaluate import run_node
from retrograd.ir.graph import Graph, Node
from tests.support import graphs

N = 40_000
BUFFERS = 160 * 1024  # bytes by which the two may differ: of casts, of overlapping or strided operands, of Python
X = np.random.default_rng(0).normal(size=N)
M = X.reshape(200, 200)
PLACES = np.arange(N)[::-1].copy()
LEVELS = np.linspace(-1.0, 1.0, 1000)
PROGRAMS: dict[str, tuple[Any, ...]] = {
    "sort": (np.sort, X),
    "sort of columns": (lambda x: np.sort(x, axis=0), M),
    "argsort": (np.argsort, X),
    "partition": (lambda x: np.partition(x, 100), X),
    "cumsum": (np.cumsum, X),
    "cumprod": (np.cumprod, np.abs(X)),
    "running maximum": (np.maximum.accumulate, X),
    "sum": (np.sum, X),
    "sum of columns": (lambda x: np.sum(x, axis=0), M),
    "prod": (np.prod, X),
    "max": (np.max, X),
    "max of columns": (lambda x: np.max(x, axis=0), M),
    "argmax": (np.argmax, X),
    "argmax of columns": (lambda x: np.argmax(x, axis=0), M),
    "argmin of columns": (lambda x: np.argmin(x, axis=0), M),
    "matmul": (lambda x: x @ x, M),
    "transposed": (lambda x: x.T @ x, M),
    "stack": (lambda x: x[None] @ x, M),
    "where": (lambda x: np.where(x > 0, x, 1.0), X),
    "gather": (lambda x, i: x[i], X, PLACES),
    "take along": (lambda x, i: np.take_along_axis(x, i, 0), X, PLACES),
    "add to half": (lambda x: np.sum(x[: N // 2]) + x, X),
    "median": (np.median, X),
    "nanmedian": (np.nanmedian, X),
    "nanmax": (np.nanmax, X),
    "quantile": (lambda x: np.quantile(x, 0.3), X),
    "nanquantile": (lambda x: np.nanquantile(x, 0.3), X),
    "convolve": (lambda x: np.convolve(x, np.ones(50)), X),
    "concatenate": (lambda x: np.concatenate([x, x]), X),
    "roll": (lambda x: np.roll(x, 3), X),
    "tril": (np.tril, M),
    "triu of matrices": (lambda x: np.triu(x.reshape(4, 100, 100), 1), M),
    "round": (lambda x: np.round(x, 2), X),
    "clip": (lambda x: np.clip(x, -1, 1), X),
    "nan_to_num": (np.nan_to_num, X),
    "isclose": (lambda x: np.isclose(x, 1.0), X),
    "searchsorted": (lambda x, levels: np.searchsorted(levels, x), X, LEVELS),
    "sinc": (np.sinc, X),
    "i0": (np.i0, X),
    "cross": (lambda x: np.cross(x[:39_999].reshape(-1, 3), np.ones(3)), X),
    "fft": (lambda x: np.abs(np.fft.fft(x)), X),
    "rfft": (lambda x: np.abs(np.fft.rfft(x)), X),
    "einsum": (lambda x: np.einsum("ij,kj->ik", x, x), M),
    "power": (lambda x: np.abs(x) ** 2.5, X),
}


def nodes(graph: Graph, args: list[Any]) -> Iterator[tuple[Node, list[Any]]]:
    """The nodes of a graph with their operands."""
    env = dict(zip(graph.inputs, args, strict=True))
    for node in graph.nodes:
        operands = [env[v] for v in node.inputs]
        yield node, operands
        env.update(zip(node.outputs, run_node(node, operands), strict=True))


def allocated(node: Node, operands: list[Any]) -> int:
    """Bytes that are allocated while a node runs, beside its results."""
    run_node(node, operands)
    return min(_allocated(node, operands) for _ in range(3))  # other threads of the process allocate, too


def _allocated(node: Node, operands: list[Any]) -> int:
    tracemalloc.start()
    try:
        kept = run_node(node, operands)
        now, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return peak - now


@pytest.mark.parametrize("name", PROGRAMS)
def test_declared_workspace_is_what_is_allocated(name: str) -> None:
    function, *args = PROGRAMS[name]
    graph = rg.trace(function)(*args)
    rng = np.random.default_rng(1)
    found = [(graph, args)]
    active = graphs.inexact(graph)
    if graphs.differentiable(graph, active):
        reverse = graphs.reverse_graph(graph, active)
        found.append((reverse, [*args, *(rng.normal(size=v.aval.shape) for v in reverse.inputs[len(args) :])]))
    for g, given in found:
        for node, operands in nodes(g, given):
            avals = [v.aval for v in node.inputs]
            declared = node.prim.scratch(*avals, **node.attrs) if node.prim.scratch else 0
            seen = allocated(node, operands)
            what = f"{node.prim.name} of {', '.join(map(str, avals))} allocates {seen}, declares {declared}"
            assert seen <= 1.25 * declared + BUFFERS, what
            assert declared <= 1.25 * seen + BUFFERS, what
