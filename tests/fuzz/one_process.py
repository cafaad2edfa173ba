"""Programs for one process: few templates, and values that they take and capture, of which many are easily confused.

A program is a template, source text whose module all its worlds share, with values that it captures. The templates are
few and the values are of many types, so that keys which are too weak meet.
"""

from __future__ import annotations

import functools
import linecache
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import retrograd as rg

VARIANTS = 3  # calls of one program
NATIVE = 0.02  # the share of programs in C, which compile for seconds

# Arguments and captured values, as text. Many are equal, and of other types.
NUMBERS = [
    "0", "1", "2", "3", "-1", "True", "False", "0.0", "-0.0", "1.0", "2.0", "0.5", "-1.0", "3.0", "np.nan", "1j",
    "1 + 0j", "np.float32(1)", "np.float32(2)", "np.float64(1)", "np.float64(-0.0)", "np.int64(1)", "np.int32(2)",
    "np.int8(1)", "np.uint8(2)", "np.bool_(True)", "np.complex64(1)", "np.longlong(2)", "np.float16(2)",
]  # fmt: skip
ARRAYS = [
    "np.array([0.3, -0.7, 1.2])", "np.array([0.3, -0.7, 1.2], np.float32)", "np.array([1, 2, 3])",
    "np.array([1, 2, 3], np.int32)", "np.array([True, False, True])", "np.array([0.3, -0.7j, 1.2])", "np.array(2.0)",
    "np.array(2)", "np.array(True)", "np.array([2.0])", "np.array([0.3, -0.7, 1.2])[::-1]", "np.array(2, np.float32)",
    "np.array([0.3, 9.0, -0.7, 9.0, 1.2, 9.0])[::2]", "np.array([0.3, -0.7, 1.2], '>f8')", "np.array([1, 2, 3], 'q')",
    "np.array([[0.3, -0.7, 1.2]])", "np.array([[0.3, -0.7, 1.2]] * 3)", "np.array([[0.3, -0.7, 1.2]] * 3).T",
    "np.broadcast_to(np.array([0.3, -0.7, 1.2]), (3, 3))", "np.zeros(3)", "-np.zeros(3)",
    "np.array([1, 2, 3], np.uint8)", "np.array([0.3, -0.7, 1.2], np.float16)",
]  # fmt: skip
CONTAINERS = [  # a third argument, of the transforms that take one; those of a line are easily confused
    ["{1: 0.5}", "{True: 0.5}", "{1.0: 0.5}"], ["{(1,): 0.5}", "{(True,): 0.5}"],
    ["{0: 0.5}", "{0.0: 0.5}", "{-0.0: 0.5}"],
    ["frozenset({1})", "frozenset({True})", "frozenset({1.0})"], ["(1, 2.0)", "(True, 2.0)", "[1, 2.0]", "(1.0, 2.0)"],
    ["OrderedDict(a={'b': 0.5, 'c': 2.0})", "OrderedDict(a={'c': 2.0, 'b': 0.5})"], ["None", "()", "{}", "False", "0"],
    ["defaultdict(int, {'a': 1, 'b': 2.0})", "defaultdict(int, {'b': 2.0, 'a': 1})"],
    ["Count(1)", "Count(2)", "1", "True"],
    ["deque([{'b': 0.5, 'c': 2.0}])", "deque([{'c': 2.0, 'b': 0.5}])"], ["{'a': 1}", "{'a': True}", "{'a': Count(2)}"],
]  # fmt: skip
PLAIN = ["np.array([0.3, -0.7, 1.2])", "np.array([0.4, 0.9, -1.1])", "np.array([[0.3, -0.7, 1.2]] * 3)", "0.7", "2.0"]

