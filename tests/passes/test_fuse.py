"""fuse: kernels compute the same bits as the operations in them, and stand where nothing has to wait for itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd.compiler.executable import Executable
from retrograd.errors import InternalError
from retrograd.ir import Graph, evaluate, parse, verify
from retrograd.ir.graph import Node
from retrograd.ir.rewrite import walk
from retrograd.ops.structural.kernel import kernel
from retrograd.passes.batch import batch
from retrograd.passes.fuse import Policy, fuse
from retrograd.passes.jvp import jvp
from retrograd.passes.transpose import transpose
from tests.support import laws, values
from tests.support.random_graphs import Example, random_graphs
from tests.support.stages import pipeline

FREE = {"const", "broadcast", "reshape", "getitem", "permute"}
SUMS = {"sum", "max"}


def elementwise(node: Node) -> bool:
    return node.prim.numpy.broadcasts or node.prim.name in FREE | SUMS | {"cast"}


def shape_of(node: Node) -> Hashable:
    value = node.inputs[0] if node.prim.name in SUMS else node.outputs[0]
    return value.aval.shape


def is_sum(node: Node) -> bool:
    return node.prim.name in SUMS


def others(node: Node) -> bool:
    """Take what comes, so that kernels and other nodes alternate."""
    return len(node.prim.name) % 2 == 0 and node.prim.writes is None and node.prim is not kernel


POLICIES = {
    "elementwise": Policy(takes=elementwise),
    "of one shape, sums last": Policy(takes=elementwise, alike=shape_of, ends=is_sum),
    "large": Policy(takes=elementwise, fewest=4),
    "anything": Policy(takes=others, fewest=1),
}
over_policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def kernels(graph: Graph) -> list[Node]:
    return [node for node in walk(graph) if node.prim is kernel]


@over_policies
@settings(max_examples=15)
@given(example=st.one_of(random_graphs(), random_graphs(np.float32)))
def test_kernels_keep_every_bit(policy: Policy, example: Example) -> None:
    for graph, args in [(example.graph, example.args), *laws.derivative_graphs(example.graph, example.args)]:
        fused = verify(fuse(graph, policy))
        values.assert_same_bits(evaluate(fused, args), evaluate(graph, args))
        laws.round_trip(fused, args)
        as_the_policy_says(fused, policy)
        as_emitted(graph, args, policy)


def as_emitted(graph: Graph, args: list[Any], policy: Policy) -> Graph:
    """Generated code with kernels gives the bits that it gives without; the graph that it is made from."""
    settled = pipeline(graph)
    last = verify(fuse(settled, policy))
    found = Executable(last)(*args)
    values.assert_same_bits(found, Executable(settled)(*args))
    for k, x in enumerate(found):
        assert not values.shares(x, [*args, *found[:k]])
    return last


def as_the_policy_says(graph: Graph, policy: Policy) -> None:
    for node in kernels(graph):
        body: Graph = node.attrs["body"]
        work = [n for n in body.nodes if n.inputs and n.prim.alias is None]
        assert all(map(policy.takes, body.nodes))
        assert len(work) >= policy.fewest
        assert len({policy.alike(n) for n in work}) == 1
        ended = {v for n in work if policy.ends(n) for v in n.outputs}
        assert not any(ended.intersection(n.inputs) for n in body.nodes)
        assert node.attrs.get("size", 0) == policy.size(node.attrs["body"])
        assert len(set(body.outputs)) == len(body.outputs) > 0


def program(x: Any, w: Any) -> Any:
    h = np.tanh(w @ x)

    def step(c: Any, y: Any) -> Any:
        return np.sin(c) * y + np.cos(c), np.sum(c * c)

    last, sums = rg.scan(step, h, np.exp(w))
    return np.sum(last * h) + np.max(sums)


@over_policies
def test_gradients_of_programs_keep_every_bit(policy: Policy) -> None:
    rng = np.random.default_rng(0)
    args = [rng.normal(size=4), rng.normal(size=(4, 4))]
    graph = rg.value_and_grad(program, argnums=(0, 1)).graph(*args)
    fused = verify(fuse(graph, policy))
    values.assert_same_bits(evaluate(fused, args), evaluate(graph, args))
    assert kernels(as_emitted(graph, args, policy))


def test_kernels_are_formed_in_the_bodies_of_loops() -> None:
    graph = rg.grad(program).graph(np.ones(4), np.ones((4, 4)))
    fused = fuse(graph, POLICIES["elementwise"])
    assert any(kernels(body) for node in fused.nodes if node.prim is not kernel for _, body in node.graphs)


CHAIN = """
graph f(%x: f64[3], %w: f64[3,3]) {
  %0 = sin %x : f64[3]
  %1 = broadcast %x : f64[3,3]
  %2 = mul %w, %1 : f64[3,3]
  %3 = matmul %w, %0 : f64[3]
  %4 = cos %3 : f64[3]
  %5 = exp %0 : f64[3]
  %6 = add %4, %5 : f64[3]
  return %6, %2
}"""


def test_a_kernel_has_what_can_be_computed_at_once_and_waits_for_what_it_reads() -> None:
    graph = fuse(parse(CHAIN), Policy(takes=elementwise))
    assert [node.prim.name for node in graph.nodes] == ["kernel", "matmul", "kernel"]
    first, _, last = graph.nodes
    assert [n.prim.name for n in first.attrs["body"].nodes] == ["sin", "broadcast", "mul"]
    assert [n.prim.name for n in last.attrs["body"].nodes] == ["cos", "exp", "add"]  # exp waits: its operand is kept


def test_some_operations_are_kernels_alone() -> None:
    text = """
