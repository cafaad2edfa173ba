"""Every rule of rewriting earns its place: it fires in the programs that are compared with other libraries."""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.passes.differentiate import value_and_grad
from retrograd.passes.linearize import linearize
from retrograd.passes.lower import lower
from retrograd.passes.prune import prune
from retrograd.passes.rules import BEFORE, FAST, NATIVE, NUMPY, REASSOCIATE
from retrograd.passes.simplify import simplify
from tests.oracles.program import PROGRAMS
from tests.programs import compared as programs
from tests.support.rules import idle, named_apart, over_tables

for module in pkgutil.iter_modules(programs.__path__):
    import_module(f"{programs.__name__}.{module.name}")


X = np.linspace(0.1, 1.2, 6)
W = np.linspace(-1.0, 1.0, 120).reshape(6, 20)


def updates_at_a_traced_place(x, w):
    def body(carry, i):
        y, m = carry
        y, m = y.copy(), m.copy()
        y[i] += w * i
        y[i - 1] -= np.sin(w)
        y[i - 2] = w + y[i - 2]
        m[i, i - 1] += w * y[i]
        m[i, i] = m[i, i] * w
        y[i] = m[i, i] + y[i] * np.cos(y[i]) + m[i, i - 1]
        m[i, 0] = y[i]
        return (y, m), m[i, 0]

    (y, m), heads = rg.scan(body, (x, np.outer(x, x)), np.arange(6))
    return np.sum(y**2) + np.sum(m * m) + np.sum(heads)


def elements_of_what_stays(x, w):
    def body(carry, i):
        return np.sin(carry) + x[i] * w[i, i - 1], x[i - 1]

    last, heads = rg.scan(body, np.sum(w), np.arange(6))
    return last + np.sum(heads**2)


def updates_of_lanes(x, w):
    def at(x, i):
        x = x.copy()
        x[i] += w
        x[i + 1] -= w * w
        x[i + 2] = np.sin(x[i + 2])
        return np.sum(x**2)

    return np.sum(rg.vmap(at, (None, 0))(x, np.arange(4)))


def updates_at_known_places(x, w):
    y = x.copy()
    y[1:3] = np.sin(y[1:3])
    y[2:] = w + y[2:]
    y[[0, 4]] += w
    y[[1, 3]] -= w * w
    return np.sum(y[:] ** 2)


def masked_twice(x, w):
    inside = x > 0.5
    kept = np.where(inside, x, 0.0)
    rest = np.where(inside, w, x)
    return np.sum(np.where(inside, kept, w) ** 2 * np.where(inside, w, rest))


def column_through_a_layer(x, w):
    return np.sum(np.tanh(w @ np.cos(w[0])[:, None]) * x[:, None])


def rows_of_a_grid(x, w):
    rows = np.broadcast_to(x, (4, 6))
    return np.sum(w * np.broadcast_to(rows, (3, 4, 6)) ** 2)


def scaled_twice(x, w):
    return np.sum(np.sin(x * 3.0 * 1.5 * w))


def likelihood_of_a_process(x, w):
    kernel = np.exp(-0.5 * (w[0][:, None] - w[0]) ** 2 / x[0] ** 2) + x[1] * np.eye(20)
    factor = np.linalg.cholesky(kernel)
    half = np.linalg.solve(factor, w[1])
    rest = np.sum(half**2) + np.sum(np.sqrt(np.diag(factor))) + w[2] @ np.linalg.solve(factor.T, half)
    return rest + np.sum(np.log(np.diag(factor))) + w[3] @ half


def forms_in_an_inverse(x, w):
    kernel = np.exp(-0.5 * (w[0][:, None] - w[0]) ** 2 / x[0] ** 2) + x[1] * np.eye(20)
    factor = np.linalg.cholesky(kernel)
    half, other = np.linalg.solve(factor, w[1]), scipy.linalg.solve_triangular(factor, w[2], lower=True)
    by_numpy = half @ half + 0.5 * half @ half + np.sum(np.linalg.solve(factor, w.T) ** 2)
    by_scipy = other @ other + 0.5 * other @ other + np.sum(other**2)
    return by_numpy + by_scipy + w[3] @ scipy.linalg.solve_triangular(factor, other, lower=True, trans=1)


