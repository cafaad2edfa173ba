"""Elementwise operations: NumPy's ufuncs on tracers, with their options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..errors import CapturedWriteError
from ..ir.modules import resolve
from ..ir.primitive import REGISTRY, Primitive
from ..ir.types import Aval, Kind, aval_of
from ..ops.elementwise import cast
from ..ops.shape import stop_gradient
from ..where import user_site
from .array import NUMBERS, Tracer, apply, cast_to, check_aval, settled, shadow_of, symbol_in, tracers_in, wrap
from .creation import joined
from .mutation import check_writable, make_traced, write
from .trace import STOPPED, Trace, owner, traceable, unsupported

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
# Numbers that stand for operands where where= is False (0.5 for each of SciPy's ufuncs): there these functions have
# finite values and finite derivatives.
INSIDE: dict[Ufunc, float] = {}


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
        dtypes = ufunc.resolve_dtypes((*map(_kind, given), *(None,) * ufunc.nout), signature=wanted, casting=casting)
    return _stretched(dtypes[: len(given)], out)


def _stretched(dtypes: Sequence[np.dtype[Any]], out: Aval) -> tuple[Aval, ...]:
    """The avals of operands that have these dtypes and give a result of the shape and kind of ``out``."""
    inner: Kind = "array" if out.shape else "python" if out.kind == "python" else "scalar"
    return tuple([Aval(out.shape, dtype, inner) for dtype in dtypes])


def _kind(aval: Aval) -> Any:
    """An operand as ``resolve_dtypes`` takes it: its dtype, or the type of a Python number."""
    return WEAK.get(aval.dtype.kind, aval.dtype) if aval.kind == "python" else aval.dtype


OPERANDS = (ndarray, *NUMBERS)


def as_operand(x: Any) -> Any:
    """A tracer, an array or a number; lists become arrays as NumPy would make them."""
    if type(x) is Tracer or isinstance(x, OPERANDS):
        return x
    x = joined(x)
    return x if isinstance(x, Tracer) else np.asarray(x)


def elementwise(prim: Primitive, ufunc: Any, operands: Sequence[Any], run: Callable[..., Any], **options: Any) -> Any:
    """Record ``run(*operands)``: ``ufunc`` with ``dtype`` and ``casting``, or the operator that means the same."""
    operands = [x if type(x) is Tracer else as_operand(x) for x in operands]
    shadows = [x.shadow if type(x) is Tracer else x for x in operands]
    shadow = run(*shadows)
    if settled(operands):
        return wrap(owner(tracers_in(operands)), None, shadow, user_site(2)[0])
    try:
        given = tuple(map(aval_of, shadows))
    except TypeError:
        if prim.name not in ("eq", "ne"):  # a number never equals a string
            what = f"{name_of(ufunc)} of a traced value and objects"
            raise unsupported(what, "convert them to numbers first") from None
        return wrap(owner(tracers_in(operands)), None, shadow, user_site(2)[0])
    targets = _targets(ufunc, given, aval_of(shadow), **options)
    return _recorded(prim, operands, targets, shadow, {})


def record(prim: Primitive, operands: Sequence[Any], dtypes: Sequence[Any], shadow: Any, **attrs: Any) -> Tracer:
    """Record an elementwise primitive whose result is known: operands are cast to ``dtypes`` and broadcast."""
    return _recorded(prim, operands, _stretched(dtypes, aval_of(shadow)), shadow, attrs)


def _recorded(
    prim: Primitive, operands: Sequence[Any], targets: Sequence[Aval], shadow: Any, attrs: dict[str, Any]
) -> Tracer:
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
    where_, _ = user_site(2)
    shadow = np.array(x.shadow, order=order) if isinstance(x.shadow, np.ndarray) else x.shadow
    return wrap(trace, None if x.const else symbol_in(trace, x), shadow, where_)


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


def call_ufunc(ufunc: Any, inputs: Sequence[Any], out: Any, mask: Any, options: dict[str, Any]) -> Any:
    """``ufunc(*inputs, out=, where=, dtype=, casting=)`` with a tracer among its arguments."""
    if options:
        inputs, options = _understood(ufunc, inputs, options)
    if mask is not True:
        inputs = _masked(ufunc, inputs, out, mask)
    if out is not None:
        inputs = _towards(ufunc, inputs, out)
    if settled(inputs):
        result = _of_constants(ufunc, inputs, options)
    elif ufunc in COMPOSED:
        result = COMPOSED[ufunc](*inputs, **options)
    elif (prim := primitive_of(ufunc)) is not None:
        result = elementwise(prim, ufunc, inputs, partial(ufunc, **options) if options else ufunc, **options)
    else:
        raise unsupported(f"{name_of(ufunc)} of a traced value", "write it with other NumPy functions")
    if out is None:
        return result
    if ufunc.signature and np.shape(shadow_of(out[0])) != np.shape(shadow_of(result)):
        raise unsupported(f"{name_of(ufunc)} into an array of another shape", "make out= of the shape of the result")
    if ufunc.nout == 1:
        return _written(ufunc, out[0], result, mask)
    return tuple(r if o is None else _written(ufunc, o, r, mask) for o, r in zip(out, result, strict=True))


def _understood(ufunc: Any, inputs: Sequence[Any], options: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Cast the operands as ``signature=`` says, and keep ``dtype=`` and ``casting=`` of the options."""
    options = {k: v for k, v in options.items() if k not in ("order", "subok") and v is not None}
    if "signature" in options:
        inputs = _signed(ufunc, inputs, options.pop("signature"), options.get("casting", "same_kind"))
    if unknown := [k for k in options if k not in ("dtype", "casting")]:
        raise unsupported(f"{name_of(ufunc)} with {', '.join(unknown)}", "cast with astype before or after")
    if "dtype" in options:
        options["dtype"] = np.dtype(options["dtype"])
    return inputs, options


