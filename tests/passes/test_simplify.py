"""simplify: the EXACT rules keep every bit, for all dtypes and kinds and for nan, inf and -0.0."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.ir import Aval, Graph, evaluate, parse, to_text, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.passes.patterns import Rule
from retrograd.passes.simplify import EXACT, simplify
from tests.support import values
from tests.support.graphs import built, op

DTYPES = [np.dtype(c) for c in ("f8", "f4", "f2", "c16", "c8", "i8", "i1", "u1")]
SHAPE = (2, 3)
UNARY = ("neg",)
BINARY = ("add", "sub", "mul")
INEXACT = ("div", "power")
NUMBERS = (0, 1, -1, 2, 4, 3)
SIGNED_ZERO = -0.0
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 3.0, 0.1])
seeds = st.integers(0, 2**32)


def program(rng: np.random.Generator, dtype: np.dtype[Any], kind: str) -> Graph:
    """A program of 25 steps, made of what the rules look for."""
    b = Builder()
    aval = Aval(SHAPE, dtype) if kind == "array" else Aval((), dtype, "python" if kind == "python" else "scalar")
    pool = [b.input(aval, "x"), b.input(aval, "y")]
    condition = b.input(Aval(aval.shape, np.dtype(bool), aval.kind), "c")

    def pick() -> Symbol:
        return pool[-1 - int(rng.integers(0, min(4, len(pool))))]

    def number() -> Symbol:
        chosen = NUMBERS if dtype.kind in "iu" else (*NUMBERS, SIGNED_ZERO)
        n = chosen[int(rng.integers(0, len(chosen)))]
        return b.constant(abs(n) if dtype.kind == "u" else n, pick().aval)

    choices = [*UNARY, *BINARY, *(INEXACT if dtype.kind in "fc" else ()), "where", "cast"]
    if kind == "array":
        choices += ["permute", "reshape", "broadcast", "write", "read"]
    for name in rng.choice(choices, 25):
        x = pick()
        if name in UNARY:
            made = op(name, x)
        elif name in (*BINARY, *INEXACT):
            pair = [pick() if rng.random() < 0.6 else number(), pick()]
            pair = [b.coerce(v, x.aval) for v in (pair if rng.random() < 0.5 else pair[::-1])]
            made = op(name, *pair)
        elif name == "where":
            flag = op("logical_not", condition) if rng.random() < 0.5 else condition
            made = b.coerce(op("where", flag, x, b.coerce(pick(), x.aval)), x.aval)
        elif name == "cast":
            wide = np.dtype(np.complex128 if dtype.kind == "c" else np.float64 if dtype.kind == "f" else np.int64)
            between = rng.choice(np.array([wide, dtype], object))
            made = b.coerce(b.coerce(x, Aval(x.shape, between, x.aval.kind)), x.aval)
        elif name == "permute":
            made = op("permute", op("permute", x, axes=(1, 0)), axes=(1, 0))
        elif name == "reshape":
            made = op("reshape", op("reshape", x, aval=Aval((6,), dtype)), aval=Aval(SHAPE, dtype))
        elif name == "broadcast":
            made = op("getitem", op("broadcast", x, aval=Aval((2, *SHAPE), dtype)), index=(1,))
        elif name == "read":
            made = op("getitem", x, index=(slice(None), slice(None)))
        else:
            part = op("getitem", x, index=(0,))
            made = op("setitem", x, op(str(rng.choice(BINARY)), part, op("getitem", pick(), index=(1,))), index=(0,))
        pool.append(made)
    return verify(b.graph("random", pool[-4:]))


def argument(rng: np.random.Generator, aval: Aval) -> Any:
    if aval.dtype.kind == "b":
        return values.as_kind(rng.random(aval.shape) < 0.5, aval)
    if aval.dtype.kind in "iu":
        return values.as_kind(rng.integers(0, 100, aval.shape), aval)
    x = np.empty(aval.shape, np.complex128)
    x.real, x.imag = rng.choice(SPECIAL, aval.shape), rng.choice(SPECIAL, aval.shape)
    return values.as_kind(x if aval.dtype.kind == "c" else x.real, aval)


def quietly(graph: Graph, args: list[Any]) -> list[Any]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(evaluate(graph, args))


@pytest.mark.parametrize("kind", ["array", "scalar"])
@given(dtype=st.sampled_from(DTYPES), seed=seeds)
def test_every_bit_is_kept(kind: str, dtype: np.dtype[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = program(rng, dtype, kind)
    simple = simplify(graph)
    verify(simple)
    assert (simple.in_avals, simple.out_avals) == (graph.in_avals, graph.out_avals)
    for _ in range(3):
        args = [argument(rng, v.aval) for v in graph.inputs]
        found, expected = quietly(simple, args), quietly(graph, args)
        values.assert_has_avals(found, graph.out_avals)
        values.assert_same_bits(found, expected)


@given(seed=seeds)
def test_simplifying_twice_is_simplifying_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    once = simplify(program(rng, np.dtype(rng.choice(["f8", "c16", "i8"])), "array"))
    assert to_text(simplify(once)) == to_text(once)


def test_random_programs_reach_most_rules() -> None:
    fired: Counter[str] = Counter()
    for seed in range(60):
        simplify(program(np.random.default_rng(seed), np.dtype(np.float64), "array"), fired=fired)
    reachable = {rule.name for rule in EXACT if "t" not in rule.names}  # indices are plain numbers in random programs
    missed = reachable - set(fired)
    assert len(missed) <= 13, missed


X = Aval((3,), np.dtype(np.float64))


def test_the_results_keep_their_kinds_where_a_rule_drops_the_operation() -> None:
    x0, scalar, python = Aval((), X.dtype), Aval((), X.dtype, "scalar"), Aval((), X.dtype, "python")
    c = Aval((), np.dtype(bool), "scalar")
    graph = built(lambda c, x: op("where", c, x, x), c, scalar)
    assert (graph.out_avals, simplify(graph).out_avals) == ((x0,), (x0,))
    graph = built(lambda x: x * x.builder.constant(1, scalar), python)
    assert (graph.out_avals, simplify(graph).out_avals) == ((scalar,), (scalar,))


def test_a_carry_keeps_its_kind() -> None:
    graph = parse("""
