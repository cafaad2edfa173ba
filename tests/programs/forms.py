"""One small program for each form of creation and of writing: what NumPy can do, a trace must do."""

# The programs are written as users write them:
# ruff: noqa: PLC3002, PLW0108

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy import full as early_full
from numpy import zeros as early_zeros

Program = Callable[[Any], Any]
W = np.array([4.0, 5.0, 6.0])
GRID = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def filled(y: Any, x: Any) -> Any:
    """A new array must take traced values."""
    y.reshape(-1)[: min(y.size, 3)] = x[: min(y.size, 3)]
    return y


class Model:
    """Creation in a method, in a class, in a property."""

    scale = 2.0

    def __init__(self, n: int) -> None:
        self.n = n

    def zeros(self) -> Any:
        return np.zeros(self.n)

    @property
    def ones(self) -> Any:
        return np.ones(self.n)

    @staticmethod
    def pair(a: Any, b: Any) -> Any:
        return np.array([a, b])


def with_default(x: Any, make: Any = np.zeros) -> Any:
    return filled(make(3), x)


def generated(x: Any) -> Any:
    for k in range(3):
        row = np.zeros(3)
        row[k] = x[k]
        yield row


def recursive(x: Any, depth: int) -> Any:
    y = np.zeros(3)
    y[depth] = x[depth]
    return y if depth == 0 else y + recursive(x, depth - 1)


def closure(x: Any) -> Any:
    make = np.zeros

    def inner(n: int) -> Any:
        return filled(make(n), x)

    return inner(3)


