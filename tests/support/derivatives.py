"""What every rewrite before derivatives must keep: they are right, those of ``exact``, and those of each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg


def checked_gradient(program: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """The gradient with respect to three arguments, after comparisons of it and of second derivatives."""
    rg.check_grads(program, args, order=2)
    gradient = rg.grad(program, argnums=(0, 1, 2))
    found = gradient(*args)
    with rg.config(exact=True):
        expected = gradient(*args)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    lanes = rg.vmap(gradient, (0, None, None))(np.stack([args[0], 2.0 * args[0]]), *args[1:])
    for a, b in zip(lanes, found, strict=True):
        np.testing.assert_allclose(a[0], b, rtol=1e-12, atol=1e-14)
    return gradient