graph f(%x: f64, %n: f64[5]) {
  %0 = const {value=0.0} : f64[2]
  %1 = broadcast %x : f64[]
  %2 = const {value=True} : b8
  %3 = where %2, %1, %1 : f64[]
  %h = scan %3, %n {arrays=0, carry=1, consts=0, length=5, reverse=False} : f64[]
    body = graph step(%h: f64[], %x: f64) {
      %0 = add %h, %x : f64
      %1 = cast %0 : f64[]
      return %1
    }
  return %h
}""")
    args = [np.float64(1.0), np.arange(5.0)]
    values.assert_same_bits(evaluate(verify(simplify(verify(graph))), args), evaluate(graph, args))


def test_further_rules_can_be_given() -> None:
    graph = built(lambda x: op("sin", op("sin", x)), X)
    rule = Rule(lambda x: op("sin", op("sin", x)), lambda x: -x)
    fired: Counter[str] = Counter()
    simple = simplify(graph, [rule], fired)
    assert [n.prim.name for n in simple.nodes] == ["neg"]
    assert fired == {"sin(sin(x))": 1}


def test_a_rule_that_refuses_leaves_the_node() -> None:
    graph = built(lambda x: op("sin", x), X)
    rule = Rule(lambda x: op("sin", x), lambda x: None)
    assert to_text(simplify(graph, [rule])) == to_text(graph)


def test_a_hole_that_occurs_twice_stands_for_one_value() -> None:
    graph = built(lambda x, y: (x - y, x - x), X, X)
    rule = Rule(lambda x: x - x, lambda x: x.builder.zeros(x.aval))
    assert [n.prim.name for n in simplify(graph, [rule]).nodes] == ["sub", "const"]


def test_operations_that_would_warn_are_left_to_warn_when_they_run() -> None:
    graph = parse("""