def halves_of_twice(x, w):
    return np.sum((x + x) * 0.5 * w) + np.sum(0.5 * (np.sin(x) + np.sin(x)))


def picked_places(x, w):
    y, z = np.sin(x), x + w[0, :6]
    once = np.sum(y[[0, 4]] ** 2) + np.sum(np.cos(y)) * np.sum(x[[1, 2]])
    return once + np.sum(z[[0, 4]] ** 2) + np.sum(np.cos(x))


def places_picked_before(x, w):
    y = np.sin(x)
    return np.sum(y[[0, 4]] ** 2) + np.sum(np.cos(y)) * np.sum(x[[1, 2]])


def triangles(x, w):
    m = w.T @ w + x[0] * np.eye(20)
    low, up = np.tril(m), np.triu(m)
    away = np.linalg.solve(low, -w[0]) + np.linalg.solve(low, 2.0 * w[1]) + np.linalg.solve(up, np.sin(w[1]))
    away += np.linalg.solve(low, w[2] * 2.0) + np.linalg.solve(m, -w[0]) + np.linalg.solve(m, 2.0 * w[1])
    away += np.linalg.solve(m, w[2] * 3.0)
    return np.sum(away**2) + np.sum(np.linalg.inv(low) * m) + np.sum(np.diag(m) ** 3) + np.sum(m**2)


def symmetric_matrices(x, w):
    s = np.tanh(w @ w.T)
    c = np.cos(s)
    once = np.sum(np.sin(s @ w + (w.T @ s).T)) + np.sum(np.sin((w.T @ c).T + c @ w)) + np.sum(np.cos(s.T))
    return once + np.sum(np.cos(np.sum(s, axis=1)) + np.cos(x @ s))


def scaled_matrices(x, w):
    n = 70
    t = np.arange(n) / n
    c, r, e = np.cos(t + x[0]), 2.0 + np.sin(t * x[1]), np.sin(t[:, None] + t * w[0, 0])
    scaled, divided, z = c[:, None] * r * e, c[:, None] * e / r, np.cos(t[:, None] + w[0, :2])
    right, left = np.sum(np.sin(scaled @ z / n)), np.sum(np.sin(z.T @ scaled / n)) + np.sum(np.sin(z.T @ divided / n))
    sums = np.sum(np.sin(scaled.sum(axis=1) / n)) + np.sum(np.cos(divided.sum(axis=0) / n))
    return (right + left + sums + np.sum(np.sin(divided @ z / n))) / n


def enlarged_and_shrunk(x, w):
    return np.sum(np.sin(x * 3.0 * 0.2) * w) + np.sum(np.cos(0.2 * (x * 3.0)) * w)


def losses_of_many_scores(x, w):
    scores = np.outer(x, w).reshape(-1)
    return np.sum(np.logaddexp(0, scores)) + np.sum(np.logaddexp(-scores, 0.0)) + np.sum((scores**2 + 1.0) ** 1.5)


def differences_of_pairs(x, w):
    return np.sum(np.sqrt((x[:, None] - x[None, :]) ** 2 + 1.0)[:, :, None] * w[:, :3][:, None])


def sums_of_places(x, w):
    def body(total, i):
        y = np.sin(total) * x
        return total + y[i] * w[0, 0] + x[i - 1], y[i]

    total, rows = rg.scan(body, np.sum(x), np.arange(3))
    y = w * w
    return total + np.sum(rows) + y[0] @ y[1] + np.sum(y) + np.sum(w[[0, 2]] * w[[1, 3]]) + np.sum(w**2)


