"""check_grads: derivatives against finite differences, in both modes, to any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import GradientCheckError, OptionError, TreeError
from ..tracer.tree import flatten, unflatten
from .along_tangents import jvp
from .at_a_point import vjp

TOLERANCE = {"f": {8: 1e-6, 4: 2e-2, 2: 1e-1}, "c": {16: 1e-6, 8: 2e-2}}


def check_grads(
    function: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Compare derivatives with central differences along random directions.

    Forward mode is compared entry by entry. Reverse mode is compared by the pairing
    ⟨pullback(u), v⟩ = ⟨u, derivative along v⟩.

    Parameters
    ----------
    function : callable
        The function whose derivatives are checked.
    args : sequence
        The point: floating-point arrays, or trees of them.
    order : int
        The highest order of derivatives that is checked.
    modes : sequence of "fwd" and "rev"
        The modes that are checked.
    atol, rtol : float, optional
        Tolerances; by default values that suit the dtype.

    Raises
    ------
    GradientCheckError
        If a derivative differs; the message shows the worst entry.
    OptionError, TreeError, NonDifferentiableError
        If an argument is wrong.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.check_grads(np.sin, (np.array([0.1, 0.2]),))
    """
    modes = (modes,) if isinstance(modes, str) else modes
    if unknown := set(modes) - {"fwd", "rev"}:
        raise OptionError(f"modes {sorted(unknown)} are unknown", remedy="use 'fwd' and 'rev'")
    if order not in range(1, 100):
        raise OptionError(f"order={order!r} is not an order", remedy="check derivatives of order 1, 2, ...")
    if not isinstance(args, (tuple, list)):
        raise TreeError(
            f"check_grads takes a tuple of arguments, got {type(args).__name__}",
            remedy="write check_grads(f, (x,))",
        )
    leaves = flatten(tuple(args))[0]
    kinds = [np.asarray(x).dtype for x in leaves]
    base = max((TOLERANCE[d.kind][d.itemsize] for d in kinds if d.kind in "fc"), default=1e-6)
    _check(function, tuple(args), order, modes, atol or base, rtol or base, np.random.default_rng(0), "")


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: Sequence[str],
    atol: float,
    rtol: float,
    rng: np.random.Generator,
    path: str,
) -> None:
    if order == 0:
        return
    v = random_like(args, rng)
    out, pullback = vjp(f, *args)
    slope = _difference(f, args, v)
    u = random_like(out, rng)
    if "fwd" in modes:
        _compare(jvp(f, args, v)[1], slope, atol, rtol, f"{path}fwd")
        _check(lambda *a: jvp(f, a, v)[1], args, order - 1, modes, atol * 20, rtol * 20, rng, f"{path}fwd of ")
    if "rev" in modes:
        _compare(_pairing(pullback(u), v), _pairing(u, slope), atol, rtol, f"{path}rev")
        _check(lambda *a: vjp(f, *a)[1](u), args, order - 1, modes, atol * 20, rtol * 20, rng, f"{path}rev of ")


def random_like(tree: Any, rng: np.random.Generator) -> Any:
    """A tree of random directions with the shapes and dtypes of ``tree``; leaves that are not floating-point stay."""
    leaves, spec = flatten(tree)
    return unflatten(spec, [_direction(np.asarray(x), rng) for x in leaves])


def _direction(x: np.ndarray[Any, Any], rng: np.random.Generator) -> Any:
    if x.dtype.kind not in "fc":
        return x
    d = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        d = d + 1j * rng.standard_normal(x.shape)
    return np.asarray(d).astype(x.dtype)[()]


def _moved(args: tuple[Any, ...], v: Any, step: float) -> Any:
    (xs, spec), (vs, _) = flatten(args), flatten(v)
    moved = [
        (np.asarray(x) + np.asarray(step * d).astype(np.asarray(x).dtype))[()]
        if np.asarray(x).dtype.kind in "fc"
        else x
        for x, d in zip(xs, vs, strict=True)
    ]
    return unflatten(spec, moved)


def _difference(f: Callable[..., Any], args: tuple[Any, ...], v: Any) -> Any:
    """Central differences at two steps, extrapolated to fourth order."""
    eps = max(float(np.finfo(np.asarray(x).dtype).eps) for x in flatten(args)[0] if np.asarray(x).dtype.kind in "fc")
    h = eps ** (1 / 5)
    spec = flatten(f(*args))[1]
    slopes = []
    for step in (h, h / 2):
        plus, _ = flatten(f(*_moved(args, v, step)))
        minus, _ = flatten(f(*_moved(args, v, -step)))
        pairs = zip(map(np.asarray, plus), map(np.asarray, minus), strict=True)
        slopes.append([(p - m) / (2 * step) if p.dtype.kind in "fc" else p for p, m in pairs])
    return unflatten(spec, [(4 * b - a) / 3 if a.dtype.kind in "fc" else a for a, b in zip(*slopes, strict=True)])


def _pairing(x: Any, y: Any) -> Any:
    """The real part of the sum of products: derivatives are linear over the reals, not always over complex numbers."""
    return sum(np.sum(a * b).real for a, b in zip(_inexact(x), _inexact(y), strict=True))


def _inexact(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [x for x in map(np.asarray, flatten(tree)[0]) if x.dtype.kind in "fc"]


def _compare(found: Any, expected: Any, atol: float, rtol: float, what: str) -> None:
    pairs = zip(map(np.asarray, flatten(found)[0]), map(np.asarray, flatten(expected)[0]), strict=True)
    for k, (a, b) in enumerate(pairs):
        if a.dtype.kind not in "fc":
            continue
        excess = np.abs(a - b) - (atol + rtol * np.abs(b))
        if excess.size and not np.all(excess <= 0):
            worst = np.unravel_index(int(np.nanargmax(np.where(np.isnan(excess), np.inf, excess))), excess.shape)
            raise GradientCheckError(
                f"{what}: entry {tuple(map(int, worst))} of result {k} is {a[worst]}, but differences give {b[worst]}",
                remedy="check the derivative rule, or whether the function is smooth at this point",
            )
