"""What random programs found, each as the smallest program that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support import values

X = np.array([0.3, -0.7, 1.1, 0.2])
M = np.array([[0.3, -0.7, 1.1], [0.2, -0.4, -0.9]])
SINGLE = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)


def layout_of_take(m: Any) -> Any:
    taken = np.take(m, [0, -1, 0], axis=1)
    taken.reshape(-1)[::2] += 0.25
    return taken


def layout_of_select(m: Any) -> Any:
    chosen = np.select([m.T > 0], [m.T], 0.5)
    chosen.reshape(-1)[::2] += 0.25
    return chosen


def layout_of_joined(m: Any) -> Any:
    joined = np.array([m.T, m.T])
    joined.reshape(-1)[::2] += 0.25
    return joined


def layout_of_gradient(m: Any) -> Any:
    sloping = np.gradient(m.T, axis=0)
    sloping.T.reshape(-1)[::2] += 0.25
    return sloping


def layout_of_pad(m: Any) -> Any:
    padded = np.pad(m.T, 1)
    padded.T.reshape(-1)[::2] += 0.25
    return padded


def layout_of_scaled(m: Any) -> Any:
    scaled = np.dot(m.T, 2.0)
    scaled.reshape(-1)[::2] += 0.25
    return scaled


def tiled(m: Any) -> Any:
    wide = np.tile(m[:1, :1], 2)
    wide[0] += 1.0
    return wide


def masked_number(m: Any) -> Any:
    number = np.where(m[0, 0] > 0.2, m[0, 0], 0.5)
    number[number > 0.3] = 0.125
    return number


def layout_of_insertion(m: Any) -> Any:
    wider = np.insert(np.rot90(m), 1, 0.5, axis=1)
    wider.reshape(-1)[::2] += 0.25
    return wider


def layout_of_repeated(m: Any) -> Any:
    twice = np.repeat(m[0][None], 2, axis=0)
    twice.reshape(-1)[::2] += 0.25
    return twice


def copied_from_a_row(m: Any) -> Any:
    line = m[0] * 1.0
    np.copyto(line, m[1:] * 0.5, where=line > 0)
    return line


def flattened(m: Any) -> Any:
    flat = np.ravel(np.broadcast_to(m[0, :1], (2, 1)))
    flat[0] += 1.0
    return flat


def wider_sum(x: Any) -> Any:
    out = np.zeros(7)
    np.sum(x, axis=0, out=out)
    return out


def wider_mean(x: Any) -> Any:
    out = np.zeros(7)
    np.mean(x, axis=0, out=out)
    return out


def wider_running_sum(x: Any) -> Any:
    out = np.zeros((50, 7))
    np.cumsum(x, axis=0, out=out)
    return out


def wider_accumulate(x: Any) -> Any:
    out = np.zeros((50, 7))
    np.multiply.accumulate(x, axis=0, out=out)
    return out


PROGRAMS: list[tuple[Callable[[Any], Any], Any]] = [
    *((f, M) for f in (layout_of_take, layout_of_select, layout_of_joined, layout_of_gradient, layout_of_pad)),
    (layout_of_scaled, M),
    (layout_of_repeated, M),
    (layout_of_insertion, M),
    (tiled, M),
    (masked_number, M),
    (copied_from_a_row, M),
    (flattened, M),
    (wider_sum, SINGLE),
    (wider_mean, SINGLE),
    (wider_running_sum, SINGLE),
    (wider_accumulate, SINGLE),
    (lambda x: np.quantile(x, 0.3, axis=0), SINGLE),
    (lambda x: np.percentile(x, 30.0, axis=0), SINGLE),
    (lambda x: np.quantile(x, np.float64(0.3), axis=0), SINGLE),
    (lambda x: np.quantile(x, [0.3], axis=0), SINGLE),
    (lambda x: np.dot(x * 0.0, -1.0), X),
    (lambda x: np.inner(-1.0, x * 0.0), X),
]


@pytest.mark.parametrize(("function", "x"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_numpys_bits(function: Callable[[Any], Any], x: Any) -> None:
    with rg.config(exact=True):
        found = rg.jit(function)(x)
    expected = function(x)
    values.assert_same_bits([found], [expected])
    assert found.dtype == expected.dtype


def test_a_write_into_a_0d_array_that_is_read_again() -> None:
    def f(s: Any) -> Any:
        y = np.where(s > 0.2, s, 0.5 * s)
        y[...] += y
        y[y > 0.3] *= 3.0
        return y * s

    rg.check_grads(f, (0.7,), order=2)


def test_running_sums_of_bools_into_bools() -> None:
    def f(x: Any) -> Any:
        positive = x > 0
        return np.cumsum(positive, out=positive)

    np.testing.assert_array_equal(rg.jit(f)(X), f(X))


def test_a_traced_matrix_times_a_plain_one() -> None:
    plain = np.array([True, False, True])
    np.testing.assert_array_equal(rg.grad(lambda m: np.sum(m @ plain))(M), [[1.0, 0.0, 1.0]] * 2)