CREATION: dict[str, Program] = {
    "zeros": lambda x: filled(np.zeros(3), x),
    "zeros of a shape": lambda x: filled(np.zeros((2, 2)), x),
    "zeros in order F": lambda x: filled(np.zeros((3, 1), order="F"), x),
    "ones": lambda x: filled(np.ones(4), x),
    "empty": lambda x: filled(np.empty(3), x),
    "full": lambda x: filled(np.full(4, 0.5), x),
    "full of a traced number": lambda x: np.full(4, x[0]),
    "full of a traced row": lambda x: np.full((2, 3), x),
    "full with a dtype": lambda x: np.full(3, x[0], np.float32),
    "zeros_like": lambda x: filled(np.zeros_like(x), x),
    "zeros_like of a captured array": lambda x: filled(np.zeros_like(W), x),
    "ones_like of a captured array": lambda x: filled(np.ones_like(GRID), x),
    "empty_like": lambda x: filled(np.empty_like(x), x),
    "empty_like of a captured array": lambda x: filled(np.empty_like(W), x),
    "full_like": lambda x: np.full_like(x, x[1]),
    "full_like of a captured array": lambda x: np.full_like(W, x[1]),
    "full_like of a captured array, filled": lambda x: filled(np.full_like(W, 2.0), x),
    "full_like with a shape": lambda x: np.full_like(GRID, x[0], shape=(2, 2)),
    "nan_to_num of a captured array": lambda x: np.nan_to_num(np.array([np.nan, 1.0, np.inf]), nan=x[0], posinf=x[1]),
    "nan_to_num with a traced nan": lambda x: np.nan_to_num(x, nan=x[0]),
    "array of numbers": lambda x: filled(np.array([1.0, 2.0, 3.0, 4.0]), x),
    "array of mixed entries": lambda x: np.array([x[0], 1.0, x[1] * 2]),
    "array of nested lists": lambda x: np.array([[x[0], 1], [2, x[1]]]),
    "array of lists and arrays": lambda x: np.array([x, [1.0, x[0], 2.0], W]),
    "array of three levels": lambda x: np.array([[[x[0]], [1.0]], [[2.0], [x[1]]]]),
    "array of a tuple of tracers": lambda x: np.array((x[0], x[1])),
    "array of a captured array": lambda x: filled(np.array(W), x),
    "array of a list of tracers": lambda x: np.array([v * 2 for v in x]),
    "array of a tracer": lambda x: np.array(x) * 2,
    "array with a dtype": lambda x: np.array([x[0], 1], dtype=np.float32),
    "array with ndmin": lambda x: np.array(x[0], ndmin=2),
    "array in order F": lambda x: filled(np.array(GRID, order="F"), x),
    "array of one tracer": lambda x: np.array(x[0]),
    "asarray of a list": lambda x: np.asarray([x[0], x[1]]),
    "asarray of a tracer": lambda x: np.asarray(x) * 2,
    "asanyarray of a list": lambda x: np.asanyarray([x[0], 1.0]),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x.reshape(3, 1).T),
    "ascontiguousarray of a list": lambda x: np.ascontiguousarray([x[0], 2.0]),
    "ascontiguousarray of a captured array": lambda x: np.ascontiguousarray(GRID.T) @ x[:2],
    "asfortranarray": lambda x: np.asfortranarray(np.outer(x, x)) * x,
    "require": lambda x: np.require(x, requirements="C") * 2,
    "asarray_chkfinite": lambda x: np.asarray_chkfinite(x) * 2,
    "copy of a captured array": lambda x: filled(np.copy(W), x),
    "the method copy of a captured array": lambda x: filled(W.copy(), x),
    "astype of a captured array": lambda x: filled(GRID.astype(float), x),
    "a computed copy of a captured array": lambda x: filled(W * 1.0, x),
    "diag of a captured array": lambda x: filled(np.diag(W).copy(), x),
    "a default argument": with_default,
    "arange": lambda x: filled(np.arange(4.0), x),
    "arange of floats": lambda x: np.arange(0.0, 1.0, 0.25) * x[0],
    "arange from a traced start": lambda x: np.arange(x[0], x[0] + 2.0),
    "arange by a traced step": lambda x: np.arange(0.0, 4.0 * x[1], x[1]),
    "linspace": lambda x: filled(np.linspace(0.0, 1.0, 5), x),
    "linspace to a traced end": lambda x: np.linspace(0.0, x[0], 5),
    "linspace from a traced start": lambda x: np.linspace(start=x[0], stop=1.0, num=5),
    "linspace without its end": lambda x: np.linspace(x[0], x[1], 5, endpoint=False),
    "linspace between traced arrays": lambda x: np.linspace(x, 2 * x, 4),
    "linspace along another axis": lambda x: np.linspace(x, W, 4, axis=-1),
    "linspace with its traced step": lambda x: np.linspace(0.0, x[0], 5, retstep=True)[1],
    "linspace of one point": lambda x: np.linspace(x[0], x[1], 1),
    "linspace as float32": lambda x: np.linspace(0.0, x[0], 4, dtype=np.float32),
    "logspace to a traced end": lambda x: np.logspace(0.0, x[0], 4),
    "logspace with a traced base": lambda x: np.logspace(0.0, 1.0, 4, base=x[0]),
    "geomspace": lambda x: filled(np.geomspace(1.0, 8.0, 4), x),
    "geomspace to a traced end": lambda x: np.geomspace(1.0, 1.0 + x[0], 4),
    "eye": lambda x: filled(np.eye(3), x),
    "eye times a traced number": lambda x: np.eye(2) * x[0],
    "identity": lambda x: filled(np.identity(2), x),
    "tri": lambda x: filled(np.tri(3), x),
    "diag": lambda x: filled(np.diag(x).copy(), x),
    "diag of a list": lambda x: np.diag([x[0], 1.0]),
    "diagflat of a list": lambda x: np.diagflat([x[0], 1.0]),
    "vander of a captured array": lambda x: np.vander(W, 3) @ x,
    "vander": lambda x: np.vander(x, 3),
    "r_ of tracers": lambda x: np.r_[x[0], 1.0, x],
    "r_ of a slice": lambda x: np.r_[0:3, x],
    "r_ of a slice of a complex step": lambda x: np.r_[0:1:3j] * x,
    "r_ of numbers": lambda x: filled(np.r_[1.0, 2.0, 3.0], x),
    "r_ to a traced stop of a complex step": lambda x: np.r_[0 : x[0] : 4j],
    "c_": lambda x: np.c_[x, x * 2],
    "c_ with captured arrays": lambda x: np.c_[x, W],
    "mgrid": lambda x: filled(np.mgrid[0:2, 0:3].astype(float), x),
    "mgrid with a traced stop": lambda x: np.mgrid[0 : x[0] : 3j, 0:1:2j],
    "ogrid": lambda x: np.ogrid[0:3][0:3] * x,
    "indices": lambda x: filled(np.indices((2, 2)).astype(float), x),
    "select": lambda x: np.select([x > 1, x > 0], [x, -x], default=x[0]),
    "select among captured arrays": lambda x: np.select([W > 4, W > 3], [W, -W], default=x),
    "select of numbers with a traced default": lambda x: np.select([W > 4], [1.0], default=x[1]),
    "select with captured choices and a traced default": lambda x: np.select([W > 4, W > 3], [W, -W], default=x[0]),
    "piecewise": lambda x: np.piecewise(x, [x < 1, x >= 1], [lambda v: -v, lambda v: v * v]),
    "piecewise of a captured array": lambda x: np.piecewise(W, [W < 5], [lambda v: v * x[0], x[1]]),
    "fromfunction": lambda x: np.fromfunction(lambda i, j: (i + j) * x[0], (2, 3)),
    "fromfunction of integers": lambda x: np.fromfunction(lambda i, j: x[i] * j, (3, 3), dtype=int),
    "fromiter": lambda x: np.fromiter((v * 2 for v in x), float),
    "fromiter with a count": lambda x: np.fromiter([x[0], x[1]], dtype=float, count=2),
    "ndarray": lambda x: empty_filled(np.ndarray(3), x),
    "ndarray of a shape": lambda x: empty_filled(np.ndarray((3, 2), float), x),
    "float64": lambda x: np.float64(x[0]) * 2,
    "float64 of a number": lambda x: np.float64(2.0) * x,
    "float32": lambda x: np.float32(x[0]),
    "complex128": lambda x: np.complex128(x[0]).real,
    "int64 of a traced integer": lambda x: np.int64(np.argmax(x)) * x,
    "bool_": lambda x: np.bool_(x[0] > 0) * x,
    "take from a captured array": lambda x: np.take(W, np.argmax(x)) * x,
    "take by traced numbers": lambda x: np.take(W, np.argsort(x)) * x,
    "take from a list": lambda x: np.take([1.0, 2.0, 3.0], np.argsort(x)) * x,
    "pad of a captured array": lambda x: np.pad(W, 1, constant_values=x[0]),
    "interp of a captured array": lambda x: np.interp(4.5, W, x),
    "interp with traced ends": lambda x: np.interp(np.array([0.0, 10.0]), W, W, left=x[0], right=x[1]),
    "sum of a captured array from a traced start": lambda x: np.sum(W, initial=x[0]),
    "sum of a captured array where": lambda x: np.sum(W, where=x > 1) * x,
    "trapezoid by a traced step": lambda x: np.trapezoid(W, dx=x[0]),
    "gradient by a traced step": lambda x: np.gradient(W, x[0]),
    "diff with a traced start": lambda x: np.diff(W, prepend=x[0]),
    "average with traced weights": lambda x: np.average(W, weights=x * x),
    "append of a traced value": lambda x: np.append(W, x[0]),
    "insert of a traced value": lambda x: np.insert(W, 1, x[0]),
    "clip of a captured array": lambda x: np.clip(W, x[0], 4.0 + x[1]),
    "concatenate of a list": lambda x: np.concatenate([W, [x[0]], x]),
    "stack of zeros": lambda x: filled(np.stack([np.zeros(3), np.ones(3)]), x),
    "block": lambda x: np.block([[np.eye(2) * x[0], np.zeros((2, 1))], [np.zeros((1, 2)), np.array([[x[1]]])]]),
    "meshgrid": lambda x: filled(np.meshgrid(np.arange(3.0), np.arange(2.0))[0], x),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3)) * GRID,
    "tril of ones": lambda x: np.tril(np.ones((3, 3))) @ x,
    "tril_indices": lambda x: triangular(x),
    "diag_indices": lambda x: on_diagonal(x),
    "hanning": lambda x: np.hanning(3) * x,
    "float of a traced value": lambda x: float(x[0]) * x,
    "float of a captured number": lambda x: float(W[0]) * x,
    "float of an expression": lambda x: [float(v) ** 2 for v in x][1],
    "complex of a traced value": lambda x: (complex(x[0]) * 1j).imag * x,
    "math.sin": lambda x: math.sin(x[0]) * x,
    "math.sqrt": lambda x: math.sqrt(x[0] ** 2 + 1.0),
    "math.exp": lambda x: math.exp(-x[0]),
    "math.log": lambda x: math.log(1 + x[0] ** 2),
    "math.log with a base": lambda x: math.log(1 + x[0] ** 2, 3),
    "math.atan2": lambda x: math.atan2(x[0], x[1]),
    "math.hypot": lambda x: math.hypot(*x),
    "math.pow": lambda x: math.pow(1 + x[0] ** 2, 1.5),
    "math.fabs": lambda x: math.fabs(x[0]),
    "math.tanh": lambda x: math.tanh(x[0]),
    "math.fsum": lambda x: math.fsum(x),
    "math.prod": lambda x: math.prod(x),
    "math.dist": lambda x: math.dist(x, W),
    "math.floor": lambda x: math.floor(x[0]) * x,
    "math.ceil": lambda x: math.ceil(x[0]) * x,
    "math.copysign": lambda x: math.copysign(x[0], x[1]),
    "math.degrees": lambda x: math.degrees(x[0]),
    "math.isnan": lambda x: math.isnan(x[0]),
    "math.isclose": lambda x: math.isclose(x[0], x[1]),
    "math.erf": lambda x: math.erf(x[0]),
    "math.gamma": lambda x: math.gamma(1 + x[0] ** 2),
    "math.modf": lambda x: math.modf(x[0])[0],
    "a name bound early": lambda x: filled(early_zeros(3), x),
    "an early full": lambda x: early_full(2, x[0]),
    "a method": lambda x: filled(Model(3).zeros(), x),
    "a property": lambda x: filled(Model(3).ones, x),
    "a static method": lambda x: Model.pair(x[0], x[1]),
    "a closure": closure,
    "a partial made inside": lambda x: filled(partial(np.zeros, 3)(), x),
    "a generator": lambda x: sum(generated(x)),
    "recursion": lambda x: recursive(x, 2),
    "a comprehension": lambda x: np.array([filled(np.zeros(3), x * k) for k in range(2)]),
    "a lambda": lambda x: (lambda n: filled(np.zeros(n), x))(3),
    "getattr": lambda x: filled(getattr(np, "zeros")(3), x),  # noqa: B009 - as users do
    "isinstance of an array": lambda x: x * 2 if isinstance(x, np.ndarray) else x[5],
    "isinstance of a number": lambda x: x * 2 if isinstance(x[0], float) else x[5],
    "isinstance of a created array": lambda x: x * 2 if isinstance(np.zeros(3), np.ndarray) else x[5],
    "isinstance of a NumPy number": lambda x: x * 2 if isinstance(x[0], np.floating) else x[5],
    "a dtype that is compared": lambda x: x * 2 if x.dtype == np.float64 else x[5],
}


