"""What must hold of the cotangent of any function value, checked on many programs."""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracer.tree import flatten, map_leaves, unflatten

from ..programs.function_values import PROGRAMS, Program

over_programs = pytest.mark.parametrize("p", PROGRAMS.values(), ids=PROGRAMS.keys())


def random_like(tree: Any, seed: int) -> Any:
    """A cotangent or tangent of the tree's structure, shapes and dtypes."""
    rng = np.random.default_rng(seed)

    def draw(x: Any) -> Any:
        a = np.asarray(x)
        noise = rng.normal(size=a.shape)
        noise = noise + 1j * rng.normal(size=a.shape) if a.dtype.kind == "c" else noise
        return noise.astype(a.dtype)[()]

    return map_leaves(draw, tree)


def inner(ct: Any, x: Any) -> Any:
    return sum(np.sum(np.asarray(c) * y) for c, y in zip(flatten(ct)[0], flatten(x)[0], strict=True))


def tolerance(p: Program) -> float:
    leaves = flatten((p.args, p.captures))[0]
    return 2e-4 if any(np.asarray(x).dtype == np.float32 for x in leaves) else 1e-9


def close(found: Any, expected: Any, rtol: float) -> None:
    (a, one), (b, other) = flatten(found), flatten(expected)
    assert one == other
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * (1.0 + np.max(np.abs(y), initial=0.0)))


def scaled(eps: float, f: Any, g: Any) -> Any:
    def moved(*args: Any) -> Any:
        leaves, spec = flatten(f(*args))
        return unflatten(spec, [y + eps * d for y, d in zip(leaves, flatten(g(*args))[0], strict=True)])

    return moved


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 40


@over_programs
def test_the_value_is_the_plain_one(p: Program) -> None:
    f = p.make(*p.captures)
    for fns in ("pairs", "captures"):
        close(rg.vjp(p.run, f, *p.args, fns=fns)[0], p.run(f, *p.args), tolerance(p))


@over_programs
def test_pairing_is_the_derivative_along_a_function(p: Program) -> None:
    """[H(f + εg) - H(f - εg)] / 2ε, extrapolated once, is the sum over the pairs of ⟨ct, g(x)⟩."""
    f = p.make(*p.captures)
    out, pullback = rg.vjp(p.run, f, *p.args, fns="pairs")
    ct = random_like(out, 1)

    def slope(eps: float) -> Any:
        there, back = (inner(ct, p.run(scaled(e, f, p.direction), *p.args)) for e in (eps, -eps))
        return (there - back) / (2 * eps)

    h = 3e-5 if tolerance(p) < 1e-6 else 2e-2
    expected = (4 * slope(h) - slope(2 * h)) / 3
    found = pullback(ct)[0].pair(p.direction)
    np.testing.assert_allclose(np.real(found), np.real(expected), rtol=max(1e-7, tolerance(p) * 10), atol=1e-8)


@over_programs
def test_pulled_into_the_captures_it_is_their_gradient(p: Program) -> None:
    f = p.make(*p.captures)
    out, pullback = rg.vjp(p.run, f, *p.args, fns="pairs")
    ct = random_like(out, 2)
    df, *rest = pullback(ct)
    captured, *same = rg.vjp(p.run, f, *p.args)[1](ct)
    assert set(captured) == set(rg.functions.fn(f).captures)
    close(df.pull_into(f), captured, tolerance(p) * 10)
    close(rest, same, tolerance(p) * 10)


@over_programs
def test_captures_have_the_gradient_of_arguments(p: Program) -> None:
    """The gradient of a capture is that of the same number, passed as an argument."""
    names = list(inspect.signature(p.make).parameters)
    out, pullback = rg.vjp(lambda captures, *args: p.run(p.make(*captures), *args), p.captures, *p.args)
    ct = random_like(out, 3)
    captured = rg.vjp(p.run, p.make(*p.captures), *p.args)[1](ct)[0]
    close([captured[n] for n in names], list(pullback(ct)[0]), tolerance(p) * 10)


@over_programs
def test_reverse_is_dual_to_forward(p: Program) -> None:
    """⟨ct, dH(g, v)⟩ = dF.pair(g) + ⟨da, v⟩."""
    f = p.make(*p.captures)
    out, pullback = rg.vjp(p.run, f, *p.args, fns="pairs")
    ct, moves = random_like(out, 4), random_like(p.args, 5)
    same, tangent = rg.jvp(p.run, (f, *p.args), (p.direction, *moves))
    close(same, out, tolerance(p))
    df, *rest = pullback(ct)
    found = df.pair(p.direction) + sum(inner(g, v) for g, v in zip(rest, moves, strict=True))
    np.testing.assert_allclose(np.real(found), np.real(inner(ct, tangent)), rtol=tolerance(p) * 10, atol=1e-9)


