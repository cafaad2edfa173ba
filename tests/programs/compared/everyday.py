"""Small tasks of everyday, by many functions of NumPy and by the methods of arrays."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

GRID = np.array([0.0, 0.5, 1.2, 2.0, 3.1])
HOLES = np.array([[0.0, np.nan, 0.0, 0.0], [0.0, 0.0, np.nan, np.nan], [0.0, 0.0, 0.0, 0.0]])
ROOMS = np.array([0, 2, 1, 2, 0, 1])


@program(normal(5), uniform(0.5, 2, 5))
def standard_error_of_a_weighted_mean(np, x, weights):
    mean = (x * weights).sum() / weights.sum()
    return (weights * (x - mean) ** 2).mean() ** 0.5 + mean


@program(normal(3, 4), normal(3, 4))
def chained_methods(np, a, b):
    joined = (a.T @ b).reshape(2, 8).swapaxes(0, 1)
    return (
        joined.max(axis=0).prod() + joined.cumsum(axis=1).mean() + a.ravel()[2:5].std() + a.min() * b.sum(axis=0).var()
    )


@program(normal(4, 3), normal(2))
def rows_by_starred_unpacking(np, rows, pair):
    first, *_, last = rows
    a, b = pair
    return sum(a * x + b * y for x, y in zip(first, last, strict=True)) * abs(a - b) + (-last @ first) ** 2 / (1 + b**2)


@program(uniform(0.1, 3, 6), uniform(0.5, 2, 3), autograd=0)
def weighted_average_and_covariance(np, x, weights):
    pairs = np.reshape(x, (2, 3))
    centred = pairs - np.average(pairs, axis=1, weights=np.stack([weights, weights]), keepdims=True)
    return np.sum(np.average(pairs, axis=0) ** 2) + np.dot(weights * centred[0], centred[1]) / (np.sum(weights) - 1)


@program(normal(5), uniform(0.2, 1, 5), autograd=0)
def area_under_a_curve(np, y, gaps):
    return np.trapezoid(y**2, np.cumsum(gaps)) + np.trapezoid(y, dx=0.1)


@program(uniform(0.1, 3, 6), normal(5), autograd=0)
def table_by_linear_interpolation(np, x, values):
    return np.interp(x, GRID, values)


@program(uniform(0.1, 3, 6), normal(5))
def table_by_binary_search(np, x, values):
    right = np.searchsorted(GRID, x)
    below, above = np.take(GRID, right - 1), np.take(GRID, right)
    share = (x - below) / (above - below)
    return np.sum(((1 - share) * values[right - 1] + share * values[right]) ** 2)


@program(normal(7), number(0.5, 2), autograd=0)
def robust_location_and_spread(np, x, scale):
    centre = np.median(x)
    return scale * np.median(np.abs(x - centre)) + np.quantile(x, 0.3) * np.percentile(x, 80) + np.ptp(x)


@program(normal(8), number(0.1, 1), autograd=0)
def slopes_by_central_differences(np, y, spacing):
    return np.gradient(y**2, spacing)


@program(normal(3, 4), normal(3, 4), autograd=0)
def scores_in_the_order_of_others(np, scores, gains):
    order = np.argsort(scores, axis=1)
    ranked = np.take_along_axis(gains, order, axis=1)
    return np.sum(ranked / np.log2(np.arange(2.0, 6.0))) + np.sum(np.take(scores, ROOMS) ** 2)


@program(uniform(0, 3, 6), uniform(0.1, 0.5, 3))
def income_tax_by_brackets(np, income, rates):
    bracket = [income < 0.5, income < 1.5]
    tax = [rates[0] * income, rates[1] * income**1.5]
    return np.sum(np.select(bracket, tax, rates[2] * income**2))


@program(normal(3, 4), autograd=0)
def means_with_holes(np, table):
    holed = table + HOLES
    return np.nanmean(holed, axis=1) ** 2 + np.nansum(holed, axis=1) * np.nanmax(holed, axis=1)


@program(normal(6), uniform(0.1, 0.9, 3))
def sinc_interpolation(np, samples, times):
    return np.sinc(5 * times[:, None] - np.arange(6.0)) @ samples


@program(normal(4), uniform(-1, 1, 3), autograd=0)
def polynomial_by_its_powers(np, coefficients, x):
    return np.sum(np.vander(x, 4) @ coefficients + np.polyval(coefficients, x) * np.float_power(x + 2, 1.5))


@program(normal(2, 2), normal(2, 3), autograd=0)
def assembled_blocks(np, A, B):
    wide = np.hstack([A, B])
    tall = np.vstack([wide, np.column_stack([B[:, 0], A, B[:, 1:]])])
    left, right = np.split(np.rot90(tall, axes=(1, 0)), 2, axis=1)
    return np.sum(left @ right.T) + np.sum(np.moveaxis(np.dstack([A, A.T]), 2, 0)[1] * A)


@program(uniform(0.1, 6, 6), number(0.1, 1), autograd=0)
def angles_around_the_circle(np, angles, offset):
    turned = np.mod(angles + offset, 2.0)
    return np.sum(np.sin(np.deg2rad(90 * turned)) * np.cbrt(angles)) + np.sum(np.fmod(angles, 1.5) ** 2)


@program(uniform(0.1, 3, 4), uniform(0.1, 3, 4))
def decibels_of_several_sources(np, a, b):
    level = 10 * np.log10(a**2 + b)
    return np.sum(np.logaddexp2(a, b)) + 10 * np.log10(np.sum(10 ** (level / 10))) + np.sum(np.log2(a) * np.exp2(-b))


@program(normal(7), normal(3), autograd=0)
def best_shift_of_a_pattern(np, signal, pattern):
    matched = np.correlate(signal, pattern, mode="valid")
    best = np.argmax(matched)
    return matched[best] + np.sum(np.square(np.fmax(matched, 0.1) - np.fmin(matched, 0.2)))


@program(normal(3), normal(2))
def repeated_and_tiled(np, a, b):
    wide = np.repeat(a, 2) * np.tile(b, 3)
    return np.sum(wide**2) + np.sum(np.diag(a) @ np.outer(a, b)) + np.sum(np.expand_dims(a, 0) * np.atleast_2d(b).T)


@program(normal(6), normal(6), autograd=0)
def totals_in_rooms(np, weights, heat):
    totals = np.stack([np.sum(np.where(room == ROOMS, weights * heat, 0.0)) for room in range(3)])
    return np.sum(totals**2) + np.sum(np.append(totals, heat[:2]) ** 3) + np.sum(np.ediff1d(np.delete(heat, 2)) ** 2)


@program(normal(4, 4), number(0.5, 2), autograd=0)
def symmetric_part_and_bands(np, A, scale):
    S = (A + A.T) / 2
    return scale * np.trace(S @ S) + np.sum(np.triu(S, 1) * np.tril(A, -1).T) + np.sum(np.diagonal(A) ** 3)


@program(normal(4), normal(4))
def signs_and_steps(np, x, y):
    return np.sum(
        np.sign(x) * y**2 + np.abs(x * y) + np.where(x > y, x * y, np.minimum(x, 0.3)) + np.square(x) / (1 + y**2)
    )


@program(normal(3, 4), uniform(0.5, 1.5, 3))
def norms_of_rows(np, x, powers):
    lengths = np.sum(np.abs(x) ** powers[:, None], axis=1) ** (1 / powers)
    return np.sum(lengths) + np.nan_to_num(np.max(np.sum(np.abs(x), axis=0)))


@program(uniform(0.1, 2, 5), uniform(-1.5, 1.5, 5))
def hyperbolic_and_inverse_functions(np, x, y):
    first = np.arctan(y) * np.arcsinh(y) + np.arctanh(y / 2) * np.arccosh(1 + x) + np.cosh(y) * np.sinh(x)
    return np.sum(first) + np.sum(np.tan(y / 2) * np.arcsin(y / 2) + np.log10(x) * np.reciprocal(x) + np.hypot(x, y))


@program(uniform(0.5, 2, 2, 3), autograd=0)
def sums_with_masks_and_starts(np, x):
    kept = np.sum(x**2, axis=0, where=np.array([True, False, True]), initial=1.0)
    return (
        np.sum(kept * np.max(x, axis=0, initial=0.9))
        + np.prod(x, axis=1, keepdims=True)[0, 0]
        + np.logaddexp.reduce(x[0])
    )