def empty_filled(y: Any, x: Any) -> Any:
    y.reshape(-1)[:] = 0.0
    return filled(y, x)


def triangular(x: Any) -> Any:
    y = np.zeros((2, 2))
    y[np.tril_indices(2)] = x
    return y


def on_diagonal(x: Any) -> Any:
    y = np.zeros((3, 3))
    y[np.diag_indices(3)] = x
    return y


def written(change: Callable[[Any, Any], Any], shape: Any = (3,), source: str = "traced") -> Program:
    """A program that changes an array, which holds traced values, and shows it before and after."""

    def program(x: Any) -> Any:
        count = int(np.prod(shape))
        y = (np.arange(float(count)) if source == "plain" else np.resize(x, count) * 1.5).reshape(shape)
        before = y * 2
        out = change(y, x)
        return [before, y, y * y, *(out if isinstance(out, tuple) else [] if out is None else [out])]

    return program


def assigned(index: Any, value: Any) -> Callable[[Any, Any], Any]:
    return lambda y, x: y.__setitem__(index, value(x) if callable(value) else value)


def augmented(y: Any, x: Any) -> None:
    y += x[0]
    y -= 1.0
    y *= x[1]
    y /= 2.0
    y **= 2


def floored(y: Any, x: Any) -> None:
    y //= 0.5
    y %= 3.0
    y *= x[0] * x[0]


