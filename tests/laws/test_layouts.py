"""The order of axes in memory that a result is said to have is the one that NumPy gives it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.executable import Executable
from retrograd.ir import Graph, evaluate
from retrograd.ir.builder import Builder
from retrograd.ir.graph import Node
from retrograd.ir.layouts import Layouts
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.types import Aval
from retrograd.ops.shape import broadcast_to, inverse, permute
from retrograd.passes.inline import inline_into
from tests.support.samples import SAMPLES

STRUCTURAL = {"host", "step_numbers"}


def laid_out(graph: Graph, orders: Sequence[tuple[int, ...]]) -> Graph:
    """The graph on operands whose axes lie in these orders."""
    b = Builder()
    operands = []
    for value, order in zip(graph.inputs, orders, strict=True):
        x = b.input(Aval(tuple(value.aval.shape[k] for k in order), value.aval.dtype) if order else value.aval)
        operands.append(permute(x, axes=inverse(order)) if order else x)
    return b.graph(graph.name, inline_into(b, graph, operands))


def variants(graph: Graph) -> list[list[tuple[int, ...]]]:
    """Every operand of two axes or more with its axes as they are, all turned, and each on its own turned."""
    plain = [tuple(range(v.aval.ndim)) if v.aval.ndim > 1 and v.aval.steps is None else () for v in graph.inputs]
    turned = [order[::-1] for order in plain]
    mixed = [[*plain[:k], turned[k], *plain[k + 1 :]] for k in range(len(plain))]
    rolled = [(*order[1:], *order[:1]) for order in plain]
    found = dict.fromkeys(map(tuple, [plain, turned, rolled, *mixed]))
    return [list(orders) for orders in found]


def check(graph: Graph, args: list[Any]) -> int:
    layouts, known = Layouts(graph), 0

    def watch(node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        nonlocal known
        if node not in graph.nodes:
            return
        layouts.add(node)
        for value, x in zip(node.outputs, results, strict=True):
            known += node.prim.alias is None and lies_as_said(x, layouts.order(value), node)

    with np.errstate(all="ignore"):
        evaluate(graph, args, watch)
    return known


def lies_as_said(x: Any, order: tuple[int, ...] | None, node: Node) -> bool:
    """Whether an order is known; an array then lies packed in it."""
    if order is None or not isinstance(x, np.ndarray) or not x.size:
        return False
    step = x.itemsize
    for k in reversed(order):
        assert x.strides[k] == step, f"{node.prim.name}: strides {x.strides}, not packed in the order {order}"
        step *= x.shape[k]
    return True


@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if n in SAMPLES and n not in STRUCTURAL))
def test_results_lie_as_they_are_said_to(name: str) -> None:
    for sample in SAMPLES[name]:
        graph, args = sample.graph(), sample.operands()
        for orders in variants(graph):
            turned = [np.transpose(x, order).copy() if order else x for x, order in zip(args, orders, strict=True)]
            check(laid_out(graph, orders), turned)


@pytest.mark.parametrize("name", sorted(n for n, prim in REGISTRY.items() if prim.order == "K" and n in SAMPLES))
def test_results_of_stretched_operands(name: str) -> None:
    for sample in SAMPLES[name]:
        graph, args = sample.graph(), sample.operands()
        b = Builder()
        inputs = [b.input(Aval((1, *v.aval.shape), v.aval.dtype)) for v in graph.inputs]
        stretched = [broadcast_to(x, (4, *x.shape[1:])) for x in inputs]
        moved = [permute(x, axes=(*range(1, x.ndim), 0)) for x in stretched]
        for operands in (stretched, moved):
            node = graph.nodes[0]
            if node.prim.typed:
                aval = Aval(operands[0].shape, node.out.aval.dtype)
                out = node.prim(*operands, **{**node.attrs, "aval": aval})
            else:
                out = node.prim(*operands, **node.attrs)
            with np.errstate(all="ignore"):
                check(b.graph("f", [out]), [np.asarray(x)[None] for x in args])


@pytest.mark.parametrize("orders", [*itertools.product(itertools.permutations(range(3)), repeat=2)])
def test_elementwise_results_of_mixed_operands(orders: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    b = Builder()
    operands = [b.input(Aval(tuple(x.shape[k] for k in order), x.dtype)) for order in orders]
    p, q = (permute(s, axes=inverse(order)) for s, order in zip(operands, orders, strict=True))
    sine, double = REGISTRY["sin"](p), q * 2.0  # a constant is written as a number, which has no order
    graph = b.graph("f", [p * q, sine, double, sine + double, 1.0 - p, REGISTRY["cos"](q)])
    layouts = Layouts(graph)
    for node in graph.nodes:
        layouts.add(node)
    results = Executable(graph)(*(np.transpose(x, order).copy() for order in orders))
    for value, result in zip(graph.outputs, results, strict=True):
        known = lies_as_said(result, layouts.order(value), graph.producer[value])
        assert known or len(graph.producer[value].inputs) == 2


GATHERS = [
    np.s_[:, 0], np.s_[:, :, 0], np.s_[:, 0, 0], np.s_[..., 0], np.s_[0], np.s_[0, 0], np.s_[:, 0, :, 0], np.s_[1:3, 0],
    np.s_[:, 0, 1], np.s_[:, 0, 1:3], np.s_[:, 0, ::-1], np.s_[::2, 1:, 0], np.s_[None, :, 0], np.s_[:, None, 0],
]  # fmt: skip


@pytest.mark.parametrize("shape", [(5,), (3, 5), (1,)], ids=str)
@pytest.mark.parametrize("index", GATHERS, ids=str)
def test_gathered_elements(index: Any, shape: tuple[int, ...]) -> None:
    """Each 0 stands for an array of indices."""
    places = np.arange(np.prod(shape)).reshape(shape) % 4
    parts = index if isinstance(index, tuple) else (index,)

    def f(x: Any, i: Any) -> Any:
        return x[tuple(i if part == 0 and isinstance(part, int) else part for part in parts)]

    x = np.arange(480.0).reshape(4, 5, 6, 4)
    graph = rg.jit(f).at(x, places).graph
    known = check(graph, [x, places])
    slices = [part for part in parts if isinstance(part, slice)]
    assert known or not slices or not isinstance(parts[0], slice) or parts.count(0) > 1 or None in parts
