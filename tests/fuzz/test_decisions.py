"""Random programs with Python's own control flow: whichever way each input goes, the same bits as plain NumPy."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from tests.support.folding import loops_from

SIZES = (3, 2100)  # on both sides of the threshold from which storage is used again
EXPRESSIONS = (
    "np.sin({a}) * {b}",
    "{a} + 0.5 * {b}",
    "{a} - {b} * {b}",
    "np.tanh({a}) + {b}",
    "np.maximum({a}, {b})",
    "np.where({a} > {b}, {a}, 0.3 * {b})",
    "{a}[::-1] * 0.7 + {b}",
    "np.cos({a} + 1.0)",
    "{a} * np.sum({b}) / len({b})",
)
CONDITIONS = (
    "np.sum({a}) > 0.1",
    "np.max({a}) > np.sum({b})",
    "{a}[0] < {b}[-1]",
    "np.any({a} > 1.5)",
    "{a}[1] > 0 and {b}[0] > 0",
    "not np.all({a} > -1.0)",
    "np.argmax({a}) == 0",
)
WRITES = (
    "{a}[1:] = {b}[:-1]",
    "{a}[0] += {b}[-1]",
    "{a} *= 0.9",
    "{a}[::2] -= 0.1 * {b}[::2]",
    "{a}[{b} > 0.5] = 0.25",
    "{a}[1] = np.sum({b}[{b} > 0]) * 0.01",
    "{a}[{b} > 0] *= 0.5",
)


@st.composite
def blocks(draw: st.DrawFn, depth: int, budget: int) -> list[str]:
    """Lines of a block over the arrays p, q and r."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, budget))):
        a, b, c = (draw(st.sampled_from("pqr")) for _ in range(3))
        kinds = ("set", "set", "write", "if", "for", "while", "leave") if depth else ("set", "write")
        kind = draw(st.sampled_from(kinds))
        condition = draw(st.sampled_from(CONDITIONS)).format(a=a, b=b)
        if kind == "set":
            lines.append(f"{c} = " + draw(st.sampled_from(EXPRESSIONS)).format(a=a, b=b))
        elif kind == "write":
            lines += [f"{a} = {a}.copy()", draw(st.sampled_from(WRITES)).format(a=a, b=b)]
        elif kind == "leave":
            lines += [f"if {condition}:", f"    return np.sum({c} * 0.5) + {a}[0]"]
        else:
            inner = ["    " + line for line in draw(blocks(depth - 1, 3))]
            if kind == "if":
                other = ["    " + line for line in draw(blocks(depth - 1, 2))]
                lines += [f"if {condition}:", *inner, "else:", *other]
            elif kind == "for":
                steps = draw(st.sampled_from([1, 2, 3, 20]))
                lines += [f"for k in range({steps}):", *inner, f"    {c} = {c} * 0.8 + 0.01 * k"]
            else:
                lines += ["for _ in range(4):", f"    if not ({condition}):", "        break", *inner]
    return lines


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, Any]:
    lines = [
        "def program(x):",
        "    p, q, r = x, x * 0.5 + 0.1, np.zeros(len(x)) + x[0]",
        *("    " + line for line in draw(blocks(2, 6))),
        "    return np.sum(p * q) / len(p) + np.sum(r * 0.1)",
    ]
    source = "\n".join(lines) + "\n"
    name = f"<fuzz {hash(source)}>"
    scope: dict[str, Any] = {"np": np, "__name__": "fuzzed"}
    exec(compile(source, name, "exec"), scope)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return source, scope["program"]


@pytest.fixture(autouse=True, scope="module")
def _short_loops_become_loops() -> Iterator[None]:
    with loops_from(20):
        yield


@given(programs(), st.integers(0, 2**32 - 1), st.sampled_from(SIZES))
def test_every_way_gives_numpys_bits(drawn: tuple[str, Any], seed: int, n: int) -> None:
    source, program = drawn
    random = np.random.default_rng(seed)
    inputs = [random.standard_normal(n) * scale + shift for scale, shift in ((1, 0), (0.5, 1), (0.5, -1), (2, 0))]
    with np.errstate(all="ignore"), rg.config(exact=True):
        compiled = rg.jit(program)
        for k in (0, 1, 2, 3, 1, 0, 3, 2):
            x = inputs[k]
            before = x.copy()
            np.testing.assert_array_equal(compiled(x), program(x.copy()), err_msg=source)
            np.testing.assert_array_equal(x, before)


@given(programs(), st.integers(0, 2**32 - 1), st.sampled_from(SIZES))
def test_both_modes_agree_on_every_way(drawn: tuple[str, Any], seed: int, n: int) -> None:
    source, program = drawn
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", rg.errors.IndependentOutputWarning)
        gradient = rg.grad(program)
        for shift in (0.0, 1.0, -1.0, 0.0):
            x, along = random.standard_normal(n) + shift, random.standard_normal(n)
            found = gradient(x)
            forward = rg.jvp(program, (x,), (along,))[1]
            if np.isfinite(forward) and np.abs(found).max() < 1e8:
                scale = 1.0 + np.sum(np.abs(found * along))
                np.testing.assert_allclose(np.sum(found * along) / scale, forward / scale, atol=1e-9, err_msg=source)
