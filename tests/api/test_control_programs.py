"""Programs of choices and loops: values as in plain Python, derivatives as differences and as each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.programs.control import OURS, PLAIN, PROGRAMS, Program
from tests.support import values

EXACT = 1e-11
Function = Callable[..., Any]
linear = pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")  # no second derivative
over_programs = pytest.mark.parametrize("program", PROGRAMS, ids=str)
over_cases = pytest.mark.parametrize(
    ("program", "args"), [pytest.param(p, args, id=f"{p}-{k}") for p in PROGRAMS for k, args in enumerate(p.inputs)]
)


def differentiable(args: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(i for i, x in enumerate(args) if not isinstance(x, int) and np.asarray(x).dtype.kind == "f")


def in_random_order(program: Program) -> list[tuple[Any, ...]]:
    """Each input, and each again after the others."""
    rng = np.random.default_rng(len(program.name))
    order = [*range(len(program.inputs)), *range(len(program.inputs))]
    return [program.inputs[i] for i in rng.permutation(order)]


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 50
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS)


@over_programs
def test_values_are_those_of_plain_python(program: Program) -> None:
    """By itself, compiled, and compiled again: one signature is compiled once, whatever branches its inputs take."""
    plain, f = program.with_(PLAIN), program.with_(OURS)
    compiled = rg.jit(f)
    with np.errstate(all="ignore"):
        for args in in_random_order(program):
            values.assert_close(compiled(*args), plain(*args), EXACT)
    for args in program.inputs if not program.indexed else ():
        values.assert_close(f(*args), plain(*args), EXACT)
    shapes = {tuple(map(np.shape, args)) for args in program.inputs}
    signatures = {tuple((np.shape(x), x if isinstance(x, int) else None) for x in args) for args in program.inputs}
    assert len(shapes) <= compiled.cache_info().misses <= len(signatures)  # ints that only enter arithmetic are traced


@over_programs
def test_gradients_are_limits_of_differences(program: Program) -> None:
    """Where there is a jump nearby, they are those of the program in plain Python."""
    f, plain = program.with_(OURS), program.with_(PLAIN)
    gradient = None
    for args in in_random_order(program):
        wrt = differentiable(args)
        gradient = gradient or rg.grad(f, argnums=wrt)
        found = gradient(*args)
        for i, g in zip(wrt, found, strict=True):
            x = np.asarray(args[i])
            assert np.shape(g) == x.shape
            if not program.smooth:
                values.assert_close(g, rg.grad(plain, argnums=i)(*args), EXACT)
                continue
            for at in np.ndindex(x.shape):
                values.assert_close(g[at] if at else g, difference(plain, args, i, at), 1e-6)


def difference(f: Any, args: tuple[Any, ...], i: int, at: tuple[int, ...], h: float = 1e-4) -> Any:
    """The derivative of a function of plain Python along one element, by differences of fourth order."""

    def moved(k: float) -> Any:
        x = np.array(args[i], dtype=float)
        x[at] += k * h
        return f(*args[:i], x if x.ndim else float(x), *args[i + 1 :])

    return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * h)


def over_its_numbers(f: Function, args: tuple[Any, ...]) -> tuple[Function, list[Any]]:
    """The function of its floating-point arguments alone, and those."""
    wrt = differentiable(args)

    def g(*xs: Any) -> Any:
        given = list(args)
        for i, x in zip(wrt, xs, strict=True):
            given[i] = x
        return f(*given)

    return g, [np.asarray(args[i])[()] for i in wrt]


def along(f: Function, u: Sequence[Any]) -> Function:
    """The derivative along a direction, by forward mode."""
    return lambda *xs: rg.jvp(f, xs, tuple(u))[1]


def directional(f: Function, u: Sequence[Any]) -> Function:
    """The derivative along a direction, by reverse mode."""
    every = rg.grad(f, argnums=tuple(range(len(u))))
    return lambda *xs: sum(np.sum(d * w) for d, w in zip(every(*xs), u, strict=True))


def slope(f: Function, at: Sequence[Any], v: Sequence[Any], h: float = 1e-4) -> Any:
    """The derivative along a direction, by differences of fourth order."""

    def moved(k: float) -> Any:
        return f(*(x + k * h * w for x, w in zip(at, v, strict=True)))

    return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * h)


@pytest.mark.sampled(3)
@linear
@over_cases
def test_modes_agree_to_second_order(program: Program, args: tuple[Any, ...]) -> None:
    g, at = over_its_numbers(program.with_(OURS), args)
    rng = np.random.default_rng(1)
    u, v = ([rng.uniform(-1, 1, np.shape(x)) for x in at] for _ in range(2))
    values.assert_close(along(g, u)(*at), directional(g, u)(*at), EXACT)
    found = [second(first(g, u), v)(*at) for first in (along, directional) for second in (along, directional)]
    for other in found[1:]:
        values.assert_close(other, found[0], 1e-9)
    if program.smooth:
        values.assert_close(found[0], slope(directional(g, u), at, v), 1e-6)


def lanes_of(program: Program) -> list[list[tuple[Any, ...]]]:
    """Inputs of equal shapes together, and near each of them another."""
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for args in program.inputs:
        found = tuple(np.asarray(x)[()] for x in args)
        near = tuple(x * 0.9 if x.dtype.kind == "f" else x for x in found)
        groups.setdefault(tuple((x.shape, x.dtype) for x in found), []).extend((found, near))
    return list(groups.values())


@pytest.mark.sampled(2)
@linear
@pytest.mark.parametrize(
    ("program", "group"),
    [pytest.param(p, g, id=f"{p}-{k}") for p in PROGRAMS for k, g in enumerate(lanes_of(p))],
)
def test_lanes_are_single_calls(program: Program, group: list[tuple[Any, ...]]) -> None:
    """Lanes that take different branches and numbers of steps, of the function and of its derivatives."""
    columns = [np.stack(column) for column in zip(*group, strict=True)]
    f = rg.jit(program.with_(OURS))
    wrt = differentiable(group[0])
    gradient = rg.grad(f, argnums=wrt)
    second = rg.grad(lambda *args: sum(np.sum(g) for g in gradient(*args)), argnums=wrt)
    values.assert_close(rg.vmap(f)(*columns), np.stack([f(*args) for args in group]), 1e-9)
    for function in (gradient, second):
        values.assert_close(rg.vmap(function)(*columns), in_turn(function, group), 1e-9)
    lanes = rg.grad(lambda *args: np.sum(np.sin(rg.vmap(f)(*args))), argnums=wrt)(*columns)
    values.assert_close(lanes, in_turn(rg.grad(lambda *args: np.sin(f(*args)), argnums=wrt), group), 1e-9)


def in_turn(function: Function, group: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The tuples that a function gives for each input, stacked."""
    return tuple(np.stack(column) for column in zip(*(function(*args) for args in group), strict=True))
