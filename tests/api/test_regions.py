"""Regions: the same bits as without them, nothing kept beyond what the policy says, logarithmic memory by halving."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.linearize import linearize
from tests.support.memory import measured

evaluation = importlib.import_module("retrograd.ir.evaluate")  # the package has a function of this name
R = np.random.default_rng(3)
W = R.normal(size=(4, 4))
X = R.normal(size=4)
p = rg.policies
POLICIES = {
    "nothing": p.save_nothing,
    "everything": p.save_all,
    "products": p.save_matmuls,
    "names": p.save_names("hidden"),
    "all but": p.except_names("hidden"),
    "any": p.any_of(p.save_matmuls, p.save_names("hidden")),
    "all": p.all_of(p.save_all, p.except_names("hidden")),
}
every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())


def layer(w: Any, x: Any) -> Any:
    hidden = rg.name(np.tanh(w @ x), "hidden")
    return np.sin(w.T @ hidden) * x


def stack(layer: Callable[..., Any], depth: int = 3) -> Callable[..., Any]:
    def loss(w: Any, x: Any) -> Any:
        for _ in range(depth):
            x = layer(w, x)
        return np.sum(x * x)

    return loss


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in tree]


@every_policy
def test_values_and_gradients_keep_every_bit(policy: Any) -> None:
    region = rg.checkpoint(policy=policy)(layer)
    with_regions = rg.value_and_grad(stack(region), (0, 1))(W, X)
    called = rg.value_and_grad(stack(rg.subgraph(layer, inline=0)), (0, 1))(W, X)
    assert bits([with_regions[0], *with_regions[1]]) == bits([called[0], *called[1]])
    plain = rg.value_and_grad(stack(layer), (0, 1))(W, X)
    assert bits([with_regions[0]]) == bits([plain[0]])
    np.testing.assert_allclose(with_regions[1][0], plain[1][0], rtol=1e-13, atol=1e-15)  # w: added in another order
    np.testing.assert_allclose(with_regions[1][1], plain[1][1], rtol=1e-13, atol=1e-15)


@every_policy
def test_higher_derivatives_and_lanes(policy: Any) -> None:
    region = stack(rg.checkpoint(policy=policy)(layer))
    np.testing.assert_allclose(rg.hessian(region, 1)(W, X), rg.hessian(stack(layer), 1)(W, X), rtol=1e-12)
    lanes = np.stack([X, 2 * X])
    np.testing.assert_allclose(
        rg.vmap(rg.grad(region, 1), (None, 0))(W, lanes),
        rg.vmap(rg.grad(stack(layer), 1), (None, 0))(W, lanes),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        rg.grad(lambda x: np.sum(rg.vmap(region, (None, 0))(W, x)))(lanes)[1], rg.grad(region, 1)(W, 2 * X), rtol=1e-12
    )
    rg.check_grads(region, (W, X), order=2)


def kept(policy: Any) -> int:
    """Values that the derivative of a region reads beside its operands."""
    region = rg.checkpoint(policy=policy)(layer)
    graph = rg.trace(lambda w, x: region(w, x) * 1.0)(W, X)
    lin = linearize(graph, [True, True], nan_safe=False)
    return len(set(lin.residuals) - set(lin.forward.inputs))


def test_what_each_policy_keeps() -> None:
    assert kept(p.save_nothing) == 0
    assert kept(p.save_names("hidden")) == 1
    assert kept(p.save_names("another")) == 0
    assert kept(p.save_matmuls) == 2
    assert kept(p.any_of(p.save_names("hidden"), p.save_matmuls)) >= 2
    assert kept(p.save_all) >= 3
    assert kept(p.all_of(p.save_matmuls, p.save_names("hidden"))) == 0


def test_saved_products_are_not_computed_again() -> None:
    source = rg.grad(stack(rg.checkpoint(policy=p.save_matmuls)(layer), 1), 1).source(W, X)
    again = rg.grad(stack(rg.checkpoint(layer), 1), 1).source(W, X)
    assert source.count(" @ ") < again.count(" @ ")
    assert source.count("np.tanh(") == again.count("np.tanh(") == 2


def test_regions_in_regions() -> None:
    inner = rg.checkpoint(layer)

    @rg.checkpoint
    def pair(w: Any, x: Any) -> Any:
        return inner(w, inner(w, x))

    def plain(w: Any, x: Any) -> Any:
        return layer(w, layer(w, x))

    found, expected = rg.grad(stack(pair), (0, 1))(W, X), rg.grad(stack(plain), (0, 1))(W, X)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-13, atol=1e-15)


def test_regions_that_decide_go_every_way() -> None:
    @rg.checkpoint
    def step(x: Any) -> Any:
        if np.sum(x) > 0:
            return np.sin(x) * x
        return np.cos(x) + x**3

    g = rg.grad(lambda x: np.sum(step(step(x))))
    h = rg.grad(lambda x: np.sum(step.__wrapped__(step.__wrapped__(x))))
    for x in (X, -X, np.abs(X), -np.abs(X), X):
        assert bits([g(x)]) == bits([h(x)])


@pytest.mark.parametrize("wrap", [rg.jit, rg.checkpoint, rg.subgraph], ids=["jit", "checkpoint", "subgraph"])
def test_what_is_computed_from_closed_over_values_alone_may_be_written(wrap: Any) -> None:
    def inside(w: Any, s: Any, wrap: Callable[..., Any]) -> Any:
        def inner(s: Any) -> Any:
            v, t = w.copy(), w * 1.5
            v[0] = s
            t += s
            return np.sum(v * v) * s + np.sum(v * t)

        return wrap(inner)(s)

    found = rg.grad(inside, (0, 1))(np.arange(3.0), 2.0, wrap)
    expected = rg.grad(inside, (0, 1))(np.arange(3.0), 2.0, lambda f: f)
    assert bits(found) == bits(expected)


def test_a_named_value_is_the_value_itself() -> None:
    def f(x: Any) -> Any:
        y = 2.0 * x
        z = rg.name(y, "z")
        z[0] = 5.0 * x[1]
        return np.sum(y * y) + np.sum(z)

    x = np.arange(3.0)
    assert float(rg.jit(f)(x)) == float(f(x))
    np.testing.assert_array_equal(rg.grad(f)(x), [0.0, 65.0, 18.0])


RNG = np.random.default_rng(0)


def tossed(x: Any) -> Any:
    scale = RNG.normal()
    y = np.sin(x) * scale
    if RNG.normal() > 0:
        y = y * np.exp(x)
    return y + RNG.normal() * x * y


INSIDE: dict[str, Callable[[Any], Any]] = {
    "checkpoint": rg.checkpoint(tossed),
    "jit": rg.jit(tossed),
    "subgraph": rg.subgraph(tossed),
    "value": lambda x: rg.value_and_grad(tossed)(x)[0],
    "vjp": lambda x: rg.vjp(tossed, x)[0],
    "jvp": lambda x: rg.jvp(tossed, (x,), (1.0,))[0],
    "linearize": lambda x: rg.linearize(tossed, x)[0],
    "callcc": lambda x: rg.callcc(lambda k: tossed(x)),
}


@pytest.mark.parametrize("inner", INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("outer", [rg.jit, rg.grad], ids=["jit", "grad"])
def test_decisions_about_draws_go_every_way_in_the_stream_of_numpy(inner: Any, outer: Any) -> None:
    """They are asked before the region is entered, with the draws up to them."""
    whole = outer(lambda x: inner(x) + 2.0 * x)
    plain = outer(lambda x: tossed(x) + 2.0 * x)
    found = []
    for f in (plain, whole):
        RNG.bit_generator.state = np.random.default_rng(1).bit_generator.state
        found.append([float(f(0.1 * k)) for k in range(12)])
        assert f.cache_info().misses <= 1
    np.testing.assert_allclose(found[1], found[0], rtol=1e-14)


def test_regions_close_over_traced_values() -> None:
    def f(w: Any, x: Any) -> Any:
        @rg.checkpoint
        def inner(v: Any) -> Any:
            return np.tanh(w @ v) * x

        return np.sum(inner(inner(x)))

    def plain(w: Any, x: Any) -> Any:
        v = np.tanh(w @ x) * x
        return np.sum(np.tanh(w @ v) * x)

    for x, y in zip(rg.grad(f, (0, 1))(W, X), rg.grad(plain, (0, 1))(W, X), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-15)


def halved(n: int, x: Any) -> Any:
    """n steps as two halves, each of them a region, down to single steps."""
    if n == 1:
        return np.sin(x) * 1.1
    half = rg.checkpoint(lambda x: halved(n // 2, x))
    return half(half(x))


@pytest.mark.parametrize("levels", [0, 1, 3, 6])
def test_halving_runs_half_of_the_steps_again_for_each_level(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 2**levels
    graph = rg.value_and_grad(lambda x: np.sum(halved(n, x))).graph(X)
    steps = 0
    run_node = evaluation.run_node

    def counted(node: Any, *args: Any) -> Any:
        nonlocal steps
        steps += node.prim.name == "sin"
        return run_node(node, *args)

    monkeypatch.setattr(evaluation, "run_node", counted)
    evaluation.evaluate(graph, [X])
    assert steps == n + (n // 2) * max(levels - 1, 0)  # the second half of a region is only differentiated


def test_halving_takes_logarithmic_memory() -> None:
    x = np.zeros(30_000)  # longer arrays are worked on in blocks, which keep nothing

    def peak(f: Callable[..., Any]) -> float:
        return measured(rg.value_and_grad(f), x) / x.nbytes

    def straight(n: int, x: Any) -> Any:
        for _ in range(n):
            x = np.sin(x) * 1.1
        return x

    assert peak(lambda x: np.sum(straight(64, x))) > 60
    assert peak(lambda x: np.sum(halved(64, x))) < 22
    assert peak(lambda x: np.sum(halved(128, x))) < 25


def test_forward_over_reverse_through_a_region_has_the_same_bits_and_reverse_twice_the_same_value() -> None:
    def ratio(c: Any) -> Any:
        return c / (1 + c * c)

    def second(f: Callable[..., Any]) -> tuple[Any, Any]:
        first = rg.grad(lambda x: np.sum(f(x) ** 2))
        return rg.hessian(lambda x: np.sum(f(x) ** 2))(X), rg.grad(lambda x: np.sum(first(x)))(X)

    plain, region = second(ratio), second(rg.checkpoint(ratio))
    assert bits(plain[0]) == bits(region[0])
    np.testing.assert_allclose(plain[1], region[1], rtol=1e-14, atol=1e-15)


def test_wrong_policies_and_names_are_refused() -> None:
    for wrong in ("save_nothing", 3, ("sometimes",), ("within", 8, p.save_all), p.save_names):
        with pytest.raises(rg.errors.OptionError, match=r"rg\.policies"):
            rg.checkpoint(policy=wrong)
    with pytest.raises(rg.errors.OptionError, match="not a name"):
        rg.name(X, 3)
    with pytest.raises(rg.errors.OptionError, match="not a name"):
        p.save_names("a", 1)
    assert rg.checkpoint(layer)(W, X).shape == (4,)
