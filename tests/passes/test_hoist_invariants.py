"""What is the same in all steps of a loop is computed once: values keep their bits, errors their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.loop_node import loop_of
from retrograd.ir.rewrite import walk
from retrograd.passes.hoist_invariants import hoist_invariants
from tests.support.derivatives import checked_gradient

STEPS = 6


def inputs(dtype: str = "f8") -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    w, m = (0.3 * rng.standard_normal((4, 4)) for _ in range(2))
    return w.astype(dtype), m.astype(dtype), rng.standard_normal(4).astype(dtype)


def network(w: Any, m: Any, x: Any) -> Any:
    def step(h: Any, t: Any) -> Any:
        h = np.tanh((w * np.exp(m)) @ h + x * t)
        return h, h.sum()

    h, sums = rg.scan(step, x, np.linspace(0.0, 1.0, STEPS).astype(x.real.dtype))
    return np.sum(sums) + h @ h


def counted(w: Any, m: Any, x: Any) -> Any:
    return np.sum(rg.fori_loop(STEPS, lambda i, h: np.sin((w + m.T) @ h + np.exp(x)), x))


def nested(w: Any, m: Any, x: Any) -> Any:
    def inner(k: Any, h: Any) -> Any:
        return np.tanh(np.exp(m) @ h + np.sin(w @ x)) * 0.5

    return np.sum(rg.fori_loop(3, lambda i, h: rg.fori_loop(2, inner, h + np.cos(w)[0]), x))


def same_in_all_steps(w: Any, m: Any, x: Any) -> Any:
    """A result, a state and a row that no step changes."""
    (h, last), rows = rg.scan(lambda c, t: ((c[0] + t, np.exp(x)), np.sin(m)), (x, x), w)
    return np.sum(h * last) + np.sum(rows[0] * rows[STEPS - 3])


def copied_by_the_state(w: Any, m: Any, x: Any) -> Any:
    """Each step writes into what is the same at its beginning."""

    def step(h: Any, t: Any) -> Any:
        scaled = np.exp(m)
        scaled[0] = h
        return np.tanh(scaled @ h) + t, scaled[1]

    h, rows = rg.scan(step, x, w)
    return np.sum(h) + np.sum(rows**2)


def parameters_in_the_state(w: Any, m: Any, x: Any) -> Any:
    """Parts of the state that no step changes, in nested loops, and one that is also a row of each step."""

    def inner(c: Any, t: Any) -> Any:
        h, p = c
        return (np.sin(h + np.exp(p) @ h * 0.1 + t), p), p[0]

    def step(c: Any, t: Any) -> Any:
        h, p, q = c
        (h, p), rows = rg.scan(inner, (h, p), np.linspace(0.1, 0.2, 3).astype(h.real.dtype))
        return (h * q, p, q), (rows[1] + t, q)

    (h, p, q), (rows, others) = rg.scan(step, (x, m, w[0]), w)
    return np.sum(h * q) + np.sum(rows) + np.sum(p[1] ** 2) + np.sum(others[2])


PROGRAMS = [network, counted, nested, same_in_all_steps, copied_by_the_state, parameters_in_the_state]


def left_in_loops(function: Callable[..., Any], *args: Any) -> int:
    """How often loops compute an exponential in each step."""
    loops = [loop_of(node) for node in walk(function.graph(*args))]
    return sum(inner.prim.name == "exp" for loop in loops if loop is not None for inner in loop.body.nodes)


@pytest.fixture(params=PROGRAMS, ids=lambda f: f.__name__)
def program(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_values_have_the_same_bits(program: Callable[..., Any], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args = inputs(dtype)
    graph = rg.trace(program)(*args)
    hoisted = hoist_invariants(graph)
    assert hoisted is not graph
    for exact in (False, True):
        with rg.config(exact=exact):
            compiled = rg.jit(program)
            assert left_in_loops(compiled, *args) == 0
            with monkeypatch.context() as patch:
                patch.setattr("retrograd.passes.hoist_invariants._invariant", lambda loop: {})

                def unchanged(*args: Any) -> Any:
                    return program(*args)

                plain = rg.jit(unchanged)
                assert left_in_loops(plain, *args) > 0
                np.testing.assert_array_equal(compiled(*args), plain(*args))


def test_derivatives(program: Callable[..., Any]) -> None:
    args = inputs()
    assert left_in_loops(checked_gradient(program, args), *args) == 0


@pytest.mark.parametrize("plan", [rg.Snapshots(1), rg.Log(), rg.Periodic(2), rg.Tiered(1, 2)])
def test_a_plan_for_memory_changes_no_bit(plan: Any) -> None:
    args = inputs()

    def planned(w: Any, m: Any, x: Any) -> Any:
        def step(h: Any, t: Any) -> Any:
            return np.tanh((w * np.exp(m)) @ h + x * t), None

        return np.sum(rg.scan(step, x, np.linspace(0.0, 1.0, STEPS), memory=plan)[0])

    def plain(w: Any, m: Any, x: Any) -> Any:
        def step(h: Any, t: Any) -> Any:
            return np.tanh((w * np.exp(m)) @ h + x * t), None

        return np.sum(rg.scan(step, x, np.linspace(0.0, 1.0, STEPS))[0])

    for a, b in zip(rg.grad(planned, (0, 1, 2))(*args), rg.grad(plain, (0, 1, 2))(*args), strict=True):
        np.testing.assert_array_equal(a, b)
    assert left_in_loops(rg.grad(planned, (0, 1, 2)), *args) == 0


def test_loops_without_steps_compute_nothing() -> None:
    def never(x: Any) -> Any:
        return rg.scan(lambda h, t: (h + np.log(x) * t, None), x, np.zeros(0))[0]

    def while_large(x: Any) -> Any:
        return rg.while_loop(lambda h: h > 1.0, lambda h: h + np.log(x), x)

    with np.errstate(all="raise"):
        assert rg.jit(never)(-1.0) == -1.0
        assert rg.jit(while_large)(-1.0) == -1.0
        assert rg.grad(never)(-1.0) == 1.0
        with pytest.raises(FloatingPointError):
            rg.jit(lambda x: rg.scan(lambda h, t: (h + np.log(x) * t, None), x, np.zeros(1))[0])(-1.0)


def test_errors_come_in_the_same_order() -> None:
    singular, regular = np.zeros((2, 2)), np.eye(2)

    def thrown_first(m: Any, h: Any) -> Any:
        def step(h: Any, t: Any) -> Any:
            rg.throw_if(h[0, 0] > 0.5, h)
            return h + np.linalg.inv(m) * t, None

        return rg.try_catch(lambda: rg.scan(step, h, np.ones(3))[0], lambda payload: payload * 3.0)

    np.testing.assert_array_equal(rg.jit(thrown_first)(singular, regular), 3.0 * regular)
    with pytest.raises(np.linalg.LinAlgError):
        rg.jit(thrown_first)(singular, 0.0 * regular)

    def factor_first(m: Any, h: Any) -> Any:
        def step(h: Any, t: Any) -> Any:
            return np.linalg.cholesky(h) + np.linalg.inv(m) * t, None

        return rg.scan(step, h, np.ones(3))[0]

    with pytest.raises(np.linalg.LinAlgError, match="ositive definite"):
        rg.jit(factor_first)(singular, -regular)


def test_steps_stretch_what_only_they_read() -> None:
    m, x = np.arange(4.0), np.arange(20.0).reshape(5, 4)

    def f(m: Any, x: Any) -> Any:
        return rg.fori_loop(STEPS, lambda _, x: np.sin(x * m) + np.exp(np.cos(m)), x)

    graph = rg.jit(f).at(m, x).graph
    loop = next(loop for node in graph.nodes if (loop := loop_of(node)) is not None)
    assert {node.prim.name for node in loop.body.nodes} >= {"broadcast", "sin"}
    assert "exp" not in {node.prim.name for node in loop.body.nodes}
    expected = x
    for _ in range(STEPS):
        expected = np.sin(expected * m) + np.exp(np.cos(m))
    np.testing.assert_array_equal(rg.jit(f)(m, x), expected)


def fixed(graph: Any) -> int:
    """How many carries no step changes."""
    loops = [loop for node in walk(graph) if (loop := loop_of(node)) is not None]
    pairs = [pair for x in loops for pair in zip(x.layout.operands(x.body.inputs)[1], x.body.outputs, strict=False)]
    return sum(before is after for before, after in pairs)


def test_carries_that_no_step_changes_become_constants() -> None:
    args = inputs()
    graph = rg.trace(parameters_in_the_state)(*args)
    assert fixed(graph) == 2  # in the outer loop one more, once the inner loop is rewritten
    assert fixed(hoist_invariants(graph)) == 0
    assert fixed(rg.grad(parameters_in_the_state, argnums=(0, 1, 2)).at(*args).graph) == 0

    def integral(x: Any, w: Any) -> Any:
        """The adjoint carries the cotangent of the sum through all steps."""
        (_, area), _ = rg.scan(lambda s, t: ((np.sin(s[0] * t), s[1] + 0.1 * s[0]), None), (x, 0.0 * x), w)
        return np.sum(np.exp(area))

    assert fixed(rg.grad(integral).at(args[2], args[0]).graph) == 0
    rg.check_grads(integral, (args[2], args[0]), order=2)
    nothing_moves = rg.jit(lambda x: rg.scan(lambda s, t: (s, None), x, np.zeros(3))[0])
    np.testing.assert_array_equal(nothing_moves(args[2]), args[2])
    never = rg.jit(lambda x: rg.scan(lambda s, t: ((s[0], s[1] + t), None), (x, x), np.zeros(0))[0])
    np.testing.assert_array_equal(never(args[2]), [args[2], args[2]])
