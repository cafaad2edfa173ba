"""Programs whose large arrays are computed in blocks: arguments, loops of a compiled function, and results in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import retrograd as rg


def normals(*shapes: tuple[int, ...], dtype: str = "f8") -> list[Any]:
    """Standard normals."""
    rng = np.random.default_rng(len(shapes))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def loops(f: Any, *args: Any) -> int:
    """The loops in the graph of a compiled function."""
    return sum(node.prim.name == "scan" for node in f.at(*args).graph.nodes)


def leaves(tree: Any) -> list[Any]:
    """The arrays in tuples and lists."""
    return [leaf for branch in tree for leaf in leaves(branch)] if isinstance(tree, tuple | list) else [tree]


def slopes(count: int) -> Callable[..., Any]:
    """The transform to value and gradient with respect to so many arguments."""
    return lambda f: rg.value_and_grad(f, argnums=tuple(range(count)))


def same_bits_on_threads(f: Callable[..., Any], args: Sequence[Any], numbers: Sequence[int] = (1, 2, 3)) -> list[Any]:
    """The results, after a comparison with those of some numbers of threads."""
    free, threads = leaves(f(*args)), rg.config.threads
    for number in numbers:
        rg.config.threads = number
        try:
            found = leaves(f(*args))
        finally:
            rg.config.threads = threads
        for a, b in zip(found, free, strict=True):
            np.testing.assert_array_equal(a, b)
    return free


def same_bits_in_all_ways(loss: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """Compare value and gradient with those of one, two and three threads, and within budgets, which hold."""
    f = slopes(len(args))(loss)
    free = same_bits_on_threads(f, args)
    peak = f.plan(*args).peak_bytes
    for budget in (peak, 10 * peak):
        within = rg.value_and_grad(loss, argnums=tuple(range(len(args))), memory=budget)
        for a, b in zip(leaves(within(*args)), free, strict=True):
            np.testing.assert_array_equal(a, b)
        assert within.plan(*args).peak_bytes <= budget
    return free


def agrees(f: Callable[..., Any], *args: Any, eps: float = 1e-12) -> None:
    """Whether a function gives about what it gives with ``rg.config.exact``, which makes no blocks of rows."""
    found = leaves(f(*args))
    with rg.config(exact=True):
        expected = leaves(f(*args))
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=eps, atol=eps * float(np.max(np.abs(b), initial=0.0)))
