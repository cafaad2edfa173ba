"""Elementwise operations: NumPy's ufuncs on tracers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..ir.modules import resolve
from ..ir.primitive import REGISTRY, TRANSFORMS, Primitive
from ..ir.types import Aval, Kind, aval_of
from ..ops.shape import stop_gradient
from ..where import user_site
from .array import NUMBERS, Tracer, cast_to, check_aval, settled, shadow_of, symbol_in, tracers_in, wrap
from .creation import joined
from .mutation import check_writable, make_traced, write
from .trace import MADE_UP, OF_NUMBERS, STOPPED, Trace, noting_failure, owner, unsupported

Ufunc = Callable[..., Any]
WEAK = {"i": int, "f": float, "c": complex}  # the types of Python numbers, by the kinds of their dtypes


def primitives() -> dict[Ufunc, Primitive]:
    """The primitive of each NumPy ufunc that has one."""
    same = {"degrees": "rad2deg", "radians": "deg2rad", "fabs": "abs"}
    found: dict[Ufunc, Primitive] = {getattr(np, ufunc): REGISTRY[name] for ufunc, name in same.items()}
    for prim in REGISTRY.values():
        if prim.numpy.ufunc.startswith("np.") and prim.name != "matmul":
            found[getattr(np, prim.numpy.ufunc.removeprefix("np."))] = prim
    return found


UFUNCS = primitives()
COMPOSED: dict[Ufunc, Callable[..., Any]] = {}  # ufuncs that are recorded as several operations


@lru_cache(maxsize=1)
def scipy_primitives() -> dict[Ufunc, Primitive]:
    """The primitive of each ufunc of ``scipy.special`` that has one; called only once SciPy is imported."""
    return {resolve(p.numpy.ufunc): p for p in REGISTRY.values() if p.numpy.ufunc.startswith("scipy.special.")}


def primitive_of(ufunc: Ufunc) -> Primitive | None:
    """The primitive that a ufunc is recorded as, if any."""
    found = UFUNCS.get(ufunc)
    if found is None and "scipy.special" in sys.modules:
        found = scipy_primitives().get(ufunc)
    return found


def name_of(ufunc: Ufunc) -> str:
    """A ufunc as users write it, with its module if that can be told."""
    name = ufunc.__name__
    if getattr(np, name, None) is ufunc:
        return f"np.{name}"
    special = sys.modules.get("scipy.special")
    return f"scipy.special.{name}" if getattr(special, name, None) is ufunc else name


@lru_cache(maxsize=8192)
def _targets(
    ufunc: Any, given: tuple[Aval, ...], out: Aval, dtype: Any = None, casting: Any = "same_kind"
) -> tuple[Aval, ...]:
    """The avals to cast operands to, by NumPy's choice of dtypes; Python numbers are weak."""
    dtypes: Sequence[np.dtype[Any]]
    if out.kind == "python":
        found = [aval.dtype for aval in given]
        dtypes = [np.result_type(*found, *([] if out.dtype.kind == "b" else [out.dtype]))] * len(given)
    else:
        wanted = (*(None,) * ufunc.nin, *(dtype,) * ufunc.nout)
        dtypes = ufunc.resolve_dtypes((*map(kind_of, given), *(None,) * ufunc.nout), signature=wanted, casting=casting)
        if dtypes[0].kind == "O":  # NumPy compares two numbers of Python's as objects
            dtypes = [np.result_type(*(aval.dtype for aval in given))] * len(given)
    return stretched(dtypes[: len(given)], out)


def stretched(dtypes: Sequence[np.dtype[Any]], out: Aval) -> tuple[Aval, ...]:
    """The avals of operands that have these dtypes and give a result of the shape and kind of ``out``."""
    inner: Kind = "array" if out.shape else "python" if out.kind == "python" else "scalar"
    return tuple([Aval(out.shape, dtype, inner) for dtype in dtypes])


def kind_of(aval: Aval) -> Any:
    """An operand as ``resolve_dtypes`` takes it: its dtype, or the type of a Python number."""
    return WEAK.get(aval.dtype.kind, aval.dtype) if aval.kind == "python" else aval.dtype


OPERANDS = (ndarray, *NUMBERS)


def as_operand(x: Any) -> Any:
    """A tracer, an array or a number; lists become arrays as NumPy would make them."""
    if type(x) is Tracer or isinstance(x, OPERANDS):
        return x
    x = joined(x)
    return x if isinstance(x, Tracer) else np.asarray(x)


