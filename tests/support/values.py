"""Concrete values of graphs: arrays, NumPy scalars, Python numbers, and lists of steps of those."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograd.ir.types import Aval, aval_of


def as_kind(x: Any, aval: Aval) -> Any:
    """An array as the array, NumPy scalar or Python number that ``aval`` says."""
    array = np.asarray(x, aval.dtype)
    if aval.kind == "array":
        return array
    return array[()] if aval.kind == "scalar" else array.item()


def leaves(value: Any) -> Iterator[Any]:
    """The arrays and numbers in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def mapped(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """The function of each leaf, in the lists that ``value`` has."""
    if isinstance(value, (list, tuple)):
        return [mapped(function, *items) for items in zip(value, *others, strict=True)]
    return function(value, *others)


def of_aval(value: Any) -> Aval:
    """The aval of a concrete value; lists of steps may not be empty."""
    return aval_of(value)


def random_of(rng: np.random.Generator, aval: Aval) -> Any:
    """A tangent or cotangent: entries in (-1, 1), zero for integers; lists for steps."""
    if aval.steps is not None:
        return [random_of(rng, aval.unstacked()) for _ in range(aval.steps[0])]
    x = rng.uniform(-1, 1, aval.shape)
    if aval.dtype.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, aval.shape)
    return as_kind(x if aval.inexact else np.zeros(aval.shape), aval)


def shifted(value: Any, direction: Any, step: float) -> Any:
    """``value + step·direction``, of the same type."""

    def move(x: Any, d: Any) -> Any:
        return as_kind(np.asarray(x) + (step * np.asarray(d)).astype(np.asarray(x).dtype), aval_of(x))

    return mapped(move, value, direction)


def pairing(u: Sequence[Any], v: Sequence[Any]) -> float:
    """<u, v>: the real part of the sum of products over all inexact leaves."""
    total = 0.0
    for a, b in zip(leaves(list(u)), leaves(list(v)), strict=True):
        if np.asarray(a).dtype.kind in "fc":
            wide = np.complex128 if np.asarray(a).dtype.kind == "c" else np.float64
            total += float(np.sum(np.asarray(a, wide) * np.asarray(b)).real)
    return total


def has_aval(value: Any, aval: Aval) -> bool:
    """Whether a value is what ``aval`` says: shape, dtype, and array, NumPy scalar or Python number."""
    if aval.steps is not None:
        ok = isinstance(value, list) and aval.steps[0] in {-1, len(value)}
        return ok and all(has_aval(item, aval.unstacked()) for item in value)
    return not isinstance(value, list) and aval_of(value) == aval


def assert_has_avals(values: Sequence[Any], avals: Sequence[Aval]) -> None:
    assert len(values) == len(avals)
    for i, (value, aval) in enumerate(zip(values, avals, strict=True)):
        assert has_aval(value, aval), f"result {i} is a {type(value).__name__} {value!r} but should be {aval}"


def _same(a: Any, b: Any) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return _same(x.real, y.real) and _same(x.imag, y.imag)
    if x.dtype.kind != "f":
        return bool(np.array_equal(x, y))
    nan = np.isnan(x)
    return bool(np.array_equal(nan, np.isnan(y)) and np.all((x == y) & (np.signbit(x) == np.signbit(y)) | nan))


def assert_same_bits(found: Any, expected: Any) -> None:
    """Equal to the last bit, -0.0 and 0.0 apart; any nan equals any other."""
    pairs = zip(leaves(found), leaves(expected), strict=True)
    for i, (a, b) in enumerate(pairs):
        assert _same(a, b), f"leaf {i} is\n{a!r} but should be\n{b!r}"


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    """Equal up to ``tolerance`` times the largest finite entry or 1; integers, inf and nan exactly."""
    for i, (a, b) in enumerate(zip(leaves(found), leaves(expected), strict=True)):
        x, y = np.asarray(a), np.asarray(b)
        assert x.shape == y.shape, f"leaf {i} has shape {x.shape} but should have {y.shape}"
        if x.dtype.kind in "fc" or y.dtype.kind in "fc":
            finite = np.isfinite(x) & np.isfinite(y)
            scale = max(1.0, float(np.max(np.abs(y[finite]), initial=0.0)))
            near = bool(np.all(np.abs(x[finite] - y[finite]) <= tolerance * scale))
            same = near and np.array_equal(x[~finite], y[~finite], equal_nan=True)
        else:
            same = np.array_equal(x, y)
        assert same, f"leaf {i} is\n{a!r} but should be\n{b!r}"


def snapshot(values: Any) -> Any:
    """Copies of all arrays, to see later whether they changed."""
    return mapped(np.copy, list(values))


def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays with elements among the leaves."""
    return [x for x in leaves(value) if isinstance(x, np.ndarray) and x.size]


def shares(a: Any, b: Any) -> bool:
    """Whether some array of ``a`` shares memory with some array of ``b``."""
    return any(np.shares_memory(x, y) for x in arrays(a) for y in arrays(b))


def stacked(lanes: Sequence[Any]) -> Any:
    """Values of several lanes as one with a leading axis of lanes, inside lists of steps."""
    return mapped(lambda *items: np.stack([np.asarray(x) for x in items]), *lanes)


def no_lanes(value: Any) -> Any:
    """The value for a graph over no lanes."""
    return mapped(lambda x: np.zeros((0, *np.shape(x)), np.asarray(x).dtype), value)


def strided(value: Any) -> Any:
    """The same numbers in read-only arrays that are not contiguous."""

    def spread(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        wide = np.repeat(x.T, 2, axis=0)[::2].T if x.ndim else x.copy()
        wide.flags.writeable = False
        return wide

    return mapped(spread, value)
