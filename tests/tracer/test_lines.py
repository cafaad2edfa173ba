"""Every node knows the user's line, and takes the name of the variable that its value is stored in."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

X = np.array([1.0, 2.0, 3.0])
W = np.eye(3)


def traced(f, *args):
    return rg.trace(f)(*args)


def lines(graph, f):
    return [(n.prim.name, n.where.line - f.__code__.co_firstlineno) for n in graph.nodes]


def names(graph):
    return {out.hint for n in graph.nodes for out in n.outputs if out.hint}


def test_each_operation_has_the_line_of_its_expression():
    def f(x):
        a = np.sin(x)
        b = (
            a
            * np.cos(x)
            + np.exp(
                x
            )
        )  # fmt: skip
        return np.sum(b)

    graph = traced(f, X)
    assert dict(lines(graph, f)) == {"sin": 1, "cos": 4, "mul": 3, "exp": 5, "add": 3, "sum": 9}
    assert names(graph) == {"a", "b"}


def test_a_helper_is_named_by_its_own_line():
    def helper(v):
        squared = v * v
        return np.sum(squared)

    def f(x):
        return helper(x) + 1.0

    graph = traced(f, X)
    where = {n.prim.name: n.where.line for n in graph.nodes}
    assert where["sum"] == helper.__code__.co_firstlineno + 2
    assert where["add"] == f.__code__.co_firstlineno + 1


def test_methods_operators_reads_and_writes_have_lines():
    def f(x):
        y = np.zeros(3)
        y[0] = x[1]
        y[1:] += x.sum()
        z = y.reshape(3, 1).T @ W
        z **= 2
        return z

    first = f.__code__.co_firstlineno
    graph = traced(f, X)
    by_line: dict[int, set[str]] = {}
    for node in graph.nodes:
        by_line.setdefault(node.where.line - first, set()).add(node.prim.name)
    assert "setitem" in by_line[2]
    assert {"sum", "add"} <= by_line[3]
    assert {"reshape", "matmul"} <= by_line[4]
    assert by_line[5] & {"square", "power"}
    assert {n.where.file for n in graph.nodes} == {__file__}


def test_lambdas_comprehensions_and_generators_have_lines():
    f = lambda x: sum(np.sin(v) for v in [x * k for k in range(1, 3)])  # noqa: E731 - a lambda is the point
    graph = traced(f, X)
    assert {n.where.line for n in graph.nodes} == {f.__code__.co_firstlineno}


def test_names_of_globals_tuples_and_augmented_assignments():
    def f(x):
        a, b = np.sin(x), np.cos(x)
        total = a * 2
        total = total + b
        for k in range(2):
            step = total * k
        step += total
        return step

    assert {"total", "step"} <= names(traced(f, X)) <= {"a", "b", "total", "step"}


def test_code_made_by_exec_has_its_own_file():
    scope = {"np": np}
    exec(compile("def f(x):\n    y = np.sin(x)\n    return y * 2\n", "<made up>", "exec"), scope)
    graph = traced(scope["f"], X)
    assert {(n.where.file, n.where.line) for n in graph.nodes} == {("<made up>", 2), ("<made up>", 3)}
    compile_again = rg.grad(lambda x: np.sum(scope["f"](x)))
    assert "<made up>" in str(compile_again.graph(X, stage="traced")) or "made up" in compile_again.source(X)


def test_derivative_nodes_carry_the_line_that_they_are_the_derivative_of():
    def f(x):
        a = np.sin(x)
        b = np.exp(a)
        return np.sum(b * a)

    first = f.__code__.co_firstlineno
    for transform in (rg.grad, rg.jacrev, rg.jacfwd, rg.hessian):
        assert {1, 2} <= {where.line - first for where in places(transform(f).graph(X))}


def places(graph):
    """The lines of this file behind a graph and the functions that it calls."""
    own = [n.where for n in graph.nodes if n.where and n.where.file == __file__]
    return own + [where for n in graph.nodes for _, body in n.graphs for where in places(body)]


def test_errors_name_the_innermost_line_of_the_users():
    def deep(v):
        return v.tobytes()

    def f(x):
        return deep(x)

    with pytest.raises(rg.errors.UnsupportedError) as caught:
        rg.jit(f)(X)
    assert caught.value.where.line == deep.__code__.co_firstlineno + 1
    assert caught.value.where.file == __file__


def test_the_same_line_traced_twice_gives_the_same_place():
    def f(x):
        return np.sin(x)

    assert [n.where for n in traced(f, X).nodes] == [n.where for n in traced(f, X[:2]).nodes]
