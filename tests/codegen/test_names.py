"""Names: the user's where they are harmless, else made up."""

from __future__ import annotations

import ast
import builtins
import keyword
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.codegen.names import Names, harmless
from retrograd.codegen.numpy.check import check_source
from retrograd.compiler.executable import Executable
from retrograd.ir import Aval, Graph, Node, Value, evaluate
from retrograd.ir.dot import to_dot
from retrograd.ir.primitive import REGISTRY
from retrograd.where import Where

F3 = Aval((3,), np.dtype(np.float64))


@pytest.mark.parametrize("name", ["x", "x1", "_x", "velocity", "W_hh", "v1", "np1", "Class", "selfish"])
def test_ordinary_names_are_kept(name: str) -> None:
    assert harmless(name)
    assert Names().fresh(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *keyword.kwlist,
        *keyword.softkwlist,
        *dir(builtins),
        "np",
        "scipy",
        "__import__",
        "__x",
        "__x__",
        "",
        " ",
        "1x",
        "x y",
        "x\n",
        "x;",
        "x.y",
        "θ",
        "ſum",
        "ﬁ",
        "ｅｘｅｃ",
        "x\u0301",
        "ª",
        "x\u200d",
        None,
    ],
)
def test_names_that_mean_something_or_are_not_ascii_are_not_used(name: str | None) -> None:
    assert not harmless(name)
    assert Names().fresh(name) == "v1"


@given(st.text(max_size=8))
def test_a_harmless_name_is_an_identifier_as_it_stands(name: str) -> None:
    if harmless(name):
        assert name.isascii()
        assert unicodedata.normalize("NFKC", name) == name
        assert name.isidentifier()
        assert not keyword.iskeyword(name)
        assert not hasattr(builtins, name)


@given(st.lists(st.sampled_from(["x", "x_1", "x_2", "v1", "v2", "x_1_1", "np", None, "class"]), max_size=20))
def test_names_are_distinct(hints: list[str | None]) -> None:
    names = Names()
    given_names = [names.fresh(hint) for hint in hints]
    assert len(set(given_names)) == len(given_names)
    assert all(map(harmless, given_names))


def test_numbered_names_make_room_for_the_users() -> None:
    names = Names()
    assert [names.fresh(h) for h in ["v1", None, None, "v1", "x", "x", "x_1"]] == [
        "v1",
        "v2",
        "v3",
        "v1_1",
        "x",
        "x_1",
        "x_1_1",
    ]


def test_names_that_are_taken_are_avoided() -> None:
    assert Names(["x", "v1"]).fresh("x") == "x_1"
    assert Names(["x", "v1"]).fresh(None) == "v2"


HOSTILE = ["__import__", "np", "class", "print", "θ", "ſum", "x\nimport os", "# x", '"""', "f", "range", "exec('1')"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_of_functions_variables_and_files_leave_good_source(name: str) -> None:
    x, y = Value(F3, name), Value(F3, name)
    node = Node(REGISTRY["sin"], (x,), {}, (y,), Where(f"/home/{name}/{name}.py", 3))
    executable = Executable(Graph(name, (x,), (node,), (y,)))
    source = executable.module.source
    check_source(source)
    ast.parse(source)
    assert source.isascii() or not name.isascii()
    args = [np.arange(3.0)]
    np.testing.assert_array_equal(executable(*args)[0], evaluate(executable.graph, args)[0])


@given(st.text(), st.text(), st.text())
def test_any_names_leave_good_source(function: str, variable: str, file: str) -> None:
    x, y = Value(F3, variable), Value(F3, variable)
    node = Node(REGISTRY["sin"], (x,), {}, (y,), Where(file, 3))
    source = Executable(Graph(function, (x,), (node,), (y,))).module.source
    tree = ast.parse(source)
    kinds = [type(statement).__name__ for statement in tree.body]
    assert kinds == ["Expr", "Import", "FunctionDef"]
    assert len(tree.body[-1].body) == 2


def test_a_comment_is_one_line_whatever_the_name_of_the_file() -> None:
    x, y = Value(F3, "x"), Value(F3, "y")
    node = Node(REGISTRY["sin"], (x,), {}, (y,), Where("a\nimport os\r\u2028\x0c.py", 3))
    source = Executable(Graph("f", (x,), (node,), (y,))).module.source
    assert "    y = np.sin(x)  # a?import os???.py:3\n    return y\n" in source
    assert len(source.splitlines()) == source.count("\n")


def test_a_lambda_is_named_by_its_line_in_source_graph_and_picture() -> None:
    f = rg.grad(lambda x: np.sum(np.sin(x)))
    x = np.ones(3)
    name = f"lambda_{f.__wrapped__.__code__.co_firstlineno}"
    assert f"def {name}_grad(x):" in f.source(x)
    assert str(f.graph(x)).startswith(f"graph {name}_grad(")
    assert str(f.graph(x, stage="traced")).startswith(f"graph {name}(")
    assert f"{name}_grad" in to_dot(f.graph(x))


def test_lambdas_inside_of_transforms_loops_and_lenses_are_named_by_their_lines() -> None:
    line = (f := lambda c, x: (c * x, c)).__code__.co_firstlineno
    assert f"body = graph lambda_{line}(" in str(rg.jit(lambda x: rg.scan(f, 1.0, x)).graph(np.ones(3)))
    line = (g := lambda x: np.sum(x**3)).__code__.co_firstlineno
    assert f"graph lambda_{line}_hvp(" in str(rg.hvp(g).graph(np.ones(3), np.ones(3)))
    assert f"def lambda_{line}_grad(x):" in rg.grad(rg.jit(g)).source(np.ones(3))
    assert repr(rg.lens.of(g)) == f"<lens lambda_{line}>"
