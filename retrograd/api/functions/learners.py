"""fit_pairs: a learner moves a function value against its cotangent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import OptionError
from ...tracer.tree import Spec, flatten, unflatten
from ..jacobians import jacrev
from .closures import Fn, converted, is_inexact
from .cotangent import FunctionCotangent
from .resumption import calls


@dataclass(frozen=True)
class Rates:
    """``alpha`` is how far values move against the cotangent, ``eta`` the rate and ``steps`` the number of steps."""

    alpha: float
    eta: float
    steps: int


def fit_pairs(
    function: Callable[..., Any],
    pairs: FunctionCotangent | Iterable[Any],
    learner: str = "targets",
    *,
    alpha: float = 1.0,
    eta: float = 0.1,
    steps: int = 1,
) -> Fn:
    """The function after learning from its cotangent.

    A cotangent is not an update of parameters: it says at which points the values of the function should move, and how.
    The wanted values are the targets ``function(x) - alpha * ct``. The learner decides how the captures θ change:

    - ``"sgd"``: θ moves against the cotangent that is pulled into it, with the rate ``eta * alpha``.
    - ``"targets"``: ``steps`` steps of gradient descent, with the rate ``eta``, on ½ Σ (f(x) - target)². The first
      one is the step of ``"sgd"``.
    - ``"least_squares"``: ``steps`` Gauss-Newton steps to the targets, each of least norm: exact in one step where
      the function is linear in θ and the targets can be reached.
    - ``"table"``: θ stays, and a table overrides the function at the points: it memorises the targets.

    Parameters
    ----------
    function : callable
        The function.
    pairs : FunctionCotangent or iterable of pairs
        Its cotangent. A point that is listed more than once counts once, with the sum of its cotangents.
    learner : str
        One of the four.
    alpha, eta : float
        How far targets lie from the values, and the rate of gradient descent.
    steps : int
        The number of steps.

    Returns
    -------
    Fn
        The function with other ``.captures``.

    Raises
    ------
    OptionError
        If an option is wrong.

    Examples
    --------
    >>> import retrograd as rg
    >>> def line(t0, t1):
    ...     return lambda x: t0 + t1 * x
    >>> f = rg.functions.fit_pairs(line(1.0, 1.0), [(2.0, -2.0)], alpha=0.5, eta=0.1)
    >>> {name: float(t) for name, t in f.captures.items()}
    {'t0': 1.1, 't1': 1.2}
    >>> g = rg.functions.fit_pairs(line(1.0, 1.0), [(2.0, -2.0)], "table", alpha=0.5)
    >>> float(g(2.0)), float(g(2.1))
    (4.0, 3.1)
    """
    if learner not in LEARNERS:
        raise OptionError(f"there is no learner {learner!r}", remedy=f"choose from {', '.join(LEARNERS)}")
    if type(steps) is not int or steps < 0:
        raise OptionError(f"steps={steps!r} is not a number of steps", remedy="give an int >= 0")
    value = converted(function)
    if learner != "table" and not value.captures:
        raise OptionError(
            f"{value!r} captures no numbers that a learner could change",
            remedy='use learner="table", or a function that captures its parameters',
        )
    ct = FunctionCotangent(pairs).normalized().batched()
    return LEARNERS[learner](value, ct, Rates(alpha, eta, steps)) if ct.blocks else value


def _values(value: Fn, ct: FunctionCotangent) -> list[Any]:
    """The values of the function at the points of a cotangent, leaf by leaf."""
    found: list[Any] = calls(value.template)(value, ct)
    return found


def _targets(value: Fn, ct: FunctionCotangent, alpha: float) -> list[Any]:
    cts = (c for block in ct.blocks for c in flatten(block.cotangent)[0])
    return [y - alpha * c for y, c in zip(_values(value, ct), cts, strict=True)]


def _toward(ct: FunctionCotangent, residuals: Iterable[Any]) -> FunctionCotangent:
    """The cotangent with other values at the points of ``ct``, given leaf by leaf."""
    rest = iter(residuals)
    blocks = []
    for block in ct.blocks:
        leaves, spec = flatten(block.cotangent)
        blocks.append(replace(block, cotangent=unflatten(spec, [next(rest) for _ in leaves])))
    return FunctionCotangent.of_blocks(blocks)


def _moved(value: Fn, ct: FunctionCotangent, rate: float) -> Fn:
    """The function with its captures moved against their cotangents."""
    leaves, spec = flatten(value)
    moved = [x if g is None else x - rate * g for x, g in zip(leaves, ct.pulled(value), strict=True)]
    found: Fn = unflatten(spec, moved)
    return found


def _sgd(value: Fn, ct: FunctionCotangent, rates: Rates) -> Fn:
    return _moved(value, ct, rates.eta * rates.alpha)


def _descended(value: Fn, ct: FunctionCotangent, rates: Rates) -> Fn:
    targets = _targets(value, ct, rates.alpha)
    for _ in range(rates.steps):
        residuals = [y - t for y, t in zip(_values(value, ct), targets, strict=True)]
        value = _moved(value, _toward(ct, residuals), rates.eta)
    return value


def _least_squares(value: Fn, ct: FunctionCotangent, rates: Rates) -> Fn:
    """Gauss-Newton: θ - J⁺ (f - target), where J is the Jacobian of all values with respect to θ."""
    targets = np.concatenate([np.ravel(t) for t in _targets(value, ct, rates.alpha)])
    for _ in range(rates.steps):
        theta, opened = _flat(value)

        def values(theta: Any, opened: Callable[[Any], Fn] = opened) -> Any:
            return np.concatenate([np.ravel(y) for y in _values(opened(theta), ct)])

        step = np.linalg.lstsq(jacrev(values)(theta), targets - values(theta), rcond=None)[0]
        value = opened(theta + step)
    return value


def _flat(value: Fn) -> tuple[Any, Callable[[Any], Fn]]:
    """All inexact captures in one vector, and a function from such a vector to the function value."""
    leaves, spec = flatten(value)
    places = [i for i, x in enumerate(leaves) if is_inexact(x)]
    shapes = [np.shape(leaves[i]) for i in places]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()

    def opened(theta: Any) -> Fn:
        filled = list(leaves)
        for k, (i, shape) in enumerate(zip(places, shapes, strict=True)):
            part = theta[ends[k] : ends[k + 1]]
            filled[i] = part.reshape(shape) if shape else part[0]
        found: Fn = unflatten(spec, filled)
        return found

    return np.concatenate([np.ravel(leaves[i]) for i in places]), opened


def _table(value: Fn, ct: FunctionCotangent, rates: Rates) -> Fn:
    """The function plus, at the points of the cotangent only, -α times the cotangent."""
    for block in ct.blocks:
        points, spec = flatten(block.inputs)
        values = [-rates.alpha * np.asarray(c) for c in flatten(block.cotangent)[0]]
        if not block.sizes:
            points, values = [np.asarray(x)[None] for x in points], [v[None] for v in values]
        value = converted(_with_entries(value, points, spec, values))
    return value


def _with_entries(base: Fn, points: list[Any], inputs: Spec, values: list[Any]) -> Callable[..., Any]:
    def table(*args: Any) -> Any:
        leaves, given = flatten(args)
        shapes = [p.shape[1:] for p in points]
        if given != inputs or [np.shape(x) for x in leaves] != shapes:
            return base(*args)
        out, spec = flatten(base(*args))
        hit: Any = True
        for point, x in zip(points, leaves, strict=True):
            same = point == x
            hit = np.logical_and(hit, np.all(np.reshape(same, (len(same), -1)), axis=1))
        added = (np.sum(np.where(np.reshape(hit, (-1, *(1,) * (v.ndim - 1))), v, 0.0), axis=0) for v in values)
        return unflatten(spec, [y + a for y, a in zip(out, added, strict=True)])

    return table


LEARNERS: dict[str, Callable[[Fn, FunctionCotangent, Rates], Fn]] = {
    "sgd": _sgd,
    "targets": _descended,
    "least_squares": _least_squares,
    "table": _table,
}