def products_of_growing_slices(x, w):
    b = np.concatenate([w, w], axis=None)
    y = b[:80] * x[0]
    for k in range(1, 80):
        p = b[:k] @ y[:k]
        p += b[80 - k : 80] @ y[:k]
        p += b[k : 2 * k] @ b[k + 5 : 2 * k + 5]
        y[:k] -= 0.001 * p * b[:k]
    return np.sum(y)


def elimination(x, w):
    b = w.reshape(-1)
    a = 0.1 * np.outer(b, b[::-1]) + 5.0 * np.eye(120) * x[0]
    for k in range(119):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.tanh(a))


def products_in_a_row(x, w):
    m = np.concatenate([w, w[:, ::-1], np.cos(w)[:2]])[:14]
    tall, wide = m.reshape(20, 14), np.sin(m)
    left = (tall @ wide) @ w[0] + w[0] @ (tall @ wide)
    row, column = w[1], w[2][:, None]
    outer = np.sum(np.tanh((row * column) @ tall)) + np.sum(np.tanh(wide @ (row * column)))
    outer += np.sum(np.tanh((column * row) @ tall)) + np.sum(np.tanh(wide @ (column * row)))
    return np.sum(left * x[0]) + outer + np.sum(np.tanh(m @ tall))


def chances(x, w):
    raised = np.exp(w - np.max(w, axis=1, keepdims=True))
    return np.sum(raised / np.sum(raised, axis=1, keepdims=True) * np.sin(w))


def entropy_of_labels(x, w):
    labels = np.argmax(w, axis=1)
    logs = w - np.log(np.sum(np.exp(w), axis=1, keepdims=True))
    chosen = np.sum(logs[np.arange(6), labels] * x)
    first = np.sum(np.sin(w)[np.arange(6), labels] ** 2)
    return chosen + first + np.sum(w**3)


def leaky_units(x, w):
    """Each way in which people write a leaky relu."""
    layers = [
        np.where(w > 0, w, 0.1 * w),
        np.where(w > 0, w, w * 0.2),
        np.where(w < 0, 0.3 * w, w),
        np.where(w < 0, w * 0.4, w),
        np.where(w >= 0, w, 0.1 * w),
        np.where(w >= 0, w, w * 0.2),
        np.where(w <= 0, 0.3 * w, w),
        np.where(w <= 0, w * 0.4, w),
    ]
    return sum(np.sum(np.sin(h) * x[:, None]) for h in layers)


def leaky_layers(x, w):
    """Products of matrices are between the units, so that each kink has one cotangent."""
    h = w @ w.T
    h = np.where(h > 0, h, 0.1 * h) @ w
    h = np.where(h > 0, h, h * 0.2) @ w.T
    h = np.where(h < 0, 0.3 * h, h) @ w
    return np.sum(np.where(h < 0, h * 0.4, h) * x[:, None])


def slopes_of_rosenbrocks_function(x, w):
    """The gradient by hand, in the ways in which its sums can be written."""
    y, z = w[0, :6], 1.0 - x
    r = y - x**2
    slopes = [
        200.0 * r,
        (r * 400.0) * x + 2.0 * z,
        (400.0 * r) * x + y * 2.0,
        2.0 * y + (400.0 * r) * z,
        z * 2.0 + (r * 400.0) * z,
        (400.0 * r) * x - 2.0 * y,
        (r * 400.0) * z - z * 2.0,
    ]
    return sum(np.sum(s**2) for s in slopes)


def distances_of_points(x, w):
    points = np.outer(x, w).reshape(-1, 2)
    return np.sum(np.sqrt(np.sum((points - x[:2]) ** 2, axis=1)))


def boxes_around_pairs(x, w):
    pairs = np.outer(x, w).reshape(-1, 2)
    return np.sum((np.max(pairs, axis=1) - np.min(pairs, axis=1)) ** 2)


