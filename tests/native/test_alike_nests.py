"""Nests that are alike are one function of C, with the bits of those that stand in their places."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import kernel_function, target
from retrograd.codegen.native.alike_nests import with_functions
from retrograd.codegen.native.c_names import declared
from retrograd.codegen.native.in_operands import with_one_storage
from retrograd.ir import Graph
from retrograd.ir.builder import Builder
from retrograd.ir.rewrite import copy_nodes
from tests.native.test_random_kernels import FEW, RandomComplexKernel, RandomKernel, RandomLongKernel, random_kernel
from tests.support import values
from tests.support.growing import again
from tests.support.limits import other_limits
from tests.support.native import in_a_hurry, needs_compiler, results, taken
from tests.support.seeds import SEED

pytestmark = needs_compiler
PARENTS = (0, 1, 1, 2, 4, 0, 6)
NAMED = re.compile(r"void (kernel\d+_nest\d+)\(")


def saved(lines: int) -> Any:
    """A context in which a function must save so many lines."""
    return other_limits({"codegen.native.alike_nests": {"SAVED": lines}})


def tree(turns: Any, places: Any) -> Any:
    """Turns of limbs on other limbs: no loop, as the limbs that they belong to follow no rule."""
    turned, at = [turns[0]], [places[0]]
    for k, parent in enumerate(PARENTS, 1):
        turned.append(np.tanh(turned[parent] @ turns[k]))
        at.append(at[parent] + turned[parent] @ places[k])
    return np.sum(np.stack(at) ** 2) + np.sum(np.stack(turned))


def heated(u: Any) -> Any:
    """Too few steps for a loop."""
    for _ in range(4):
        u = u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4.0 * u)
    return np.sum(np.cos(u))


DRAW = np.random.default_rng(0).random
PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (tree, (DRAW((8, 3, 3)), DRAW((8, 3)))),
    (tree, (DRAW((8, 5, 5)), DRAW((8, 5)))),
    (heated, (DRAW((20, 20)),)),
    (heated, (DRAW((9, 8)).astype(np.float32),)),
]


@pytest.mark.costly
@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_a_function_has_the_bits_of_its_nests(function: Any, args: Any) -> None:
    found = []
    for lines in (10**9, 1):
        with saved(lines):
            derived = rg.value_and_grad(again(function), backend="native")
            found.append(derived(*args))
            source = derived.source(*args, language="c")
        names = NAMED.findall(source)
        assert bool(names) == (lines == 1)
        assert all(len(re.findall(rf"\b{name}\(", source)) >= 3 for name in names)  # a definition, and two calls
    for one, other in zip(*found, strict=True):
        values.assert_same_bits([one], [other])
    for one, other in zip(found[0], rg.value_and_grad(function)(*args), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4 if args[0].dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("kind", [RandomKernel, RandomLongKernel, RandomComplexKernel])
@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 40))])
def test_random_kernels_keep_their_bits(part: int, kind: type[RandomKernel]) -> None:
    start = 10**11 + (SEED * 1000 + part) * FEW
    drawn = [random_kernel(seed, kind) for seed in range(start, start + FEW)]
    cases = [(several(graph), args * 4) for graph, args in drawn if taken(graph)]
    found: list[list[Any]] = []
    for lines in (10**9, 1):
        with saved(lines), in_a_hurry():
            functions = target.compiled([replace(graph) for graph, _ in cases], [lambda *_: ()] * len(cases))
            found.append([f and results(f, graph, args) for f, (graph, args) in zip(functions, cases, strict=True)])
    with saved(1):
        assert any("_nest1(" in str(target._text(replace(graph))) for graph, _ in cases)
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            values.assert_same_bits(one, other)


def several(graph: Graph) -> Graph:
    """A graph that computes another one of several operands."""
    b = Builder()
    outs = []
    for _ in range(4):
        env = {v: b.input(v.aval) for v in graph.inputs}
        copy_nodes(b, graph.nodes, env)
        outs += [env[v] for v in graph.outputs]
    return b.graph("several", outs)


@pytest.mark.parametrize("kind", [RandomKernel, RandomLongKernel, RandomComplexKernel])
def test_names_have_the_types_that_they_are_declared_with(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts and functions get them with these types: another one would change their values without a word."""
    seen: list[str] = []

    def looked_at(lines: list[str], types: dict[str, str], name: str) -> tuple[list[str], list[str]]:
        for line in lines:
            for x, declaration in declared(line.lstrip()).items():
                if x in types:
                    seen.append(x)
                    assert types[x].replace("const ", "") == declaration.replace("const ", ""), line
        return [], lines

    monkeypatch.setattr(kernel_function, "with_functions", looked_at)
    for seed in range(200):
        graph, _ = random_kernel(seed, kind)
        if taken(graph):
            target._text(graph)
    assert {re.sub(r"\d", "", x) for x in seen} >= {"k", "s", "v"}


