"""Random programs that create, view, read and write arrays: the same on NumPy's arrays and on traced ones.

A program is a list of instructions, each a tuple of small numbers. What they mean depends on the arrays that
there are at that point, whose shapes are the same under tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from retrograd.tracer.array import shadow_of

Instruction = tuple[int, int, int, int]
instructions = st.tuples(st.integers(0, 10), st.integers(0, 9), st.integers(0, 9), st.integers(0, 11))
programs = st.lists(instructions, min_size=1, max_size=14)


def index_of(shape: tuple[int, ...], choice: int) -> Any:
    """An index that fits a shape."""
    ends = tuple(n - 1 for n in shape)
    options: list[Any] = [..., (), None, slice(None)] if shape else [..., (), None]
    if shape and min(shape) > 0:
        options += [
            0,
            -1,
            slice(1, None),
            slice(None, None, -1),
            slice(None, None, 2),
            slice(-1, 0, -2),
            (..., 0),
            (..., slice(1, None)),
            (None, 0),
            ends,
            (*ends, ...),
            ends[:-1],
            (slice(None, -1), ...),
            [0, -1],
            np.array([[0], [ends[0]]]),
            (..., np.array([0, -1, 0])),
            (slice(0, 0),),
        ]
    if len(shape) > 1 and min(shape) > 0:
        options += [(slice(None), -1), (0, slice(None, None, -1)), ([0, -1], 0), (slice(None), [0, 0])]
    return options[choice % len(options)]


def is_basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(i, (list, np.ndarray)) for i in items)


def created(shape: tuple[int, ...], values: Sequence[Any], choice: int) -> Any:
    count = int(np.prod(shape))
    makers: list[Callable[[], Any]] = [
        lambda: np.zeros(shape),
        lambda: np.ones(shape),
        lambda: np.full(shape, 0.5),
        lambda: np.arange(float(count)).reshape(shape),
        lambda: np.linspace(0.0, 1.0, count).reshape(shape),
        lambda: np.full(shape, values[0].reshape(-1)[-1] if values[0].size else 0.25),
        lambda: np.array([v.reshape(-1)[0] if v.size else 0.75 for v in values[:3]]),
        lambda: np.array([[0.25, v.reshape(-1)[-1] if v.size else 1.0] for v in values[:2]]),
        lambda: np.zeros_like(values[0]),
        lambda: emptied(shape),
        lambda: np.eye(3)[: max(1, count % 4)],
        lambda: np.asarray(values[0]),
    ]
    return makers[choice % len(makers)]()


def emptied(shape: tuple[int, ...]) -> Any:
    made = np.empty(shape)
    made[...] = 0.5
    return made


def viewed(x: Any, choice: int) -> Any:
    makers: list[Callable[[], Any]] = [
        lambda: x.reshape(-1),
        lambda: x.T,
        lambda: np.ravel(x),
        lambda: np.expand_dims(x, 0),
        lambda: np.swapaxes(x, 0, -1) if x.ndim else x,
        lambda: x.reshape(*x.shape, 1),
        lambda: np.squeeze(x),
        x.transpose,
        lambda: np.moveaxis(x, -1, 0) if x.ndim else x,
        lambda: x.reshape((1, x.size)),
    ]
    return makers[choice % len(makers)]()


def computed(x: Any, y: Any, choice: int) -> Any:
    same = x.shape == y.shape
    makers: list[Callable[[], Any]] = [
        lambda: np.sin(x),
        lambda: x * 0.5 + 0.25,
        lambda: x + y if same else x - 1.0,
        lambda: x * y * 0.25 if same else -x,
        x.copy,
        lambda: np.sum(x, axis=0) * 0.25 if x.ndim else x * 2.0,
        lambda: np.concatenate([x.reshape(-1), y.reshape(-1)])[:6],
        lambda: np.tanh(x.T).copy(),
        lambda: +x,
        lambda: np.where(x > 0.1, x, 0.5 * x),
        lambda: np.cos(x.T.copy()),
        lambda: np.copy(x.T),
    ]
    return makers[choice % len(makers)]()


def value_for(part: Any, source: Any, choice: int) -> Any:
    """Something that can be assigned to ``part``."""
    flat = source.reshape(-1)
    values: list[Any] = [0.75, np.float64(-0.5), 0]
    if source.size:
        values += [flat[0], flat[-1] * 0.5, flat[:1], flat[:1].reshape(1)]
    if np.shape(source)[-np.ndim(part) :] == np.shape(part) and np.ndim(source) == np.ndim(part):
        values += [source, source * 0.5]
    if np.size(part) <= source.size:
        values += [flat[: np.size(part)].reshape(np.shape(part)), flat[: np.size(part)].reshape((1, *np.shape(part)))]
    values += [part * 0.5 + 0.25, [0.5] if np.ndim(part) else 0.5]
    return values[choice % len(values)]


def changed(x: Any, source: Any, where: int, how: int) -> None:
    """Write into ``x`` in one of many ways."""
    if not (x.shape and writable(x)):
        return
    index = index_of(x.shape, where)
    part = x[index]
    value = value_for(part, source, how + where)
    if not np.ndim(part) and np.ndim(value):
        value = 0.125
    if how % 12 < 2 and copied_in_order(part, value):
        reject()
    ways: list[Callable[[], Any]] = [
        lambda: x.__setitem__(index, value),
        lambda: x.__setitem__(index, value),
        lambda: x.__setitem__(index, part + value),
        lambda: x.__setitem__(x > 0.3, 0.0625),
        lambda: x.fill(0.375),
        lambda: np.multiply(x, 0.5, out=x),
        lambda: np.sin(x, out=x),
        lambda: x.__iadd__(0.25),
        lambda: x.__imul__(x * 0.5),
        lambda: x.__setitem__(..., x[::-1]),
        lambda: x[index].__iadd__(value) if is_basic(index) and np.ndim(part) >= max(1, np.ndim(value)) else None,
        lambda: np.add(x, 0.5, out=x, where=x < 0.2),
    ]
    ways[how % len(ways)]()


def copied_in_order(part: Any, value: Any) -> bool:
    """Whether NumPy reads elements that it has just written: it copies along one axis without asking for overlaps."""
    traced = shadow_of(part) is not part
    if traced or part.ndim != 1 or type(value) is not np.ndarray or not np.shares_memory(part, value):
        return False
    return part.strides[0] * value.strides[-1] > 0 and part.strides[0] != value.strides[-1]


def writable(x: Any) -> bool:
    """Broadcasts are read-only; here only they have an axis without a step."""
    return bool(shadow_of(x).flags.writeable)


def run(program: Sequence[Instruction], x: Any) -> list[Any]:
    """All arrays that a program makes from ``x``."""
    made = [x]
    for kind, a, b, c in program:
        first, second = made[a % len(made)], made[b % len(made)]
        if kind == 0:
            made.append(created(((), (3,), (2, 3), (4,), (2, 2))[b % 5], [first, second, made[-1]], c))
        elif kind <= 2 and first.ndim:
            index = index_of(first.shape, b + c)
            made.append(first[index])
        elif kind == 3:
            made.append(viewed(first, c))
        elif kind <= 5:
            made.append(computed(first, second, c))
        else:
            changed(first, second, a + b + kind, c)
    return made