def _signed(ufunc: Any, inputs: Sequence[Any], signature: Any, casting: Any) -> Sequence[Any]:
    """Cast the operands to the dtypes that ``signature=`` names."""
    types = tuple(signature.replace("->", "")) if isinstance(signature, str) else tuple(signature)
    if len(types) != ufunc.nin + ufunc.nout:
        raise unsupported(f"np.{ufunc.__name__} with the signature {signature!r}", "name the dtype of each operand")
    given = [as_operand(x) for x in inputs]
    kinds = (*(_kind(aval_of(shadow_of(x))) for x in given), *(None,) * ufunc.nout)
    wanted = tuple(None if t is None else np.dtype(t) for t in types)
    dtypes = ufunc.resolve_dtypes(kinds, signature=wanted, casting=casting)
    return [
        astype(x, dtype) if isinstance(x, Tracer) else dtype.type(x) if np.ndim(x) == 0 else x.astype(dtype)
        for x, dtype in zip(given, dtypes, strict=False)
    ]


def _towards(ufunc: Any, inputs: Sequence[Any], out: Any) -> Sequence[Any]:
    """Bring the operands into the trace of ``out``; for several results, stretch them to one shape."""
    inputs = [as_operand(x) for x in inputs]
    if ufunc.nout > 1:
        shape = np.broadcast_shapes(*(np.shape(shadow_of(x)) for x in (*inputs, *out) if x is not None))
        inputs = [x if np.shape(shadow_of(x)) == shape else np.broadcast_to(x, shape) for x in inputs]
    if tracers_in(inputs) or not (targets := tracers_in(out)):
        return inputs
    trace = owner(targets)
    return [wrap(trace, trace.capture(x), x, None) if isinstance(x, np.ndarray) else x for x in inputs]


def _masked(ufunc: Any, inputs: Sequence[Any], out: Any, mask: Any) -> Sequence[Any]:
    """Put harmless numbers where ``mask`` is False: an element that is not used must not make the gradient nan."""
    if out is None or any(o is None for o in out):
        raise unsupported(f"{name_of(ufunc)} with where= but without out=", "pass out=, or use np.where")
    found = np.asarray(shadow_of(mask)).dtype
    if found != np.bool_:
        raise TypeError(f"Cannot cast array data from {found!r} to dtype('bool') according to the rule 'safe'")
    inside = 0.5 if ufunc not in UFUNCS and primitive_of(ufunc) is not None else INSIDE.get(ufunc)
    if inside is None:
        return inputs
    inputs = [as_operand(x) for x in inputs]
    number = [isinstance(shadow_of(x), (int, float, complex)) for x in inputs]
    return [
        x if plain else np.where(mask, x, x.dtype.type(inside if x.dtype.kind in "fc" else 1))
        for x, plain in zip(inputs, number, strict=True)
    ]


def _written(ufunc: Any, target: Any, result: Any, mask: Any) -> Tracer:
    if not isinstance(target, Tracer):
        raise CapturedWriteError(
            f"the result of {name_of(ufunc)} is written into an array made outside the traced function",
            remedy="make the array inside the traced function, or drop out=",
        )
    return assign(target, result if mask is True else np.where(mask, result, target))


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
