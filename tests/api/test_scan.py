"""scan equals a Python loop, in value and in derivative."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

XS = np.array([0.5, -1.0, 2.0, 0.25])


def looped(body, init, xs, reverse=False):
    carry, ys = init, []
    steps = range(len(xs) - 1, -1, -1) if reverse else range(len(xs))
    for k in steps:
        carry, y = body(carry, xs[k])
        ys.append(y)
    return carry, np.array(ys[::-1] if reverse else ys)


BODIES = {
    "a sum": lambda c, x: (c + x, c),
    "a product": lambda c, x: (c * np.sin(x), c * x),
    "a choice": lambda c, x: (np.where(x > 0, c + x, c * 0.5), np.maximum(c, x)),
    "the carry passed through": lambda c, x: (c, x),
    "the step as carry": lambda c, x: (x, c),
    "a constant carry": lambda c, x: (1.0, c * x),
    "a constant result": lambda c, x: (c * x, 3.0),
    "an inner gradient": lambda c, x: (rg.grad(lambda v: v**3 * x)(c), c),
}


def combined(result):
    carry, ys = result
    return carry * 2.0 + np.sum(ys * np.arange(1.0, len(XS) + 1))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_scan_equals_a_loop(body, reverse):
    def by_scan(c, xs):
        return combined(rg.scan(body, c, xs, reverse=reverse))

    def by_loop(c, xs):
        return combined(looped(body, c, xs, reverse))

    value, pullback = rg.vjp(by_scan, 0.75, XS)
    expected, other = rg.vjp(by_loop, 0.75, XS)
    assert value == pytest.approx(expected, rel=1e-14)
    assert value == pytest.approx(by_scan(0.75, XS), rel=1e-14)
    for a, b in zip(pullback(1.0), other(1.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    tangent = rg.jvp(by_scan, (0.75, XS), (1.0, XS))[1]
    assert tangent == pytest.approx(rg.jvp(by_loop, (0.75, XS), (1.0, XS))[1], rel=1e-12)
    second = rg.hessian(by_scan, (0, 1))(0.75, XS)
    again = rg.hessian(by_loop, (0, 1))(0.75, XS)
    for row, other_row in zip(second, again, strict=True):
        for a, b in zip(row, other_row, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_carries_and_steps_are_trees():
    def body(carry, step):
        (a, d), k = carry
        return ((a + step["x"], {"s": d["s"] * step["y"][0]}), k + 1), {"out": a, "none": None}

    xs = {"x": XS, "y": (np.cos(XS), np.arange(4))}
    (found, k), ys = rg.scan(body, ((0.0, {"s": np.ones(2)}), 0), xs)
    assert found[0] == XS.sum()
    np.testing.assert_allclose(found[1]["s"], np.full(2, np.cos(XS).prod()))
    assert k == 4
    np.testing.assert_allclose(ys["out"], np.cumsum(XS) - XS)
    assert ys["none"] is None


def test_a_length_without_steps_and_steps_without_results():
    last, seen = rg.scan(lambda c, _: (c * 2.0, c), 1.0, None, 5)
    assert last == 32.0
    np.testing.assert_array_equal(seen, [1.0, 2.0, 4.0, 8.0, 16.0])
    last, nothing = rg.scan(lambda c, x: (c + x, None), 0.0, XS)
    assert (last, nothing) == (XS.sum(), None)
    nothing, ys = rg.scan(lambda c, x: (None, x * 2), None, XS)
    assert nothing is None
    np.testing.assert_array_equal(ys, 2 * XS)
    assert rg.scan(lambda c, x: (None, None), None, None, 3) == (None, None)


def test_no_steps_leave_the_carry():
    for xs in (np.zeros(0), np.zeros((0, 2))):
        last, ys = rg.scan(lambda c, x: (c + np.log(np.sum(x)), x * 2), 1.5, xs)
        assert last == 1.5
        assert ys.shape == xs.shape
    value, slope = rg.value_and_grad(lambda c: rg.scan(lambda c, x: (c * x, None), c, np.zeros(0))[0])(2.0)
    assert (value, slope) == (2.0, 1.0)


def test_one_step():
    last, ys = rg.scan(lambda c, x: (c * x, c), 3.0, XS[:1])
    assert (last, *ys) == (1.5, 3.0)


def test_steps_of_matrices_and_other_dtypes():
    xs = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    last, ys = rg.scan(lambda c, x: (c @ x, np.sum(c)), np.eye(2, dtype=np.float32), xs)
    np.testing.assert_array_equal(last, np.linalg.multi_dot([np.eye(2), *xs]))
    assert (last.dtype, ys.dtype) == (np.float32, np.float32)
    last, ys = rg.scan(lambda c, k: (c + k, k > 1), 0, np.arange(4))
    assert (last, ys.tolist()) == (6, [False, False, True, True])


def test_a_body_may_close_over_traced_values_which_get_gradients():
    def f(w, xs):
        return rg.scan(lambda c, x: (np.tanh(c * w + x), None), 0.1, xs)[0]

    def by_loop(w, xs):
        c = 0.1
        for k in range(len(XS)):
            c = np.tanh(c * w + xs[k])
        return c

    found = rg.grad(f, (0, 1))(0.8, XS)
    expected = rg.grad(by_loop, (0, 1))(0.8, XS)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-13)


def test_writes_inside_a_body():
    def body(c, x):
        c = c.copy()
        c[0] += x
        c[1:] *= 0.5
        y = np.zeros(2)
        y[1] = c[0]
        return c, y

    found = rg.scan(body, np.ones(3), XS)
    expected = looped(body, np.ones(3), XS)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


def test_writing_into_the_carry_changes_only_the_bodys_own():
    def body(c, x):
        c[0] += x
        return c, c[0]

    init = np.zeros(2)
    last, ys = rg.scan(body, init, XS)
    np.testing.assert_array_equal(init, np.zeros(2))
    np.testing.assert_allclose(last, [XS.sum(), 0.0])
    np.testing.assert_allclose(ys, np.cumsum(XS))


def test_scans_nest():
    def inner(c, x):
        return c + x, c * x

    def outer(c, row):
        total, parts = rg.scan(inner, c, row)
        return total * 0.5, np.sum(parts)

    rows = np.arange(6.0).reshape(2, 3)
    found = rg.value_and_grad(lambda rows: np.sum(rg.scan(outer, 1.0, rows)[1]))(rows)

    def by_loops(rows):
        c, out = 1.0, 0.0
        for k in range(2):
            for j in range(3):
                out, c = out + c * rows[k, j], c + rows[k, j]
            c = c * 0.5
        return out

    expected = rg.value_and_grad(by_loops)(rows)
    assert found[0] == pytest.approx(expected[0])
    np.testing.assert_allclose(found[1], expected[1])


def test_scan_under_vmap_and_jit():
    f = rg.vmap(lambda c, xs: rg.scan(lambda c, x: (c * x, c), c, xs)[0], in_axes=(0, None))
    np.testing.assert_allclose(f(XS, XS), XS * XS.prod())
    np.testing.assert_allclose(rg.jit(lambda xs: rg.scan(lambda c, x: (c + x, c), 0.0, xs)[1])(XS), np.cumsum(XS) - XS)


def test_a_pullback_through_a_scan_may_be_used_inside_a_trace():
    _, pullback = rg.vjp(lambda c, xs: rg.scan(lambda c, x: (np.sin(c * x), c), c, xs)[0], 0.5, XS)
    one, many = pullback(2.0)
    inside = rg.jit(lambda ct: pullback(ct))(2.0)  # noqa: PLW0108 - a function of its own
    assert inside[0] == one
    np.testing.assert_array_equal(inside[1], many)
    lanes = rg.vmap(pullback)(np.array([2.0, 4.0]))
    np.testing.assert_allclose(lanes[1], [many, 2 * many])


def test_the_text_of_a_scan_does_not_grow_with_its_length():
    def loss(xs):
        return rg.scan(lambda c, x: (np.sin(c) * x, None), 1.0, xs)[0]

    lines = {n: rg.grad(loss).source(np.ones(n)).count("\n") for n in (2, 10, 100, 1000, 5000)}
    assert lines[2] == lines[10] == lines[100]
    assert lines[1000] == lines[5000]  # whose storage is freed
