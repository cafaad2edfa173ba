"""Handlers within handlers: observed code raises, catches and ends what the code does, as deep on the stack.

An exception table says how deep the stack of a handler is. If it is wrong, Python ends values that are not there.
"""

from __future__ import annotations

import ast
import asyncio.base_events
import contextlib
import dis
import importlib
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest
from bytecode import Bytecode

import retrograd as rg
from retrograd.tracer.state.observers import observed
from tests.support.seeds import moved

X = np.array([1.0, 2.0, 3.0])
DEPTH = 3
MODULES = (ast, asyncio.base_events, contextlib, importlib, random, subprocess, tempfile)


class Odd(Exception):  # noqa: N818 - a name in programs
    """An exception of the programs."""


class Even(Exception):  # noqa: N818 - the same
    """Another one."""


class Holds:
    """A context that swallows exceptions or does not."""

    def __init__(self, swallows: bool) -> None:
        self.swallows = swallows

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> bool:
        return self.swallows


def told(log: list[int], k: int) -> float:
    """Note a step, and raise at two of three."""
    log.append(k)
    if k % 3:
        raise (Odd if k % 3 == 1 else Even)(k)
    return 1.0


def statement(rng: random.Random, loop: bool, handler: bool) -> str:
    number = rng.randint(0, 99)
    kinds = ["pass", f"log.append({number})", f"told(log, {number})", f"s = s + np.sum(x) * told(log, {number})"]
    kinds += ["raise Odd", "raise Even", "return np.sum(x)"]
    return rng.choice(kinds + ["break", "continue"] * loop + ["raise"] * 3 * handler)


def block(rng: random.Random, depth: int, loop: bool, handler: bool) -> Iterator[str]:
    """The lines of one or two statements, some with blocks of their own."""

    def inner(header: str, loop: bool = loop, handler: bool = handler) -> Iterator[str]:
        yield header
        yield from (f"    {line}" for line in block(rng, depth - 1, loop, handler))

    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.random() if depth else 0.0
        if kind < 0.3:
            yield statement(rng, loop, handler)
        elif kind < 0.75:
            yield from inner("try:")
            caught = rng.random() < 0.7
            if caught:
                header = rng.choice(["except Odd:", "except Odd as e:", "except (Odd, Even):", "except Exception:"])
                yield from inner(header, handler=True)
                if rng.random() < 0.2:
                    yield from inner("else:")
            if not caught or rng.random() < 0.3:
                yield from inner("finally:", loop=False)
        elif kind < 0.85:
            header = rng.choice(["Holds(False)", "Holds(True)", "Holds(True) as held, Holds(False)"])
            yield from inner(f"with {header}:")
        elif kind < 0.93:
            yield from inner("for k in range(2):", loop=True)
        else:
            yield from inner("if len(log) % 2:")


def program(seed: int) -> Callable[..., Any]:
    lines = "\n    ".join(block(random.Random(seed), DEPTH, False, False))
    source = f"def f(x, log):\n    s = 0.0\n    {lines}\n    return s + np.sum(x) * len(log)\n"
    names = {"np": np, "Odd": Odd, "Even": Even, "Holds": Holds, "told": told}
    exec(compile(source, f"<program {seed}>", "exec"), names)
    found: Callable[..., Any] = names["f"]  # type: ignore[assignment]
    return found


def within(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those inside."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from within(inner)


def depths(code: CodeType) -> list[set[tuple[int, bool]]]:
    """How deep the stack of each handler is, in their order, and whether it gets the place of the exception."""
    found: dict[int, set[tuple[int, bool]]] = {}
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined] # which typeshed does not know
        found.setdefault(entry.target, set()).add((entry.depth, entry.lasti))
    return [found[target] for target in sorted(found)]


def check(code: CodeType) -> None:
    made = observed(code)
    assert depths(made) == depths(code), code
    assert Bytecode.from_code(made).compute_stacksize(check_pre_and_post=False) <= made.co_stacksize, code


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_handlers_are_as_deep_in_observed_code(module: Any) -> None:
    functions = [f for f in vars(module).values() if isinstance(f, FunctionType)]
    functions += [
        f for c in vars(module).values() if isinstance(c, type) for f in vars(c).values() if isinstance(f, FunctionType)
    ]
    codes = [code for f in functions for code in within(f.__code__)]
    assert len(codes) > 5
    for code in codes:
        check(code)


def outcome(f: Callable[..., Any]) -> tuple[Any, ...]:
    """What a call gives or raises, with what was being handled then, and the steps."""
    log: list[int] = []
    try:
        result: tuple[Any, ...] = (float(f(X, log)),)
    except (Odd, Even, RuntimeError) as raised:
        result = (type(raised), raised.args, type(raised.__context__), type(raised.__cause__))
    return *result, log


def runs_as_plain(seed: int) -> None:
    f = program(seed)
    check(f.__code__)
    wanted = outcome(f)
    assert outcome(lambda x, log: rg.jit(lambda x: f(x, log))(x)) == wanted, seed  # the trace fills the log


@pytest.mark.parametrize("seed", moved(range(200)))
def test_random_programs_with_handlers(seed: int) -> None:
    runs_as_plain(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 6000, 250))
def test_many_random_programs_with_handlers(first: int) -> None:
    for seed in moved(range(first, first + 250)):
        runs_as_plain(seed)


def test_a_call_with_many_arguments() -> None:
    """Copies of arguments lie on the stack as well."""
    arguments = ", ".join(f"x[{k % 3}] * {k}.0" for k in range(700))
    names: dict[str, Any] = {"total": lambda *given: sum(given)}
    exec(f"def f(x):\n    return total({arguments})\n", names)
    assert float(rg.jit(names["f"])(X)) == names["f"](X)
