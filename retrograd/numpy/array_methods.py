"""The methods and attributes of ndarray on traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..ir.types import Aval, aval_of
from ..ops.elementwise import cast
from ..ops.shape import reshape as reshape_view
from ..tracer import indexing
from ..tracer.array import Tracer, apply, is_known, shadow_of
from ..tracer.as_text import for_this_call
from ..tracer.foreign import adviser
from ..tracer.operands import as_array, astype, shadow_dtype
from ..tracer.python_numbers import number
from ..tracer.table import FUNCTIONS, METHODS
from ..tracer.trace import unsupported
from ..tracer.ufuncs import copy
from ..tracer.untraced import missing_attribute
from .complex import conjugate, imaginary_part, real_part
from .flat import flat_of, set_flat
from .numbers import clip, round_
from .shapes import ravel, reshape, transpose
from .sorting import partition_in_place, sort_in_place
from .take import compress

POWERS_OF_2 = np.uint64(1) << np.arange(64, dtype=np.uint64)


def _method(function: Any) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        return FUNCTIONS[function](self, *args, **options)

    method.__name__ = function.__name__
    return method


def _reshape(self: Tracer, *dims: Any, order: str = "C") -> Any:
    return reshape(self, dims[0] if len(dims) == 1 else dims, order)


def _transpose(self: Tracer, *axes: Any) -> Any:
    if not axes or axes[0] is None:
        return transpose(self)
    return transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def _flatten(self: Tracer, order: str = "C") -> Any:
    return copy(ravel(self, order))


def _item(self: Tracer, *index: Any) -> Any:
    if not index and self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    where = index[0] if len(index) == 1 else index or 0
    element = self[where] if isinstance(where, tuple) else reshape(self, (-1,))[where]
    return apply(cast, [element], aval=aval_of(self.dtype.type(0).item()))


def _round(self: Tracer, digits: int | None = None) -> Any:
    """``round(x)``: on a NumPy number as ``np.round``; without ``digits`` an int, which floats are asked for here."""
    if self.const:
        return round(self.shadow) if digits is None else round(self.shadow, digits)
    if type(self.shadow) is float and digits is not None and for_this_call(self):
        return round(self.shadow, digits)  # to decimal digits, as no function of NumPy does
    if isinstance(self.shadow, (int, np.integer)):
        whole = self if digits is None or digits >= 0 else np.round(self, digits)
        return number(whole, int) if digits is None or isinstance(self.shadow, int) else whole
    if not isinstance(self.shadow, np.floating):
        round(self.shadow)  # of arrays and complex numbers it is an error in NumPy
        raise unsupported("round() of a traced value that is not a NumPy number", "use np.round")
    return int(np.rint(self)) if digits is None else np.round(self, digits)


def _contains(self: Tracer, item: Any) -> bool:
    """``item in x``; the answer is asked for here."""
    if not isinstance(self.shadow, np.ndarray):
        raise TypeError(f"argument of type {type(self.shadow).__name__!r} is not iterable")
    return bool(np.any(self == item))


def _tolist(self: Tracer) -> Any:
    return [_tolist(row) for row in self] if self.ndim else _item(self)


def _view(self: Tracer, dtype: Any = None, type: Any = None) -> Any:
    if type is not None or (dtype is not None and self.dtype != dtype):
        raise unsupported("view() of a traced value as another type", "convert it with astype")
    return self[...]


def _to_device(self: Tracer, device: str, *, stream: Any = None) -> Any:
    self.shadow.to_device(device, stream=stream)  # NumPy's own error
    return self


def _fill(self: Tracer, value: Any) -> None:
    if np.ndim(shadow_of(value)):
        np.empty(self.shape, self.dtype).fill(shadow_of(value))  # NumPy's own error
    indexing.put(self, ..., value)


def _clip(self: Tracer, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    return clip(self, min, max, out, **options)


def _astype(
    self: Tracer, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    if not np.can_cast(self.dtype, dtype, casting):
        raise TypeError(f"Cannot cast array data from {self.dtype} to {np.dtype(dtype)} by the rule {casting!r}")
    return self if not copy and self.dtype == dtype else astype(self, dtype)


def _set_part(name: str, part: Callable[[Any], Any], self: Tracer, value: Any) -> None:
    """``z.real = value``, ``z.imag = value``."""
    if not isinstance(self.shadow, np.ndarray):
        raise AttributeError(f"attribute {name!r} of a number is not writable")  # noqa: TRY004 - as NumPy does
    if name == "imag" and self.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    indexing.put(part(self), ..., np.real(value) if shadow_dtype(value).kind == "c" else value)


def _set_shape(t: Tracer, shape: Any) -> None:
    """``t.shape = shape``: from now on the tracer is another view of its memory."""
    if t.viewed:
        raise unsupported(
            "setting the shape of an array that has views", "bind the reshaped array: x = x.reshape(shape)"
        )
    shadow = t.shadow.view()
    shadow.shape = shape  # NumPy's own error
    before = type(t)(t.home, t.shadow, t.storage, t.parent, t.op, t.where)
    t.parent, t.op, t.shadow = before, (reshape_view, (), {"aval": Aval(shadow.shape, shadow.dtype)}), shadow
    t.symbol, t.version = None, -1


def _reduce(self: Tracer) -> Any:
    if is_known(self):  # of captured arrays alone
        return self.shadow.__reduce__()
    raise adviser().refusal("a traced value cannot be pickled", "return it, and pickle the result")


def _of_numbers(name: str, method: Callable[[Tracer], Any]) -> property:
    """A method that numbers have; arrays have none of this name."""

    def get(self: Tracer) -> Any:
        getattr(self.shadow, name)  # raises AttributeError for arrays
        return partial(method, self)

    return property(get)


def _of_integers(name: str, part: Callable[[Tracer], Any]) -> property:
    """An attribute that integers have."""

    def get(self: Tracer) -> Any:
        getattr(self.shadow, name)  # raises AttributeError for others
        return part(self)

    return property(get)


def _is_integer(self: Tracer) -> Any:
    return np.logical_and(np.isfinite(self), np.equal(np.floor(self), self))


def _bit_length(self: Tracer) -> Any:
    size = np.abs(number(self, int) + np.zeros(1, int)).astype(np.uint64)
    return number(np.sum(size >= POWERS_OF_2), int)


def _bit_count(self: Tracer) -> Any:
    return number(np.bitwise_count(self), int)


def _to_bytes(self: Tracer, *args: Any, **options: Any) -> bytes:
    return int(self).to_bytes(*args, **options)


def _ratio(self: Tracer) -> Any:
    return (number(self, int), 1) if isinstance(self.shadow, int) else _digits(self)


def _digits(self: Tracer) -> Any:
    raise adviser().refusal("the digits of a traced value are not known", "compute with the value itself")


METHODS.update(
    {
        "is_integer": _of_numbers("is_integer", _is_integer),
        "hex": _of_numbers("hex", _digits),
        "as_integer_ratio": _of_numbers("as_integer_ratio", _ratio),
        "bit_length": _of_numbers("bit_length", _bit_length),
        "bit_count": _of_numbers("bit_count", _bit_count),
        "to_bytes": _of_numbers("to_bytes", _to_bytes),
        "numerator": _of_integers("numerator", lambda self: self),
        "denominator": _of_integers("denominator", lambda self: 1),
        "__contains__": _contains,
        "__round__": _round,
        "__reduce__": _reduce,
        "shape": vars(Tracer)["shape"].setter(_set_shape),
        "itemsize": property(lambda self: self.dtype.itemsize),
        "nbytes": property(lambda self: self.size * self.dtype.itemsize),
        "T": property(np.transpose),
        "reshape": _reshape,
        "transpose": _transpose,
        "flatten": _flatten,
        "item": _item,
        "fill": _fill,
        "tolist": _tolist,
        "view": _view,
        "to_device": _to_device,
        "__array_namespace__": lambda self, *, api_version=None: np,
        "sort": sort_in_place,
        "partition": partition_in_place,
        "nonzero": np.nonzero,
        "copy": lambda self, order="C": copy(as_array(self), order),
        "astype": _astype,
        "conj": conjugate,
        "conjugate": conjugate,
        "clip": _clip,
        "compress": lambda self, condition, axis=None, out=None: compress(condition, self, axis, out),
        "round": lambda self, decimals=0, out=None: round_(self, decimals, out),
        **{
            f.__name__.removeprefix("a") if f in (np.amax, np.amin) else f.__name__: _method(f)
            for f in (
                np.sum,
                np.prod,
                np.mean,
                np.var,
                np.std,
                np.max,
                np.min,
                np.any,
                np.all,
                np.argmax,
                np.argmin,
                np.cumsum,
                np.cumprod,
                np.argsort,
                np.argpartition,
                np.searchsorted,
                np.dot,
                np.ravel,
                np.squeeze,
                np.swapaxes,
                np.take,
                np.repeat,
                np.choose,
                np.diagonal,
                np.trace,
                np.put,
            )
        },
        "real": property(real_part, partial(_set_part, "real", real_part)),
        "imag": property(imaginary_part, partial(_set_part, "imag", imaginary_part)),
        "flat": property(flat_of, set_flat),
        "mT": missing_attribute("mT").getter(np.matrix_transpose),
        "device": "cpu",
    }
)