UNARY = [
    "np.sin({0})", "np.exp(-{0} * {0})", "{0} ** 2", "{0} ** c", "{0} ** 0.5", "-{0}", "abs({0})", "np.sum({0})",
    "np.sum({0}, 0)", "np.max({0})", "np.mean({0})", "np.sqrt(1 + {0} * {0})", "np.asarray({0}).T", "{0} * {0}",
    "np.asarray({0}).astype(np.float32)", "np.asarray({0}).astype(float)", "np.asarray({0}).astype(int)", "{0} + 1",
    "np.where({0} > c, {0}, d)", "{0} * True", "{0} - 1.0", "np.clip({0}, -1, 1)", "np.real({0})", "{0} == 1",
    "2 * {0}",
    "np.cumsum({0})", "np.square({0})", "{0} // 2", "{0} % 2", "~({0} > 0)", "np.stack([{0}, {0}])", "{0} * 1.0",
    "float(np.sum({0} * 1.0))", "np.power({0}, 2)", "np.power({0}, 2.0)", "np.power({0}, c)", "np.multiply({0}, d)",
    "np.log1p(abs({0}))", "np.tanh({0})", "np.asarray({0})[..., ::-1]", "np.atleast_1d({0})[0]", "np.prod({0})",
]  # fmt: skip
BINARY = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (2 + {1} * {1})", "np.maximum({0}, {1})", "{0} @ {1}", "{0} > {1}",
    "np.where({0} > 0, {0}, {1})", "np.dot({0}, {1})", "np.hypot({0}, {1})", "np.arctan2({0}, {1})", "{0} ** {1}",
    "np.where({1}, {0}, 1)", "np.minimum({0}, {1})", "np.copysign({0}, {1})", "np.add({0}, {1})", "{0} < {1}",
    "np.outer({0}, {1})", "np.fmod({0}, {1})", "np.logaddexp({0}, {1})", "np.divide({0}, {1})", "{0} != {1}",
]  # fmt: skip
STATEMENTS = [
    "for k in range(n):\n    a = a * 0.9 + c * np.sin(a)",
    "for k in range(n):\n    a = 0.5 * (a + np.tanh({0})) - 0.1 * d",
    "for k in range(3):\n    a = a + k * {0}",
    "if np.sum(np.real({0})) > 0.5:\n    a = a * 2\nelse:\n    a = a - c",
    "if c:\n    a = a + {0}",
    "while np.sum(np.abs(a)) > 4:\n    a = a / 2",
    "buffer = np.zeros(3)\nbuffer[1:] += np.sum(np.real({0}))\nbuffer[:1] = c\na = a + buffer",
    "buffer = np.array({0}, dtype=float)\nbuffer *= d\na = a + buffer",
    "buffer = np.ones((3, 3))\nbuffer[1] = {0}\nbuffer.T[2] -= c\na = buffer @ np.ones(3) + a",
    "a = rg.fori_loop(4, lambda i, s: s * 0.5 + np.sin(s) * d, a * 1.0)",
    "a = rg.scan(lambda s, v: (s * 0.5 + v, s * d), np.sum(a) * 1.0, np.ones(3))[1]",
    "a = rg.cond(np.sum(np.real(a)) > 0, lambda v: v * c, lambda v: v * d, a)",
    "a = rg.while_loop(lambda s: np.sum(np.abs(s)) > 3, lambda s: s * 0.5, a * 1.0)",
    "a = cube(a * 1.0) + c",
    "a = helper(a, {0})",
    "a = a + table[key]",
    "try:\n    a += np.linalg.inv(np.eye(3) * np.sum(np.real({0})))[0]\nexcept np.linalg.LinAlgError:\n    a = a * d",
    "if np.sum(np.real(a)) > 3:\n    raise ValueError('too large')",
    "for k, v in enumerate([c, d, 0.5]):\n    a = a + k * v if k else a * v",
    "a = a.item() if np.size(a) == 1 and c else a",
    "a = np.linalg.solve(np.eye(3) * 2 + np.outer({0}, {0}) * 0.1, np.ones(3)) + a",
    "a = sum(v * c for v in np.atleast_1d(a))",
    "a = rg.jit(lambda v: v * c + d)(a)",
    "a = np.vectorize(lambda v: v * d if v > 0 else v * c)(a)",
]
TEMPLATE = """
from collections import deque
import numpy as np
import retrograd as rg

KINDS = {{bool: 0.5, int: 0.25, float: 0.75, str: 1.5}}

@rg.custom_vjp
def cube(v):
    return v ** 3
cube.defvjp(lambda v: (cube(v), v), lambda v, g: (g * 4 * v * v,))

def helper(v, w):
    return v * rate + w

def parts(z):
    # what is in containers, in order: numbers that tell types apart, and the numbers themselves
    if isinstance(z, dict):
        return [part for k, v in z.items() for part in (*parts(k), *parts(v))]
    if isinstance(z, (list, tuple, frozenset, deque)):
        return [part for v in z for part in parts(v)]
    return [(KINDS.get(type(z), 0.0), z if isinstance(z, (int, float)) else 0)]

def made(c, d, n):
    def f(x, y, z=()):
        a = x
        for k, (kind, number) in enumerate(parts(z)):
            a = a * (1.5 + (k + 1) * (kind + number) + np.copysign(0.1, number))
{body}
        return {result}
    return f
"""
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jit": rg.jit,
    "grad": lambda f: rg.grad(real(f)),
    "both": lambda f: rg.value_and_grad(real(f), (0, 1)),
    "jvp": lambda f: lambda x, y: rg.jvp(lambda x: f(x, y), (x,), (np.ones_like(x),)),
    "vjp": lambda f: lambda x, y: rg.vjp(real(f), x, y)[1](1.0),
    "hessian": lambda f: rg.hessian(real(f)),
    "hvp": lambda f: lambda x, y: rg.jvp(rg.grad(real(f)), (x, y), (np.ones_like(x), np.zeros_like(y))),
    "vmap": lambda f: lambda x, y: rg.vmap(f, in_axes=(0, None))(np.stack([x, x * 2]), y),
    "lanes": lambda f: lambda x, y: rg.vmap(rg.grad(real(f)), in_axes=(0, None))(np.stack([x, x * 2]), y),
    "checkpoint": lambda f: rg.grad(rg.checkpoint(real(f))),
    "compiled": lambda f: rg.jit(rg.grad(real(f))),
}
CONFIGS: list[dict[str, Any]] = [
    {}, {}, {}, {"exact": True}, {"fast": True}, {"verify": 1}, {"nan_safe": True}, {"cache_size": 1},
    {"max_traces": 1},
]  # fmt: skip


