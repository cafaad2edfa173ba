"""NumPy functions inside traced functions: the same results as outside, and derivatives that hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import retrograd as rg

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def distinct(shape: tuple[int, ...], dtype: Any = float, seed: int = 0) -> Array:
    """Numbers of both signs that differ from each other, and from zero, by at least 0.1."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    x = (rng.permutation(size) - size // 2) * 0.3 + rng.uniform(0.1, 0.2, size)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(-1.0, 1.0, size)
    return np.asarray(x).reshape(shape).astype(dtype)


def of_dtypes(shape: tuple[int, ...], dtypes: str) -> list[Array]:
    """Arrays of several dtypes."""
    return [
        distinct(shape, t)
        if t in "dfeDF"
        else distinct(shape) > 0
        if t == "?"
        else np.rint(np.abs(distinct(shape)) * 3).astype(t)
        for t in dtypes
    ]


def _read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "negative stride": lambda x: x[..., ::-1].copy()[..., ::-1],
    "every second": lambda x: np.repeat(x, 2, axis=0)[::2],
    "read-only": _read_only,
    "broadcast": lambda x: np.broadcast_to(x[..., :1], x.shape),
}


def outcome(function: Function, args: Sequence[Any]) -> Any:
    """The result, or the type of the exception; warnings of NumPy about empty and constant arrays are silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return function(*args)
        except Exception as fault:  # noqa: BLE001 - compared with NumPy's
            return type(fault)


def _precision(values: Sequence[Any]) -> float:
    """The coarsest machine epsilon among values."""
    dtypes = [np.asarray(x).dtype for x in values]
    return max((float(np.finfo(d).eps) for d in dtypes if d.kind in "fc"), default=0.0)


def assert_same(found: Any, expected: Any, precision: float = 0.0) -> None:
    """Equal types, dtypes and shapes, and values up to rounding, in ``precision`` or the result's own."""
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b, precision)
        return
    if isinstance(expected, type):
        assert isinstance(found, type), f"NumPy raises {expected.__name__}, but this gives {found!r}"
        assert issubclass(found, expected), f"NumPy raises {expected.__name__}, but this {found.__name__}"
        return
    assert type(found) is type(expected), f"{found!r} should be the {type(expected).__name__} {expected!r}"
    a, b = np.asarray(found), np.asarray(expected)
    assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{a.dtype}{a.shape} should be {b.dtype}{b.shape}"
    if b.dtype.kind in "fc":
        scale = max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=0, atol=8 * max(precision, _precision([b])) * scale)
    else:
        np.testing.assert_array_equal(a, b)


def assert_traced(function: Function, *args: Any) -> None:
    """Compiled, the function does what NumPy does, at the point of tracing and at another one."""
    _assert_at(function, args, [_moved(x) for x in args])


def assert_traced_in_all_layouts(function: Function, x: Array) -> None:
    """Compiled once, the function does what NumPy does with arrays of any layout."""
    _assert_at(function, *([layout(x)] for layout in LAYOUTS.values()))


def assert_traced_with(function: Function, *arrays: Array) -> None:
    """The function of one array does what NumPy does; failures tell the array."""
    for x in arrays:
        try:
            assert_traced(function, x)
        except Exception as fault:
            fault.add_note(f"of {x!r}")
            raise


def _assert_at(function: Function, *points: Sequence[Any]) -> None:
    compiled = rg.jit(function)
    for point in points:
        before = [np.copy(x) for x in point]
        assert_same(outcome(compiled, point), outcome(function, point), precision=_precision(point))
        for x, y in zip(point, before, strict=True):
            np.testing.assert_array_equal(x, y)


def _moved(x: Any) -> Any:
    """Other numbers in the same order and layout."""
    if np.asarray(x).dtype.kind not in "fc":
        return x
    y = np.empty_like(x) if isinstance(x, np.ndarray) else None
    return x + type(x)(0.01) if y is None else np.add(x, 0.01, out=y)


def assert_differentiable(function: Function, *args: Any, order: int = 2) -> None:
    """Derivatives in both modes agree with differences, and cotangents have the shapes and dtypes of arguments."""
    rg.check_grads(function, args, order=order)
    out, pullback = rg.vjp(function, *args)
    found = pullback(_ones(out))
    for ct, x in zip(found, args, strict=True):
        assert (np.asarray(ct).dtype, np.shape(ct)) == (np.asarray(x).dtype, np.shape(x))


def _ones(out: Any) -> Any:
    if isinstance(out, (tuple, list)):
        return type(out)(map(_ones, out))
    return np.ones_like(out)[()]