def through(view: Callable[[Any], Any], value: Any = 7.5) -> Callable[[Any, Any], Any]:
    """Write into a view, and write into the array and see the view change."""

    def change(y: Any, x: Any) -> Any:
        v = view(y)
        v[...] = value if not callable(value) else value(x)
        y.reshape(-1)[0] = x[2]
        return v * 1.0

    return change


def swapped(y: Any, x: Any) -> None:
    y[0], y[1] = y[1], y[0]


def swapped_rows(y: Any, x: Any) -> None:
    y[[0, 1]] = y[[1, 0]]


def shaped(y: Any, x: Any) -> Any:
    v = y[...]
    v.shape = (3, 2)
    v[1, 0] = x[0]
    return v


def shape_set(y: Any, x: Any) -> Any:
    y.shape = (3, 2)
    y[2] = x[0]
    return y @ x[:2]


def complex_parts(y: Any, x: Any) -> Any:
    z = y + 1j * x[0]
    z.real = x
    z.imag[1] = x[2]
    z.imag += 0.5
    z.real[:2] *= 2.0
    return z.real, z.imag, abs(z)


def flat_iterated(y: Any, x: Any) -> Any:
    total = 0.0
    for v in y.flat:
        total = total + v * v
    y.flat = x[0]
    y.flat[[0, 2]] = x[1], x[2]
    return total, y.flat[1]