graph f(%x: f64[3]) {
  %0 = sort %x {axis=0} : f64[3]
  %1 = sin %0 : f64[3]
  %2 = sort %1 {axis=0} : f64[3]
  %3 = neg %2 : f64[3]
  return %3
}"""
    graph = fuse(parse(text), Policy(takes=elementwise, alone=lambda node: node.prim.name == "sin"))
    assert [node.prim.name for node in graph.nodes] == ["sort", "kernel", "sort", "neg"]


def test_a_view_belongs_to_whoever_reads_it() -> None:
    text = """
graph f(%x: f64[3], %w: f64[2,3]) {
  %0 = broadcast %x : f64[2,3]
  %1 = add %w, %0 : f64[2,3]
  %2 = sin %1 : f64[2,3]
  %3 = sort %0 {axis=1} : f64[2,3]
  %4 = mul %3, %0 : f64[2,3]
  %5 = cos %4 : f64[2,3]
  return %2, %5
}"""
    graph = fuse(parse(text), Policy(takes=elementwise))
    made = [n.prim.name for n in graph.nodes]
    assert made == ["broadcast", "kernel", "sort", "kernel"]
    assert all("broadcast" in [n.prim.name for n in node.attrs["body"].nodes] for node in kernels(graph))


def test_no_kernel_reaches_across_an_effect() -> None:
    def decided(x: Any) -> Any:
        y = np.sin(x) * 2.0
        if np.sum(y) > 0:
            y = np.exp(y) + 1.0
        return y * 3.0

    graph = rg.jit(decided).graph(np.ones(3))
    names = [n.prim.name for n in fuse(graph, Policy(takes=elementwise)).nodes]
    assert names.count("kernel") == 2
    assert names.index("kernel") < names.index("guard") < len(names) - 1 - names[::-1].index("kernel")


def test_a_mark_divides_nothing() -> None:
    text = """
graph f(%x: f64[3]) {
  %0 = sin %x : f64[3]
  turn {budget=1000}
  %1 = mul %0, %x : f64[3]
  return %1
}"""
    graph = fuse(parse(text), Policy(takes=elementwise))
    assert [n.prim.name for n in graph.nodes] == ["turn", "kernel"]


def test_kernels_are_made_last() -> None:
    graph = fuse(parse(CHAIN), Policy(takes=elementwise))
    with pytest.raises(InternalError, match="kernel has several results and no jvp rule"):
        jvp(graph, [True, True], nan_safe=False)
    with pytest.raises(InternalError, match="kernel is not linear in its operands together"):
        transpose(graph, 0)
    with pytest.raises(InternalError, match="kernel has no batching rule"):
        batch(graph, 2, [True, True])
