"""Programs on slices that grow: their loops fold from a few steps, and compute what the unrolled programs compute."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FunctionType
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.compiler.rolled import rolled_from

from .limits import other_limits

LIMITS = {
    "compiler.rolled": {"LONG": 8, "UNROLLED": 0, "UNROLLED_IN_C": 0},
    "passes.reroll.find_repeats": {"FEWEST": 8},
    "passes.reroll.growing_slices": {"PRODUCTS": 8},
    "passes.reroll.prove_loops": {"NODES": 0},
    "passes.reroll.moving_parts": {"PRODUCTS": 8},
    "passes.reroll.reroll": {"FEW": 8, "FEWEST": 8, "NODES": 0},
}


def short_loops_fold() -> AbstractContextManager[None]:
    """A context in which loops of eight steps fold, as long ones do."""
    return other_limits(LIMITS)


def arguments(n: int, dtype: str, seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    m = rng.standard_normal((n, n)) / (n + 1) + 2.0 * np.eye(n)
    return tuple(a.astype(dtype) for a in (m, rng.standard_normal(n), rng.standard_normal(n)))


def functions(program: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The program and its derivatives, of fresh functions each time: nothing that was compiled before is used."""

    def f(m, b, x):
        return program(m, b, x)

    def total(m, b, x):
        return np.sum(np.sin(program(m, b, x)))

    return {
        "value": rg.jit(f),
        "gradient": rg.grad(total, argnums=(0, 1, 2)),
        "jvp": lambda *args: rg.jvp(f, args, tuple(np.cos(a) for a in args)),
        "hvp": lambda m, b, x: rg.hvp(lambda b: total(m, b, x))(b, np.cos(b)),
        "vmap": lambda *args: rg.vmap(f)(*(np.stack([a, 0.9 * a, 1.1 * a]) for a in args)),
        "gradients": lambda *args: rg.vmap(rg.grad(total, argnums=(0, 1, 2)))(*(np.stack([a, 0.9 * a]) for a in args)),
    }


def again(program: Callable[..., Any]) -> FunctionType:
    """The program as another one: equal functions share what is compiled, so this one is compiled by itself."""
    return FunctionType(program.__code__.replace(co_name=f"{program.__name__}_again"), program.__globals__)


def leaves(tree: Any) -> list[Any]:
    return [x for part in tree for x in leaves(part)] if isinstance(tree, tuple) else [tree]


def compare(program: Callable[..., Any], args: tuple[Any, ...], same_bits: bool = True) -> None:
    """Compare with the unrolled program. Its ``np.sum(x * y)`` may be a product, so that bits are not the same."""
    with np.errstate(all="ignore"):
        plain = program(*args)
        folded = {name: function(*args) for name, function in functions(program).items()}
        with rolled_from(10**9):
            unrolled = {name: function(*args) for name, function in functions(again(program)).items()}
    if same_bits:
        np.testing.assert_array_equal(folded["value"], unrolled["value"])
    eps = np.finfo(plain.dtype).eps
    for name, function in folded.items():
        for got, want in zip(leaves(function), leaves(unrolled[name]), strict=True):
            assert got.dtype == want.dtype
            scale = np.max(np.abs(want), initial=1.0)
            np.testing.assert_allclose(got, want, rtol=0, atol=200 * eps * scale, err_msg=name)


def loops(function: Callable[..., Any], args: tuple[Any, ...]) -> int:
    return str(rg.jit(function).graph(*args, stage="traced")).count("scan")
