"""Random programs whose objects, containers and modules change between calls: each gives what plain Python gives."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.fuzz.stateful import CALLS, Source, World, draw, inputs
from tests.support.seeds import moved

CHUNK = 50
STEPS = (1e-4, -1e-4, 5e-5, -5e-5)
Found = tuple[Any, Any]  # a value, and its slope along TANGENTS
TANGENTS = (np.array([0.6, -1.0, 0.4]), np.array([[0.5, -0.2, 1.0], [-0.7, 0.3, 0.1], [0.9, -0.4, -0.6]]))


def reverse(transformed: Callable[..., Any]) -> Callable[..., Found]:
    """The value and the slope, of a function that gives values and gradients."""

    def call(x: Any, y: Any) -> Found:
        value, grads = transformed(x, y)
        return value, sum(np.sum(g * t) for g, t in zip(grads, TANGENTS, strict=True))

    return call


def pulled(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, y: Any) -> Any:
        value, pull = rg.vjp(f, x, y)
        return value, pull(1.0)

    return call


def in_lanes(f: Callable[..., Any]) -> Callable[..., Any]:
    """The first of two equal lanes."""
    mapped = rg.vmap(rg.value_and_grad(f, (0, 1)))

    def call(x: Any, y: Any) -> Any:
        value, grads = mapped(np.stack([x, x]), np.stack([y, y]))
        return value[0], [g[0] for g in grads]

    return call


TRANSFORMS: list[Callable[[Callable[..., Any]], Callable[..., Found]]] = [
    lambda f: reverse(rg.value_and_grad(f, (0, 1))),
    lambda f: reverse(rg.jit(rg.value_and_grad(f, (0, 1)))),
    lambda f: reverse(rg.value_and_grad(rg.jit(f), (0, 1))),
    lambda f: reverse(rg.value_and_grad(rg.checkpoint(f), (0, 1))),
    lambda f: reverse(rg.value_and_grad(rg.subgraph(inline=0)(f), (0, 1))),
    lambda f: reverse(pulled(f)),
    lambda f: reverse(in_lanes(f)),
    lambda f: lambda x, y: rg.jvp(f, (x, y), TANGENTS),
    lambda f: rg.jit(lambda x, y: rg.jvp(f, (x, y), TANGENTS)),
]


def run(source: Source, call: Callable[[Callable[..., Any]], Callable[..., Any]], shift: float = 0.0) -> list[Any]:
    """What the six calls give in a world of their own; an exception in place of its result."""
    world, results = World(source), []
    g = call(world.f)
    for i in range(CALLS):
        world.change(i)
        args = inputs(source.seed, i)
        if shift:
            args = tuple(a + shift * t for a, t in zip(args, TANGENTS, strict=True))
        try:
            results.append(g(*args))
        except Exception as error:  # noqa: BLE001 - plain Python's exception is what is expected
            results.append(error)
    return results


def wrong(source: Source, tally: Counter[str]) -> str | None:
    """What is wrong with the program's compiled calls; counts calls, refusals and points without a stable slope."""
    values = run(source, lambda f: f)
    shifted = [run(source, lambda f: f, h) for h in STEPS]
    found = run(source, TRANSFORMS[source.seed % len(TRANSFORMS)])
    if isinstance(found[0], rg.errors.UserError):
        tally[f"refused: {found[0].code} {str(found[0]).splitlines()[0]}"] += 1
        return None
    for i, (value, out) in enumerate(zip(values, found, strict=True)):
        tally["calls"] += 1
        if isinstance(value, Exception):
            if not isinstance(out, type(value)) or isinstance(out, rg.RetrogradError):
                return f"call {i} gives {out!r}; plain Python raises {value!r}"
            continue
        if isinstance(out, Exception):
            return f"call {i} raises {out!r}; plain Python gives {value!r}"
        if abs(out[0] - value) > 1e-9 * (1 + abs(value)):
            return f"call {i} gives {out[0]!r}; plain Python gives {value!r}"
        if (slope := stable([s[i] for s in shifted])) is None:
            tally["unstable"] += 1
        elif abs(out[1] - slope) > 1e-5 * (1 + abs(slope)):
            return f"the slope of call {i} is {out[1]!r}; that of plain Python is {slope!r}"
    return None


def stable(values: list[Any]) -> float | None:
    """The slope by central differences; None where two step sizes disagree: a kink or a jump."""
    if any(isinstance(v, Exception) for v in values):
        return None
    coarse, fine = (values[0] - values[1]) / (2 * STEPS[0]), (values[2] - values[3]) / (2 * STEPS[2])
    return float((4 * fine - coarse) / 3) if abs(coarse - fine) < 1e-5 * (1 + abs(fine)) else None


def check(seeds: range) -> None:
    seeds = moved(seeds)
    tally: Counter[str] = Counter()
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            source = draw(seed)
            if complaint := wrong(source, tally):
                failures.append((complaint, source))
    refused = sum(n for reason, n in tally.items() if reason.startswith("refused"))
    sys.stdout.write(f"{len(seeds)} programs, {refused} refused, {dict(tally)}\n")
    assert not failures, (
        f"{len(failures)} of {len(seeds)} programs are wrong, of seeds {[s.seed for _, s in failures]}; the first:\n"
        f"{failures[0][0]}\n{failures[0][1]}"
    )
    assert refused <= 0.05 * len(seeds), dict(tally)
    assert tally["unstable"] <= 0.2 * tally["calls"], dict(tally)


@pytest.mark.costly
@pytest.mark.parametrize("start", range(0, 300, CHUNK))
def test_programs_with_state_follow_it(start: int) -> None:
    check(range(start, start + CHUNK))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 21000, 500))
def test_very_many_programs_with_state_follow_it(start: int) -> None:
    check(range(start, start + 500))
