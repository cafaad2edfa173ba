"""Random programs whose Python loops mostly repeat themselves, as source text, and what may go otherwise."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

SCALARS, ARRAYS = ["p", "q", "r"], ["u", "v", "w"]
W = np.array([[0.3, -0.2, 0.1], [0.2, 0.5, -0.4], [-0.1, 0.3, 0.2]])
B = np.array([0.1, -0.3, 0.6])
NUMBERS = ["0.5", "1.25", "-0.75", "2", "0.0", "-0.0", "K"]


class Writer:
    """Writes one program: ``program(s, a)`` of a number and an array of three."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.lines: list[str] = []

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def scalar(self) -> str:
        d = self.draw
        return d.choice(
            [
                *SCALARS,
                *SCALARS,
                f"{d.choice(ARRAYS)}[{d.randrange(3)}]",
                f"np.sum({d.choice(ARRAYS)})",
                f"({d.choice(ARRAYS)} @ {d.choice([*ARRAYS, 'W[1]'])})",
                f"np.sin({d.choice(SCALARS)})",
                f"{d.choice(ARRAYS)}.mean()",
            ]
        )

    def array(self) -> str:
        d = self.draw
        return d.choice(
            [
                *ARRAYS,
                *ARRAYS,
                f"np.tanh({d.choice(ARRAYS)})",
                f"(W @ {d.choice(ARRAYS)})",
                f"np.stack([{self.scalar()}, {self.scalar()}, {self.scalar()}])",
                f"{d.choice(ARRAYS)}[::-1]",
                f"np.where({d.choice(ARRAYS)} > {d.choice(SCALARS)}, {d.choice(ARRAYS)}, 0.5)",
                f"np.roll({d.choice(ARRAYS)}, 1)",
                f"{d.choice(ARRAYS)}.reshape(1, 3)[0]",
                f"np.array([0.5, {self.scalar()}, 1.0])",
                "B",
                "a",
                "(np.cos(a) * 0.5)",
                f"{d.choice(ARRAYS)}.T",
            ]
        )

    def statement(self, depth: int, t: str) -> None:
        d = self.draw
        kind = d.randrange(30)
        op = d.choice(["+", "-", "*"])
        damp = d.choice(["0.5", "0.25", "0.3"])
        if kind < 10:
            self.say(depth, f"{d.choice(SCALARS)} = {damp} * np.tanh({self.scalar()} {op} {self.scalar()})")
        elif kind < 18:
            self.say(depth, f"{d.choice(ARRAYS)} = {damp} * np.tanh({self.array()} {op} {self.array()})")
        elif kind < 20:
            self.say(depth, f"{d.choice(SCALARS)} = {d.choice(NUMBERS)} * {self.scalar()} + {d.choice(NUMBERS)}")
        elif kind < 22:
            self.say(depth, f"{d.choice(ARRAYS)} = np.tanh({d.choice(NUMBERS)} * {self.array()})")
        elif kind == 22:
            self.say(depth, f"kept.append({d.choice([*SCALARS, *ARRAYS])})")
        elif kind == 23:
            a, b = d.sample(ARRAYS, 2)
            self.say(depth, f"{a}, {b} = {b}, {a}")
        elif kind == 24:
            self.say(depth, f"if {t} == {d.randrange(40)}: {d.choice(SCALARS)} = {self.scalar()} + 0.1")
        elif kind == 25:
            self.say(depth, f"if {t} % {d.randrange(5, 9)} == 0: kept.append({d.choice([*SCALARS, *ARRAYS])})")
        elif kind == 26:
            old = d.choice(["kept[-1]", "kept[0]", "kept[-2 % len(kept)]"])
            self.say(depth, f"p = 0.3 * np.tanh(np.sum({old}) + {self.scalar()})")
        elif kind == 27:
            self.say(depth, f"z = {d.choice(ARRAYS)} * 0.5; z[1] = {self.scalar()}; w = np.tanh(z)")
        elif kind == 28:
            self.say(depth, f"if {t} > {d.randrange(20, 40)}: q = np.tanh(q * {t} * 0.01)")
        else:
            self.say(depth, f"r, v = 0.5 * r + 0.1 * {self.scalar()}, np.tanh(v + {self.array()})")

    def text(self) -> str:
        d = self.draw
        self.say(0, "def program(s, a):")
        self.say(1, "p = q = s; r = s * 0.5; u = a; v = a * 0.5; w = np.cos(a); K = 0.7; kept = [s]")
        for number in range(d.choice([1, 1, 2, 3])):
            for _ in range(d.randrange(3)):
                self.statement(1, "3")
            self.say(1, f"for t{number} in range({d.choice([7, 20, 41, 64])}):")
            for _ in range(d.randrange(1, 6)):
                self.statement(2, f"t{number}")
            if d.random() < 0.3:
                self.say(2, f"for i{number} in range({d.choice([3, 12, 30])}):")
                for _ in range(d.randrange(1, 4)):
                    self.statement(3, f"i{number}")
                for _ in range(d.randrange(2)):
                    self.statement(2, f"t{number}")
            if d.random() < 0.15:
                self.say(1, f"if {d.choice(SCALARS)} > 0.05: p = p + 0.1")
        if d.random() < 0.3:
            self.say(1, "x = u * 1.0; x[0] = p; u = x")
        self.say(1, "ends = np.sum(u) + np.sum(v) * 0.5 + np.sum(w) * 0.25 + p + q + r")
        which = d.choice(["kept[::3]", "kept[-4:]", "kept", "[]"])
        self.say(1, f"return ends + sum([np.sum(x) * 0.1 for x in {which}])")
        return "\n".join(self.lines) + "\n"


def written(seed: int) -> str:
    """The program of this number."""
    return Writer(seed).text()


def compiled_loops(seed: int) -> Callable[..., Any]:
    """The function of this number."""
    text, name = written(seed), f"<loops {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names: dict[str, Any] = {"np": np, "W": W, "B": B, "__name__": "user"}
    exec(compile(text, name, "exec"), names)
    program: Callable[..., Any] = names["program"]
    return program
