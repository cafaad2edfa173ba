"""Random NumPy programs as source text, drawn by hypothesis: typed, so that every operation fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

Shape = tuple[int, ...]

SMOOTH = [
    "np.sin({})",
    "np.tanh({})",
    "np.cos({})",
    "np.exp(np.tanh({}))",
    "np.log1p({0} * {0})",
    "{} ** 2",
    "-{}",
    "np.sqrt(1.0 + {0} * {0})",
    "np.arctan({})",
    "0.5 * {}",
    "np.square({})",
    "np.expm1(np.sin({}))",
]
KINKED = [
    "np.abs({})",
    "np.maximum({}, 0.1)",
    "np.minimum({}, 0.3)",
    "np.where({0} > 0.2, {0}, 0.5 * {0})",
    "np.clip({}, -0.7, 0.9)",
]
BINARY = [
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "{0} / (1.0 + {1} * {1})",
    "np.maximum({}, {})",
    "np.hypot(1.0 + {}, {})",
    "np.where({0} > {1}, {0}, {1})",
    "np.arctan2({0}, 2.0 + np.cos({1}))",
]


@dataclass
class Program:
    """Source of ``f(x, w)`` under construction: its lines, and the shapes of the variables that are readable."""

    shapes: dict[str, Shape]
    lines: list[str] = field(default_factory=list)
    writable: set[str] = field(default_factory=set)
    count: int = 0

    def add(self, expression: str, shape: Shape, writable: bool = False) -> str:
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {expression}")
        self.shapes[name] = shape
        if writable:
            self.writable.add(name)
        return name

    def source(self) -> str:
        """All arrays enter the result, so that no operation is dead."""
        used = [f"np.sum(np.sin({name}))" for name in self.shapes]
        return "\n    ".join(["def f(x, w):", *self.lines, f"return {' + '.join(used)}"])


Draw = Callable[..., Any]


def _any(draw: Draw, p: Program, ndim: int = -1) -> str:
    names = [n for n, s in p.shapes.items() if ndim < 0 or len(s) == ndim]
    return draw(st.sampled_from(names or sorted(p.shapes)))


def _unary(draw: Draw, p: Program) -> None:
    name = _any(draw, p)
    p.add(draw(st.sampled_from(SMOOTH + KINKED)).format(name), p.shapes[name])


def _binary(draw: Draw, p: Program) -> None:
    a = _any(draw, p)
    fits = [n for n, s in p.shapes.items() if _broadcast(s, p.shapes[a]) is not None]
    b = draw(st.sampled_from(fits))
    shape = _broadcast(p.shapes[a], p.shapes[b])
    assert shape is not None
    p.add(draw(st.sampled_from(BINARY)).format(a, b), shape)


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def _reduce(draw: Draw, p: Program) -> None:
    name = _any(draw, p)
    shape = p.shapes[name]
    axis = draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    keep = draw(st.booleans())
    function = draw(st.sampled_from(["np.sum", "np.mean", "np.max", "np.min", "np.sum"]))
    result = np.sum(np.zeros(shape), axis=axis, keepdims=keep).shape
    p.add(f"{function}({name}, axis={axis}, keepdims={keep})", result)


def _matmul(draw: Draw, p: Program) -> None:
    a = _any(draw, p, 2)
    fits = [n for n, s in p.shapes.items() if s and len(p.shapes[a]) == 2 and s[0] == p.shapes[a][1] and len(s) <= 2]
    if fits:
        b = draw(st.sampled_from(fits))
        p.add(f"{a} @ {b}", (p.shapes[a][0], *p.shapes[b][1:]))


def _slice(draw: Draw, n: int) -> str:
    start = draw(st.integers(0, max(n - 1, 0)))
    stop = draw(st.integers(start + 1, max(n, start + 1)))
    return draw(st.sampled_from([f"{start}:{stop}", f"{start}:", ":", "::-1", "::2", f"{start}"]))


def _index(draw: Draw, shape: Shape) -> str:
    return ", ".join(_slice(draw, n) for n in shape[: draw(st.integers(1, len(shape)))])


def _read(draw: Draw, p: Program) -> None:
    name = _any(draw, p)
    shape = p.shapes[name]
    if not shape:
        return
    if draw(st.integers(0, 3)) == 0:
        picks = draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=4))
        p.add(f"{name}[np.array({picks})]", (len(picks), *shape[1:]))
        return
    index = _index(draw, shape)
    result = eval(f"a[{index}]", {"a": np.zeros(shape)}).shape
    view = p.add(f"{name}[{index}]", result)
    if name in p.writable and result:
        p.writable.add(view)


def _move(draw: Draw, p: Program) -> None:
    name = _any(draw, p)
    shape = p.shapes[name]
    if not shape:
        return
    text = draw(
        st.sampled_from(
            [
                f"{name}.T",
                f"np.reshape({name}, -1)",
                f"{name}.ravel()",
                f"np.flip({name}, 0)",
                f"np.roll({name}, 1, axis=0)",
                f"np.cumsum({name}, axis=0)",
                f"{name}[None]",
                f"np.concatenate([{name}, 0.5 * {name}], axis=0)",
                f"np.sort({name}, axis=0)",
                f"np.stack([{name}, {name} * 2.0])",
            ]
        )
    )
    result = eval(text, {"np": np, name: np.zeros(shape)}).shape
    moved = p.add(text, result)
    if name in p.writable and text.endswith((".T", "[None]")):
        p.writable.add(moved)


def _create(draw: Draw, p: Program) -> None:
    shape = p.shapes[_any(draw, p)]
    text = draw(st.sampled_from(["np.zeros({})", "np.ones({})", "np.full({}, 0.25)"]))
    p.add(text.format(shape), shape, writable=bool(shape))


def _write(draw: Draw, p: Program) -> None:
    if not p.writable:
        _create(draw, p)
        return
    target = draw(st.sampled_from(sorted(p.writable)))
    shape = p.shapes[target]
    index = _index(draw, shape)
    part = eval(f"a[{index}]", {"a": np.zeros(shape)}).shape
    fits = [n for n, s in p.shapes.items() if _broadcast(s, part) == part and n != target]
    value = draw(st.sampled_from(fits)) if fits else "0.5"
    operator = draw(st.sampled_from(["=", "+=", "-=", "*="]))
    # a new array on the right: whether overlapping views are buffered is not what is tested here
    p.lines.append(f"{target}[{index}] {operator} np.sin({value})")


STEPS = [_unary, _unary, _binary, _binary, _reduce, _matmul, _read, _read, _move, _create, _write, _write]


@st.composite
def programs(draw: Draw, least: int = 5, most: int = 30, *, writes: bool = True) -> str:
    """Source of a function of a vector and a matrix, with one number as its result."""
    p = Program({"x": (3,), "w": (3, 3)})
    steps = STEPS if writes else [step for step in STEPS if step is not _write]
    for _ in range(draw(st.integers(least, most))):
        draw(st.sampled_from(steps))(draw, p)
    return p.source()
