"""Prices, portfolios and yields."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

COUPONS = np.array([5.0, 5.0, 5.0, 105.0])


def normal_cdf(np, x):
    """The approximation by a logistic function with a cubic argument."""
    return 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@program(number(80, 120), number(90, 110), number(0.1, 0.4), number(0.01, 0.05), number(0.5, 2), single=1e-3)
def price_of_a_call(np, spot, strike, volatility, rate, expiry):
    spread = volatility * np.sqrt(expiry)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * expiry) / spread
    return spot * normal_cdf(np, d1) - strike * np.exp(-rate * expiry) * normal_cdf(np, d1 - spread)


@program(number(0.8, 1.2), number(0.9, 1.1), number(0.1, 0.4), number(0.01, 0.05))
def price_on_a_binomial_tree(np, spot, strike, volatility, rate):
    up = np.exp(volatility * 0.5)
    share = (np.exp(rate * 0.25) - 1 / up) / (up - 1 / up)
    values = np.maximum(spot * up ** np.arange(-4.0, 5.0, 2.0) - strike, 0.0)
    for _ in range(4):
        values = np.exp(-rate * 0.25) * (share * values[1:] + (1 - share) * values[:-1])
    return values[0]


@program(normal(3, 5), number(0.8, 1.2), number(0.1, 0.4))
def price_of_an_asian_option_along_paths(np, shocks, spot, volatility):
    paths = spot * np.exp(np.cumsum(volatility * 0.3 * shocks - 0.045 * volatility**2, axis=1))
    return np.mean(np.maximum(np.mean(paths, axis=1) - 0.9, 0.0))


@program(normal(4), normal(4, 4), normal(4), number(1, 3))
def utility_of_a_portfolio(np, weights, factors, returns, aversion):
    share = np.exp(weights) / np.sum(np.exp(weights))
    return share @ returns - 0.5 * aversion * share @ (factors @ factors.T) @ share


@program(number(0.02, 0.08), number(90, 110), single=1e-3)
def yield_by_newton(np, rate, price):
    years = np.arange(1.0, 5.0)
    for _ in range(3):
        discounted = COUPONS * (1 + rate) ** (-years)
        rate = rate + (np.sum(discounted) - price) / np.sum(years * discounted / (1 + rate))
    return rate


@program(uniform(0.01, 0.05, 4), number(0.5, 2), uniform(1, 5, 5))
def nelson_siegel_curve(np, betas, decay, maturity):
    x = maturity / decay
    slope = -np.expm1(-x) / x
    return betas[0] + betas[1] * slope + betas[2] * (slope - np.exp(-x)) + betas[3] * np.exp2(-x)


@program(normal(6, scale=0.1), number(0.1, 0.3), autograd=0)
def sharpe_ratio_and_drawdown(np, returns, target):
    wealth = np.cumprod(1 + returns)
    drawdown = np.sum(np.maximum(1 - wealth[1:] / wealth[:-1], 0.0))
    return (np.mean(returns) - target) / np.std(returns) - drawdown
