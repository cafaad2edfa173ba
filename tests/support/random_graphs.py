"""Random graphs of smooth or piecewise smooth operations whose values stay moderate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from retrograd.ir import Aval, Graph, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.texts import Arg

from .graphs import op
from .values import random_of

Draw = Callable[..., Any]
LIMIT = 100.0  # results that may be larger pass through a sine
SHAPES = [(), (1,), (3,), (2, 3), (3, 2), (2, 2), (4, 1), (2, 1, 3), (0,), (2, 0)]
F64 = np.dtype(float)
SLICES = np.s_[:, 1:, ::-1, :2, ::2]


class Growing:
    """A graph under construction; each value has a bound."""

    def __init__(self, draw: Draw, dtype: np.dtype[Any]) -> None:
        self.draw, self.dtype = draw, dtype
        self.b = Builder()
        self.values: list[Symbol] = []
        self.bound: dict[Any, float] = {}

    def keep(self, x: Symbol, bound: float) -> None:
        """Make a result available to later operations."""
        if bound > LIMIT:
            x, bound = op("sin", x), 1.0
        self.values.append(x)
        self.bound[x.value] = max(bound, self.bound.get(x.value, 0.0))

    def one_of(self, items: Any) -> Any:
        return items[self.draw(st.integers(0, len(items) - 1))]

    def pick(self, condition: Callable[[Symbol], bool]) -> Symbol | None:
        """One of the values that fulfil a condition, late ones first when shrinking."""
        found = [x for x in reversed(self.values) if condition(x)]
        return self.one_of(found) if found else None

    def any(self) -> Symbol:
        """One of the values."""
        found: Symbol = self.one_of(self.values[::-1])
        return found

    def of_shape(self, shape: tuple[int, ...]) -> Symbol:
        """A value of a shape, or a constant."""
        other = self.pick(lambda y: y.shape == shape)
        if other is None or self.draw(st.integers(0, 3)) == 0:
            number = self.one_of([1.0, 0.0, -0.0, -1.0, 2.0, 0.5])
            constant = self.b.constant(number, Aval(shape, self.dtype))
            self.bound[constant.value] = 2.0
            return constant
        return other

    def step(self) -> None:
        """Add one operation."""
        getattr(self, "_" + self.one_of(STEPS))()

    def _unary(self) -> None:
        x = self.any()
        name = self.one_of(["sin", "cos", "tanh", "neg", "neg", "square", "abs", "copy", "exp"])
        if name == "copy" and x.aval.kind == "python":
            return
        k = self.bound[x.value]
        if name == "exp" and k > 3:
            name = "tanh"
        bounds = {"neg": k, "abs": k, "copy": k, "square": k * k, "exp": math.exp(min(k, 3))}
        self.keep(op(name, x), bounds.get(name, 1.0))

    def _binary(self) -> None:
        x = self.any()
        y = self.of_shape(x.shape)
        if self.draw(st.booleans()):
            x, y = y, x
        name = self.one_of(["add", "sub", "mul", "maximum", "minimum", "add", "mul"])
        p, q = self.bound[x.value], self.bound[y.value]
        self.keep(op(name, x, y), p * q if name == "mul" else p + q)

    def _where(self) -> None:
        x = self.any()
        y, z = self.of_shape(x.shape), self.of_shape(x.shape)
        less = op("lt", x, z)
        condition = op("logical_not", less) if self.draw(st.booleans()) else less
        self.keep(op("where", condition, x, y), max(self.bound[x.value], self.bound[y.value]))

    def _power(self) -> None:
        x = self.any()
        n = self.one_of([1.0, 3.0, 0.0])  # a literal 2 is squared, an array of them is not
        self.keep(op("power", x, n), max(self.bound[x.value], 1.0) ** n)

    def _divide(self) -> None:
        x = self.any()
        y = self.of_shape(x.shape)
        self.keep(op("div", x, op("square", y) + 1), self.bound[x.value])

    def _index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        index = []
        for n in shape:
            kind = self.draw(st.integers(0, 4))
            if kind == 0 and n:
                index.append(self.draw(st.integers(-n, n - 1)))
            else:
                index.append(SLICES[kind])
        return tuple(index)

    def _getitem(self) -> None:
        x = self.pick(lambda y: y.ndim > 0)
        if x is not None:
            self.keep(op("getitem", x, index=self._index(x.shape)), self.bound[x.value])

    def _write(self) -> None:
        x = self.pick(lambda y: y.ndim > 0)
        if x is None:
            return
        index = self._index(x.shape)
        part = np.empty(x.shape)[index].shape
        v = self.of_shape(part)
        name = self.one_of(["setitem", "additem"])
        self.keep(op(name, x, v, index=index), self.bound[x.value] + self.bound[v.value])

    def _gather(self) -> None:
        x = self.pick(lambda y: y.ndim > 0 and y.shape[0] > 0)
        if x is not None:
            at = self._positions(x)
            self.keep(op("gather", x, at, index=(Arg(1),)), self.bound[x.value])

    def _scatter(self) -> None:
        x = self.pick(lambda y: y.ndim > 0 and y.shape[0] > 0)
        if x is None:
            return
        at = self._positions(x)
        v = self.of_shape((*at.shape, *x.shape[1:]))
        name = self.one_of(["scatter", "scatter_add"])
        self.keep(op(name, x, v, at, index=(Arg(2),)), self.bound[x.value] + 3 * self.bound[v.value])

    def _positions(self, x: Symbol) -> Symbol:
        n = x.shape[0]
        return self.b.constant(np.array(self.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=3))))

    def _broadcast(self) -> None:
        x = self.any()
        shape = (*self.one_of([(), (2,), (3,), (1,)]), *(self.one_of([2, 3]) if n == 1 else n for n in x.shape))
        if x.aval.kind == "array" or shape:
            self.keep(op("broadcast", x, aval=Aval(shape, self.dtype)), self.bound[x.value])

    def _reshape(self) -> None:
        x = self.any()
        shape = self.one_of([(x.size,), (x.size, 1), (1, *x.shape), x.shape[::-1], x.shape])
        self.keep(op("reshape", x, aval=Aval(shape, self.dtype)), self.bound[x.value])

    def _permute(self) -> None:
        x = self.pick(lambda y: y.aval.kind == "array")
        if x is not None:
            self.keep(op("permute", x, axes=tuple(self.draw(st.permutations(range(x.ndim))))), self.bound[x.value])

    def _concatenate(self) -> None:
        x = self.pick(lambda y: y.ndim > 0)
        if x is not None:
            axis = self.draw(st.integers(0, x.ndim - 1))
            y = self.pick(lambda y: y.shape == x.shape)
            assert y is not None
            self.keep(op("concatenate", x, y, axis=axis), max(self.bound[x.value], self.bound[y.value]))

    def _sum(self) -> None:
        x = self.pick(lambda y: y.aval.kind == "array")
        if x is not None:
            axis = tuple(k for k in range(x.ndim) if self.draw(st.booleans()))
            self.keep(op("sum", x, axis=axis, keepdims=self.draw(st.booleans())), self.bound[x.value] * max(x.size, 1))

    def _max(self) -> None:
        x = self.pick(lambda y: y.aval.kind == "array" and y.size > 0)
        if x is not None:
            axis = tuple(k for k in range(x.ndim) if self.draw(st.booleans()))
            name = self.one_of(["max", "min"])
            self.keep(op(name, x, axis=axis, keepdims=self.draw(st.booleans())), self.bound[x.value])

    def _matmul(self) -> None:
        x = self.pick(lambda y: 0 < y.ndim <= 2)
        y = None if x is None else self.pick(lambda y: 0 < y.ndim <= 2 and y.shape[0] == x.shape[-1])
        if x is not None and y is not None:
            self.keep(op("matmul", x, y), self.bound[x.value] * self.bound[y.value] * max(x.shape[-1], 1))

    def _cast(self) -> None:
        x = self.any()
        other = np.dtype(np.float32) if self.dtype == F64 else F64
        away = op("cast", x, aval=Aval(x.shape, other, x.aval.kind if x.aval.kind != "python" else "array"))
        self.keep(op("cast", away, aval=Aval(x.shape, self.dtype, away.aval.kind)), self.bound[x.value])


def _steps() -> list[str]:
    weights = {"unary": 3, "binary": 4, "getitem": 2, "write": 3, "broadcast": 2, "permute": 2, "sum": 2, "matmul": 2}
    names = [name[1:] for name in vars(Growing) if name[0] == "_" != name[1]]
    return [n for n in sorted(names) if n not in {"index", "positions"} for _ in range(weights.get(n, 1))]


STEPS = _steps()


class Example:
    """A graph and arguments for it."""

    def __init__(self, graph: Graph, args: list[Any]) -> None:
        self.graph, self.args = graph, args

    def __repr__(self) -> str:
        return f"{self.graph}{self.args}"


@st.composite
def random_graphs(draw: Draw, dtype: Any = np.float64, *, scalar: bool = False) -> Example:
    """A verified graph and arguments; with ``scalar`` its only result is one number."""
    growing = Growing(draw, np.dtype(dtype))
    for i in range(draw(st.integers(1, 3))):
        shape = growing.one_of(SHAPES)
        kind = growing.one_of(["array", "scalar", "python"]) if not shape else "array"
        if kind == "python" and growing.dtype != F64:
            kind = "scalar"
        growing.keep(growing.b.input(Aval(shape, growing.dtype, kind), "xyz"[i]), 1.0)
    for _ in range(draw(st.integers(5, 25))):
        growing.step()
    if scalar:
        parts = [op("reshape", x, aval=Aval((x.size,), growing.dtype)) for x in growing.values[-3:]]
        sums = [op("sum", op("sin", x), axis=(0,), keepdims=False) for x in parts]
        outputs = [sums[0] if len(sums) == 1 else sum(sums[1:], start=sums[0])]
    else:
        outputs = [growing.values[-1], *(growing.any() for _ in range(draw(st.integers(0, 2))))]
    graph = verify(growing.b.graph("random", outputs))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return Example(graph, [random_of(rng, v.aval) for v in graph.inputs])