@over_programs
def test_pulling_back_is_additive(p: Program) -> None:
    f = p.make(*p.captures)
    out, pullback = rg.vjp(p.run, f, *p.args, fns="pairs")
    one, two = random_like(out, 6), random_like(out, 7)
    both = map_leaves(lambda x: x, one)
    leaves, spec = flatten(both)
    both = unflatten(spec, [x + y for x, y in zip(leaves, flatten(two)[0], strict=True)])
    apart, together = pullback(one)[0] + pullback(two)[0], pullback(both)[0]
    rtol = tolerance(p) * 10
    close(apart.pull_into(f), together.pull_into(f), rtol)
    assert [x for x, _ in flattened(apart.pairs[: len(together.pairs)])] == [x for x, _ in flattened(together.pairs)]
    for (_, a), (_, b), (_, c) in zip(
        together.pairs, apart.pairs[: len(together.pairs)], apart.pairs[len(together.pairs) :], strict=True
    ):
        close(a, unflatten(flatten(a)[1], [x + y for x, y in zip(flatten(b)[0], flatten(c)[0], strict=True)]), rtol)


def flattened(pairs: Any) -> list[Any]:
    return [([np.asarray(x).tolist() for x in flatten(x)[0]], ct) for x, ct in pairs]


@over_programs
def test_compiled_gradients_agree(p: Program) -> None:
    """``grad`` of a scalar gives what ``vjp`` gives, at the first call and at the next, of an equal function."""
    f = p.make(*p.captures)

    def loss(f: Any, *args: Any) -> Any:
        out = p.run(f, *args)
        return sum(np.sum(np.real(x)) for x in flatten(out)[0])

    everything = tuple(range(1 + len(p.args)))
    df, *rest = rg.vjp(loss, f, *p.args, fns="pairs")[1](1.0)
    captured = rg.vjp(loss, f, *p.args)[1](1.0)
    pairs, captures = rg.grad(loss, everything, fns="pairs"), rg.grad(loss, everything)
    rtol = tolerance(p) * 10
    for again in (f, p.make(*p.captures)):
        dg, *others = pairs(again, *p.args)
        close(dg.pull_into(f), df.pull_into(f), rtol)
        close(others, rest, rtol)
        close(list(captures(again, *p.args)), list(captured), rtol)
    assert pairs.cache_info().misses == captures.cache_info().misses == 1


def names_in(code: CodeType) -> set[str]:
    """The global names of a function and of those in it."""
    inner = (names_in(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)


PLAIN = {name: p for name, p in PROGRAMS.items() if "rg" not in names_in(p.run.__code__)}


@pytest.mark.parametrize("p", PLAIN.values(), ids=PLAIN.keys())
def test_each_pair_is_the_derivative_in_the_result_of_one_call(p: Program) -> None:
    """Plain Python runs the program with one call's result moved: that call's input, and its cotangent."""
    f = p.make(*p.captures)
    out, pullback = rg.vjp(p.run, f, *p.args, fns="pairs")
    ct = random_like(out, 8)
    pairs = pullback(ct)[0].pairs
    rtol = 1e-5 if tolerance(p) < 1e-6 else 3e-2
    step = 1e-6 if tolerance(p) < 1e-6 else 1e-2

    def moved(k: int, eps: float) -> tuple[Any, list[Any], Any]:
        inputs: list[Any] = []
        moves: list[Any] = []

        def watched(*args: Any) -> Any:
            inputs.append(map_leaves(np.array, args[0] if len(args) == 1 else args))
            y = f(*args)
            if len(inputs) - 1 != k:
                return y
            moves.append(random_like(y, k))
            leaves, spec = flatten(y)
            return unflatten(spec, [v + eps * d for v, d in zip(leaves, flatten(moves[0])[0], strict=True)])

        found = p.run(watched, *map(np.array, p.args))
        return found, inputs, moves[0] if moves else None

    calls = moved(-1, 0.0)[1]
    assert len(pairs) == len(calls)
    for k, (x, call_ct) in enumerate(pairs):
        close(map_leaves(np.asarray, x), calls[k], tolerance(p))
        (there, ahead, move), (back, behind, _) = moved(k, step), moved(k, -step)
        if len(ahead) != len(calls) or len(behind) != len(calls):  # the move decides otherwise: no slope is there
            continue
        slope = (inner(ct, there) - inner(ct, back)) / (2 * step)
        np.testing.assert_allclose(np.real(inner(call_ct, move)), np.real(slope), rtol=rtol, atol=rtol)
