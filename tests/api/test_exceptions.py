"""Throw, catch and leave: what is raised, what is not computed, and what is refused."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.programs.control import OURS, PLAIN
from tests.support import values

XS = np.array([1.0, 1.5, 2.0, 4.0])


def test_throw_and_catch_in_one_compiled_function() -> None:
    def f(x: Any) -> Any:
        y = 2 * x

        def body() -> Any:
            rg.require((x >= -1) & (x <= 1), y)
            return y * np.arcsin(x)

        return rg.try_catch(body, lambda p: p)

    slope = rg.grad(f)
    values.assert_close(slope(0.5), 2.20189808957585, 1e-14)
    assert slope(2.0) == 2.0
    assert slope(-3.0) == 2.0
    assert slope.cache_info().misses == 1
    values.assert_close(rg.vmap(slope)(np.array([0.5, 2.0])), np.array([2.20189808957585, 2.0]), 1e-14)


def test_continuation_as_an_early_exit() -> None:
    def f(x: Any) -> Any:
        return rg.callcc(lambda k: 1 + k(x**2) * 100)

    assert (f(3.0), rg.jit(f)(3.0), rg.grad(f)(3.0)) == (9.0, 9.0, 6.0)


def test_finally_runs_on_both_ways() -> None:
    def f(x: Any) -> Any:
        def body() -> Any:
            rg.throw_if(x > 1, x * 2)
            return x * 3

        return rg.try_catch(body, lambda p: p + 1, lambda value: value**2)

    for x, expected in ((0.5, 2.25), (2.0, 25.0)):
        assert (f(x), rg.jit(f)(x)) == (expected, expected)
    assert rg.grad(f)(0.5) == 9.0
    assert rg.grad(f)(2.0) == 20.0


def thrower(x: Any) -> Any:
    rg.throw_if(x < 0, {"x": x, "why": ("a 'quoted' # {reason}\n", 1, None, [x * 2])})
    return np.sqrt(x)


def looping(xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        rg.throw_if(c > 3, {"x": x, "why": ("a 'quoted' # {reason}\n", 1, None, [c])})
        return c + x, None

    return rg.scan(body, 0.0, xs)[0]


def test_what_is_not_caught_is_raised_and_the_next_call_works() -> None:
    for transform in (rg.jit, rg.grad, rg.value_and_grad):
        f = transform(thrower)
        for _ in range(2):
            with pytest.raises(rg.errors.Thrown) as info:
                f(-2.0)
            assert info.value.payload["x"] == -2.0
            assert info.value.payload["why"] == ("a 'quoted' # {reason}\n", 1, None, [-4.0])
            assert np.all(np.isfinite(f(4.0)))
    with pytest.raises(rg.errors.Thrown):
        thrower(-1.0)
    assert thrower(4.0) == 2.0


def test_what_is_not_caught_in_a_loop_is_raised_when_it_runs() -> None:
    for transform in (rg.jit, rg.grad):
        f = transform(looping)
        for xs in (XS / 10, XS, XS / 10, XS):
            if xs is XS:
                with pytest.raises(rg.errors.Thrown) as info:
                    f(xs)
                assert info.value.payload == {"x": 4.0, "why": ("a 'quoted' # {reason}\n", 1, None, [4.5])}
            else:
                f(xs)
        assert f.cache_info().misses == 1
    with pytest.raises(rg.errors.Thrown):
        rg.vmap(looping)(np.stack([XS / 10, XS]))
    values.assert_close(rg.vmap(looping)(np.stack([XS / 10, XS / 20])), np.array([0.85, 0.425]), 1e-12)
    _, pullback = rg.vjp(looping, XS / 10)
    values.assert_close(pullback(1.0)[0], np.ones(4), 1e-15)
    with pytest.raises(rg.errors.Thrown):
        rg.vjp(looping, XS)


def test_generated_source_runs_by_itself() -> None:
    scope: dict[str, Any] = {}
    exec(rg.jit(looping).source(XS / 10), scope)
    assert scope["looping"](XS / 10) == pytest.approx(0.85)
    with pytest.raises(RuntimeError, match="why"):
        scope["looping"](XS)


def test_a_thrower_whose_result_nobody_reads_still_throws() -> None:
    def f(xs: Any) -> Any:
        looping(xs)
        rg.cond(xs[0] > 2.5, lambda: rg.throw_if(xs[1] < 0, "too small"), lambda: None)
        return np.sum(xs)

    g = rg.grad(f)
    values.assert_close(g(XS / 10), np.ones(4), 0)
    with pytest.raises(rg.errors.Thrown):
        g(XS)
    with pytest.raises(rg.errors.Thrown, match="too small"):
        g(np.array([2.7, -5.0, 0.0, 0.0]))


def test_a_payload_caught_by_python_outside_of_its_loop_cannot_be_used() -> None:
    """It has left the graph: it would be a constant without a derivative."""

    @rg.grad
    def f(xs: Any) -> Any:
        try:
            return looping(xs)
        except rg.errors.Thrown as thrown:
            return thrown.payload["x"] * 2

    with pytest.raises(rg.errors.LeakedTracerError):
        f(XS)


def test_plain_python_catches_what_is_thrown_outside_of_loops() -> None:
    def f(x: Any) -> Any:
        try:
            return thrower(x)
        except rg.errors.Thrown as thrown:
            return thrown.payload["x"] ** 2

    slope = rg.grad(f)
    for x in (4.0, -3.0, 9.0, -1.0):
        values.assert_close(slope(x), 0.5 / np.sqrt(x) if x > 0 else 2 * x, 1e-15)


def test_python_catches_what_a_compiled_function_raises_by_its_own_decision() -> None:
    @rg.jit
    def inner(x: Any) -> Any:
        if x > 0:
            raise ValueError("positive")
        rg.require(x > -10, x)
        return x

    def outer(x: Any) -> Any:
        try:
            return inner(x) * 3
        except (ValueError, rg.errors.Thrown):
            return x**2

    for f, values_ in ((rg.jit(outer), {2.0: 4.0, -2.0: -6.0, -20.0: 400.0}), (rg.grad(outer), {2.0: 4.0, -2.0: 3.0})):
        for x in (*values_, *reversed(values_)):
            assert f(x) == values_[x]


def test_a_while_loop_that_may_throw_keeps_its_plan() -> None:
    def f(x: Any, memory: Any) -> Any:
        def step(c: Any) -> Any:
            rg.throw_if(c > 50.0, c)
            return c * np.exp(0.1 * c)

        return rg.try_catch(lambda: rg.while_loop(lambda c: c < 20.0, step, x, memory=memory), lambda p: -p)

    planned = rg.grad(lambda x: f(x, rg.Log()))
    assert planned(1.5) == rg.grad(lambda x: f(x, None))(1.5)
    assert "open_sweep" in {node.prim.name for node in planned.graph(1.5).nodes}


def test_what_a_handler_does_not_receive_contributes_exactly_zero() -> None:
    def f(x: Any, y: Any) -> Any:
        def body() -> Any:
            z = x * y
            rg.throw_if(x <= 0, y)
            return np.log(x) / x * z

        return rg.try_catch(body, lambda p: p * 5)

    with np.errstate(all="raise"):
        assert rg.grad(f, (0, 1))(0.0, 2.0) == (0.0, 5.0)


def test_a_compiled_function_may_throw_into_the_caller_that_catches() -> None:
    compiled = rg.jit(thrower)

    def f(x: Any) -> Any:
        return rg.try_catch(lambda: compiled(x) * 2, lambda p: p["x"] * p["why"][3][0])

    slope = rg.grad(f)
    for x in (4.0, -3.0, 9.0):
        values.assert_close(slope(x), 1 / np.sqrt(x) if x > 0 else 4 * x, 1e-14)


def test_thrown_is_an_exception_with_a_payload() -> None:
    again = pickle.loads(pickle.dumps(rg.errors.Thrown({"a": 1})))
    assert again.payload == {"a": 1}
    assert rg.errors.Thrown().payload == ()
    assert not issubclass(rg.errors.Thrown, rg.errors.RetrogradError)


REFUSED: dict[str, tuple[Any, type[Exception]]] = {
    "different payloads": (
        lambda x: rg.try_catch(lambda: (rg.throw_if(x > 0, x), rg.throw_if(x < 0, (x, x)), x)[2], lambda p: p),
        rg.errors.TreeError,
    ),
    "different shapes": (
        lambda x: rg.try_catch(
            lambda: (rg.throw_if(x > 0, x), rg.throw_if(x < 0, np.array([x, x])), x)[2], lambda p: p
        ),
        rg.errors.ShapeError,
    ),
    "a handler of another shape": (
        lambda x: rg.try_catch(lambda: (rg.throw_if(x > 0, x), x)[1], lambda p: np.array([p, p])),
        rg.errors.ShapeError,
    ),
    "a handler of another structure": (
        lambda x: rg.try_catch(lambda: (rg.throw_if(x > 0, x), x)[1], lambda p: (p, p)),
        rg.errors.TreeError,
    ),
    "objects as payload": (
        lambda x: rg.try_catch(lambda: (rg.throw_if(x > 0, object()), x)[1], lambda p: x),
        rg.errors.UnsupportedError,
    ),
    "an array as predicate": (lambda x: rg.throw_if(np.array([x, x]) > 0), rg.errors.ShapeError),
    "an array as requirement": (lambda x: rg.require(np.array([x, x]) > 0), rg.errors.ShapeError),
    "no function": (lambda x: rg.try_catch(x, x), rg.errors.OptionError),
    "no function to finish": (lambda x: rg.try_catch(lambda: x, lambda p: x, 3), rg.errors.OptionError),
    "no function to leave": (rg.callcc, rg.errors.OptionError),
    "every step leaves": (
        lambda x: rg.callcc(lambda k: rg.fori_loop(3, lambda i, c: k(c), x)),
        rg.errors.UnsupportedError,
    ),
    "every branch leaves": (
        lambda x: rg.callcc(lambda k: rg.cond(x > 0, lambda: k(x), lambda: k(-x))),
        rg.errors.UnsupportedError,
    ),
    "thrown in a condition": (
        lambda x: rg.try_catch(
            lambda: rg.while_loop(lambda c: (rg.throw_if(c > 9, c), c < 5)[1], lambda c: c * 2, x), lambda p: p
        ),
        rg.errors.UnsupportedError,
    ),
    "Python decides in a body": (
        lambda x: rg.try_catch(lambda: x if x > 0 else -x, lambda p: p),
        rg.errors.ControlFlowError,
    ),
}


@pytest.mark.parametrize(("f", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_wrong_uses_are_named(f: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        rg.jit(f)(1.0)


def test_a_continuation_ends_with_its_body() -> None:
    kept: list[Any] = []

    def body(k: Any) -> Any:
        kept.append(k)
        return 1.0

    assert rg.callcc(body) == 1.0
    with pytest.raises(rg.errors.LeakedTracerError, match="continuation"):
        kept[0](2.0)


def leaves_a_catch(ops: Any, x: Any, y: Any) -> Any:
    def body(k: Any) -> Any:
        def inner() -> Any:
            ops.throw_if(x > 5, 3.0 * x)
            return k(y + 0.9 * x)

        return np.tanh(ops.try_catch(inner, lambda p: p))

    return ops.callcc(body)


def leaves_a_continuation(ops: Any, x: Any, y: Any) -> Any:
    def body(k: Any) -> Any:
        def inner(j: Any) -> Any:
            return k(y + ops.cond(x > 5, lambda: 1.0 * j(7.0 * y), lambda: x * y))

        return np.tanh(ops.callcc(inner))

    return ops.callcc(body)


def leaves_two_catches(ops: Any, x: Any, y: Any) -> Any:
    def body(k: Any) -> Any:
        def inner() -> Any:
            ops.throw_if(x > 5, 3.0 * x)
            k(y)

        def outer() -> Any:
            ops.throw_if(y < 0.1, (2.0 * y,))
            return np.sin(ops.try_catch(inner, lambda p: p))

        return np.tanh(ops.try_catch(outer, lambda p: p[0]))

    return ops.callcc(body)


def leaves_a_loop_of_catches(ops: Any, x: Any, y: Any) -> Any:
    def body(k: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            def inner() -> Any:
                ops.throw_if(c < 5, c)
                k(y * c)

            return ops.try_catch(inner, lambda p: p * 1.5)

        return ops.fori_loop(6, step, x)

    return ops.callcc(body)


def leaves_nothing_but_itself(ops: Any, x: Any, y: Any) -> Any:
    def body(k: Any) -> Any:
        def inner() -> Any:
            ops.throw_if(x > 5, x)
            k(y)
            k(2.0 * y)

        return ops.try_catch(inner, lambda p: p)

    return 2.0 * ops.callcc(body)


LEAVING = [
    leaves_a_catch,
    leaves_a_continuation,
    leaves_two_catches,
    leaves_a_loop_of_catches,
    leaves_nothing_but_itself,
]
TRANSFORMS = {
    "plain": lambda f: f,
    "jit": rg.jit,
    "C": lambda f: rg.jit(f, backend="native"),
    "gradient": lambda f: rg.value_and_grad(f, (0, 1)),
    "lanes": lambda f: lambda x, y: rg.vmap(f)(np.array([x, x]), np.array([y, 2.0]))[0],
}


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
@pytest.mark.parametrize("program", LEAVING)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_continuation_leaves_every_catch_in_between(program: Any, transform: str) -> None:
    """But what was thrown before is caught: plainly, this was the number that ``k`` got."""
    found, expected = (TRANSFORMS[transform](lambda x, y, ops=ops: program(ops, x, y)) for ops in (OURS, PLAIN))
    if transform != "gradient":
        expected = partial(program, PLAIN)
    for x, y in ((1.0, 0.05), (1.0, 0.5), (6.0, 0.5), (0.1, 0.3)):
        values.assert_close(found(np.float64(x), np.float64(y)), expected(np.float64(x), np.float64(y)), 1e-14)


@pytest.mark.parametrize("inside", [rg.checkpoint, rg.grad, rg.vmap, rg.jit])
def test_other_transforms_are_not_left(inside: Any) -> None:
    f = rg.jit(lambda x: rg.callcc(lambda k: np.sum(inside(lambda z: k(2.0 * z))(x))))
    with pytest.raises(rg.errors.UnsupportedError, match="another transform traces"):
        f(np.ones(2) if inside is rg.vmap else 1.0)


@pytest.mark.parametrize("inside", [rg.jit, rg.subgraph(inline=0)])
def test_throws_at_plain_numbers_are_caught(inside: Any) -> None:
    """They are known while tracing, and are thrown nevertheless."""
    root = inside(lambda a: (rg.require(a > 0, a), np.sqrt(a))[1])
    f = rg.value_and_grad(lambda x: rg.try_catch(lambda: x * root(-2.0), lambda p: x * 10.0 * p))
    assert f(3.0) == (-60.0, -20.0)
    with pytest.raises(rg.errors.Thrown):
        rg.jit(lambda x: x * root(-2.0))(1.0)
