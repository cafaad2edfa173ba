"""The options of ufuncs: ``out=``, ``where=``, ``dtype=``, ``casting=``, ``signature=``."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import CapturedWriteError
from ..ir.types import aval_of
from .array import Tracer, shadow_of, tracers_in, wrap
from .operands import astype
from .table import UFUNC_METHODS
from .trace import owner, unsupported
from .ufuncs import UFUNCS, Ufunc, as_operand, assign, call_ufunc, kind_of, name_of, primitive_of

# Numbers that stand for operands where where= is False (0.5 for each of SciPy's ufuncs): there these functions have
# finite values and finite derivatives.
INSIDE: dict[Ufunc, float] = {}


# How a ufunc that ``np.frompyfunc`` made is called; the last that was registered counts.
OF_PYTHON: list[Callable[..., Any]] = []


def python_function(ufunc: Any) -> Any:
    """The Python function that ``np.frompyfunc`` made a ufunc of; None of any other ufunc."""
    if ufunc.ntypes != 1 or ufunc.types[0][0] != "O":
        return None
    return next((x for x in gc.get_referents(ufunc) if callable(x)), None)


def call(ufunc: Any, *inputs: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
    """``ufunc(*inputs, out=, where=, dtype=, casting=)`` with a tracer among its arguments."""
    if python_function(ufunc) is not None:
        return OF_PYTHON[-1](ufunc, *inputs, out=out, where=where, **options)
    given: Sequence[Any] = inputs
    if options:
        given, options = _understood(ufunc, given, options)
    if where is not True:
        given = _masked(ufunc, given, out, where)
    if out is not None and "casting" in options:
        into = tuple(None if o is None else np.array(shadow_of(o)) for o in out)
        ufunc(*map(shadow_of, given), out=into, where=shadow_of(where), **options)  # NumPy's own error
    if out is not None:
        given = _towards(ufunc, given, out)
    result = call_ufunc(ufunc, given, **options)
    if out is None:
        return result
    if ufunc.signature and np.shape(shadow_of(out[0])) != np.shape(shadow_of(result)):
        raise unsupported(f"{name_of(ufunc)} into an array of another shape", "make out= of the shape of the result")
    if ufunc.nout == 1:
        return _written(ufunc, out[0], result, where, options)
    return tuple(r if o is None else _written(ufunc, o, r, where, options) for o, r in zip(out, result, strict=True))


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
    kinds = (*(kind_of(aval_of(shadow_of(x))) for x in given), *(None,) * ufunc.nout)
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


def _written(ufunc: Any, target: Any, result: Any, mask: Any, options: dict[str, Any]) -> Tracer:
    if not isinstance(target, Tracer):
        raise CapturedWriteError(
            f"the result of {name_of(ufunc)} is written into an array created outside the traced function",
            remedy="create the array inside the traced function, or omit out=",
        )
    if options.get("casting") == "unsafe" and isinstance(result, Tracer) and result.dtype != target.dtype:
        result = astype(result, target.dtype)
    return assign(target, result if mask is True else np.where(mask, result, target))


UFUNC_METHODS["__call__"] = call
