"""The golden runner itself: a wrong answer is refused, even where it would be accepted as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import dotlexer, runner
from tests.golden.runner import FOLDER, Golden
from tests.support.native import needs_compiler

WRONG = {
    "jvp/chain": ("cos %x", "sin %x"),
    "jvp/product": ("add %1, %2", "add %1, %1"),
    "jvp/independent_result": ("const {value=0.0}", "const {value=1.0}"),
    "linearize/residuals": ("return %2, %1, %y, %0", "return %2, %0, %y, %1"),
    "linearize/constants": ("mul %x_dot, %0", "add %x_dot, %0"),
    "transpose/slices": ("additem %1, %ct {index=s_[2:,]}", "additem %1, %ct {index=s_[:-2,]}"),
    "transpose/matmul": ("permute %a {axes=(1, 0)} : f64[3,2]", "reshape %a : f64[3,2]"),
    "value_and_grad/sum_of_squares": ("value=2.0", "value=2.001"),
    "recall/remembered_result": ("mul %ct, %0", "add %ct, %0"),
    "batch/gather": ("s_[arg1, arg2]", "s_[arg2, arg1]"),
    "batch/reduce": ("axis=(1,), keepdims=False", "axis=(2,), keepdims=False"),
    "prune/dead_nodes": ("sin %x", "sin %y"),
    "simplify/not_units": ("return %1, %2, %3", "return %x, %2, %3"),
    "simplify/complex_units": ("return %2", "return %x"),
    "own_outputs/same_twice": ("return %0, %1, %2", "return %0, %1, %1"),
    "absorb/casts": ("cast %i : f32[3]", "cast %i : f64[3]"),
    "source/literals": ("+ -0.0", "+ 0.0"),
    "source/write_into_a_copy": ("v1 = x.copy()", "v1 = x"),
    "c/neighbours": ("= 1.0 - ", "= 2.0 - "),
    "dot/graph": ("in1 -> n0", "in0 -> n0"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_compiler if n.startswith("c/") else ()) for n in sorted(WRONG)]
)
def test_a_planted_wrong_answer_is_refused(name: str) -> None:
    golden = Golden(FOLDER / f"{name}.golden")
    right, wrong = WRONG[name]
    assert golden.expected.count(right) >= 1
    runner.check_meaning(golden, golden.expected)
    with pytest.raises((AssertionError, ValueError)):
        runner.check_meaning(golden, golden.expected.replace(right, wrong, 1))


def test_accepting_rewrites_the_lower_half_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.golden"
    upper = "A sentence.\nRUN: prune\n\ngraph f(%x: f64[3]) {\n  return %x\n}\n"
    path.write_text(f"{upper}---\nanything\n")
    golden = Golden(path)
    golden.accept(runner.outcome(golden))
    assert path.read_text() == f"{upper}---\n{golden.given}"


def test_a_run_line_is_read_as_passes_with_arguments(tmp_path: Path) -> None:
    path = tmp_path / "a.golden"
    path.write_text("A sentence.\nRUN: batch(4, x, i), simplify, jvp(x)\n\ngraph f() {\n}\n---\n")
    golden = Golden(path)
    assert [(s.name, s.args) for s in golden.steps] == [("batch", ("4", "x", "i")), ("simplify", ()), ("jvp", ("x",))]
    assert golden.sentence == "A sentence."


@pytest.mark.parametrize(
    "text",
    [
        'digraph "f" { n0 [label="a" }',
        'digraph "f" { n0 [label="a"b"] }',
        'digraph "f" { n0 [label=a b] }',
        'digraph "f" { n0 [label="a"] } n1',
        "graph { }",
    ],
)
def test_the_lexer_of_dot_refuses_bad_quoting(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        dotlexer.read(text)
