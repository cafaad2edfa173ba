"""Parts of complex numbers, and predicates: real, angle, isclose, ..."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops import complex as parts
from ..ops import rounding
from ..ops.elementwise import cast
from ..tracer.array import Tracer, apply, settled, shadow_of, tracers_in, wrap
from ..tracer.creation import fresh
from ..tracer.operands import record, shadow_dtype
from ..tracer.operators import COMPARISONS, reflecting
from ..tracer.python_numbers import MAKERS, number
from ..tracer.table import METHODS, implements
from ..tracer.trace import owner
from ..tracer.ufuncs import as_operand, elementwise
from ..where import user_site


def real_part(x: Any) -> Any:
    """``x.real``: a view; the array itself if it is real."""
    return apply(parts.real, [x]) if isinstance(x, Tracer) and x.dtype.kind == "c" else x


def imaginary_part(x: Any) -> Any:
    """``x.imag``: a view; new zeros if the array is real."""
    if isinstance(x, Tracer) and x.dtype.kind == "c":
        return apply(parts.imag, [x])
    return np.zeros_like(x) if isinstance(x.shadow, np.ndarray) else x.shadow.imag


def conjugate(x: Any) -> Any:
    """``x.conjugate()``: the array itself if it is real."""
    if x.dtype.kind != "c":
        return x
    return elementwise(parts.conj, np.conjugate, [x], lambda v: v.conjugate())


@implements(np.real)
def real(val: Any) -> Any:
    return real_part(as_operand(val))


@implements(np.imag)
def imag(val: Any) -> Any:
    return imaginary_part(as_operand(val))


@implements(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> Any:
    if shadow_dtype(a).kind == "c":
        limit = tol * np.finfo(shadow_dtype(a)).eps if tol > 1 else tol
        a = np.real(a) if np.all(np.abs(np.imag(a)) < limit) else a
    return a if isinstance(shadow_of(a), np.ndarray) else apply(cast, [a], aval=Aval((), a.dtype))


@implements(np.angle)
def angle(z: Any, deg: Any = False) -> Any:
    found = np.arctan2(np.imag(z), np.real(z)) if shadow_dtype(z).kind == "c" else np.arctan2(0, z)
    return found * (180 / math.pi) if deg else found


@implements(np.isreal)
def isreal(x: Any) -> Any:
    return np.imag(x) == 0


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    found = np.imag(x) != 0
    if isinstance(shadow_of(found), bool):  # NumPy gives a bool of its own, also for a number of Python's
        return apply(cast, [found], aval=Aval((), np.dtype(bool))) if isinstance(found, Tracer) else np.bool(found)
    return found


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    return np.logical_and(np.isinf(x), np.logical_not(np.signbit(x)), out=out)


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    return np.logical_and(np.isinf(x), np.signbit(x), out=out)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    if not all(isinstance(x, (int, float, np.generic)) for x in (rtol, atol)):
        near = np.less_equal(np.abs(np.subtract(a, b)), atol + rtol * np.abs(b))
        same = np.logical_or(np.logical_and(near, np.isfinite(b)), np.equal(a, b))
        return _or_both_nan(same, a, b) if equal_nan else same
    operands = [as_operand(x) for x in (a, b)]
    shadow = np.isclose(shadow_of(operands[0]), shadow_of(operands[1]), rtol, atol, equal_nan)
    if settled(operands):
        return wrap(owner(tracers_in(operands)), None, shadow, user_site()[0])
    common = np.result_type(1.0, *(x if isinstance(x, (int, float, complex)) else x.dtype for x in operands))
    attrs = {"rtol": float(rtol), "atol": float(atol), "equal_nan": bool(equal_nan)}
    return record(rounding.isclose, operands, (common, common), shadow, **attrs)


def _all(x: Any) -> Any:
    """Whether all are true, as a Python bool."""
    return apply(cast, [np.all(x)], aval=Aval((), np.dtype(bool), "python"))


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return _all(np.isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = as_operand(a1), as_operand(a2)
    if np.shape(shadow_of(x)) != np.shape(shadow_of(y)):
        return False
    same = np.equal(x, y)
    return _all(_or_both_nan(same, x, y) if equal_nan else same)


def _or_both_nan(same: Any, x: Any, y: Any) -> Any:
    return np.logical_or(same, np.logical_and(np.isnan(x), np.isnan(y)))


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = as_operand(a1), as_operand(a2)
    try:
        np.broadcast_shapes(np.shape(shadow_of(x)), np.shape(shadow_of(y)))
    except ValueError:
        return False
    return _all(np.equal(x, y))


def complex_number(real: Any = 0, imag: Any = None) -> Any:
    """``complex(real, imag)`` of traced numbers; a complex ``imag`` counts as ``imag * 1j``, as in Python."""
    if isinstance(shadow_of(real), str) or isinstance(shadow_of(imag), str):
        raise TypeError("complex() does not accept a string together with a traced number")
    if imag is None:
        return number(real, complex)
    a, b = (number(x, complex if shadow_dtype(x).kind == "c" else float) for x in (real, imag))
    made = fresh(np.zeros(1, complex))
    made.real[0] = a.real - b.imag if shadow_dtype(b).kind == "c" else a.real
    made.imag[0] = a.imag + b.real if shadow_dtype(a).kind == "c" else b.real
    return number(np.reshape(made, ()), complex)


MAKERS[complex] = complex_number
COMPLEX = (complex, np.complexfloating)
NUMBERS = (np.generic, int, float, complex)


def _between_numbers(name: str) -> Any:
    """An operator that compares; NumPy's complex numbers compare by their real parts unless these are equal."""
    compare = getattr(operator, name)
    between_arrays = reflecting(name, COMPARISONS[name], compare)[0]

    def call(self: Any, other: Any) -> Any:
        pair = [shadow_of(self), shadow_of(other)]
        numbers = all(isinstance(x, NUMBERS) for x in pair)
        if not numbers or not any(isinstance(x, COMPLEX) for x in pair):
            return between_arrays(self, other)
        compare(*pair)  # Python's own error
        alike = np.equal(self.real, other.real)
        by_imag = np.logical_and(alike, compare(self.imag, other.imag))
        return np.logical_or(by_imag, np.logical_and(np.logical_not(alike), compare(self.real, other.real)))

    return call


METHODS.update({f"__{name}__": _between_numbers(name) for name in ("lt", "le", "gt", "ge")})