def enumerated(y: Any, x: Any) -> None:
    for k, row in enumerate(y):
        row[0] = x[k]


def by_nditer(y: Any, x: Any) -> None:
    for k in np.ndindex(y.shape):
        y[k] = y[k] * x[0]


def split_in_place(y: Any, x: Any) -> None:
    left, right = np.hsplit(y, [1])
    left *= x[0]
    right[0] = x[1]


def no_write_through_a_copy(y: Any, x: Any) -> Any:
    z = y[[0, 1]]
    z[0] = x[0]
    w = y.flatten()
    w[:] = 0.0
    return z


SQUARE = (3, 3)
WRITES: dict[str, Program] = {
    "an element": written(assigned(0, lambda x: x[1])),
    "a negative element": written(assigned(-1, 2.5)),
    "a slice": written(assigned(slice(1, None), lambda x: x[:2])),
    "a slice with a step": written(assigned(slice(None, None, 2), lambda x: x[0])),
    "a reversed slice": written(assigned(slice(None, None, -1), lambda x: x)),
    "everything": written(assigned(Ellipsis, lambda x: x * 2)),
    "an element of a matrix": written(assigned((1, 2), lambda x: x[0]), (2, 3)),
    "a row": written(assigned(1, lambda x: x), (2, 3)),
    "a column": written(assigned((slice(None), 0), lambda x: x[:2]), (2, 3)),
    "a block": written(assigned((slice(1, 3), slice(0, 2)), lambda x: x[:2]), SQUARE),
    "a new axis": written(assigned((None, 0), lambda x: x[:1])),
    "an ellipsis in the middle": written(assigned((0, Ellipsis, 1), lambda x: x[0]), (2, 2, 2)),
    "a list": written(assigned([0, 2], lambda x: x[:2])),
    "an array of indices": written(assigned(np.array([2, 0]), 5.0)),
    "repeated indices": written(assigned([0, 1, 0], lambda x: x)),
    "repeated indices of an array": written(assigned(np.array([[0, 0], [1, 0]]), lambda x: x[:2])),
    "traced indices": written(lambda y, x: y.__setitem__(np.argsort(x), x)),
    "a traced index": written(lambda y, x: y.__setitem__(np.argmax(x), x[0])),
    "a traced index in a tuple": written(lambda y, x: y.__setitem__((slice(None), np.argmax(x)), x[0]), (2, 3)),
    "index arrays for two axes": written(assigned(([0, 1], [1, 0]), lambda x: x[:2]), (2, 3)),
    "index arrays apart": written(assigned(([0, 1], slice(None), [1, 0]), lambda x: x[0]), (2, 2, 2)),
    "ix_": written(lambda y, x: y.__setitem__(np.ix_([0, 2], [0, 1]), x[0]), SQUARE),
    "a mask": written(lambda y, x: y.__setitem__(y > 1, x[0])),
    "a mask and an array": written(lambda y, x: y.__setitem__(x > 1, x[x > 1] * 2)),
    "a mask of the rows": written(lambda y, x: y.__setitem__(x > 1, 0.5), SQUARE),
    "a mask and a column": written(lambda y, x: y.__setitem__((x > 1, 0), 0.5), SQUARE),
    "a known mask": written(assigned(np.array([True, False, True]), lambda x: x[:2])),
    "augmented": written(augmented),
    "augmented floors": written(floored, source="plain"),
    "an augmented element": written(lambda y, x: y.__setitem__(0, y[0] + x[0])),
    "an augmented slice": written(lambda y, x: y[1:].__iadd__(x[1:])),
    "augmented through repeated indices": written(lambda y, x: y.__setitem__([0, 0], y[[0, 0]] + x[:2])),
    "augmented by a mask": written(lambda y, x: y.__setitem__(x > 1, y[x > 1] * 3.0)),
    "add.at": written(lambda y, x: np.add.at(y, [0, 0, 2], x)),
    "add.at of traced indices": written(lambda y, x: np.add.at(y, np.argsort(x) % 2, x)),
    "add.at of a tuple": written(lambda y, x: np.add.at(y, ([0, 0], [1, 1]), x[:2]), (2, 3)),
    "subtract.at": written(lambda y, x: np.subtract.at(y, [0, 0], x[:2])),
    "multiply.at": written(lambda y, x: np.multiply.at(y, [0, 2], x[:2])),
    "multiply.at with repeats": written(lambda y, x: np.multiply.at(y, [0, 0], x[:2])),
    "divide.at with repeats": written(lambda y, x: np.divide.at(y, [0, 0], x[1:])),
    "maximum.at with repeats": written(lambda y, x: np.maximum.at(y, [0, 0], x[:2])),
    "negative.at": written(lambda y, x: np.negative.at(y, [0, 1])),
    "out=": written(lambda y, x: np.multiply(y, x, out=y)),
    "out= of a part": written(lambda y, x: np.add(x[:2], 1.0, out=y[1:])),
    "out= by position": written(lambda y, x: np.sin(x, y)),
    "out= of a reduction": written(lambda y, x: np.sum(np.outer(x, x), axis=0, out=y)),
    "out= of a product": written(lambda y, x: np.matmul(np.outer(x, x), x, out=y)),
    "out= of cumsum": written(lambda y, x: np.cumsum(x, out=y)),
    "out= of clip": written(lambda y, x: np.clip(y, x[0], 2.0, out=y)),
    "out= of concatenate": written(lambda y, x: np.concatenate([x[:1], x[1:]], out=y)),
    "out= and where=": written(lambda y, x: np.exp(x, out=y, where=x > 1)),
    "out= of two results": written(lambda y, x: np.divmod(x, 0.8, out=(y, np.zeros(3)))[1]),
    "fill_diagonal": written(lambda y, x: np.fill_diagonal(y, x[0]), SQUARE),
    "fill_diagonal by an array": written(np.fill_diagonal, SQUARE),
    "fill_diagonal of a wide matrix": written(lambda y, x: np.fill_diagonal(y, x[1]), (2, 3)),
    "fill_diagonal wrapped": written(lambda y, x: np.fill_diagonal(y, x[1], wrap=True), (5, 2)),
    "put": written(lambda y, x: np.put(y, [0, 3], x[:2]), (2, 3)),
    "put, wrapped": written(lambda y, x: np.put(y, [0, 7], x[:2], mode="wrap"), (2, 3)),
    "the method put": written(lambda y, x: y.put([0, 1], x[1:])),
    "putmask": written(lambda y, x: np.putmask(y, x > 1, x * 5)),
    "place": written(lambda y, x: np.place(y, x > 1, [x[0]])),
    "place of several values": written(lambda y, x: np.place(y, np.array([True, False, True]), x)),
    "copyto": written(np.copyto),
    "copyto where": written(lambda y, x: np.copyto(y, 5.0, where=x > 1)),
    "put_along_axis": written(lambda y, x: np.put_along_axis(y, np.array([[0], [1]]), x[:1], 1), (2, 3)),
    "put_along_axis of traced places": written(lambda y, x: np.put_along_axis(y, np.argsort(x), x, 0)),
    "sort": written(lambda y, x: y.sort()),
    "sort of rows": written(lambda y, x: y.sort(axis=0), SQUARE),
    "sort of a slice": written(lambda y, x: y[1:].sort()),
    "partition": written(lambda y, x: y.partition(1)),
    "fill": written(lambda y, x: y.fill(x[0])),
    "fill of a row": written(lambda y, x: y[0].fill(x[1]), (2, 3)),
    "flat by an index": written(lambda y, x: y.flat.__setitem__(4, x[0]), (2, 3)),
    "flat by a slice": written(lambda y, x: y.flat.__setitem__(slice(1, 4), x), (2, 3)),
    "flat with a step": written(lambda y, x: y.flat.__setitem__(slice(None, None, 4), x[0]), SQUARE),
    "flat, read and iterated": written(flat_iterated, (2, 3)),
    "the shape": written(shape_set, (2, 3)),
    "the shape of a view": written(shaped, (2, 3)),
    "real and imaginary parts": written(complex_parts),
    "a swap": written(swapped),
    "a swap of rows": written(swapped_rows, (2, 3)),
    "a reversal in place": written(lambda y, x: y.__setitem__(Ellipsis, y[::-1])),
    "a shift onto itself": written(lambda y, x: y.__setitem__(slice(1, None), y[:-1])),
    "through a slice": written(through(lambda y: y[1:])),
    "through a slice of a slice": written(through(lambda y: y[::2][1:]), (5,)),
    "through a row": written(through(lambda y: y[1], lambda x: x), (2, 3)),
    "through reshape": written(through(lambda y: y.reshape(3, 2), lambda x: x[:2]), (2, 3)),
    "through a transpose": written(through(lambda y: y.T, lambda x: x[:2]), (2, 3)),
    "through ravel": written(through(np.ravel, lambda x: np.concatenate([x, x])), (2, 3)),
    "through the method ravel": written(through(lambda y: y.ravel()), (2, 3)),
    "through squeeze": written(through(lambda y: y.squeeze()), (1, 3)),
    "through expand_dims": written(through(lambda y: np.expand_dims(y, 0), lambda x: x)),
    "through swapaxes": written(through(lambda y: y.swapaxes(0, 1)[1:]), SQUARE),
    "through moveaxis": written(through(lambda y: np.moveaxis(y, 0, -1)[0]), (2, 2, 2)),
    "through rot90": written(through(lambda y: np.rot90(y)[0]), SQUARE),
    "through flip": written(through(lambda y: np.flip(y)[:2], lambda x: x[:2])),
    "through atleast_2d": written(through(np.atleast_2d, lambda x: x)),
    "through a transposed slice of a reshape": written(through(lambda y: y.reshape(2, 3).T[1:]), (6,)),
    "through an einsum diagonal": written(through(lambda y: np.einsum("ii->i", y), lambda x: x), SQUARE),
    "through a reshape that copies": written(lambda y, x: y.T.reshape(-1).__setitem__(0, x[0]), (2, 3)),
    "through newaxis": written(through(lambda y: y[:, None], lambda x: x[:, None])),
    "through an iterator of rows": written(enumerated, SQUARE),
    "through ndindex": written(by_nditer, (2, 2)),
    "through hsplit": written(split_in_place, (2, 3)),
    "through a list of parts": written(lambda y, x: next(p.fill(x[0]) for p in np.split(y, 3))),
    "through asarray": written(through(lambda y: np.asarray(y))),
    "through view": written(through(lambda y: y.view())),
    "through real of a real array": written(through(lambda y: y.real)),
    "not through a copy": written(no_write_through_a_copy),
    "into plain numbers": written(assigned(slice(1, None), lambda x: x[0]), source="plain"),
    "by a mask into plain numbers": written(lambda y, x: y.__setitem__(y > 0.5, x[0]), source="plain"),
    "a cast of what is written": written(lambda y, x: y.astype(np.float32).__setitem__(0, x[0])),
}
