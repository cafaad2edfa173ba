"""Reductions and statistics, with and without NaN, against NumPy and finite differences."""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import (
    assert_differentiable,
    assert_same,
    assert_traced,
    assert_traced_in_all_layouts,
    assert_traced_with,
    distinct,
    of_dtypes,
    outcome,
)

W = np.array([[1.0, 2.0, 0.5, 3.0], [0.2, 1.5, 1.0, 2.0], [2.5, 0.3, 1.2, 0.7]])
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])

REDUCTIONS: dict[str, Any] = {
    "sum": np.sum,
    "sum axis": lambda x: np.sum(x, axis=-1),
    "sum axes keepdims": lambda x: np.sum(x, axis=(0, -1), keepdims=True),
    "sum of no axes": lambda x: np.sum(x, axis=()),
    "sum dtype": lambda x: np.sum(x, dtype=np.complex128),
    "sum initial": lambda x: np.sum(x, axis=0, initial=2.5),
    "sum where": lambda x: np.sum(x, axis=0, where=x > 0.1),
    "sum method": lambda x: x.sum(0, keepdims=True),
    "add.reduce": np.add.reduce,
    "add.reduce all": lambda x: np.add.reduce(x, axis=None, keepdims=True, initial=1),
    "prod": np.prod,
    "prod axis": lambda x: np.prod(x, axis=0),
    "prod axes": lambda x: np.prod(x, axis=(1, 0), keepdims=True),
    "prod where initial": lambda x: x.prod(axis=-1, where=x > 0.1, initial=0.5),
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=-1),
    "mean": np.mean,
    "mean axis": lambda x: x.mean(axis=0, keepdims=True),
    "mean where": lambda x: np.mean(x, axis=0, where=x != 0),
    "average": lambda x: np.average(x, axis=0),
    "var": np.var,
    "var ddof": lambda x: np.var(x, axis=-1, ddof=1),
    "var correction": lambda x: np.var(x, axis=0, correction=1, keepdims=True),
    "var where": lambda x: x.var(axis=0, where=x != 0),
    "var mean": lambda x: np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)),
    "std": np.std,
    "std axis": lambda x: x.std(axis=-1, ddof=1),
    "nansum": lambda x: np.nansum(x, axis=0),
    "nanprod": lambda x: np.nanprod(x, axis=0),
    "nanmean": lambda x: np.nanmean(x, axis=0),
    "nanvar": lambda x: np.nanvar(x, axis=0, ddof=1),
    "nanstd": lambda x: np.nanstd(x, axis=-1, keepdims=True),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(np.real(x), axis=0),
    "logaddexp.reduce all": lambda x: np.logaddexp.reduce(np.real(x), axis=None, keepdims=True),
    "count_nonzero": lambda x: x * np.count_nonzero(x > 0),
    "any": lambda x: np.where(np.any(x > 1, axis=0), x, 2 * x),
    "all": lambda x: np.where((x > 1).all(-1, keepdims=True), x, 2 * x),
    "logical_or.reduce": lambda x: np.where(np.logical_or.reduce(x > 1), x, 2 * x),
}
ORDERED: dict[str, Any] = {
    "max": np.max,
    "amax axis": lambda x: np.amax(x, axis=0),
    "max keepdims": lambda x: x.max(axis=-1, keepdims=True),
    "max initial": lambda x: np.max(x, axis=0, initial=0.1),
    "max where": lambda x: np.max(x, axis=0, where=x < 1.0, initial=-5.0),
    "min": np.min,
    "amin axes": lambda x: np.amin(x, axis=(0, 1)),
    "min method": lambda x: x.min(0),
    "maximum.reduce": np.maximum.reduce,
    "minimum.reduce": lambda x: np.minimum.reduce(x, axis=-1),
    "fmax.reduce": np.fmax.reduce,
    "ptp": lambda x: np.ptp(x, axis=0),
    "ptp all": np.ptp,
    "nanmax": lambda x: np.nanmax(x, axis=0),
    "nanmin": np.nanmin,
    "median": np.median,
    "median even": lambda x: np.median(x, axis=-1),
    "median odd keepdims": lambda x: np.median(x, axis=0, keepdims=True),
    "median axes": lambda x: np.median(x, axis=(0, 1)),
    "nanmedian": lambda x: np.nanmedian(x, axis=-1),
    "quantile": lambda x: np.quantile(x, 0.3),
    "quantiles": lambda x: np.quantile(x, [[0.0, 0.25], [0.8, 1.0]], axis=0),
    "quantile keepdims": lambda x: np.quantile(x, 0.6, axis=(0, 1), keepdims=True),
    "percentile": lambda x: np.percentile(x, 35, axis=-1),
    "percentiles": lambda x: np.percentile(x, np.array([10, 90]), axis=0, keepdims=True),
    "nanquantile": lambda x: np.nanquantile(x, 0.3, axis=0),
    "nanpercentiles": lambda x: np.nanpercentile(x, [20, 70], axis=-1),
}
METHODS = (
    "lower",
    "higher",
    "nearest",
    "midpoint",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
    "interpolated_inverted_cdf",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
)
ALL = REDUCTIONS | ORDERED
REAL_ONLY = ("nan", "any", "all", "or.", "where", "initial", "count", "dtype")

