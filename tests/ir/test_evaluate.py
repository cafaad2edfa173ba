"""evaluate: the plain interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import evaluate, parse


def test_arguments_are_never_changed() -> None:
    graph = parse("""
graph f(%x: f64[3], %v: f64) {
  %0 = setitem %x, %v {index=(0,)} : f64[3]
  %1 = additem %0, %v {index=(1,)} : f64[3]
  return %1
}""")
    x = np.zeros(3)
    (found,) = evaluate(graph, [x, np.float64(5.0)])
    assert x.tolist() == [0.0, 0.0, 0.0]
    assert found.tolist() == [5.0, 5.0, 0.0]


def test_an_array_is_kept_as_it_was_when_a_write_made_another_of_it() -> None:
    graph = parse("""
graph f(%x: f64[3], %v: f64) {
  %0 = exp %x : f64[3]
  %1 = setitem %0, %v {index=(0,)} : f64[3]
  return %0, %1
}""")
    before, after = evaluate(graph, [np.zeros(3), np.float64(5.0)])
    assert (before.tolist(), after.tolist()) == ([1.0, 1.0, 1.0], [5.0, 1.0, 1.0])


def test_kinds_are_those_of_numpy() -> None:
    graph = parse("""
graph f(%p: float, %s: f64, %a: f64[], %x: f64[2]) {
  %0 = mul %p, %p : float
  %1 = sin %p : f64
  %2 = mul %s, %a : f64
  %3 = getitem %x {index=(0,)} : f64
  %4 = reshape %s : f64[]
  return %0, %1, %2, %3, %4
}""")
    found = evaluate(graph, [2.0, np.float64(2.0), np.array(2.0), np.ones(2)])
    assert [type(v) for v in found] == [float, np.float64, np.float64, np.float64, np.ndarray]


def test_the_number_of_arguments_must_fit() -> None:
    graph = parse("graph f(%x: f64) {\n  return %x\n}")
    with pytest.raises(ValueError, match="zip"):
        evaluate(graph, [])


def test_a_loop_runs_in_its_direction_and_stacks_in_order() -> None:
    text = """
graph f(%x: f64[4]) {{
  %0 = const {{value=0.0}} : f64
  %1, %2, %3 = scan %0, %x {{arrays=1, carry=1, consts=0, length=4, reverse={}}} : f64, f64[4], f64*4
    body = graph step(%c: f64, %x: f64) {{
      %0 = add %c, %x : f64
      return %0, %0, %c
    }}
  return %1, %2, %3
}}"""
    x = np.array([1.0, 2.0, 4.0, 8.0])
    total, sums, befores = evaluate(parse(text.format(False)), [x])
    assert (total, sums.tolist(), befores) == (15.0, [1.0, 3.0, 7.0, 15.0], [0.0, 1.0, 3.0, 7.0])
    total, sums, befores = evaluate(parse(text.format(True)), [x])
    assert (total, sums.tolist(), befores) == (15.0, [15.0, 14.0, 12.0, 8.0], [14.0, 12.0, 8.0, 0.0])


def test_a_loop_without_steps_gives_its_initial_carry_and_empty_results() -> None:
    graph = parse("""
graph f(%c: f64, %x: f64[0]) {
  %0, %1 = scan %c, %x {arrays=1, carry=1, consts=0, length=0, reverse=False} : f64, f64[0]
    body = graph step(%c: f64, %x: f64) {
      return %x, %c
    }
  return %0, %1
}""")
    carry, ys = evaluate(graph, [np.float64(3.0), np.zeros(0)])
    assert carry == 3.0
    assert ys.shape == (0,)
