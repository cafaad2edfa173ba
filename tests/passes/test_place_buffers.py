"""place_buffers: what a plan says, and that the generated code uses the memory that it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.executable import Executable
from retrograd.ir import Aval, Graph, Value, evaluate, parse
from retrograd.ir.builder import Symbol
from retrograd.ir.plan import Plan
from retrograd.ir.primitive import REGISTRY
from retrograd.ops.elementary import cos, exp, sin
from retrograd.ops.elementwise import add, mul
from retrograd.ops.reduce import sum_
from retrograd.passes import block_kernels
from retrograd.passes.place_buffers import FREED, POOL, READ_ONLY, REUSE, STRIDED, place_buffers
from tests.support import memory, values
from tests.support.graphs import built, op
from tests.support.samples import SAMPLES

F64 = np.dtype(np.float64)
MIB = 1 << 20
BIG = Aval((MIB // 8,), F64)


def planned(text: str) -> tuple[Plan, dict[str, Value]]:
    """The plan of a graph in text, and its values by name."""
    graph = parse(text)
    values = [*graph.inputs, *(v for n in graph.nodes for v in n.outputs)]
    return place_buffers(graph), {v.hint or "": v for v in values}


# --- the plan ------------------------------------------------------------------------------------------------


def test_a_chain_of_elementwise_operations_lives_in_one_buffer() -> None:
    plan, v = planned("""
graph f(%x: f64[2048]) {
  %a = sin %x : f64[2048]
  %b = cos %a : f64[2048]
  %c = exp %b : f64[2048]
  return %c
}""")
    assert plan.into == {v["b"]: v["a"], v["c"]: v["b"]}
    assert len({plan.buffer[v[name]] for name in "abc"}) == 1
    assert plan.buffer[v["x"]] != plan.buffer[v["a"]]
    assert plan.peak == 2048 * 8


def test_uses_and_deaths() -> None:
    plan, v = planned("""
graph f(%x: f64[8192], %unused: f64[8192]) {
  %a = sin %x : f64[8192]
  %b = sum %a {axis=(0,), keepdims=False} : f64
  %c = sum %x {axis=(0,), keepdims=False} : f64
  %d = add %b, %c : f64
  return %d
}""")
    assert [plan.last_use[v[name]] for name in ["x", "unused", "a", "b", "c", "d"]] == [2, -1, 1, 3, 3, 4]
    assert plan.dies == ((), (v["a"],), (), ())


def test_small_values_are_left_to_die_by_themselves() -> None:
    plan, _ = planned(f"""