SHAPES = ((), (0,), (1,), (0, 4), (3, 0), (2, 3, 2))


@pytest.mark.parametrize("name", ALL)
def test_results_have_the_types_that_numpy_gives(name: str) -> None:
    assert_traced_with(ALL[name], *of_dtypes((3, 4), "dfeDi?B"))


@pytest.mark.parametrize("name", ALL)
def test_layouts_make_no_difference(name: str) -> None:
    assert_traced_in_all_layouts(ALL[name], distinct((3, 4)))


@pytest.mark.parametrize("name", ALL)
def test_edge_shapes_give_what_numpy_gives(name: str) -> None:
    assert_traced_with(ALL[name], *(distinct(shape) for shape in SHAPES))


@pytest.mark.parametrize("name", ALL)
def test_derivatives(name: str) -> None:
    assert_differentiable(ALL[name], distinct((3, 4)))
    if "dtype" not in name:
        assert_differentiable(ALL[name], distinct((3, 4), "f"), order=1)
    if name in REDUCTIONS and not any(word in name for word in REAL_ONLY):
        assert_differentiable(ALL[name], distinct((3, 4), "D"))


@pytest.mark.costly
@pytest.mark.parametrize("method", METHODS)
def test_methods_of_quantiles(method: str) -> None:
    for n in (4, 5, 8):
        for q in (0.0, 0.1, 0.5, 0.62, 1.0, [0.2, 0.9]):
            assert_traced(lambda x, q=q: np.quantile(x, q, axis=0, method=method), distinct((n, 2)))
            assert_differentiable(lambda x, q=q: np.quantile(x, q, axis=0, method=method), distinct((n, 2)), order=1)


@pytest.mark.parametrize("zeros", [[], [1], [0, 2], [0, 1, 2, 3]])
def test_products_are_right_with_zeros(zeros: list[int]) -> None:
    x = np.array([2.0, 3.0, -1.5, 0.5])
    x[zeros] = 0.0
    others = [np.prod(np.delete(x, i)) for i in range(4)]
    np.testing.assert_array_equal(rg.grad(np.prod)(x), others)
    pairs = [[0.0 if i == j else np.prod(np.delete(x, [i, j])) for j in range(4)] for i in range(4)]
    np.testing.assert_array_equal(rg.hessian(np.prod)(x), pairs)
    assert_differentiable(np.prod, x, order=3)


def test_a_complex_mean_of_bools() -> None:
    """NumPy squares the absolute values, but multiplies where numbers are real."""
    for x in (np.array([True, True, False]), np.array([1, 1, 0]), np.array([1.0, 1.0, 0.0])):
        for mean in (np.array([0.074 - 1.318j]), np.array([0.5])):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = np.var(x, mean=mean)
                assert_same(rg.jit(lambda x, mean: np.var(x, mean=mean))(x, mean), expected)


