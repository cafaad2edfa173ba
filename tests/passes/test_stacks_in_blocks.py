"""Products of stacks of matrices run on few of them at a time: where, with which bits, and how little memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.parser import parse
from retrograd.passes import stacks_in_blocks
from retrograd.passes.stacks_in_blocks import with_stacks_in_blocks
from tests.support.blocks import leaves, loops, normals, same_bits_in_all_ways, slopes
from tests.support.memory import measured, one_thread

LARGE = 1 << 15


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops over small stacks."""
    for name, value in {"LARGE": LARGE, "AGAIN": LARGE, "AGAIN_SHORT": LARGE, "BLOCKS": (1 << 12,)}.items():
        monkeypatch.setattr(stacks_in_blocks, name, value)


def whole(f: Callable[..., Any], make: Callable[..., Any], *args: Any) -> list[Any]:
    """What a transform of a function gives without loops."""

    def anew(*args: Any) -> Any:  # which is compiled anew
        return f(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacks_in_blocks, "LARGE", 1 << 62)
        made = make(anew)
        found = leaves(made(*args))
        assert not hasattr(made, "at") or loops(made, *args) == 0
    return found


def same(f: Callable[..., Any], make: Callable[..., Any], *args: Any, number: int | None = None) -> None:
    """The bits of a transform, with loops and without."""
    looped = make(f)
    with np.errstate(all="ignore"):
        found, expected = leaves(looped(*args)), whole(f, make, *args)
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if number is not None:
        assert loops(looped, *args) == number


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ np.swapaxes(k, 1, 2) / 2.0
    raised = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return np.mean((raised / np.sum(raised, axis=-1, keepdims=True) @ v) ** 2)


def mixture(alpha: Any, mu: Any, factors: Any, x: Any) -> Any:
    """Waits for all components between its products, and subtracts means from points in both loops."""
    scaled = (x - mu[:, None, :]) @ np.swapaxes(factors, 1, 2)
    scores = alpha[:, None] - 0.5 * np.sum(scaled**2, axis=2)
    top = np.max(scores, axis=0)
    return np.sum(np.log(np.sum(np.exp(scores - top), axis=0)) + top)


def chain(a: Any, x: Any) -> Any:
    for _ in range(3):
        x = np.tanh(a @ x)
    return np.sum(x * x)


def results(a: Any, x: Any) -> Any:
    """Stacks that are results, and views of them."""
    y = np.tanh(a @ x)
    z = np.exp(np.sin(np.tanh(np.cos(y @ x) * 0.5) @ y))
    return np.swapaxes(z, 1, 2), z.reshape(-1), np.sum(y[:, 1])


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [4, 8, 12, 25])
def test_programs(n: int, dtype: str) -> None:
    q, k, v = normals(*3 * [(n, 50, 8)], dtype=dtype)
    same(attention, slopes(3), q, k, v, number=1)
    same(attention, rg.jit, q, k, v)
    alpha, mu, factors, x = normals((n,), (n, 4), (n, 4, 4), (600, 4), dtype=dtype)
    same(mixture, slopes(4), alpha, mu, factors, x, number=2 if n > 4 else None)
    same(mixture, slopes(3), alpha, mu, factors, x)
    a, y = normals((n, 60, 60), (n, 60, 60), dtype=dtype)
    same(chain, slopes(2), a, y, number=1 if n > 4 else None)
    same(results, rg.jit, a * 0.1, y * 0.1, number=1 if n > 4 else None)


def test_few_or_short_steps_and_little_gain() -> None:
    for n, number in ((3, 0), (4, 1), (7, 1), (13, 1)):
        args = normals(*3 * [(n, 60, 8)])
        same(attention, slopes(3), *args, number=number)
    args = normals(*3 * [(1009, 6, 3)])  # of which one step is too short, and no other number divides them
    same(attention, slopes(3), *args, number=0)
    same(attention, slopes(3), *normals(*3 * [(1000, 6, 3)]), number=1)
    a, x = normals((8, 40, 40), (8, 40, 40))
    same(lambda a, x: a @ x, rg.jit, a, x, number=0)
    same(lambda a, x: np.sum(np.tanh(a * x)), slopes(2), a, x, number=0)  # without a product


