"""Slices between traced ints: for every int what NumPy gives, compiled once where the length is known."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ControlFlowError

Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).standard_normal(12)
A = np.random.default_rng(1).standard_normal((7, 5))
MASK = np.array([True, False, True, True, False])


def added(x: Array, i: int) -> Array:
    y = x * 1.0
    y[i : i + 3] += y[2:5]
    return y


def overlapping(x: Array, i: int) -> Array:
    y = x * 1.0
    part = y[i : i + 4]
    part[1:] *= part[:-1]
    y[i + 1 : i + 3] = part[2:]
    part -= 1.0
    return np.concatenate([y, part])


def seen_later(x: Array, i: int) -> Array:
    y = np.zeros(12)
    part = y[i : i + 3]
    y += x
    y[5] = 2.0 * x[0]
    return part * x[i : i + 3]


def through_views(x: Array, i: int) -> Array:
    y = np.zeros((3, 12))
    y.T[i : i + 2, 1] = x[i : i + 2]
    y[:, i + 1 : i + 3][:, ::-1][0] += x[0]
    return y


def backwards(x: Array, i: int) -> Array:
    y = x.copy()
    y[i + 5 : i : -2] *= x[i : i + 3]
    return y * y[::-1]


def counted(x: Array, i: int) -> Array:
    total = 0.0
    for k in range(3):
        total = total + (k + 1) * x[i + k : i + k + 2]
    return total


def halves(x: Array, i: int) -> Array:
    k = i // 2
    return x[k * 3 : 3 * (k + 1)] * x[3 + 3 * k - 3 : k * 4 - k + 3]


def of_rows(x: Array, i: int) -> Array:
    y = np.zeros((4, 12))
    y[i % 3 : i % 3 + 2, i : i + 5] = x[i : i + 5]
    return y.sum(axis=0) * x


def lists(x: Array, i: int) -> Array:
    y = np.outer(x[:5], x)
    y[[0, 2], i : i + 3] *= 2.0
    return y[MASK, i : i + 3] * y[..., i : i + 3][1:4]


def cut(x: Array, i: int) -> Array:
    return x[max(i, 0) : min(i + 3, 12)] ** 2


VECTORS: dict[str, Callable[[Array, int], Array]] = {
    "a batch": lambda x, i: x[i * 4 : (i + 1) * 4] ** 2,
    "a batch of the remainder": lambda x, i: x[i % 4 * 3 : (i % 4 + 1) * 3] ** 2,
    "a batch by another distance": lambda x, i: x[i * 5 : (i + 1) * 5] ** 2,
    "a batch from behind": lambda x, i: x[-(i + 1) * 3 : -i * 3] ** 2,
    "steps": lambda x, i: x[i : i + 7 : 3] ** 3,
    "steps back": lambda x, i: x[i + 5 : i : -2] ** 3,
    "one element": lambda x, i: x[i : i + 1] ** 3,
    "all elements": lambda x, i: x[i : i + 12] ** 3,
    "more than all": lambda x, i: x[i : i + 13] ** 3,
    "nothing": lambda x, i: x[i : i - 2] ** 3,
    "a bound alone": lambda x, i: x[i:] ** 2,
    "another bound alone": lambda x, i: x[: i + 1] ** 2,
    "a distance that varies": lambda x, i: x[i : 2 * i + 1] ** 2,
    "a step that varies": lambda x, i: x[i : i + 6 : i % 2 + 1] ** 2,
    "a new axis": lambda x, i: x[None, i : i + 3, None] ** 2,
    "of a slice": lambda x, i: x[2:10][i : i + 3][::2] ** 2,
    "of the result of another": lambda x, i: x[i : i + 6][i : i + 2] ** 2,
    "written": added,
    "overlapping": overlapping,
    "seen later": seen_later,
    "through views": through_views,
    "backwards": backwards,
    "in a loop": counted,
    "halves": halves,
    "of rows": of_rows,
    "lists and masks": lists,
    "cut by hand": cut,
}
TABLES: dict[str, Callable[[Array, int], Array]] = {
    "rows": lambda x, i: x[i : i + 2] ** 2,
    "columns": lambda x, i: x[:, i : i + 2] ** 2,
    "columns by an ellipsis": lambda x, i: x[..., i : i + 2] ** 2,
    "a part of a row": lambda x, i: x[i % 7, i : i + 2] ** 2,
    "a block": lambda x, i: x[i : i + 2, i + 1 : i + 3] ** 2,
    "a block, turned": lambda x, i: x[i + 2 : i : -1, i + 1 : i + 3].T ** 2,
    "chosen rows": lambda x, i: x[[0, 2, 0], i : i + 2] ** 2,
    "chosen apart": lambda x, i: np.stack([x, x])[[0, 1], i : i + 2, [1, 3]] ** 2,
    "before a mask": lambda x, i: x[i : i + 2, MASK] ** 2,
    "after a mask": lambda x, i: x[None, x[:, 0] > 0, ..., i : i + 2] ** 2,
    "too many": lambda x, i: x[0, 0, i : i + 2],
    "of a number": lambda x, i: x[0, 0][i : i + 2],
}
ORDERS = {
    "up": [*range(-3, 14)],
    "down": [*range(13, -4, -1)],
    "inside, then out": [1, 2, 0, 3, 1, 11, 2, -1, 12, 0, -2],
    "outside, then in": [40, -40, 9, 1, 2, 40, 3, -40, 0],
}


def outcome(f: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """The bits of a result, or the type of the exception."""
    try:
        found = f(*args)
    except Exception as fault:  # noqa: BLE001 - the types are compared
        return (type(fault),)
    return found.shape, found.dtype, found.tobytes()


CASES = [
    *((f"{name}, {order}", f, X, ORDERS[order]) for (name, f), order in itertools.product(VECTORS.items(), ORDERS)),
    *((f"{name}, {order}", f, A, ORDERS[order]) for (name, f), order in itertools.product(TABLES.items(), ORDERS)),
]
every_case = pytest.mark.parametrize(("f", "x", "order"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])


@pytest.mark.sampled(5)
@every_case
def test_every_int_gives_numpys_bits(f: Callable[..., Array], x: Array, order: list[int]) -> None:
    compiled = rg.jit(f)
    for i in order:
        assert outcome(compiled, x, i) == outcome(f, x, i), i
        assert outcome(compiled, x, np.int64(i)) == outcome(f, x, np.int64(i)), i


@pytest.mark.costly
@pytest.mark.sampled(11)
@every_case
def test_gradients_are_those_for_known_ints(f: Callable[..., Array], x: Array, order: list[int]) -> None:
    def number(x: Array, i: int) -> Any:
        return np.sum(np.sin(f(x, i)) * 2.0)

    gradient, forward = rg.grad(number), rg.jit(lambda x, i: rg.jvp(lambda x: number(x, i), (x,), (np.cos(x),))[1])
    second = rg.grad(lambda x, i: np.sum(np.cos(x) * rg.grad(number)(x, i)))
    for i in order[:9]:
        known = rg.grad(lambda x, i=i: number(x, i))
        if outcome(known, x) != outcome(gradient, x, i):
            np.testing.assert_allclose(gradient(x, i), known(x), rtol=1e-14, atol=1e-15)
        if len(outcome(known, x)) > 1:
            np.testing.assert_allclose(forward(x, i), np.sum(np.cos(x) * known(x)), rtol=1e-12, atol=1e-13)
            expected = rg.grad(lambda x, known=known: np.sum(np.cos(x) * known(x)))(x)
            np.testing.assert_allclose(second(x, i), expected, rtol=1e-12, atol=1e-13)


NUMBERS = ["i", "j", "2*i", "i+1", "i*2-1", "3-i", "i//2", "i%3", "(i%3)*2", "j+i", "j-1", "-i", "i*j", "min(i, 4)"]
STATEMENTS = [
    "t = {a}[{b}]",
    "u = {w}[{b}]",
    "{w}[{b}] += x[3]",
    "{w}[{b}] *= y[0]",
    "{w}[{b}] = t.sum()",
    "{w}[{b}] = {a}[{c}]",
    "y = y + {a}[{b}].sum()",
    "z += y[2]",
    "t = np.sin({a}[{b}])",
    "q[{b}] *= x[2]",
    "q[:, {b}] += y[1]",
    "t = q[{b}, 4]",
    "t = q[{b}, {c}].sum(axis=0)",
    "q[{b}, {c}] = z[0]",
    "t = q[[0, 3, 3], {b}].T[0]",
    "{w}.reshape(2, 5)[:, {b}] -= y[2]",
    "{w}[::-1][{b}] = {w}[2] * 1.0",
]


def drawn(seed: int) -> Callable[[Array, int, int], Array]:
    """A function of reads and writes by slices whose bounds are made of two ints."""
    rng = random.Random(seed)

    def bounds() -> str:
        s, n, step = rng.choice(NUMBERS), rng.randint(1, 5), rng.choice([1, 2, 3])
        forms = [f"{s}:{s}+{n}", f"({s})*{n}:({s}+1)*{n}", f"{s}:({s})+{n}:{step}", f"({s})+{n}:{s}:{-step}"]
        others = [f"({s})-{n}:{s}", f"{s}:", f":{s}", f"{s}:{rng.choice(NUMBERS)}", f"{step}:{step + n}"]
        return rng.choice(forms if rng.random() < 0.7 else others)

    lines = ["y, z, t, u = x * 1.0, np.zeros(10), x[:3], x[4:6]", "q = np.outer(x, x[:6])"]
    for _ in range(rng.randint(2, 6)):
        names = {"a": rng.choice("xyztu"), "w": rng.choice("yz"), "b": bounds(), "c": bounds()}
        lines.append(rng.choice(STATEMENTS).format(**names))
    lines.append("return np.concatenate([np.ravel(a) for a in (y, z, t, u, q)])")
    space: dict[str, Any] = {"np": np}
    exec("def f(x, i, j):\n" + "".join(f"    {line}\n" for line in lines), space)
    return space["f"]  # type: ignore[no-any-return]  # it is a function


@pytest.mark.sampled(16)
@pytest.mark.parametrize("seed", range(160))
def test_drawn_functions_are_numpys(seed: int) -> None:
    f, rng = drawn(seed), np.random.default_rng(seed)
    x, along = rng.standard_normal((2, 10))

    def number(x: Array, i: int, j: int) -> Any:
        found = f(x, i, j)
        return np.sum(np.cos(found) * np.arange(1.0, found.size + 1))

    compiled, slope = rg.jit(f), rg.grad(number)
    for i, j in rng.choice([0, 1, 2, 2, 3, 4, 5, 7, 9, 12, -1], (8, 2)).tolist():
        expected = outcome(f, x, i, j)
        assert outcome(compiled, x, i, j) == expected, (i, j)
        if len(expected) > 1:
            ends = [number(x + h * along, i, j) for h in (1e-5, -1e-5)]
            np.testing.assert_allclose(np.sum(slope(x, i, j) * along), (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-3)


def of_batches(n: int, count: int) -> Any:
    """The gradient of a loss that chooses its batch by the step; its code is shared with no other."""
    space: dict[str, Any] = {"np": np, "n": n, "count": count}
    exec(
        "def batch(x, w, i):\n"
        "    k = i % count\n"
        "    chosen = slice(k * n, (k + 1) * n)\n"
        "    return np.sum((x[chosen] @ w) ** 2)\n",
        space,
    )
    return rg.grad(space["batch"], argnums=1)


def test_batches_are_compiled_once() -> None:
    data, w = np.arange(40.0).reshape(20, 2), np.array([1.0, 2.0])
    slope = of_batches(4, 5)
    for i in range(25):
        part = data[i % 5 * 4 : (i % 5 + 1) * 4]
        np.testing.assert_allclose(slope(data, w, i), 2.0 * part.T @ (part @ w), rtol=1e-14)
    assert slope.cache_info().misses == 2  # for the first int, and for all others
    assert "[v1:v1 + 4]" in slope.source(data, w, 3)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_a_last_batch_that_is_shorter_is_a_path_of_its_own(count: int) -> None:
    data, w = np.arange(8.0 * count - 4).reshape(-1, 2), np.array([1.0, 2.0])
    slope = of_batches(4, count)
    for i in range(4 * count):
        part = data[i % count * 4 : (i % count + 1) * 4]
        np.testing.assert_allclose(slope(data, w, i), 2.0 * part.T @ (part @ w), rtol=1e-14)
    assert slope.cache_info().misses <= 3


def test_ints_of_numpys_that_wrap_around_are_numpys() -> None:
    top = np.iinfo(np.int64).max

    def f(x: Array, i: Any) -> Array:
        return x[i * 2 : (i + 1) * 2]

    compiled = rg.jit(f)
    with np.errstate(over="ignore"):
        for i in (0, 1, 2, top // 2, top // 2 + 1, top, -top, -top - 1, top // 2 + 2, 3, -(2**62), 2**62 + 1):
            i64 = np.int64(i)
            assert outcome(compiled, X, i64) == outcome(f, X, i64), i
            assert outcome(compiled, X, i) == outcome(f, X, i), i


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64, np.int64])
def test_ints_of_other_types(dtype: Any) -> None:
    def f(x: Array, i: Any) -> Array:
        return x[i : i + 3] * 2.0

    compiled, x = rg.jit(f), np.arange(300.0)
    with np.errstate(over="ignore"):
        for i in (0, 5, 7, 100, 125, 126, 127):
            assert outcome(compiled, x, dtype(i)) == outcome(f, x, dtype(i)), i
            assert outcome(compiled, x, np.array(i, dtype)) == outcome(f, x, np.array(i, dtype)), i


@pytest.mark.parametrize("name", ["a batch", "steps", "steps back", "written", "overlapping", "of rows", "halves"])
@pytest.mark.parametrize("axes", [(None, 0), (0, 0), (0, None)], ids=str)
def test_lanes_are_a_loop(name: str, axes: tuple[int | None, ...]) -> None:
    f = VECTORS[name]
    rows, ints = np.stack([X, X[::-1], 2.0 * X]), np.array([2, 0, 1])
    x, i = X if axes[0] is None else rows, 2 if axes[1] is None else ints
    expected = [f(X if axes[0] is None else rows[k], 2 if axes[1] is None else int(ints[k])) for k in range(3)]
    np.testing.assert_array_equal(rg.vmap(f, in_axes=axes)(x, i), np.stack(expected))
    slopes = rg.vmap(rg.grad(lambda x, i: np.sum(f(x, i) ** 2)), in_axes=axes)(x, i)
    for k in range(3):
        row, at = X if axes[0] is None else rows[k], 2 if axes[1] is None else int(ints[k])
        np.testing.assert_allclose(slopes[k], rg.grad(lambda x, at=at: np.sum(f(x, at) ** 2))(row), rtol=1e-14)


def test_lanes_of_which_some_are_cut_are_refused() -> None:
    f = VECTORS["steps"]
    with pytest.raises(ControlFlowError, match="batch elements"):
        rg.vmap(f, in_axes=(None, 0))(X, np.array([0, 9]))


def test_in_loops_an_array_of_positions_is_the_remedy() -> None:
    def total(x: Array, part: Callable[[Array, Any], Array]) -> Any:
        return rg.fori_loop(0, 9, lambda i, found: found + i * np.sum(part(x, i) ** 2), 0.0)

    with pytest.raises(ControlFlowError, match=r"np.arange\(0, 3, 1\)"):
        rg.jit(lambda x: total(x, lambda x, i: x[i : i + 3]))(X)
    found = rg.jit(lambda x: total(x, lambda x, i: x[i + np.arange(0, 3, 1)]))(X)
    np.testing.assert_allclose(found, sum(i * np.sum(X[i : i + 3] ** 2) for i in range(9)), rtol=1e-14)


def test_a_number_from_outside_of_a_loop() -> None:
    def f(x: Array, k: int) -> Any:
        return rg.fori_loop(0, 3, lambda i, found: found * i + np.sum(x[2 * k : 2 * k + 3]), 0.0)

    compiled = rg.jit(f)
    for k in range(7):
        expected = 0.0
        for i in range(3):
            expected = expected * i + np.sum(X[2 * k : 2 * k + 3])
        np.testing.assert_allclose(compiled(X, k), expected, rtol=1e-14)


def test_in_a_function_inside() -> None:
    def outer(x: Array, i: int) -> Any:
        start = i * 3
        inner = rg.grad(lambda x: np.sum(x[start : start + 3] ** 3))
        return inner(x) + rg.jit(lambda x, k: x[k : k + 2].sum() * x)(x, start)

    def plain(x: Array, i: int) -> Array:
        slope = np.zeros(12)
        slope[3 * i : 3 * i + 3] = 3 * x[3 * i : 3 * i + 3] ** 2
        return slope + x[3 * i : 3 * i + 2].sum() * x

    compiled = rg.jit(outer)
    for i in (0, 1, 2, 3, 4, 1, -1):
        np.testing.assert_allclose(compiled(X, i), plain(X, i), rtol=1e-13, atol=1e-15)


def test_an_array_outside_is_not_written() -> None:
    kept = X.copy()

    def f(x: Array, i: int) -> Array:
        x = x.copy()
        x[i : i + 3] = 0.0
        return x

    compiled = rg.jit(f)
    for i in (0, 1, 2, 5):
        assert np.all(compiled(X, i)[i : i + 3] == 0)
    np.testing.assert_array_equal(X, kept)
