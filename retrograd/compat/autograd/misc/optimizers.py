"""sgd, rmsprop and adam on trees: ``grad(x, i)`` is given the number of the step, ``callback(x, i, g)`` is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .flatten import flatten

Function = Callable[..., Any]


def unflatten_optimizer(optimize: Function) -> Function:
    """Make an optimiser of vectors, ``optimize(grad, x, callback, ...)``, one of trees."""

    @wraps(optimize)
    def of_trees(grad: Function, x0: Any, callback: Function | None = None, *args: Any, **kwargs: Any) -> Any:
        start, unflatten = flatten(x0)

        def slope(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def told(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(slope, start, told if callback else None, *args, **kwargs))

    return of_trees


@unflatten_optimizer
def sgd(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum.

    >>> from retrograd.compat.autograd import grad
    >>> found = sgd(grad(lambda x, i: (x - 3.0) ** 2), 0.0)
    >>> round(float(found), 3)
    3.0
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback is not None:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps divided by the root of a running mean of squared gradients."""
    square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback is not None:
            callback(x, i, g)
        square = square * gamma + g**2 * (1 - gamma)
        x = x - step_size * g / (np.sqrt(square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Running means of gradients and of their squares, both divided by the weight that they have so far."""
    mean, square = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback is not None:
            callback(x, i, g)
        mean = (1 - b1) * g + b1 * mean
        square = (1 - b2) * (g**2) + b2 * square
        weighted = mean / (1 - b1 ** (i + 1))
        x = x - step_size * weighted / (np.sqrt(square / (1 - b2 ** (i + 1))) + eps)
    return x