def real(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.sum(np.real(f(*args))) * 1.0


class Count(int):
    """A user's number."""


@dataclass(frozen=True)
class Call:
    """The globals ``rate``, ``entry`` and ``key`` that a call finds, and its arguments."""

    names: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A template by its seed, what it captures, the transform, the settings, and calls that differ in one value."""

    template: int
    captured: tuple[str, ...]
    transform: str
    config: tuple[tuple[str, Any], ...]
    calls: tuple[Call, ...]


@functools.cache
def template(seed: int) -> str:
    """The source text of a template."""
    r = random.Random(seed)

    def drawn(depth: int) -> str:
        if not depth or r.random() < 0.15:
            return r.choice(["x", "y", "a", "a", "c", "d", "x", "x", "1", "2.0"])
        if r.random() < 0.5:
            return r.choice(UNARY).format(drawn(depth - 1))
        return r.choice(BINARY).format(drawn(depth - 1), drawn(depth - 1))

    lines: list[str] = []
    for _ in range(r.randint(1, 4)):
        statement = r.choice(STATEMENTS) if r.random() < 0.5 else f"a = {drawn(2)}"
        lines += statement.format(f"({drawn(1)})").split("\n") if statement in STATEMENTS else [statement]
    return TEMPLATE.format(body="\n".join(f"        {line}" for line in lines), result=f"a + {drawn(1)}")


def module(seed: int) -> dict[str, Any]:
    """A new module of a template."""
    text, name = template(seed), f"<template {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"__name__": f"template{seed}"}
    exec(compile(text, name, "exec"), scope)
    return scope


shared_module = functools.cache(module)


def draw(seed: int, templates: range, in_c: float) -> Program:
    """A program whose calls are alike but for one value, whose kinds are easily confused."""
    r = random.Random(seed)
    values = [*NUMBERS, *ARRAYS]
    transform = r.choice([*TRANSFORMS, "jit", "jit", "grad", "both"])
    floats = [v for v in values if np.asarray(evaluated(v)).dtype.kind == "f"]
    taken = values if transform in ("jit", "vmap") else floats
    arguments = [r.choice(taken), r.choice(PLAIN if r.random() < 0.5 else taken)]
    names = [r.choice(NUMBERS), r.choice(NUMBERS), r.choice(["0", "1", "True", "1.0"])]
    captured = (r.choice(NUMBERS), r.choice(values if r.random() < 0.3 else NUMBERS), r.choice(["2", "60", "200"]))
    config = {**r.choice(CONFIGS), **({"backend": "native"} if r.random() < in_c else {})}
    if transform in ("jit", "grad", "both", "compiled") and r.random() < 0.5:
        group = r.choice(CONTAINERS)
        calls = [Call((*names,), (*arguments, third)) for third in r.sample(group, min(len(group), VARIANTS))]
    else:
        calls = []
        place, changed = r.randrange(2), r.choice([names, arguments])
        for value in r.sample(NUMBERS if changed is names else taken, VARIANTS):
            changed[place] = value
            calls.append(Call((*names,), (*arguments,)))
    return Program(r.choice(templates), captured, transform, (*config.items(),), (*calls,))


def evaluated(text: str) -> Any:
    names = {"np": np, "OrderedDict": OrderedDict, "defaultdict": defaultdict, "deque": deque, "Count": Count}
    return eval(text, names)
