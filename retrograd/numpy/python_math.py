"""The module ``math`` on traced numbers: NumPy computes the same values, and the results are Python numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial, reduce
from types import ModuleType
from typing import Any

import numpy as np

from ..ops.exact_sum import exact_sum
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.creation import holds_tracers
from ..tracer.interception import substitutes
from ..tracer.python_numbers import number
from ..tracer.trace import MADE_UP, OF_NUMBERS, noting_failure, unsupported
from .creation import asarray
from .reductions import as_dtype

Function = Callable[..., Any]
SAME = (
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "expm1",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "exp2",
    "fabs",
    "degrees",
    "radians",
    "copysign",
    "fmod",
    "isnan",
    "isinf",
    "isfinite",
    "floor",
    "ceil",
    "trunc",
)


def _floats(items: Any) -> Any:
    """Numbers as an array of floats, as the C functions take them."""
    found = asarray(items)
    return found if found.dtype.kind == "c" else found.astype(np.float64)


def _length(steps: Any) -> Any:
    """The length of a vector: infinite if one entry is, and without overflow in between."""
    top = np.max(np.abs(steps), initial=0.0)
    scale = np.where(top > 1e150, 2.0**-600, np.where(top < 1e-150, 2.0**600, 1.0))
    found = np.sqrt(np.sum(np.square(steps * scale))) / scale
    return np.where(np.any(np.isinf(steps)), np.inf, found)


def _remainder(x: Any, y: Any) -> Any:
    """The remainder by the nearest multiple, by exact steps: the quotient itself may have too many digits."""
    size, step = np.abs(x), np.abs(y)
    above = np.fmod(size, step)
    below = step - above
    halfway = above - 2.0 * np.fmod(0.5 * (size - above), step)
    return np.copysign(1.0, x) * np.where(above < below, above, np.where(above > below, -below, halfway))


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    """Whether two numbers are close: an infinite one is close to itself alone."""
    off, finite = np.abs(a - b), np.logical_not(np.logical_or(np.isinf(a), np.isinf(b)))
    relative = np.logical_or(off <= np.abs(rel_tol * b), off <= np.abs(rel_tol * a))
    return np.logical_or(a == b, np.logical_and(finite, np.logical_or(relative, off <= abs_tol)))


ANY_NUMBER: dict[str, Function] = {  # each with the NumPy function of the same meaning
    **{name: getattr(np, name) for name in SAME},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.float_power,
    "log": lambda x, base=None: np.log(x) if base is None else np.log(x) / np.log(base),
    "ldexp": lambda x, i: np.ldexp(x, np.clip(i, -5000, 5000).astype(int)),
    "remainder": _remainder,
    "isclose": _isclose,
    "hypot": lambda *lengths: reduce(np.hypot, lengths if len(lengths) > 1 else (0.0, *lengths)),
    "fsum": lambda items: apply(exact_sum, [as_dtype(asarray(items), np.dtype(float))]),
    "dist": lambda p, q: _length(_floats(p) - _floats(q)),
    "sumprod": lambda p, q: np.sum(asarray(p) * asarray(q)),
}


OF_SCIPY = {"erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "gammaln"}
WHOLE = {"floor", "ceil", "trunc"}
MANY = {"fsum", "dist", "sumprod"}  # functions of iterables


def _of_math(name: str, by_numpy: Function) -> Function:
    original = getattr(math, name)
    result = int if name in WHOLE else bool if name.startswith("is") else float

    @partial(noting_failure, faults=OF_NUMBERS)
    def call(*args: Any, **options: Any) -> Any:
        args = tuple(list(a) if name in MANY and not isinstance(a, Tracer) else a for a in args)
        if not holds_tracers((*args, *options.values())):
            return original(*args, **options)
        examples = {key: shadow_of(value) for key, value in options.items()}
        try:
            original(*(_example(a) for a in args), **examples)  # Python's own errors
        except OF_NUMBERS:
            if not MADE_UP.get():
                raise
        return number(by_numpy(*(a if name in MANY else _plain(a) for a in args), **options), result)

    return call


def _example(x: Any) -> Any:
    return [shadow_of(item) for item in x] if isinstance(x, list) else shadow_of(x)


def _plain(x: Any) -> Any:
    """The operand as the C function takes it: a float."""
    return number(x) if isinstance(x, Tracer) else float(x)


def _by_scipy(name: str) -> Function:
    def call(x: Any) -> Any:
        if "scipy" not in sys.modules:
            raise unsupported(f"math.{name} of a traced value", "import scipy.special, whose function is then used")
        from scipy import special  # optional and heavy

        found = getattr(special, OF_SCIPY[name])(x)
        if name != "lgamma" or not holds_tracers([x]):
            return found
        near = np.where(np.abs(x) < 1e-300, -np.log(np.abs(x)), found)  # where SciPy's overflows
        return number(np.where(np.isinf(x), np.inf, near))

    return call


def _modf(x: Any) -> Any:
    if not holds_tracers([x]):
        return math.modf(x)
    fraction, whole = np.modf(_plain(x))
    return number(fraction), number(whole)


@substitutes("math")
def _of_python(module: ModuleType) -> Mapping[str, Any]:
    table = {name: f for name, f in ANY_NUMBER.items() if hasattr(module, name)}
    table |= {name: _by_scipy(name) for name in OF_SCIPY}
    return {"modf": _modf, **{name: _of_math(name, f) for name, f in table.items()}}
