"""check_lens: the laws of a pullback, on random cotangents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import GradientCheckError, LensLawError
from ..tracer.tree import flatten, map_leaves, unflatten
from .check_grads import TOLERANCE, check_grads, random_like
from .lens import Lens, lens

FACTOR = 2.5


def check_lens(function: Callable[..., Any], *args: Any) -> None:
    """Check a lens, or a function that returns ``(value, pullback)``, at a point.

    Four laws are checked in turn. *Repetition*: the pullback gives the same result twice. *Additivity*:
    pull(u + v) = pull(u) + pull(v). *Homogeneity*: pull(c·u) = c·pull(u). *Derivative*: ⟨pull(u), v⟩ = ⟨u, difference
    of the value along v⟩.

    Parameters
    ----------
    function : Lens or callable
        What is checked.
    *args : tree
        The point.

    Raises
    ------
    LensLawError
        If a law is broken; its attribute ``law`` is the name of the first one.

    Examples
    --------
    >>> import retrograd as rg
    >>> rg.check_lens(lambda x: (x * x, lambda ct: 2 * x * ct), 3.0)
    >>> try:
    ...     rg.check_lens(lambda x: (x, lambda ct: ct * ct), 3.0)
    ... except rg.errors.LensLawError as fault:
    ...     print(fault.law)
    additivity
    """
    checked = function if isinstance(function, Lens) else lens(function)
    value, pull = checked.at(*args)
    rng = np.random.default_rng(0)
    u, v = random_like(value, rng), random_like(value, rng)
    once = pull(u)
    _require("repetition", pull(u), once, exactly=True)
    _require("additivity", pull(_joined(np.add, u, v)), _joined(np.add, once, pull(v)))
    _require("homogeneity", pull(_scaled(u)), _scaled(once))
    try:
        check_grads(checked, args, order=1, modes=("rev",))
    except GradientCheckError as fault:
        raise LensLawError(
            f"derivative: {fault.what}",
            law="derivative",
            remedy="make the pullback the transpose of the value's derivative",
        ) from None


def _joined(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    (xs, spec), (ys, _) = flatten(x), flatten(y)
    return unflatten(spec, [operation(a, b) for a, b in zip(xs, ys, strict=True)])


def _scaled(tree: Any) -> Any:
    return map_leaves(lambda x: x * np.asarray(x).dtype.type(FACTOR) if np.asarray(x).dtype.kind in "fc" else x, tree)


def _require(law: str, found: Any, expected: Any, exactly: bool = False) -> None:
    pairs = zip(map(np.asarray, flatten(found)[0]), map(np.asarray, flatten(expected)[0]), strict=True)
    for k, (a, b) in enumerate(pairs):
        if a.dtype.kind not in "fc":
            continue
        tolerance = 0.0 if exactly else TOLERANCE[a.dtype.kind][a.dtype.itemsize]
        scale = float(np.max(np.abs(b), initial=1.0))
        if not np.all(np.abs(a - b) <= tolerance * scale):
            raise LensLawError(
                f"{law}: entry {k} of the cotangents is {a!r:.80}, but the law gives {b!r:.80}",
                law=law,
                remedy="make the pullback linear in the cotangent and independent of changing state",
            )
