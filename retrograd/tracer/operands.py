"""Operands and results of compositions: their axes and dtypes, conversion to arrays, and writes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import generic, ndarray  # by name: in a trace, np.ndarray goes through interception

from ..errors import CapturedWriteError
from ..ir.builder import Builder
from ..ir.evaluate import run_node
from ..ir.primitive import Primitive
from ..ir.types import Aval, aval_of
from ..ops.elementwise import cast
from ..ops.shape import stop_gradient
from ..where import user_site
from .array import Tracer, apply, check_aval, enter, run_on_examples, settled, shadow_of, symbol_in, tracers_in, wrap
from .creation import active_trace
from .trace import STOPPED, owner, traceable, unsupported
from .ufuncs import as_operand, assign, copy, recorded, stretched

Axis = Any


def axes_of(x: Any, axis: Axis) -> tuple[int, ...]:
    """Axes as a tuple of non-negative ints; None means all."""
    n = x.ndim if isinstance(x, (Tracer, ndarray)) else np.ndim(x)
    if axis is None:
        return tuple(range(n))
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, n))


def axis_of(x: Any, axis: Any) -> int:
    """One axis as a non-negative int."""
    (k,) = axes_of(x, operator.index(axis))
    return k


def only_default(name: str, **given: Any) -> None:
    """Refuse options that are not traced; each is given with its default."""
    for option, (value, default) in given.items():
        if value is not default:
            raise unsupported(f"np.{name} with {option}=", f"leave {option}= out")


def truth(value: Any) -> bool:
    """A flag as a bool; False if NumPy was given none."""
    return bool(value) if value is not np._NoValue else False


def shadow_dtype(x: Any) -> np.dtype[Any]:
    """The dtype of an operand, also of a list or a Python number."""
    return np.asarray(shadow_of(x)).dtype


def lifted(*operands: Any) -> list[Any]:
    """Make operands tracers of arrays and NumPy scalars: lists, plain arrays and numbers enter the trace of the others.

    Where there are no others, as in ``np.delete([1.0, 2.0], i)``, they enter the active trace.
    A plain array is held by reference: its tracer is read-only, and shows what the user writes into the array later.
    """
    found = [as_operand(x) for x in operands]
    tracers = tracers_in(found)
    trace = owner(tracers) if tracers else active_trace()
    return [as_array(x) if isinstance(x, Tracer) else enter(trace, x) for x in found]


def into(out: Any, result: Any) -> Any:
    """Write the result into ``out`` if one is given; return the array that holds it."""
    if out is None:
        return result
    if not isinstance(out, Tracer):
        raise CapturedWriteError(
            "a traced value is written into an array created outside the traced function",
            remedy="create the array inside the traced function, or omit out=",
        )
    if out.shape != np.shape(shadow_of(result)):
        shape = np.shape(shadow_of(result))
        raise unsupported(f"out= of the shape {out.shape} for a result of the shape {shape}", "make out= of that shape")
    return assign(out, result)


def as_array(x: Any) -> Any:
    """A Python number as a 0-d array, as NumPy functions see it."""
    if isinstance(x, Tracer) and not isinstance(x.shadow, (ndarray, generic)):
        return apply(cast, [x], aval=Aval((), x.dtype))
    return x


def astype(x: Any, dtype: Any) -> Any:
    """``x.astype(dtype)``."""
    if not isinstance(x, Tracer):
        return np.asarray(x).astype(dtype)
    target = np.dtype(dtype)
    traceable(np.empty(0, target))
    if target == x.dtype and not isinstance(x.shadow, (int, float, complex)):
        return copy(x)
    if x.dtype.kind == "c" and target.kind not in "cb":
        np.asarray(x.shadow).astype(target)  # NumPy's own warning that the imaginary part is lost
    return apply(cast, [x], aval=Aval(x.shape, target, "array" if isinstance(x.shadow, np.ndarray) else "scalar"))


def apply_all(prim: Primitive, operands: Sequence[Any], **attrs: Any) -> list[Tracer]:
    """Like ``apply``, for a primitive with several results, none of which is a view."""
    trace = owner(tracers_in(operands))
    where = user_site(2)[0]
    if settled(operands):
        scratch = Builder()
        made = prim(*(scratch.input(aval_of(shadow_of(x))) for x in operands), **attrs)
        shadows = run_node(scratch.made[made[0].value], [shadow_of(x) for x in operands])
        return [wrap(trace, None, shadow, where) for shadow in shadows]
    trace.builder.where = where
    outs = prim(*(symbol_in(trace, x) for x in operands), **attrs)
    shadows = run_on_examples(trace, trace.builder.made[outs[0].value], operands)
    for out, shadow in zip(outs, shadows, strict=True):
        check_aval(prim, out, shadow)
    kept = [stop_gradient(out) for out in outs] if STOPPED.get() else outs
    return [wrap(trace, out, shadow, where) for out, shadow in zip(kept, shadows, strict=True)]


def record(prim: Primitive, operands: Sequence[Any], dtypes: Sequence[Any], shadow: Any, **attrs: Any) -> Tracer:
    """Record an elementwise primitive whose result is known: operands are cast to ``dtypes`` and broadcast."""
    return recorded(prim, operands, stretched(dtypes, aval_of(shadow)), shadow, attrs)
