"""check_grads: derivatives against finite differences, in both modes, to any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..errors import GradientCheckError, NonDifferentiableError, OptionError, TreeError
from ..tracer.interception import INTERCEPTION
from ..tracer.tree import flatten, map_leaves, nondiff_leaves, unflatten
from .along_tangents import jvp
from .at_a_point import vjp

MOST = 64  # entries of arguments that are tried one by one, to say which derivative is wrong
SUM = "the sum of all results"
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
        The point: the arguments of a call, as for ``grad``. Derivatives are taken in all floating-point leaves.
    order : int
        The highest order of derivatives that is checked.
    modes : sequence of "fwd" and "rev"
        The modes that are checked.
    atol, rtol : float, optional
        Tolerances; by default values that suit the dtype.

    Raises
    ------
    GradientCheckError
        If a derivative differs; the message shows the worst entry, of which result and by which argument.
    OptionError, TreeError, NonDifferentiableError
        If an argument is wrong.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.check_grads(np.sin, (np.array([0.1, 0.2]),))
    """
    if not callable(function):
        raise OptionError(
            f"check_grads needs a function, got {type(function).__name__}", remedy="write check_grads(f, (x,))"
        )
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
    leaves, spec = flatten(tuple(args))
    places = [
        k for k, (x, fixed) in enumerate(zip(leaves, nondiff_leaves(spec), strict=True)) if not fixed and _is_inexact(x)
    ]
    if not places:
        raise NonDifferentiableError(
            "check_grads got no floating-point number, and no array of them",
            remedy="pass floating-point numbers (1.0 instead of 1, x.astype(float))",
        )

    def of_leaves(*some: Any) -> Any:
        full = [*leaves]
        for k, x in zip(places, some, strict=True):
            full[k] = x
        return INTERCEPTION.meaning(function)(*unflatten(spec, full))

    point = tuple(leaves[k] for k in places)
    base = max(TOLERANCE[d.kind][d.itemsize] for d in (np.asarray(x).dtype for x in point))
    accessors = spec.accessors()
    compare = _Comparison([accessors[k].codify("args") for k in places], tuple(modes), np.random.default_rng(0))
    compare(of_leaves, point, order, _Tolerances(atol or base, rtol or base), ())


def _is_inexact(x: Any) -> bool:
    return isinstance(x, (float, complex)) or getattr(getattr(x, "dtype", None), "kind", "") in ("f", "c")


class _Tolerances(NamedTuple):
    """By how much a derivative may differ from its difference."""

    absolute: float
    relative: float

    def excess(self, found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """How much more than that each entry differs: infinitely, if it is not a number."""
        over = np.abs(found - expected) - (self.absolute + self.relative * np.abs(expected))
        return np.where(np.isnan(over), np.inf, over)


class _Difference(NamedTuple):
    """An entry of a result whose derivative is not its difference."""

    excess: float
    found: Any
    expected: Any
    entry: str
    by: str


@dataclass(frozen=True)
class _Comparison:
    """Compares derivatives of functions of floating-point leaves with differences; the leaves have ``names``."""

    names: Sequence[str]
    modes: Sequence[str]
    rng: np.random.Generator

    def __call__(
        self, f: Callable[..., Any], args: tuple[Any, ...], order: int, tolerances: _Tolerances, within: tuple[str, ...]
    ) -> None:
        """Compare derivatives up to an order. ``f`` may be a derivative by modes ``within``, the last one first."""
        if order == 0:
            return
        v = random_like(args, self.rng)
        u = random_like(f(*args), self.rng)
        slope, looser = _difference(f, args, v), _Tolerances(*(20 * x for x in tolerances))
        for mode in ("fwd", "rev"):
            if mode not in self.modes:
                continue
            wrong = [*_wrong(mode, f, args, v, u, slope, tolerances, "a random direction")]
            if wrong:
                raise self._error(f, args, tolerances, (mode, *within), wrong)
            derivative = partial(_forward, f, v) if mode == "fwd" else partial(_reverse, f, u)
            self(derivative, args, order - 1, looser, (mode, *within))

    def _error(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        tolerances: _Tolerances,
        modes: tuple[str, ...],
        wrong: list[_Difference],
    ) -> GradientCheckError:
        """The error that names the entries of result and argument between which derivatives differ most."""
        places = ((k, i) for k, x in enumerate(args) for i in np.ndindex(np.shape(x)))
        ones = map_leaves(np.ones_like, f(*args))
        cases: list[_Difference] = []
        for k, i in islice(places, MOST):
            v = tuple(_unit(x, i if j == k else None) for j, x in enumerate(args))
            slope, by = _difference(f, args, v), f"{self.names[k]}{_entry(i)}"
            cases += _wrong(modes[0], f, args, v, ones, slope, tolerances, by)
        _, found, expected, entry, by = max(cases or wrong, key=lambda case: case.excess)
        mode = " over ".join("forward" if mode == "fwd" else "reverse" for mode in modes)
        what = f"the derivative of {entry}" if len(modes) == 1 else f"a derivative of order {len(modes)}"
        return GradientCheckError(
            f"{mode} mode gives {found:.8g} for {what} by {by}, but central differences give {expected:.8g}",
            remedy="check the derivative rules that the function uses; if it is not smooth here, as abs at 0, check it "
            "at another point; if only rounding differs, give larger rtol= and atol=",
        )


def _forward(f: Callable[..., Any], v: Any, *args: Any) -> Any:
    return jvp(f, args, v)[1]


def _reverse(f: Callable[..., Any], u: Any, *args: Any) -> Any:
    return vjp(f, *args)[1](u)


def _wrong(
    mode: str,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    v: Any,
    u: Any,
    slope: Any,
    tolerances: _Tolerances,
    by: str,
) -> Iterator[_Difference]:
    """The worst entries of the derivative along ``v`` that are not those of ``slope``; in reverse mode, of its sum."""
    if mode == "fwd":
        found, expected = _forward(f, v, *args), slope
    else:
        found, expected = _pairing(_reverse(f, u, *args), v), _pairing(u, slope)
    accessors = flatten(expected)[1].accessors()
    for a, b, accessor in zip(*(map(np.asarray, flatten(x)[0]) for x in (found, expected)), accessors, strict=True):
        if a.dtype.kind in "fc" and a.size:
            excess = tolerances.excess(a, b)
            at = np.unravel_index(int(np.argmax(excess)), excess.shape)
            if excess[at] > 0:
                entry = f"{accessor.codify('result')}{_entry(at)}"
                yield _Difference(float(excess[at]), a[at], b[at], entry if mode == "fwd" else SUM, by)


def _entry(index: Sequence[Any]) -> str:
    """An index as Python writes it, nothing for a number."""
    return f"[{', '.join(map(str, index))}]" if len(index) else ""


def _unit(x: Any, index: tuple[int, ...] | None) -> Any:
    """One at an index, and zero elsewhere."""
    found = np.zeros_like(x)
    if index is not None:
        found[index] = 1
    return found[()]


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
