"""Random programs over all dtypes: compiled = plain NumPy bit for bit, reverse = forward, lanes = single calls."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import retrograd as rg
from retrograd.tracer.array import shadow_of
from tests.fuzz.test_programs import FUZZ, SEEDS, compiled
from tests.fuzz.typed import arguments, typed_programs
from tests.laws.test_random_graphs import everything_is_large
from tests.support import values

ACTIVE = (0, 1, 2, 3, 4)  # the arguments that have derivatives
# What NumPy computes in another order of operations; docs/limits.md says so.
ROUNDED = (
    "logaddexp.reduce",
    "where=",
    "initial=",
    "np.dot",
    "np.inner",
    "np.vdot",
    "np.tensordot",
    "np.kron",
    "np.average",
    "np.linalg.norm",
    ".at(",
)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")


def plain(f: Any, args: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f(*args)


def precision(results: Any) -> float:
    """What may be expected of numbers, some of which were computed in these dtypes."""
    return 1e3 * max(float(np.finfo(np.asarray(v).dtype).eps) for v in results if np.asarray(v).dtype.kind in "fc")


@contextmanager
def refusals() -> Iterator[None]:
    """What is documented as not traced is refused by name; such programs do not count."""
    try:
        yield
    except (rg.errors.UnsupportedError, rg.errors.NonDifferentiableError, rg.errors.ControlFlowError):
        reject()


def total(f: Any, weight: float = 0.3) -> Any:
    """The function with one real number as its result, in which every inexact array has a part."""

    def summed(*args: Any) -> Any:
        out = 0.0
        for v in f(*args):
            if np.asarray(v).dtype.kind in "fc" if not hasattr(v, "dtype") else v.dtype.kind in "fc":
                out = out + np.sum(np.sin(weight * np.real(v))) + np.sum(np.imag(v) * weight)
        return out

    return summed


@FUZZ
@given(typed_programs(), SEEDS, st.booleans())
def test_compiled_programs_give_numpys_bits_and_dtypes(source: str, seed: int, reusing: bool) -> None:
    """Also where storage of any size is used again."""
    f, args = compiled(source), arguments(seed)
    kept = values.snapshot(list(args))
    expected = plain(f, tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    with rg.config(exact=True), refusals(), everything_is_large() if reusing else nullcontext():
        found = plain(rg.jit(f), args)
    if any(name in source for name in ROUNDED):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=precision(expected), atol=precision(expected))
    else:
        values.assert_same_bits(list(found), list(expected))
    for a, b in zip(found, expected, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert isinstance(a, np.ndarray) == isinstance(b, np.ndarray)
    values.assert_same_bits(list(args), kept)
    for i, a in enumerate(found):
        assert not values.shares(a, [*args, *found[:i]])


@FUZZ
@given(typed_programs(calls=True), SEEDS, st.sampled_from([{}, {"exact": True}, {"fast": True}, {"verify": 2}]))
def test_reverse_and_forward_agree(source: str, seed: int, config: dict[str, Any]) -> None:
    plainly, args, v = compiled(source), arguments(seed), arguments(seed + 1)
    f, near = total(plainly), precision(plain(plainly, args))
    tangents = [v[i] for i in ACTIVE]
    traced = rg.jit(f)  # in which the integers are traced, too

    def of_active(*active: Any) -> Any:
        return traced(*active, *args[len(ACTIVE) :])

    with rg.config(**config), refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = f(*args)
        value, grads = rg.value_and_grad(of_active, ACTIVE)(*args[: len(ACTIVE)])
        out, forward = rg.jvp(of_active, args[: len(ACTIVE)], tuple(tangents))
    assert float(value) == pytest.approx(float(expected), rel=near, abs=near)
    assert float(out) == pytest.approx(float(value), rel=near, abs=near)
    for g, a in zip(grads, args, strict=False):
        assert np.shape(g) == np.shape(a)
        assert np.asarray(g).dtype == np.asarray(a).dtype
    reverse = values.pairing(list(grads), tangents)
    scale = 1 + sum(float(np.sum(np.abs(g * d))) for g, d in zip(grads, tangents, strict=True))
    if np.isfinite(scale):
        assert abs(reverse - float(forward)) < max(100 * near, 1e-4) * scale  # one argument is in single precision


@FUZZ
@given(typed_programs(most=15), SEEDS, st.lists(st.booleans(), min_size=len(ACTIVE), max_size=len(ACTIVE)))
def test_lanes_are_single_calls(source: str, seed: int, mapped: list[bool]) -> None:
    f = compiled(source)
    points = [arguments(seed + k) for k in range(3)]
    shared = points[0]
    axes = [0 if on else None for on in (*mapped, False, False)]
    if not any(mapped):
        return
    stacked = [np.stack([p[i] for p in points]) if axis == 0 else shared[i] for i, axis in enumerate(axes)]
    with refusals():
        found = plain(rg.vmap(rg.jit(f), tuple(axes)), tuple(stacked))
    for k, point in enumerate(points):
        lane = tuple(np.float64(p) if isinstance(p, float) else p for p in point)  # a lane is no Python number
        chosen = tuple(p if axis == 0 else s for p, s, axis in zip(lane, shared, axes, strict=True))
        expected = plain(f, tuple(a.copy() if isinstance(a, np.ndarray) else a for a in chosen))
        near = precision(expected)
        for lanes, one in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(lanes)[k], one, rtol=near, atol=near)


@FUZZ
@given(typed_programs())
def test_traced_arrays_lie_in_memory_as_numpys_do(source: str) -> None:
    """Layout and sharing decide what is a view of what, and so what a write changes."""
    f, args = compiled(source), arguments(0)
    expected = plain(f, args)
    found: list[Any] = []

    def watched(*tracers: Any) -> Any:
        found.extend(shadow_of(v) for v in f(*tracers))
        return 0.0 * tracers[0]

    with refusals():
        plain(rg.trace(watched), args)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(b, np.ndarray):
            continue
        assert layout(a) == layout(b), f"variable {i}"
        assert a.flags.writeable == b.flags.writeable, f"variable {i}"
        for c, d in zip(found[:i], expected[:i], strict=True):
            assert values.shares(a, c) == values.shares(b, d), f"variable {i}"


def layout(x: Any) -> Any:
    """The strides that matter."""
    return [stride for stride, n in zip(x.strides, x.shape, strict=True) if n > 1]
