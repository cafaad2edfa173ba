"""absorb: what NumPy broadcasts and casts by itself is not written, and nothing changes by that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrograd.codegen.numpy.absorb import absorb
from retrograd.compiler.executable import Executable
from retrograd.ir import Aval, Graph, evaluate, parse, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.parser import parse_type
from retrograd.passes.own_outputs import own_outputs
from retrograd.passes.prune import prune
from tests.support import values
from tests.support.graphs import op

CODES = ("f8", "f4", "f2", "c16", "c8", "i8", "i4", "u1", "?")
SHAPES = ((), (1,), (3,), (2, 1), (2, 3), (1, 1), (4, 1, 3), (4, 2, 3))
SCALARS = [parse_type(text) for text in ("f64", "f32", "float", "int", "bool", "complex")]
BINARY = ("add", "mul", "maximum", "minimum", "lt", "eq", "ge")


def joined(rng: np.random.Generator, pool: list[Symbol], b: Builder) -> list[Symbol]:
    """Two or three operands with one shape and one dtype, made by broadcasts and casts, or numbers."""
    some = [pool[int(k)] for k in rng.integers(0, len(pool), 2)]
    shape = np.broadcast_shapes(*(x.shape for x in some))
    dtype = np.result_type(*(np.zeros((), x.dtype) for x in some))
    dtype = np.dtype(np.float16) if dtype.kind == "b" else dtype
    operands = []
    for x in some:
        y = op("broadcast", x, aval=Aval(shape, x.dtype)) if shape and x.shape != shape else x
        target = Aval(shape, dtype, "array" if shape else "scalar")
        operands.append(y if y.aval == target else op("cast", y, aval=target))
    if rng.random() < 0.4:
        operands[int(rng.integers(0, 2))] = b.constant(int(rng.integers(0, 3)), operands[0].aval)
    return operands


def program(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    b = Builder()
    avals = [Aval(SHAPES[int(rng.integers(0, len(SHAPES)))], np.dtype(str(rng.choice(CODES)))) for _ in range(4)]
    pool = [b.input(a) for a in (*avals, SCALARS[int(rng.integers(0, len(SCALARS)))])]
    made = []
    for _ in range(12):
        x, y = joined(rng, pool, b)
        name = str(rng.choice([*BINARY, "where", "setitem"]))
        if name in {"maximum", "minimum", "lt", "ge"} and x.dtype.kind == "c":
            name = "add"
        if name == "where" and x.shape:
            out = op("where", op("eq", x, y), y, x)
        elif name == "setitem" and x.ndim and x.shape[0] > 1 and x.aval.kind == "array":
            out = op("setitem", x, op("getitem", y, index=(slice(1, None),)), index=(slice(1, None),))
        else:
            out = op(name if name in BINARY else "mul", x, y)
        pool.append(out)
        made.append(out)
    return verify(prune(b.graph("random", made[-4:])))


def argument(rng: np.random.Generator, aval: Aval) -> Any:
    x = rng.integers(0, 4, aval.shape)
    if aval.inexact:
        x = x * 0.3 + (0.1j if aval.dtype.kind == "c" else 0.0)
    return values.as_kind(x, aval)


@example(570443)  # a complex literal and np.float64
@given(st.integers(0, 2**32))
def test_generated_code_without_broadcasts_and_casts_keeps_every_bit(seed: int) -> None:
    graph = program(seed)
    rng = np.random.default_rng(seed)
    args = [argument(rng, v.aval) for v in graph.inputs]
    with np.errstate(all="ignore"):
        expected = evaluate(graph, args)
        found = Executable(own_outputs(graph))(*args)
    values.assert_has_avals(found, graph.out_avals)
    values.assert_same_bits(list(found), list(expected))


def casts(graph: Graph) -> int:
    return sum(node.prim.name == "cast" for node in absorb(graph).nodes)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("f32", "f64", False),
        ("i64", "f64", False),
        ("b8", "f64", False),
        ("f32", "c128", False),
        ("i64", "f32", True),
        ("f64", "f32", True),
        ("f64", "c64", True),
        ("i64", "i32", True),
        ("u8", "i32", False),
    ],
)
def test_a_cast_stays_where_numpy_would_compute_in_another_type(before: str, after: str, kept: bool) -> None:
    graph = parse(f"""
graph f(%x: {before}[3], %y: {after}[3]) {{
  %0 = cast %x : {after}[3]
  %1 = add %0, %y : {after}[3]
  return %1
}}""")
    assert casts(verify(graph)) == kept


def test_a_cast_beside_a_number_of_python_stays() -> None:
    """Its dtype would give way to that of the array."""
    graph = parse("""
graph f(%x: f32[3], %k: float) {
  %0 = cast %x : f64[3]
  %1 = broadcast %k : f64[3]
  %2 = mul %0, %1 : f64[3]
  return %2
}""")
    assert [n.prim.name for n in absorb(verify(graph)).nodes] == ["cast", "mul"]


def test_one_of_two_casts_carries_the_type() -> None:
    graph = parse("""
graph f(%x: i32[3], %y: i32[3]) {
  %0 = cast %x : f64[3]
  %1 = cast %y : f64[3]
  %2 = add %0, %1 : f64[3]
  return %2
}""")
    assert casts(verify(graph)) == 1


def test_the_operands_of_a_matrix_product_keep_their_shapes() -> None:
    graph = parse("""
graph f(%x: f64[3,3], %y: f64[2,3,3]) {
  %0 = broadcast %x : f64[2,3,3]
  %1 = matmul %0, %y : f64[2,3,3]
  return %1
}""")
    assert [n.prim.name for n in absorb(graph).nodes] == ["broadcast", "matmul"]


def test_results_keep_their_types() -> None:
    graph = parse("""
graph f(%x: f64[3], %s: f64) {
  %0 = broadcast %s : f64[3]
  %1 = add %x, %0 : f64[3]
  %2 = broadcast %1 : f64[2,3]
  return %1, %2
}""")
    absorbed = absorb(graph)
    assert absorbed.out_avals == graph.out_avals
    assert [n.prim.name for n in absorbed.nodes] == ["add", "broadcast"]


def test_bodies_of_loops_are_treated_too() -> None:
    graph = parse("""
graph f(%x: f64[3]) {
  %h = scan %x {arrays=0, carry=1, consts=0, length=2, reverse=False} : f64[3]
    body = graph step(%h: f64[3]) {
      %0 = sum %h {axis=(0,), keepdims=False} : f64
      %1 = broadcast %0 : f64[3]
      %2 = mul %h, %1 : f64[3]
      return %2
    }
  return %h
}""")
    (node,) = absorb(graph).nodes
    assert [n.prim.name for n in node.attrs["body"].nodes] == ["sum", "mul"]