@pytest.mark.parametrize(("name", "n", "d"), [("AGAIN", 600, 4), ("AGAIN_SHORT", 60, 40)])
def test_what_is_read_again_is_computed_again_only_if_it_is_large(
    name: str, n: int, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of 4 columns are long, since `narrow_stacks` transposes them."""
    alpha, mu, factors, x = normals((8,), (8, d), (8, d, d), (n, d))
    differences = (8 * n * d) * 8
    for limit, loops_then in ((differences, 2), (differences + 1, 0)):
        monkeypatch.setattr(stacks_in_blocks, name, limit)

        def scaled(*args: Any, k: int = loops_then) -> Any:  # which is compiled anew for each limit
            return mixture(*args) * k

        same(scaled, slopes(3), alpha, mu, factors, x, number=loops_then)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacks_in_blocks, name, differences)
        graph = slopes(3)(mixture).at(alpha, mu, factors, x).graph
    bodies = [body for node in graph.nodes for _, body in node.graphs]
    assert len(bodies) == 2
    assert all("sub" in {node.prim.name for node in body.nodes} for body in bodies)


def test_special_values_and_other_dtypes() -> None:
    q, k, v = normals(*3 * [(8, 50, 8)])
    for special in (np.nan, np.inf, -np.inf, -0.0, 1e308):
        z = q.copy()
        z[3, 17, 2] = special
        same(attention, slopes(3), z, k, v)
    for dtype in (np.complex128, np.int64):
        f = rg.jit(lambda a, x: np.abs(a @ x @ a) ** 2 + 1)
        args = [(3 * x).astype(dtype) for x in normals((8, 30, 30), (8, 30, 30))]
        assert loops(f, *args) == 0
        np.testing.assert_allclose(f(*args), np.abs(args[0] @ args[1] @ args[0]) ** 2 + 1)


def test_orders_in_memory() -> None:
    """Sums of arrays in other orders may round differently, as NumPy adds them in the order of memory."""
    q, k, v = normals(*3 * [(8, 50, 8)])
    given = (np.asfortranarray(q), k[::-1], np.repeat(v, 2, axis=1)[:, ::2])
    found = leaves(slopes(3)(attention)(*given))
    expected = leaves(slopes(3)(attention)(*map(np.ascontiguousarray, given)))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


def test_maps_and_other_transforms() -> None:
    q, k, v = normals(*3 * [(8, 40, 6)])

    def loss(q: Any) -> Any:
        return attention(q, k, v)

    same(loss, lambda f: rg.grad(lambda q: np.sum(rg.grad(f)(q) ** 2)), q)
    same(loss, lambda f: lambda q: rg.vjp(f, q)[1](2.0), q)
    same(loss, lambda f: lambda q: rg.jvp(f, (q,), (np.cos(q),)), q)
    same(loss, lambda f: rg.vmap(rg.grad(f)), np.stack([q, 2 * q]))
    same(loss, lambda f: rg.grad(lambda q: f(q) + rg.checkpoint(f)(2 * q)), q)
    same(loss, lambda f: lambda q: rg.scan(lambda q, _: (q - rg.grad(f)(q), None), q, None, length=3)[0], q)
    rg.check_grads(loss, (q,), order=2)


def test_one_and_several_threads_and_budgets_give_the_same_bits() -> None:
    args = normals((12,), (12, 4), (12, 4, 4), (600, 4))
    free = same_bits_in_all_ways(mixture, args)
    _, pull = rg.vjp(mixture, *args)
    for a, b in zip(pull(1.0), free[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_effects_part_groups() -> None:
    for mark, outside in (("turn {budget=None}", 0), ("turn {budget=None, split=(1, 1)}", 1)):
        graph = parse(f"""
            graph f(%a: f64[8,40,40], %x: f64[8,40,40]) {{
              %0 = matmul %a, %x : f64[8,40,40]
              {mark}
              %1 = tanh %0 : f64[8,40,40]
              %2 = matmul %1, %x : f64[8,40,40]
              %3 = tanh %2 : f64[8,40,40]
              %4 = matmul %3, %1 : f64[8,40,40]
              %5 = sum %4 {{axis=(1, 2), keepdims=False}} : f64[8]
              return %5
            }}
        """)
        found = with_stacks_in_blocks(graph)
        assert sum(node.prim.name == "scan" for node in found.nodes) == 1
        assert sum(node.prim.name == "matmul" for node in found.nodes) == outside


@pytest.mark.parametrize("function", ["attention", "mixture"])
def test_the_memory_of_a_call_is_foretold_and_small(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LARGE": 1 << 20, "AGAIN": 1 << 20, "AGAIN_SHORT": 1 << 20, "BLOCKS": (1 << 17,)}.items():
        monkeypatch.setattr(stacks_in_blocks, name, value)
    if function == "attention":
        f, args = slopes(3)(attention), normals(*3 * [(16, 128, 16)])
    else:
        f, args = slopes(3)(mixture), normals((16,), (16, 8), (16, 8, 8), (2000, 8))
    with one_thread():
        found, predicted = measured(f, *args), f.plan(*args).peak_bytes
    assert loops(f, *args) == (1 if function == "attention" else 2)
    buffers = 2 * 8192 * 8  # in which NumPy stretches columns and rows
    assert abs(found - predicted) <= 0.01 * found + buffers + 4096
    stack = 16 * 128 * 128 * 8 if function == "attention" else 16 * 2000 * 8 * 8
    assert found < 1.6 * stack
