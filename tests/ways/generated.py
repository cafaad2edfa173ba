"""Random loops that decide: nested choices, counters, lists, dicts, objects, arrays that are written, early exits."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

VALUES = (
    "{a} + 0.1 * {b}",
    "{a} - 0.07 * {b}",
    "0.5 * {a} * {b}",
    "np.sin({a}) + {b}",
    "-0.9 * {a}",
    "{a} * {b} - {c}",
    "0.3 * {a} + 0.6 * {b}",
    "np.cos({a}) * {b}",
    "{a}",
    "abs({a}) - {b}",
    "w[{i}] * {a}",
    "{a} / (2.0 + {b} * {b})",
)
OF_STEPS = ("w[k % 5] + {a}", "0.9 * {a} + 0.01 * k", "u[k] * {a}")
CONDITIONS = (
    "{a} > {t}",
    "{a} < {b}",
    "{a} * {b} > {t}",
    "{a} > {t} and {b} < {t}",
    "{a} > {t} or {b} > {t}",
    "not np.sin({a}) > {t}",
)
OF_STATE = ("u[k] > {a}", "k % 3 == 0", "hits % 3 == 1", "len(seen) > 4 and {a} > 0", "hits == 6")
CHANGES = (
    "hits += 1",
    "seen.append({a})",
    "d['m'] = {a}",
    "{a} = d['m'] * 0.5",
    "o.x = {a}",
    "{a} = 0.5 * o.x + {b}",
    "seen = seen[-2:]",
    "{a} = {a} + 0.1 * len(seen)",
    "{a} = {a} if not seen else seen[-1] * 0.3",
    "{a} = {a} * (0.9 if hits == 3 else 1.0)",
    "p[0] = {a}",
    "{a} = p[0] + 0.1 * {b}",
    "p[hits % 2] = {a}",
)
NEXT = "a, b, c = 0.7 * np.sin(a) + 0.3 * b, 0.9 * b + 0.05 * np.cos(c + {k}), 0.8 * c - 0.1 * a"


class Thing:
    """An object with attributes."""


def _block(draw: random.Random, depth: int, budget: int, state: float) -> list[str]:
    """Lines of a block over the variables a, b and c; ``state`` says how often it changes what Python alone knows."""
    lines: list[str] = []
    for _ in range(draw.randint(1, budget)):
        a, b, c = (draw.choice("abc") for _ in range(3))
        chance, t = draw.random(), round(draw.uniform(-0.6, 0.6), 2)
        if depth and chance < 0.42:
            condition = draw.choice(CONDITIONS + OF_STATE * bool(state)).format(a=a, b=b, t=t)
            lines += [f"if {condition}:", *_inner(draw, depth, state)]
            if draw.random() < 0.3:
                lines += [f"elif {draw.choice('abc')} > {round(draw.uniform(-0.6, 0.6), 2)}:"]
                lines += _inner(draw, depth, state)
            if draw.random() < 0.4:
                lines += ["else:", *_inner(draw, depth, state)]
        elif chance < 0.42 + state:
            lines.append(draw.choice(CHANGES).format(a=a, b=b))
        elif depth < 2 and chance < 0.46 + state:
            lines.append(draw.choice(["continue", "break", "pass", "pass"]))
        else:
            values = VALUES + OF_STEPS * bool(state)
            lines.append(f"{c} = " + draw.choice(values).format(a=a, b=b, c=c, i=draw.randint(0, 4)))
    return lines


def _inner(draw: random.Random, depth: int, state: float) -> list[str]:
    return ["    " + line for line in _block(draw, depth - 1, 2, state)]


def generated(seed: int) -> tuple[str, Callable[..., Any]]:
    """The text of a program of two numbers and an array of five, and the program."""
    draw = random.Random(seed)
    state, steps = draw.choice([0.0, 0.0, 0.0, 0.02, 0.25]), draw.choice([20, 30, 60])
    loop = draw.choice(["for k in range({n}):", "for k in range({n}):", "k = -1\nwhile a * a + k / {n} < 1.5:\nk += 1"])
    head, *first = loop.format(n=steps).split("\n")[-2:] if "while" in loop else [loop.format(n=steps)]
    body = [*first, *_block(draw, 2, 6, state), NEXT.format(k=draw.choice(["k", "1.0"]))]
    lines = [
        "def program(a, b, w):",
        "    c, hits, seen, d, o, p = 0.1 * a + b, 0, [], {'m': a}, Thing(), np.zeros(2) + a",
        "    o.x, k = b, -1",
        f"    {head}",
        *("        " + line for line in body),
        draw.choice(
            [
                "    return a * b + c",
                "    return a + 0.1 * c * c",
                "    return a + c + sum(seen) + o.x + np.sum(p)",
            ]
        ),
    ]
    source, name = "\n".join(lines) + "\n", f"/generated/ways_{seed}.py"
    scope: dict[str, Any] = {"np": np, "Thing": Thing, "u": np.cos(np.arange(400) * 0.7), "__name__": "generated"}
    exec(compile(source, name, "exec"), scope)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return source, scope["program"]