def test_products_of_infinities_and_of_tiny_numbers() -> None:
    np.testing.assert_array_equal(rg.grad(np.prod)(np.array([np.inf, 2.0, 3.0])), [6.0, np.inf, np.inf])
    np.testing.assert_array_equal(rg.grad(np.prod)(np.array([1e-200, 1e-200, 1.0])), [1e-200, 1e-200, 0.0])


@pytest.mark.parametrize("function", [np.max, np.min, np.nanmax, np.nanmin, np.maximum.reduce])
def test_ties_share_equally(function: Any) -> None:
    np.testing.assert_array_equal(rg.grad(function)(np.full(4, 1.5)), np.full(4, 0.25))


def test_a_median_of_ties_has_the_derivative_of_the_stable_order() -> None:
    np.testing.assert_array_equal(rg.grad(np.median)(np.zeros(3)), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(rg.grad(np.median)(np.zeros(4)), [0.0, 0.5, 0.5, 0.0])


def test_a_standard_deviation_of_constants_has_a_subgradient() -> None:
    np.testing.assert_array_equal(rg.grad(np.std)(np.full(3, 2.0)), np.zeros(3))


def with_nan(shape: tuple[int, ...]) -> Any:
    x = distinct(shape)
    x.reshape(-1)[1::5] = np.nan
    return x


NAN: dict[str, Any] = {
    "nansum": lambda x: np.nansum(x, axis=0),
    "nanprod": lambda x: np.nanprod(x, axis=-1),
    "nancumsum": lambda x: np.nancumsum(x, axis=0),
    "nancumprod": np.nancumprod,
    "nanmax": lambda x: np.nanmax(x, axis=0),
    "nanmin": np.nanmin,
    "nanmean": lambda x: np.nanmean(x, axis=0),
    "nanmean where": lambda x: np.nanmean(x, axis=-1, where=MASK, keepdims=True),
    "nanvar": lambda x: np.nanvar(x, axis=-1),
    "nanstd": lambda x: np.nanstd(x, ddof=1),
    "nanmedian": lambda x: np.nanmedian(x, axis=0),
    "nanmedian all": np.nanmedian,
    "nanquantile": lambda x: np.nanquantile(x, 0.35, axis=-1, keepdims=True),
    "nanpercentile": lambda x: np.nanpercentile(x, [0, 40, 100]),
    "nanargmax": lambda x: x * np.nanargmax(x, axis=0),
    "nanargmin": lambda x: x * np.nanargmin(x),
    "max": lambda x: np.max(x, axis=0),
    "median": lambda x: np.median(x, axis=0),
    "sort": lambda x: np.sort(x, axis=0),
}


@pytest.mark.parametrize("name", NAN)
def test_nan_is_skipped_or_spreads_as_in_numpy(name: str) -> None:
    assert_traced(NAN[name], with_nan((3, 4)))
    assert_traced(NAN[name], with_nan((3, 4)).astype("f"))


@pytest.mark.parametrize("name", [name for name in NAN if name.startswith("nan") and "arg" not in name])
def test_skipped_nan_has_no_derivative(name: str) -> None:
    x = with_nan((3, 4))
    gradient = rg.grad(lambda x: np.sum(NAN[name](x)))(x)
    np.testing.assert_array_equal(gradient[np.isnan(x)], 0.0)

    def of_present(present: Any) -> Any:
        full = np.full(12, np.nan)
        full[~np.isnan(x).reshape(-1)] = present
        return NAN[name](full.reshape(3, 4))

    present = x[~np.isnan(x)]
    assert_differentiable(of_present, present)
    np.testing.assert_allclose(rg.grad(lambda p: np.sum(of_present(p)))(present), gradient[~np.isnan(x)])


def test_a_slice_of_nothing_but_nan() -> None:
    x = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    for function in (np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanmedian):

        def of_columns(x: Any, f: Any = function) -> Any:
            return f(x, axis=0)

        assert_same(outcome(rg.jit(of_columns), [x]), outcome(of_columns, [x]))
    assert outcome(rg.jit(lambda x: np.nanargmax(x, axis=0)), [x]) is ValueError


WEIGHTED: dict[str, Any] = {
    "whole": lambda x, w: np.average(x, weights=w),
    "axis": lambda x, w: np.average(x, axis=0, weights=w),
    "keepdims": lambda x, w: np.average(x, axis=-1, weights=w, keepdims=True),
    "line": lambda x, w: np.average(x, axis=1, weights=w[0]),
    "returned": lambda x, w: np.average(x, axis=0, weights=w[:, 1], returned=True),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_averages(name: str) -> None:
    x = distinct((3, 4))
    assert_traced(WEIGHTED[name], x, W)
    assert_traced(WEIGHTED[name], x.astype("f"), W)
    assert_traced(lambda w: WEIGHTED[name](x, w), W)
    assert_traced(lambda x: WEIGHTED[name](x, W), x)
    assert_differentiable(WEIGHTED[name], x, W)
    assert_differentiable(lambda w: WEIGHTED[name](x, w), W, order=1)


def test_averages_without_weights_return_their_count() -> None:
    assert_traced(lambda x: np.average(x, axis=0, returned=True), distinct((3, 4)))
    assert_traced(lambda x: np.average(x, returned=True), distinct((3, 4)))
    assert outcome(rg.jit(lambda x: np.average(x, weights=x * 0)), [np.ones(3)]) is ZeroDivisionError


def test_levels_of_quantiles_may_be_traced() -> None:
    x = distinct((5, 3))
    for function in (lambda x, q: np.quantile(x, q, axis=0), lambda x, q: np.percentile(x, 100 * q, axis=-1)):
        for q in (0.3, np.array([0.12, 0.8])):
            assert_traced(function, x, q)
            assert_differentiable(function, x, q, order=2)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_lanes_with_their_own_levels_keep_the_dtype_of_the_array(kind: str) -> None:
    x, levels = distinct((5, 3)).astype(kind), np.array([0.3, 0.45, 1.0])
    for function in (
        lambda q: np.quantile(x, float(q), axis=0),
        lambda q: np.percentile(x, 100 * q.item()),
        lambda q: np.quantile(x, q),
    ):
        assert_same(rg.vmap(function)(levels), np.stack([function(q) for q in levels]))
        nested = rg.vmap(rg.vmap(function))(levels.reshape(3, 1))
        assert_same(nested, np.stack([function(q) for q in levels])[:, None])


def test_masks_may_be_arrays_from_outside_or_traced() -> None:
    x = distinct((3, 4))
    for function in (np.sum, np.prod, np.mean, np.var, np.std):
        assert_traced(lambda x, f=function: f(x, axis=0, where=MASK), x)
        assert_traced(lambda x, f=function: f(W, axis=0, where=x > 0.0), x)
        assert_differentiable(lambda x, f=function: f(x, axis=0, where=MASK), x)
    for options in ({"where": MASK}, {"where": MASK, "initial": 1.0}):
        assert_traced(lambda x, o=options: np.max(x, axis=0, **o), x)
    assert_traced(lambda x: np.sum(x, where=np.ones((2, 3, 4), bool)), x)


def test_levels_from_outside_are_read_at_each_call() -> None:
    levels, x = np.array([0.2, 0.5]), distinct((7,))
    compiled = rg.jit(lambda x: np.quantile(x, levels))
    assert_same(compiled(x), np.quantile(x, levels))
    levels[0] = 0.9
    assert_same(compiled(x), np.quantile(x, levels))
    levels[0] = 1.9
    assert outcome(compiled, [x]) is ValueError


def test_masks_from_outside_are_read_at_each_call() -> None:
    mask = np.array([True, True, False, False])
    compiled = rg.jit(lambda x: np.mean(x, where=mask))
    assert compiled(np.arange(4.0)) == 0.5
    mask[3] = True
    assert_same(compiled(np.arange(4.0)), np.mean(np.arange(4.0), where=mask))


def test_plain_numbers_may_have_any_option() -> None:
    def inside(x: Any) -> Any:
        known = np.array([3.0, 1.0, 2.0])
        return x * np.quantile(known, 0.5, method="inverted_cdf") + np.subtract.reduce(known) + np.unique(known)

    assert_traced(inside, distinct((3,)))


OUT: dict[str, Any] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "ptp": np.ptp,
    "median": np.median,
    "nanmean": np.nanmean,
    "nanmax": np.nanmax,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "add.reduce": np.add.reduce,
    "maximum.accumulate": np.maximum.accumulate,
}


@pytest.mark.parametrize("name", OUT)
def test_results_go_into_out(name: str) -> None:
    def inside(x: Any) -> Any:
        target = np.zeros((2, 3, 4))
        found = OUT[name](x, axis=1, out=target[1] if "cum" in name or "acc" in name else target[1, :, 0])
        return found, target

    assert_traced(inside, distinct((3, 4)))
    assert_differentiable(lambda x: inside(x)[1], distinct((3, 4)))
    outside = np.zeros((3, 4) if "cum" in name or "acc" in name else 3)
    with pytest.raises(rg.errors.CapturedWriteError):
        rg.jit(lambda x: OUT[name](x, axis=1, out=outside))(distinct((3, 4)))


def test_out_of_another_shape_is_refused() -> None:
    def inside(x: Any) -> Any:
        return np.sum(x, axis=0, out=np.zeros((2, 4)))

    assert outcome(rg.jit(inside), [np.ones((3, 4))]) is ValueError


def test_scalars_and_numbers_are_reduced_too() -> None:
    for function in (np.sum, np.prod, np.max, np.mean, np.var, np.median, np.cumsum, np.cumprod, np.sort, np.argmax):
        if function is not np.sort:
            assert_traced(lambda x, f=function: f(np.sin(x)), np.float64(0.5))
            assert_traced(function, 0.5)
    assert_differentiable(lambda x: np.mean(x) * np.prod(x) + np.max(x), 0.5)


UNSUPPORTED: dict[str, Any] = {
    "quantile weights": lambda x: np.quantile(x, 0.5, weights=np.abs(x), method="inverted_cdf"),
    "nanquantile method": lambda x: np.nanquantile(x, 0.5, method="hazen"),
    "nanquantile level": lambda x: np.nanquantile(x, np.sin(x[0]) ** 2),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_traced_says_so(name: str) -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="remedy"):
        rg.jit(UNSUPPORTED[name])(distinct((5,)))


def test_statistics_read_like_written_by_hand() -> None:
    text = rg.grad(lambda x: np.sum(np.cumsum(x) ** 2)).source(np.ones(3))
    assert "np.add.accumulate" in text
    assert "for" not in text


@pytest.mark.parametrize("name", ["max", "min", "maximum.reduce", "minimum.reduce"])
@pytest.mark.parametrize("axis", [None, 0, 1, ()])
def test_the_sign_of_a_zero_beside_an_initial_one_is_numpys(name: str, axis: Any) -> None:
    f: Any = functools.reduce(getattr, name.split("."), np)
    for initial, a in itertools.product((0, -0.0), itertools.product((0.0, -0.0), repeat=3)):
        x = np.array([a])
        found, expected = (g(x, axis=axis, initial=initial) for g in (rg.jit(f), f))
        assert np.array_equal(np.signbit(found), np.signbit(expected))


def test_gradients_of_logaddexp_where_all_terms_are_nothing():
    x = np.array([[-np.inf, -np.inf], [-np.inf, 1.0]])
    found = rg.grad(lambda x: np.sum(np.array([1.0, 2.0]) * np.logaddexp.reduce(x, axis=1)))(x)
    np.testing.assert_array_equal(found, [[0.0, 0.0], [0.0, 2.0]])