LOOP = ["for (int64_t z{0} = 0; z{0} < 9; z{0}++) {{", "  {1}", "}}"]
NUMBERS = [f"const double v{k} = in0[{k}];" for k in range(9)]
TYPES = {"in0": "const double *restrict", "out0": "double *restrict", "out1": "double *restrict", "s1": "double"}
TYPES |= {f"z{k}": "int64_t" for k in range(9)} | {f"v{k}": "double" for k in range(9)}


def nests(*statements: str) -> list[str]:
    return [line.format(k, statement) for k, statement in enumerate(statements) for line in LOOP]


@pytest.mark.parametrize(
    ("statements", "call"),
    [
        (["out0[z0] = in0[z0];", "out1[z1 + 9] = in0[z1 + 2];"], ["out0, in0", "&out1[9], &in0[2]"]),
        (["out0[z0 + 1] = in0[z0] * v0;", "out1[z1 + 3] = in0[z1] * v1;"], ["&out0[1], in0, v0", "&out1[3], in0, v1"]),
        (["out0[3 * z0 + 4] = out0[3 * z0 + 1];", "out0[3 * z1 + 14] = out0[3 * z1 + 11];"], ["&out0[1]", "&out0[11]"]),
        (["out0[z0] = in0[z0 - 1 + 5];", "out1[z1] = in0[z1 - 1 + 7];"], ["out0, &in0[5]", "out1, &in0[7]"]),
    ],
)
@pytest.mark.usefixtures("_small_functions")
def test_arrays_begin_where_a_nest_begins(statements: list[str], call: list[str]) -> None:
    functions, lines = with_functions([*NUMBERS, *nests(*statements)], TYPES, "kernel")
    assert len(functions) == 1
    assert lines == [*NUMBERS, *(f"kernel_nest1({x});" for x in call)]


@pytest.mark.parametrize(
    "statements",
    [
        ["s1 = s1 + in0[z0];", "s1 = s1 + in0[z1 + 9];"],  # a number from outside changes
        ["s1 += in0[z0];", "s1 += in0[z1];"],
        ["beyond |= in0[z0] != 0;", "beyond |= in0[z1] != 0;"],  # the kernel may give up
        ["out0[z0] = in0[z0 - 1];", "out0[z1] = in0[z1 + 1];"],  # other elements
        ["out0[2 * z0] = in0[z0];", "out0[3 * z1] = in0[z1];"],  # other strides
        ["out0[z0] = in0[z0] * 2;", "out0[z1] = in0[z1] * 3;"],  # other numbers
        ["out0[z0] = in0[z0];  /* a.py:1 */", "out1[z1] = in0[z1];  /* a.py:2 */"],  # other lines of the user
        ["out0[z0] = in0[z0];", "out1[z1] = out0[z1];"],  # what is written by others may not be promised to be constant
    ],
)
@pytest.mark.usefixtures("_small_functions")
def test_other_nests_stay(statements: list[str]) -> None:
    lines = [*NUMBERS, *nests(*statements)]
    assert with_functions(lines, TYPES, "kernel") == ([], lines)


@pytest.mark.usefixtures("_small_functions")
def test_a_row_has_its_number() -> None:
    row = ["{{ const int64_t z{0} = {0};", "  out0[8 * z{0}] = in0[z{0}] * v{0};", "}}"]
    rows = [line.format(k) for k in (3, 5, 7) for line in row]
    functions, lines = with_functions([*NUMBERS, *rows], TYPES, "kernel")
    assert lines == [*NUMBERS, *(f"kernel_nest1(out0, {k}, in0, v{k});" for k in (3, 5, 7))]
    assert "const int64_t x2" in functions[0]


def test_what_lies_in_an_operand_is_no_ones_alone() -> None:
    source = "void kernel_nest1(const double *restrict a1, double *restrict a2, const double x3)"
    assert "restrict" not in with_one_storage(source, ((0, 1),))
    assert with_one_storage(source, ()) == source


@pytest.fixture
def _small_functions() -> Any:
    with saved(1):
        yield
