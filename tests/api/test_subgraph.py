"""A subgraph is stored once, differentiated once, and gives what its body copied into the caller gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from tests.support import values

W = np.array([[0.3, -0.2, 0.1], [0.0, 0.4, 0.2], [-0.5, 0.1, 0.3]])
X = np.array([0.5, -1.25, 2.0])
SIZES = (3, 2048, 8192)


def layer(w: Any, x: Any) -> Any:
    y = np.tanh(w @ x)
    return y * np.exp(-(y**2)) + np.sum(y)


def net(f: Any) -> Any:
    return lambda w, x: np.sum(f(w, f(w, f(w, x))))


def called(graph: Graph) -> Iterator[Graph]:
    """The bodies that a graph calls, one for each call."""
    for node in graph.nodes:
        for name, body in node.graphs:
            if node.prim.name == "call" and name == "body":
                yield body
            yield from called(body)


def test_three_calls_store_one_body() -> None:
    f = net(rg.subgraph(layer, inline=0))
    graph = rg.trace(f)(W, X)
    assert len(list(called(graph))) == 3
    assert len(set(called(graph))) == 1


def test_called_and_inlined_agree_to_the_last_bit() -> None:
    apart, inlined, plain = (net(g) for g in (rg.subgraph(layer, inline=0), rg.subgraph(layer, inline=999), layer))
    for transform in (rg.jit, lambda f: rg.grad(f, (0, 1)), lambda f: rg.grad(lambda *a: np.sum(rg.grad(f)(*a)))):
        found, expected, without = (transform(f)(W, X) for f in (apart, inlined, plain))
        values.assert_same_bits(list(values.leaves(found)), list(values.leaves(expected)))
        values.assert_same_bits(list(values.leaves(found)), list(values.leaves(without)))


def test_it_is_differentiated_once_for_each_set_of_active_arguments() -> None:
    source = rg.value_and_grad(net(rg.subgraph(layer, inline=0)), (0, 1)).source(W, X)
    assert source.count("np.tanh(") == 1
    assert source.count("def layer") == 2
    assert source.count("= layer(") == 3
    assert source.count("= layer_adjoint(") == 3
    again = rg.grad(net(rg.subgraph(layer, inline=0)), 0).graph(W, X)
    adjoints = [body for body in called(again) if body.name == "layer_adjoint"]
    assert len(adjoints) == 3
    assert len(set(adjoints)) == 2


def test_small_ones_are_copied() -> None:
    double = rg.subgraph(lambda x: x + x)
    assert not list(called(rg.trace(lambda x: double(double(x)))(X)))
    assert list(called(rg.trace(rg.subgraph(lambda y: y + y, inline=0))(X)))


def test_another_signature_is_another_body() -> None:
    square = rg.subgraph(lambda x: x * x, inline=0)
    bodies = list(called(rg.trace(lambda x: np.sum(square(x)) + square(np.sum(x)) + np.sum(square(x + 1)))(X)))
    assert len(bodies) == 3
    assert len(set(bodies)) == 2


def test_it_nests_in_loops_choices_lanes_and_itself() -> None:
    f = rg.subgraph(layer, inline=0)
    twice = rg.subgraph(lambda w, x: f(w, f(w, x)), inline=0)

    def program(g: Any, h: Any) -> Any:
        def run(w: Any, x: Any) -> Any:
            y = rg.fori_loop(2, lambda i, c: h(w, c), x)
            z = rg.cond(np.sum(y) > 0, lambda v: g(w, v), lambda v: v * g(w, v), y)
            return np.sum(rg.vmap(g, in_axes=(None, 0))(w, np.stack([y, z])) ** 2)

        return run

    ours, plain = program(f, twice), program(layer, lambda w, x: layer(w, layer(w, x)))
    for transform in (rg.jit, lambda g: rg.grad(g, (0, 1)), lambda g: rg.jacfwd(g, (0, 1))):
        values.assert_close(transform(ours)(W, X), transform(plain)(W, X), 1e-13)


def test_it_may_close_over_traced_values() -> None:
    def outer(w: Any, x: Any) -> Any:
        inner = rg.subgraph(lambda v: np.sin(w @ v), inline=0)
        return np.sum(inner(inner(x)))

    expected = rg.grad(lambda w, x: np.sum(np.sin(w @ np.sin(w @ x))), (0, 1))(W, X)
    values.assert_close(rg.grad(outer, (0, 1))(W, X), expected, 1e-14)


@pytest.mark.parametrize("n", SIZES)
def test_large_arrays_stay_those_of_their_owners(n: int) -> None:
    @rg.subgraph(inline=0)
    def step(u: Any, k: Any) -> tuple[Any, Any]:
        v = u * k
        v[1:] += u[:-1]
        return v, u

    def f(u: Any, k: Any) -> Any:
        a, b = step(u, k)
        a[0] = 1.0
        c, d = step(b, k * 2)
        c += d
        return np.sum(a * c) + np.sum(u * d)

    u = np.linspace(0.1, 1, n)
    before = u.copy()
    plain = rg.grad(lambda u, k: _plain(u, k), (0, 1))  # noqa: PLW0108 - a function of its own
    values.assert_close(rg.grad(f, (0, 1))(u, 0.7), plain(u, 0.7), 1e-12)
    values.assert_same_bits(u, before)


def _plain(u: Any, k: Any) -> Any:
    def step(u: Any, k: Any) -> tuple[Any, Any]:
        v = u * k
        v[1:] += u[:-1]
        return v, u * 1.0

    a, b = step(u, k)
    a[0] = 1.0
    c, d = step(b, k * 2)
    c += d
    return np.sum(a * c) + np.sum(u * d)


@pytest.mark.parametrize("inline", [-1, 1.5, True, "all"])
def test_a_wrong_size_is_refused(inline: Any) -> None:
    with pytest.raises(rg.errors.OptionError, match="inline"):
        rg.subgraph(layer, inline=inline)
