"""Random nests of throws, catches, continuations, choices and loops: what leaves what is as in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.programs.control import OURS, PLAIN
from tests.support import values
from tests.support.seeds import moved

DEPTH = 3
LEAF = ("np.sin({0})", "({0} * {1})", "({0} + {1})", "np.tanh({0} - 0.3)", "({0} - 0.4 * {1})", "np.exp(-(({0}) ** 2))")


class Writer:
    """Writes the source of a function of two numbers. Functions inside it use what is defined around them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0

    def source(self) -> str:
        return "\n".join(["def f(ops, x, y):", *self.block(["x", "y"], DEPTH, 1, throws=False, ks=[])])

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def number(self, known: Sequence[str]) -> str:
        pick = self.random.choice
        return "1.0 * " + pick((*LEAF, "{0}", "0.7 * {0}")).format(pick(known), pick(known))

    def test(self, known: Sequence[str]) -> str:
        pick = self.random.choice
        return f"{pick(known)} {pick('<>')} {pick([*known, '0.2'])}"

    def block(self, known: Sequence[str], depth: int, indent: int, throws: bool, ks: Sequence[str]) -> list[str]:
        """Statements, and the return of a number."""
        known, lines = list(known), []
        for _ in range(self.random.randint(1, 3)):
            v = self.name()
            lines += self.statement(v, known, depth, throws, ks)
            known.append(v)
        return ["    " * indent + line for line in [*lines, f"return {self.number(known[-3:])}"]]

    def function(self, head: str, known: Sequence[str], depth: int, throws: bool, ks: Sequence[str]) -> list[str]:
        return [f"def {head}:", *self.block(known, depth - 1, 1, throws, ks)]

    def statement(self, v: str, known: Sequence[str], depth: int, throws: bool, ks: Sequence[str]) -> list[str]:
        """Lines that give ``v`` a number; ``throws`` tells whether a catch is around, ``ks`` are continuations."""
        kinds = ["plain"] + ["throw"] * throws + ["leave"] * bool(ks)
        kinds += ["try", "callcc", "cond", "switch", "fori", "scan", "while", "map"] if depth else []
        kind, f, g = self.random.choice(kinds), self.name(), self.name()
        number, test = self.number(known), self.test(known)
        if kind == "plain":
            return [f"{v} = {number}"]
        if kind == "throw":
            return [f"ops.throw_if({test}, ({number}, {self.number(known)}))", f"{v} = {self.number(known)}"]
        if kind == "leave":
            k = self.random.choice(ks)
            return [f"{v} = ops.cond({test}, lambda: {k}({number}), lambda: {self.number(known)})"]
        if kind == "try":
            body = self.function(f"{f}()", known, depth, True, ks)
            throw = f"    ops.throw_if({test}, ({number}, {self.number(known)}))"
            body.insert(self.random.choice([1, len(body) - 1]), throw)
            if ks and self.random.random() < 0.7:
                body.insert(len(body) - 1, f"    {self.random.choice(ks)}({self.number(known)})")
            handler = [f"def {g}(p):", f"    return {self.number(['p[0]', 'p[1]', *known])}"]
            return [*body, *handler, f"{v} = ops.try_catch({f}, {g})"]
        if kind == "callcc":
            return [*self.function(f"{f}({g})", known, depth, throws, [*ks, g]), f"{v} = ops.callcc({f})"]
        if kind == "cond":
            branches = [self.function(f"{name}()", known, depth, throws, ks) for name in (f, g)]
            return [*branches[0], *branches[1], f"{v} = ops.cond({test}, {f}, {g})"]
        if kind == "switch":
            branches = [self.function(f"{name}(z)", [*known, "z"], depth, throws, ks) for name in (f, g)]
            return [*branches[0], *branches[1], f"{v} = ops.switch(np.int64(0) + ({test}), [{f}, {g}], {number})"]
        if kind == "fori":
            body = self.function(f"{f}(i, c)", [*known, "c", "(0.1 * i)"], depth, throws, ks)
            n = self.random.choice("0136")
            return [*body, f"{v} = ops.fori_loop({n}, lambda i, c: np.tanh({f}(i, c)), {number})"]
        if kind == "scan":
            body = self.function(f"{f}(c, u)", [*known, "c", "u"], depth, throws, ks)
            us = f"np.linspace(-1.0, 1.0, {self.random.choice('136')}) * ({number})"
            run = f"{v}, {g} = ops.scan(lambda c, u: (np.tanh({f}(c, u)), c * u), {self.number(known)}, {us})"
            return [*body, run, f"{v} = {v} + np.sum({g} ** 2)"]
        if kind == "while":
            body = self.function(f"{f}(c)", [*known, "c"], depth, throws, ks)
            goes_on = f"lambda s: (s[0] < {self.random.choice('025')}) & (s[1] < {self.number(known)} + 0.8)"
            step = f"lambda s: (s[0] + 1, np.tanh({f}(s[1])))"
            return [*body, f"{v} = ops.while_loop({goes_on}, {step}, (0, {number}))[1]"]
        body = self.function(f"{f}(u)", [*known, "u"], depth, throws, ks)
        return [*body, f"{v} = np.sum(ops.map({f}, np.array([0.2, -0.4, 0.9]) * ({number})))"]


def program(seed: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function with our operations, and the same in plain Python."""
    source = Writer(seed).source()
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, f"<leaving {seed}>", "exec"), scope)
    f = scope["f"]
    return partial(f, OURS), partial(f, PLAIN)


def check(seed: int) -> bool:
    """Whether the program has a result at all points; then all ways to it agree."""
    ours, plain = program(seed)
    points = list(np.random.default_rng(seed).normal(size=(4, 2)))
    expected = np.array([plain(*point) for point in points])
    try:
        found = [ours(*point) for point in points]
    except (rg.errors.UnsupportedError, rg.errors.CarryError):
        return False  # every step, or every branch, leaves
    values.assert_close(np.array(found), expected, 1e-11)
    gradient, exact = rg.value_and_grad(ours, (0, 1)), rg.value_and_grad(plain, (0, 1))
    single = [gradient(*point) for point in points]
    values.assert_close(single, [exact(*point) for point in points], 1e-8)
    together = rg.vmap(gradient)(*np.transpose(points))
    values.assert_close(together, values.stacked(single), 1e-8)
    slope = rg.jit(lambda x, y: rg.jvp(ours, (x, y), (1.0, 0.5))[1])
    values.assert_close([slope(*point) for point in points], [g[0] + 0.5 * g[1] for _, g in single], 1e-8)
    return True


@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_nests(first: int) -> None:
    seeds = moved(range(first, first + (12 if first == 0 else 1000)))
    assert sum(check(seed) for seed in seeds) > len(seeds) / 2
