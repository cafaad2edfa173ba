"""Programs written once, for NumPy, autograd and JAX, with their sample arguments.

A program takes the namespace first: ``def f(np, x, ...)`` is run with ``numpy``, ``autograd.numpy`` and ``jax.numpy``;
one that loops by ``scan`` takes that second. Samples are representable in float32, so that the derivatives of a
program in single precision have the same reference.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]
Sampler = Callable[[np.random.Generator], Any]

PROGRAMS: list[Program] = []


@dataclass(frozen=True, eq=False)
class Program:
    """A function, how to draw its arguments, and where the comparisons end.

    ``functional`` is the same function for the libraries that cannot write into arrays. ``autograd`` is the highest
    order of derivative that autograd has for it. ``bits`` says that its value in exact mode is NumPy's bit for bit;
    the sums of ``np.einsum`` are not. ``single`` is the tolerance in float32, relative to the largest entry.
    """

    function: Function
    samplers: tuple[Sampler, ...]
    functional: Function | None = None
    loops: bool = False
    autograd: int = 2
    bits: bool = True
    single: float = 1e-4

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def argnums(self) -> tuple[int, ...]:
        return tuple(range(len(self.samplers)))

    def samples(self, count: int) -> list[tuple[Any, ...]]:
        """Several tuples of arguments; the same at every call."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [tuple(draw(rng) for draw in self.samplers) for _ in range(count)]

    @property
    def args(self) -> tuple[Any, ...]:
        return self.samples(1)[0]

    @property
    def tangents(self) -> tuple[Any, ...]:
        """A direction for each argument."""
        rng = np.random.default_rng(zlib.crc32(self.name[::-1].encode()))
        return tuple(_direction(rng, x) for x in self.args)

    def bound(self, namespace: Any, scan: Function, *, writes: bool = False) -> Function:
        """The function of the arguments alone, in a library."""
        chosen = self.function if writes or self.functional is None else self.functional
        first = (namespace, scan) if self.loops else (namespace,)

        def run(*args: Any) -> Any:
            return chosen(*first, *args)

        run.__name__ = self.name
        return run

    def scalar(self, namespace: Any, scan: Function, *, writes: bool = False) -> Function:
        """The function with one real result: the sum of its results with fixed weights."""
        run = self.bound(namespace, scan, writes=writes)
        out = self.bound(np, python_scan, writes=True)(*self.args)
        if not np.ndim(out) and not np.iscomplexobj(out):
            return run
        weights = weights_of(out)

        def weighted(*args: Any) -> Any:
            return namespace.real(namespace.sum(run(*args) * weights))

        weighted.__name__ = self.name
        return weighted


def weights_of(out: Any) -> Any:
    """The weights with which results are summed."""
    return _direction(np.random.default_rng(7), out)


def _direction(rng: np.random.Generator, like: Any) -> Any:
    shape = np.shape(like)
    real = rng.uniform(-1, 1, shape)
    if np.iscomplexobj(like):
        return real + 1j * rng.uniform(-1, 1, shape)
    return real if shape else float(real)


def python_scan(body: Function, init: Any, xs: Any = None, length: int | None = None, *, reverse: bool = False) -> Any:
    """A scan as a loop in Python, for one array of inputs and one of outputs."""
    return looped(np, body, init, xs, length, reverse=reverse)


def looped(
    namespace: Any, body: Function, init: Any, xs: Any = None, length: int | None = None, *, reverse: bool = False
) -> Any:
    """The loop of ``python_scan``, which collects its outputs by ``stack`` of a library."""
    n = length if xs is None else len(xs)
    assert n is not None
    carry, ys = init, [None] * n
    for t in reversed(range(n)) if reverse else range(n):
        carry, ys[t] = body(carry, None if xs is None else xs[t])
    return carry, namespace.stack(ys)


def program(*samplers: Sampler, **options: Any) -> Callable[[Function], Function]:
    """Enter the decorated function into the table."""

    def enter(function: Function) -> Function:
        assert function.__name__ not in {entry.name for entry in PROGRAMS}
        PROGRAMS.append(Program(function, samplers, **options))
        return function

    return enter


def _rounded(x: Any) -> Any:
    """The nearest float32 or complex64, in double precision."""
    kind = np.complex64 if np.iscomplexobj(x) else np.float32
    return np.asarray(x).astype(kind).astype(np.result_type(kind, np.float64))


def normal(*shape: int, scale: float = 1.0) -> Sampler:
    """Normally distributed arrays of a shape."""
    return lambda rng: _rounded(scale * rng.standard_normal(shape))


def uniform(low: float, high: float, *shape: int) -> Sampler:
    """Uniformly distributed arrays of a shape."""
    return lambda rng: _rounded(rng.uniform(low, high, shape))


def number(low: float, high: float) -> Sampler:
    """Uniformly distributed Python floats."""
    return lambda rng: float(_rounded(rng.uniform(low, high)))


def complex_normal(*shape: int) -> Sampler:
    """Complex arrays of a shape."""
    return lambda rng: _rounded(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
