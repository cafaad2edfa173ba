"""The numbers of plain Python: a plain call of the plain function, and derivatives by complex steps through it."""

from __future__ import annotations

import linecache
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import retrograd as rg
from tests.state.ways import Way

Plain = Callable[[Any], Any]
World = tuple[Plain, list[Way]]

POINTS = [np.array(p) for p in ((0.4, -0.7, 1.1), (0.9, 0.3, -0.6), (-0.5, 0.8, 0.7), (1.2, -0.4, 0.2))]
LANES = np.array([[0.4, -0.7, 1.1], [0.3, 0.9, -0.2]])
TANGENT = np.array([0.5, -1.0, 2.0])
STEP = 1e-30  # of a complex step: no difference is taken, so nothing cancels


@dataclass(frozen=True)
class Now:
    """The plain function in a world of its own, at one call of the history: call, change, call, back, call, call.

    Where a function draws numbers, a call that goes over lanes is ``runs`` calls of a plain loop, of which ``earlier``
    ones have been made.
    """

    holder: Callable[[], World]
    way: int
    call: int
    runs: int = 1
    earlier: int = 0

    def __call__(self, x: Any) -> Any:
        """The function's result, after the earlier calls and changes have been made in a fresh world."""
        f, ways = self.holder()
        for call in history(ways[self.way], self.call):
            for _ in range(self.runs):
                outcome(f, POINTS[call])
        for _ in range(self.earlier):
            outcome(f, POINTS[self.call])
        return f(x)


def history(way: Way, calls: int) -> Iterator[int]:
    """The numbers of the first calls; the state changes between them, and has changed before the next one."""
    way.before()
    for call in range(calls + 1):
        if call == 1:
            way.change()
        if call == 2:
            way.back()
        if call < calls:
            yield call


def outcome(f: Callable[[Any], Any], x: Any) -> Any:
    """The result, or the exception as a value."""
    try:
        return f(x)
    except Exception as error:  # noqa: BLE001 - whatever plain Python raises is what is expected
        return error


def value(f: Plain, x: Any) -> Any:
    """A plain call."""
    return f(x)


def gradient(f: Plain, x: Any) -> Any:
    """By complex steps: exact to the last digits for polynomials."""
    return np.array([f(x + 1j * STEP * e).imag / STEP for e in np.eye(len(x))])


def hessian(f: Plain, x: Any) -> Any:
    """By central differences of gradients, which for polynomials of degree three have an error by rounding alone."""
    h = 1e-3
    return np.array([(gradient(f, x + h * e) - gradient(f, x - h * e)) / (2 * h) for e in np.eye(len(x))])


def value_and_gradient(f: Plain, x: Any) -> Any:
    """Both."""
    return f(x), gradient(f, x)


def value_and_slope(f: Plain, x: Any) -> Any:
    """The value, and the derivative along TANGENT."""
    return f(x), gradient(f, x) @ TANGENT


def gradient_and_curve(f: Plain, x: Any) -> Any:
    """The gradient, and its derivative along TANGENT."""
    return gradient(f, x), hessian(f, x) @ TANGENT


def curve(f: Plain, x: Any) -> Any:
    """The Hessian times TANGENT."""
    return hessian(f, x) @ TANGENT


@dataclass(frozen=True)
class OfLanes:
    """The measure of two points, one a lane; ``before`` lanes of the same call come before them."""

    measure: Callable[[Plain, Any], Any]
    before: int = 0
    total: bool = False

    @property
    def runs(self) -> int:
        """Lanes of a call."""
        return self.before + len(LANES)

    def __call__(self, f: Plain, x: Any) -> Any:
        """The measures, or their sum."""
        functions = [f] * len(LANES)
        if isinstance(f, Now) and f.runs > 1:
            functions = [replace(f, earlier=self.before + k) for k in range(len(LANES))]
        found = np.array([self.measure(g, x + lane) for g, lane in zip(functions, LANES, strict=True)])
        return np.sum(found, 0) if self.total else found


def scaled(f: Plain, x: Any) -> Any:
    """What the rules of ``transforms`` declare the derivative to be: f(x) times x."""
    return f(x) * x


def changes_take_effect(name: str, program: str) -> None:
    """Run a program: what it starts from, with a function ``f`` linear in a number; ``--``; and changes, one a line.

    It runs in two worlds, so that the plain function fills no cache of the traced one.
    """
    setup, changes = program.split("--\n")
    file = f"<{name}>"
    linecache.cache[file] = (len(setup), None, setup.splitlines(keepends=True), file)
    plain, traced = ({"np": np, "m": types.ModuleType("settings"), "__name__": "programs"} for _ in range(2))
    for world in (plain, traced):
        exec(compile(setup, file, "exec"), world)
    f = traced["f"]
    compiled, slope = rg.jit(f), rg.grad(f)
    many = rg.vmap(rg.grad(f))
    for change in ["", *changes.splitlines()]:
        for world in (plain, traced):
            exec(change, world)
        expected = float(plain["f"](2.0))
        for _ in range(2):
            assert float(compiled(2.0)) == expected
            assert float(slope(2.0)) == expected / 2.0
            np.testing.assert_array_equal(many(np.array([2.0, 3.0])), np.full(2, expected / 2.0))