@noting_failure
def elementwise(prim: Primitive, ufunc: Any, operands: Sequence[Any], run: Callable[..., Any], **options: Any) -> Any:
    """Record ``run(*operands)``: ``ufunc`` with ``dtype`` and ``casting``, or the operator that means the same."""
    operands = [x if type(x) is Tracer else as_operand(x) for x in operands]
    shadows = [x.shadow if type(x) is Tracer else x for x in operands]
    try:
        shadow = run(*shadows)
    except OF_NUMBERS:
        if not MADE_UP.get() or settled(operands):
            raise
        shadow = run(*(x**0 for x in shadows))  # ones, on which no operation fails
    if settled(operands):
        return wrap(owner(tracers_in(operands)), None, shadow, user_site(2)[0])
    try:
        given = tuple(map(aval_of, shadows))
    except TypeError:
        if prim.name not in ("eq", "ne"):  # a number never equals a string
            what = f"{name_of(ufunc)} of a traced value and objects"
            raise unsupported(what, "convert them to numbers first") from None
        return wrap(owner(tracers_in(operands)), None, shadow, user_site(2)[0])
    targets = TRANSFORMS.comparable(prim, operands, _targets(ufunc, given, aval_of(shadow), **options))
    return recorded(prim, operands, targets, shadow, {})


def recorded(
    prim: Primitive, operands: Sequence[Any], targets: Sequence[Aval], shadow: Any, attrs: dict[str, Any]
) -> Tracer:
    """Record an elementwise primitive whose result is known; operands become those avals."""
    trace = owner(tracers_in(operands))
    b = trace.builder
    b.where, hint = user_site(3)
    if prim.numpy.numbers:
        operands = [_written_out(trace, x) if k in prim.numpy.numbers else x for k, x in enumerate(operands)]
    values = [cast_to(x, aval, trace).value for x, aval in zip(operands, targets, strict=True)]
    first = values[0].aval.kind
    if first == "python" != targets[0].kind and prim.avals([v.aval for v in values], attrs)[0].kind == "python":
        values[0] = b.coerce(b.symbol(values[0]), Aval((), values[0].aval.dtype, "scalar")).value  # numbers
    result = b.emit(prim, values, attrs)[0]
    if result.value.hint is None:
        result.value.hint = hint
    check_aval(prim, result, shadow)
    if STOPPED.get():
        result = stop_gradient(result)
    return wrap(trace, result, shadow, b.where)


def _written_out(trace: Trace, x: Any) -> Any:
    """An array made in the trace as a trailing input, so that it does not become a constant number."""
    made = isinstance(x, Tracer) and x.const and x.ndim
    return wrap(trace, trace.keep(x.shadow), x.shadow, None) if made else x


def copy(x: Any, order: Any = "K") -> Tracer:
    """The same value in memory of its own."""
    trace = owner([x])
    shadow = np.array(x.shadow, order=order) if isinstance(x.shadow, np.ndarray) else x.shadow
    symbol = None if x.const else TRANSFORMS.relaid(symbol_in(trace, x), shadow, x.shadow)
    return wrap(trace, symbol, shadow, user_site(2)[0])


def _of_constants(ufunc: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Run any ufunc: all operands are plain numbers."""
    where_ = user_site(2)[0]
    found = ufunc(*map(shadow_of, inputs), **options)
    if not any(isinstance(x, Tracer) for x in inputs):
        return found
    trace = owner(tracers_in(inputs))
    if isinstance(found, tuple):
        return tuple(wrap(trace, None, x, where_) for x in found)
    return wrap(trace, None, found, where_)


def call_ufunc(ufunc: Any, inputs: Sequence[Any], **options: Any) -> Any:
    """``ufunc(*inputs, dtype=, casting=)`` with a tracer among its arguments."""
    if settled(inputs):
        return _of_constants(ufunc, inputs, options)
    if ufunc in COMPOSED:
        return COMPOSED[ufunc](*inputs, **options)
    prim = primitive_of(ufunc)
    if prim is None:
        raise unsupported(f"{name_of(ufunc)} of a traced value", "write it with other NumPy functions")
    return elementwise(prim, ufunc, inputs, partial(ufunc, **options) if options else ufunc, **options)


def assign(target: Tracer, value: Any) -> Tracer:
    """``target[...] = value`` with NumPy's cast; returns the target."""
    trace = owner([target, *tracers_in([value])])
    check_writable(target, trace)
    if target.const and (not isinstance(value, Tracer) or value.const):
        np.copyto(target.shadow, shadow_of(value), casting="same_kind")
        target.storage.version += 1
        return target
    make_traced(target)  # records the old contents, so before the example value changes
    np.copyto(target.shadow, shadow_of(value), casting="same_kind")
    aval = Aval(target.shape, target.dtype)
    write(target, trace.builder.coerce(cast_to(value, aval, trace), aval))
    return target