graph f(%x: f64[{FREED // 8 - 1}]) {{
  %a = sin %x : f64[{FREED // 8 - 1}]
  %b = sum %a {{axis=(0,), keepdims=False}} : f64
  return %b
}}""")
    assert plan.dies == ((), ())


@pytest.mark.parametrize(("nbytes", "reused"), [(REUSE - 8, False), (REUSE, True)])
def test_reuse_begins_at_its_threshold(nbytes: int, reused: bool) -> None:
    aval = Aval((nbytes // 8,), F64)
    assert bool(place_buffers(built(lambda x: cos(sin(x)), aval)).into) == reused


@pytest.mark.parametrize(("side", "pooled"), [(90, False), (91, True)])
def test_the_pool_begins_at_its_threshold(side: int, pooled: bool) -> None:
    aval = Aval((side, side), F64)
    plan = place_buffers(built(lambda x: (sin(x) @ x) @ x @ x, aval))
    assert (side * side * 8 >= POOL) == pooled
    assert bool(plan.into) == pooled


def test_an_argument_is_never_overwritten() -> None:
    plan, v = planned("""
graph f(%x: f64[2048], %s: f64) {
  %a = sin %x : f64[2048]
  %b = setitem %x, %s {index=(0,)} : f64[2048]
  return %a, %b
}""")
    assert plan.into == {}
    assert len({plan.buffer[v[name]] for name in "xab"}) == 3


def test_a_view_shares_the_buffer_of_its_base_and_keeps_it_alive() -> None:
    plan, v = planned("""
graph f(%x: f64[8192]) {
  %a = sin %x : f64[8192]
  %view = getitem %a {index=s_[:10,]} : f64[10]
  %b = exp %x : f64[8192]
  %c = sum %view {axis=(0,), keepdims=False} : f64
  %d = sum %b {axis=(0,), keepdims=False} : f64
  return %c, %d
}""")
    assert plan.buffer[v["view"]] == plan.buffer[v["a"]] != plan.buffer[v["b"]]
    assert plan.dies[3] == (v["a"], v["view"])
    assert plan.peak == 2 * 8192 * 8 + 8


def test_a_small_view_that_is_read_after_a_write_becomes_a_copy() -> None:
    plan, v = planned("""
graph f(%x: f64[6], %s: f64) {
  %a = exp %x : f64[6]
  %view = getitem %a {index=s_[:2,]} : f64[2]
  %b = setitem %a, %s {index=(0,)} : f64[6]
  return %b, %view
}""")
    assert plan.copies == {v["view"]}
    assert plan.into == {v["b"]: v["a"]}
    assert plan.buffer[v["view"]] != plan.buffer[v["a"]] == plan.buffer[v["b"]]


def test_a_large_view_that_is_read_after_a_write_makes_the_write_copy() -> None:
    plan, v = planned("""
graph f(%x: f64[6], %s: f64) {
  %a = exp %x : f64[6]
  %view = reshape %a : f64[2,3]
  %b = setitem %a, %s {index=(0,)} : f64[6]
  return %b, %view
}""")
    assert (plan.copies, plan.into) == (frozenset(), {})
    assert plan.buffer[v["view"]] == plan.buffer[v["a"]] != plan.buffer[v["b"]]


def test_a_stretched_view_is_not_written_through() -> None:
    plan, _ = planned("""
graph f(%x: f64[3], %s: f64) {
  %a = exp %x : f64[3]
  %wide = broadcast %a : f64[2,3]
  %b = setitem %wide, %s {index=(0, 0)} : f64[2,3]
  return %b
}""")
    assert plan.into == {}


def test_results_of_other_types_do_not_go_into_a_buffer() -> None:
    plan, _ = planned("""
graph f(%x: f64[8192]) {
  %a = sin %x : f64[8192]
  %b = lt %a, %x : b8[8192]
  %c = cast %b : f32[8192]
  return %c
}""")
    assert plan.into == {}


def test_operands_that_may_pass_through_a_loop_or_a_call_keep_their_storage() -> None:
    loop, v = planned("""
graph f(%x: f64[8192]) {
  %a = exp %x : f64[8192]
  %h = scan %a {arrays=0, carry=1, consts=0, length=3, reverse=False} : f64[8192]
    body = graph step(%h: f64[8192]) {
      return %h
    }
  %b = sin %x : f64[8192]
  %c = add %h, %b : f64[8192]
  return %c
}""")
    assert v["a"] not in loop.into.values()
    call, v = planned("""
graph f(%x: f64[8192], %s: f64) {
  %a = exp %x : f64[8192]
  %h = call %a : f64[8192]
    body = graph same(%h: f64[8192]) {
      return %h
    }
  %b = setitem %a, %s {index=(0,)} : f64[8192]
  %c = add %h, %b : f64[8192]
  return %c
}""")
    assert v["b"] not in call.into


def test_bodies_have_plans_of_their_own() -> None:
    plan, _ = planned("""
graph f(%x: f64[2048]) {
  %h = scan %x {arrays=0, carry=1, consts=0, length=3, reverse=False} : f64[2048]
    body = graph step(%h: f64[2048]) {
      %a = sin %h : f64[2048]
      %b = cos %a : f64[2048]
      return %b
    }
  return %h
}""")
    (body,) = plan.bodies.values()
    assert [b.hint for b in body.into] == ["b"]


def test_a_plan_keeps_the_order_of_the_graph() -> None:
    graph = built(lambda x: sin(x) + cos(x), BIG)
    assert place_buffers(graph).order is graph


# --- the memory ----------------------------------------------------------------------------------------------


def measured(graph: Graph) -> tuple[int, int]:
    """The plan's peak, and the one that a run has."""
    executable = Executable(graph)
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(v.aval.shape) for v in graph.inputs]
    return executable.plan.peak, memory.measured(executable, *args)


def chain(x: Symbol) -> Symbol:
    for _ in range(5):
        x = exp(-sin(cos(x)))
    return x


def fan_out(x: Symbol) -> Symbol:
    parts = [sin(x), cos(x), exp(x)]
    return add(mul(parts[0], parts[1]), mul(parts[1], parts[2])) + parts[0]


def views(x: Symbol) -> Any:
    y = sin(x)
    return op("getitem", y, index=(slice(1, None),)) - op("getitem", y, index=(slice(None, -1),))


def writes(x: Symbol) -> Any:
    y = sin(x)
    for k in range(4):
        y = op("setitem", y, op("getitem", x, index=(slice(k, k + 8),)), index=(slice(8 * k, 8 * k + 8),))
    return y


def written_argument(x: Symbol) -> Any:
    return op("additem", x, op("getitem", x, index=(slice(0, 8),)), index=(slice(8, 16),))


def products(x: Symbol) -> Any:
    m = op("reshape", x, aval=Aval((256, 512), F64))
    t = op("permute", m, axes=(1, 0))
    a = m @ t
    for _ in range(4):
        a = a @ a
    return a


def sums(x: Symbol) -> Any:
    return sum_(exp(sin(x)) * cos(x), axis=(0,), keepdims=False)


PROGRAMS: list[Callable[..., Any]] = [chain, fan_out, views, writes, written_argument, products, sums]


@pytest.fixture(autouse=True)
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long arrays are not worked on in blocks."""
    monkeypatch.setattr(block_kernels, "SHORTEST", 10**12)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_peak_of_the_plan_is_the_peak_of_the_run(program: Callable[..., Any]) -> None:
    planned_peak, peak = measured(built(program, BIG))
    assert planned_peak >= BIG.nbytes // 2
    assert peak == pytest.approx(planned_peak, rel=0.01)


def test_a_chain_needs_one_buffer_at_any_length() -> None:
    short, long = (measured(built(lambda x, n=n: repeated(x, n), BIG))[1] for n in (3, 60))
    assert short == pytest.approx(MIB, rel=0.01)
    assert long == pytest.approx(short, rel=0.01)


def repeated(x: Symbol, n: int) -> Symbol:
    for _ in range(n):
        x = sin(x)
    return x


def test_a_loop_with_large_states_needs_a_few_of_them() -> None:
    n = MIB // 8
    graph = parse(f"""
graph f(%x: f64[{n}]) {{
  %h = scan %x {{arrays=0, carry=1, consts=0, length=10, reverse=False}} : f64[{n}]
    body = graph step(%h: f64[{n}]) {{
      %a = sin %h : f64[{n}]
      %b = cos %a : f64[{n}]
      return %b
    }}
  return %h
}}""")
    _, peak = measured(graph)
    assert peak <= 2.1 * MIB


@pytest.mark.parametrize("name", sorted(name for name, prim in REGISTRY.items() if prim.alias is not None))
def test_views_that_skip_elements_are_known(name: str) -> None:
    """A result that went into one would lie in memory as no fresh one does."""
    for sample in SAMPLES.get(name, ()):
        args = [np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x for x in sample.operands()]
        for found in evaluate(sample.graph(), args):
            if isinstance(found, np.ndarray) and values.shares(found, args) and not found.flags.c_contiguous:
                assert name in STRIDED
            if isinstance(found, np.ndarray) and values.shares(found, args) and not found.flags.writeable:
                assert name in READ_ONLY


def test_a_diagonal_is_written_in_a_copy() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[1:] = y[:-1] * 0.5
        return np.sum(np.sin(np.diag(y)))

    rg.check_grads(f, (np.array([0.1, 0.2, 0.3]),), order=2)


def test_nothing_is_computed_into_a_part_of_complex_numbers() -> None:
    z = np.exp(1j * np.linspace(-3.0, 3.0, REUSE))
    found = rg.jit(lambda z: np.arctan2((z + 3.0).imag, (z * 2.0).real))(z)
    assert found.flags.c_contiguous
    assert found.base is None


def test_a_product_is_not_computed_into_storage_of_another_axis_order() -> None:
    def program(a: Any, x: Any, y: Any) -> Any:
        t = -a.T
        s = np.max(np.abs(t))
        return (x @ y) * 1.0, s

    a, x, y = np.random.default_rng(0).normal(size=(3, 300, 300))
    product, largest = rg.jit(program)(a, x, y)
    plain, same = program(a, x, y)
    values.assert_same_bits([product, largest], [plain, same])
    assert product.flags.c_contiguous


def test_a_loop_computes_into_no_workspace_of_another_axis_order() -> None:
    def step(x: Any, _: Any) -> Any:
        turned = np.sin(x.T)
        return np.cos(turned.T) * 0.5 + x * 0.1, np.sum(turned, axis=0)

    x = np.random.default_rng(0).normal(size=(120, 90))
    with rg.config(exact=True):
        values.assert_same_bits(rg.jit(lambda x: rg.scan(step, x, np.zeros(4)))(x), rg.scan(step, x, np.zeros(4)))