def lengths_of_rows(x, w):
    features = np.tanh(w.T @ w[:, :10])
    return np.sum(np.sqrt(np.sum(features**2, axis=1))) * x[0]


def energy_of_particles(x, w):
    return 0.5 * np.sum(w[0] ** 2 + 3.0 * w[1] ** 2) * x[0]


def mixture_of_many_points(x, w):
    points = np.concatenate([w, w * x[:, None]], axis=None)
    densities = np.exp(-0.5 * (points[:, None] - w[0, ::2]) ** 2)
    return np.sum(np.log(np.sum(densities, axis=1)))


def slices_that_begin_empty(x, w):
    a = w[:, :6] * x
    for k in range(6):
        y = a[:, k] - a[:, :k] @ a[k, :k]
        a[k, k:] += np.vecdot(a[:, :k], a[:, :k])[0]
        a[k + 1 :, k] -= 0.1 * y[k + 1 :]
        a[0, 0] += np.sum(a[0, :k] ** 2)
    return np.sum(a**2)


STYLES = [
    (slices_that_begin_empty, (X, W)),
    (leaky_units, (X, W)),
    (leaky_layers, (X, W)),
    (slopes_of_rosenbrocks_function, (X, W)),
    (distances_of_points, (X, W)),
    (boxes_around_pairs, (X, W)),
    (lengths_of_rows, (X, W)),
    (energy_of_particles, (X, W)),
    (mixture_of_many_points, (X, W)),
    (entropy_of_labels, (X, W)),
    (chances, (X, W)),
    (products_in_a_row, (X, W)),
    (products_of_growing_slices, (X, W)),
    (sums_of_places, (X, W)),
    (enlarged_and_shrunk, (X, 0.5)),
    (picked_places, (X, W)),
    (places_picked_before, (X, W)),
    (triangles, (X, W)),
    (symmetric_matrices, (X, W)),
    (scaled_matrices, (X, W)),
    (losses_of_many_scores, (X, W)),
    (differences_of_pairs, (X, W)),
    (likelihood_of_a_process, (X, W)),
    (forms_in_an_inverse, (X, W)),
    (halves_of_twice, (X, 0.5)),
    (updates_at_a_traced_place, (X, 0.5)),
    (updates_of_lanes, (X, 0.5)),
    (elements_of_what_stays, (X, W)),
    (updates_at_known_places, (X, 0.5)),
    (masked_twice, (X, 0.5)),
    (column_through_a_layer, (X, W)),
    (rows_of_a_grid, (X, 0.5)),
    (scaled_twice, (X, 0.5)),
]


def firings(function: Callable[..., Any], args: tuple[Any, ...]) -> Counter[str]:
    """How often each rule fires on the way to the value and the gradient of a program."""
    fired: Counter[str] = Counter()
    graph = rg.trace(function)(*args)
    simple = simplify(graph, BEFORE, fired)
    active = [v.aval.inexact for v in simple.inputs]
    gradient = value_and_grad(simple, active, linearize(simple, active, nan_safe=False))
    lowered = lower(prune(gradient))
    for further in (FAST, NUMPY, NATIVE):
        simplify(lowered, [*REASSOCIATE, *further], fired)
    return fired


@pytest.fixture(scope="module")
def fired() -> Counter[str]:
    oracles = [(program.scalar(np, rg.scan, writes=True), program.args) for program in PROGRAMS]
    with named_apart():
        return sum(
            (firings(function, args) for function, args in (*oracles, *STYLES, (elimination, (X, W)))), Counter()
        )


@pytest.mark.whole
@pytest.mark.parametrize(("function", "args"), STYLES, ids=lambda x: getattr(x, "__name__", ""))
def test_the_derivative_after_all_rewrites(function, args):
    with rg.config(fast=True):
        rg.check_grads(function, args, order=2)


@over_tables
def test_each_rule_fires(table: str, fired: Counter[str]) -> None:
    assert idle(table, fired) == []