graph f() {
  %0 = const {value=1e+300} : f64
  %1 = mul %0, %0 : f64
  %2 = const {value=nan} : f64
  %3 = cast %2 : i64
  %4 = const {value=1e+300} : f64[2]
  %5 = cast %4 : f32[2]
  %6 = const {value=127} : i8
  %7 = add %6, %6 : i8
  return %1, %3, %5, %7
}""")
    assert to_text(simplify(graph)) == to_text(graph)


def test_folded_casts_wrap_as_numpy_does() -> None:
    graph = parse("""
graph f() {
  %0 = const {value=300} : i64[2]
  %1 = cast %0 : u8[2]
  %2 = const {value=-1} : i64[2]
  %3 = cast %2 : u8[2]
  %4 = const {value=(1+2j)} : c128[2]
  %5 = cast %4 : f64[2]
  %6 = const {value=2.75} : f64[2]
  %7 = cast %6 : i64[2]
  return %1, %3, %5, %7
}""")
    simple = simplify(graph)
    assert {n.prim.name for n in simple.nodes} == {"const"}
    values.assert_same_bits(evaluate(simple, []), evaluate(graph, []))


def test_numbers_of_python_are_not_folded() -> None:
    """They neither wrap nor warn as NumPy's do."""
    graph = parse("graph f() {\n  %0 = const {value=2} : int\n  %1 = mul %0, %0 : int\n  return %1\n}\n")
    assert to_text(simplify(graph)) == to_text(graph)


@pytest.mark.parametrize(
    "scales",
    [
        (1e30, 1e-30),
        (1e-30, 1e30),
        (1e35, 0.5),
        (2.0, 0.5),
        (0.5, 2.0),
        (-0.125, 8.0),
        (0.5, 64.0),
        (4.0, 2.0),
        (0.5, 0.25),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_product_overflows_and_underflows_where_numpy_does(scales, dtype):
    limits, (a, b) = np.finfo(dtype), map(dtype, scales)
    x = np.array([limits.max, -limits.max, limits.tiny, -limits.tiny, 0.0, np.inf], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rg.jit(lambda x: x * a * b)(x), x * a * b)
        np.testing.assert_array_equal(rg.jit(lambda x: b * (a * x))(x), b * (a * x))


def test_nodes_behind_a_rewrite_keep_their_values() -> None:
    graph = parse(
        "graph f(%x: f64[3]) {\n  %a = neg %x : f64[3]\n  %b = neg %a : f64[3]\n  %c = sin %b : f64[3]\n"
        "  %d = cos %c : f64[3]\n  return %d, %b\n}"
    )
    simple = simplify(graph)
    assert [node.prim.name for node in simple.nodes] == ["sin", "cos"]
    assert simple.nodes[0].inputs == graph.inputs
    assert simple.nodes[0].outputs == graph.nodes[2].outputs
    assert simple.nodes[1] is graph.nodes[3]
    assert simple.outputs == (graph.outputs[0], graph.inputs[0])


def test_a_body_in_two_calls_is_rewritten_once_and_keeps_both_results() -> None:
    inner = rg.jit(lambda x: np.sin(1 * x) * np.cos(x) + np.tanh(1 * x) * np.exp(x) - np.sqrt(x) * np.log(x))
    graph = rg.trace(lambda x: inner(1 * x) - inner(2.0 * (1 * x)))(np.linspace(0.5, 1.0, 4))
    x = np.linspace(0.5, 1.0, 4)
    simple = simplify(graph)
    verify(simple)
    assert evaluate(simple, [x])[0].tobytes() == evaluate(graph, [x])[0].tobytes()
    assert np.abs(evaluate(simple, [x])[0]).min() > 0
