"""Digits of traced values in messages, logs, keys and results: those of each call."""

from __future__ import annotations

import logging
import sys
import warnings

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])


@pytest.fixture(autouse=True)
def _without_the_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rg.errors.UnwatchedWarning)
        yield


def root(x):
    if x[0] < 0:
        raise ValueError(f"x must be positive, got {x[0]:.2f}")
    return np.sum(np.sqrt(x[0] * x))


@pytest.mark.parametrize("transform", [rg.jit, rg.grad, rg.vjp])
def test_an_error_of_the_users_stays_his_with_the_digits_of_this_call(transform):
    def call(x):
        return transform(root, x) if transform is rg.vjp else f(x)

    f = None if transform is rg.vjp else transform(root)
    for first in (-1.254, -2.5, -1.254):
        with pytest.raises(ValueError, match=f"got {first:.2f}"):
            call(np.array([first, 1.0]))
    call(np.array([1.0, 2.0]))


def test_a_message_that_is_not_made_costs_nothing():
    f = rg.grad(root)
    for k in range(1, 5):
        f(np.array([k, 2.0]))
    assert f.cache_info().misses == 1


def test_logs_show_each_call(capsys):
    def loss(x):
        value = np.sum(x**2)
        sys.stdout.write(f"loss {value:.3f}, {value:8.1e}, {round(float(value), 2)}\n")
        return value

    f = rg.grad(loss)
    for k in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(f(k * X), 2 * k * X)
        value = np.sum((k * X) ** 2)
        assert capsys.readouterr().out == f"loss {value:.3f}, {value:8.1e}, {round(float(value), 2)}\n"


def test_texts_that_become_results_or_keys_are_right_at_each_call():
    table = {"0.5": 2.0, "1.5": 3.0}

    def by_key(x):
        return x * table[f"{x:.1f}"]

    def with_label(x):
        return x * 2, f"{x:.1f}"

    def decimal(x):
        return x + round(float(x), 2)

    inner = rg.jit(by_key)
    for f in (by_key, with_label, decimal, lambda x: inner(x) + 1):
        compiled = rg.jit(f)
        assert [compiled(x) for x in (0.5, 1.5, 0.5)] == [f(x) for x in (0.5, 1.5, 0.5)]
    assert rg.grad(decimal)(2.675) == 1.0


def test_it_is_said_that_such_a_function_is_not_compiled():
    f = rg.jit(lambda x: f"{x:.1f}")
    with pytest.warns(rg.errors.UnwatchedWarning, match="digits of a traced value"):
        assert [f(x) for x in (1.0, 2.0, 3.0, 4.0)] == ["1.0", "2.0", "3.0", "4.0"]


def test_digits_of_made_up_values_are_refused():
    def step(c, x):
        return (c + x if f"{c:.2f}" else c), None

    for f in (
        lambda x: rg.scan(step, 0.0, x)[0],
        lambda x: rg.cond(x[0] > 0, lambda: round(float(x[0]), 1), lambda: 0.0),
    ):
        with pytest.raises(rg.RetrogradError):
            rg.jit(f)(X)


def test_lanes_have_no_common_digits():
    for f in (lambda x: x * {"1.0": 2.0}.get(f"{x:.1f}", 3.0), lambda x: x + round(float(x), 1)):
        with pytest.raises(rg.errors.ControlFlowError):
            rg.vmap(f)(X)
        assert rg.vmap(f)(np.ones(2)).tolist() == [f(1.0)] * 2


@pytest.mark.parametrize("number", [float, int])
def test_digits_are_no_numbers_again(number):
    """The gradient of such a number would be zero, without a word."""
    for transform in (rg.jit, rg.grad):
        with pytest.raises(rg.errors.TracerConversionError, match="lose its derivative"):
            transform(lambda x: abs(number(f"{x:.0f}")) * x)(2.0)


def test_digits_of_nan_and_infinity():
    f = rg.jit(lambda x: (x, f"{x:.2f}", f"{np.sqrt(x):.1e}"))
    for x in (np.nan, np.inf, -0.0, np.nan):
        assert f(x)[1:] == (f"{x:.2f}", f"{np.sqrt(x):.1e}")


def test_the_percent_operator_is_refused_with_an_f_string_as_the_remedy():
    for line in (lambda x: "%.3f" % x[0], lambda x: "%s: %.2e" % ("loss", float(x[1]))):  # noqa: UP031 - as users write
        with pytest.raises(rg.errors.TracerConversionError, match=r'f"{x:.3f}"'):
            rg.jit(line)(np.ones(3))


def test_logging_writes_the_digits_of_each_call(caplog, capsys):
    def loss(x):
        value = np.sum(x**2)
        logging.getLogger("tests.texts").warning("loss %.3f of %d, %s", value, len(x), "fine")
        return value

    f = rg.grad(loss)
    for scale in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(f(scale * np.ones(2)), 2.0 * scale * np.ones(2))
    assert [record.getMessage() for record in caplog.records] == [f"loss {2 * s:.3f} of 2, fine" for s in (1, 4, 9)]
    assert "Logging error" not in capsys.readouterr().err
