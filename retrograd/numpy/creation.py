"""Creation functions inside a trace: ``np.zeros(3)`` called by the user's code gives a traced, mutable array.

NumPy does not dispatch such calls; ``interception`` puts the functions of this file in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ..tracer.array import Tracer, cast_to, enter, same_memory, shadow_of, symbol_in, wrap
from ..tracer.creation import active_trace, entered, fresh, holds_tracers, joined
from ..tracer.interception import substitutes
from ..tracer.memory_order import relaid
from ..tracer.operands import as_array
from ..tracer.repeats.recipes import by_recipe
from ..tracer.sequences import check_parts, is_sequence
from ..tracer.trace import traceable, unsupported
from ..where import user_site

Function = Callable[..., Any]
MOST_PARTS = 64  # of an array whose making is remembered


def decided(size: Any) -> Any:
    """Make a length, shape or position plain: asking a traced integer for its value adds a guard."""
    if isinstance(size, (list, tuple)):
        return list(map(decided, size)) if isinstance(size, list) else tuple(map(decided, size))
    if not isinstance(size, Tracer):
        return size
    if size.dtype.kind not in "iub":
        raise unsupported("a traced float as a length", "convert it to an integer: int(n)")
    return size.__index__() if size.ndim == 0 else tuple(n.__index__() for n in size)


def of_sizes(function: Function) -> Function:
    """Substitute a function of lengths and numbers, such as ``np.eye``; traced arguments must be integers."""

    def create(*args: Any, **options: Any) -> Any:
        options.pop("like", None)
        return fresh(function(*map(decided, args), **{key: decided(x) for key, x in options.items()}))

    return create


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """``np.full`` with a fill value that may be traced."""
    fill_value = joined(fill_value)
    return _filled(fresh(np.full(decided(shape), shadow_of(fill_value), dtype, order)), fill_value)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """``np.full_like`` with a fill value that may be traced."""
    like, fill_value = shadow_of(joined(a)), joined(fill_value)
    made = np.full_like(like, shadow_of(fill_value), dtype, order, shape=decided(shape))
    if isinstance(fill_value, Tracer) and made.dtype.kind in "iu":
        fill_value = as_array(fill_value)  # which wraps around, as NumPy's number does here
    return _filled(fresh(made), fill_value)


def like(value: int) -> Function:
    """Substitute ``np.zeros_like`` or a relative that fills with ``value``."""

    def create(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **_: Any) -> Any:
        return full_like(a, value, dtype, order, subok, shape)

    return create


def _filled(made: Any, value: Any) -> Any:
    if not isinstance(value, np.ndarray) and (not isinstance(value, Tracer) or value.const):
        return made
    if not isinstance(made, Tracer):
        return _of_objects(made, value)
    trace, aval = active_trace(), traceable(made.shadow)  # an array of the user's may change until the next call
    symbol = trace.builder.coerce(cast_to(value, aval, trace), aval)
    return wrap(trace, relaid(symbol, made.shadow, np.empty(made.shape)), made.shadow, made.where)


def _of_objects(made: Any, value: Any) -> Any:
    """An array of objects, strings or dates; UnsupportedError if it is filled with a traced value."""
    if isinstance(value, Tracer):
        raise unsupported(f"an array of dtype {made.dtype} filled with a traced value", "fill a list or a float array")
    return made


def empty(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """``np.empty``, filled with zeros so that a trace never depends on stale memory."""
    make = np.empty if np.dtype(dtype).hasobject else np.zeros
    return fresh(make(decided(shape), dtype, order))


def ndarray(shape: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
    """``np.ndarray``; given a buffer, it makes an ordinary array over the user's memory."""
    if args or options.keys() - {"order"}:
        return np.ndarray(shape, dtype, *args, **options)
    return empty(shape, dtype, options.get("order") or "C")


def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """``np.array`` of numbers, arrays and tracers in nested lists."""
    if copy is False and is_sequence(type(obj)):
        np.array([0], copy=False)  # NumPy's own error
    if dtype is None and order == "K" and not ndmin and _has_traced_parts(obj):
        made = _of_parts(*obj)
        if type(made) is Tracer and made.home is active_trace():  # it is new, and of this trace
            return made
    if dtype is not None:
        check_parts(obj, np.dtype(dtype))
    return _as(lambda a: np.array(a, dtype, copy=copy, order=order, ndmin=ndmin), obj)


_of_parts = by_recipe(lambda *parts: joined(list(parts)), lambda *parts: np.array(parts), in_order=True)


def _has_traced_parts(obj: Any) -> bool:
    """Whether it is a short list with traced values."""
    return type(obj) is list and len(obj) <= MOST_PARTS and any(type(x) is Tracer for x in obj)


def _as(function: Function, obj: Any) -> Any:
    """Apply a NumPy conversion: the result is the object itself, another view of it, or a new array."""
    obj = _of_parts(*obj) if _has_traced_parts(obj) else joined(obj)
    given = _of_object(obj)
    obj = given if isinstance(given, Tracer) else obj
    made = function(shadow_of(given))
    if made is shadow_of(obj):
        return obj
    if isinstance(obj, np.ndarray) and obj.dtype.kind in "SUMmO":
        if (reader := active_trace().reader) is not None:
            reader.rely_on(obj)
    elif isinstance(obj, np.ndarray) and not same_memory(made, obj):
        obj = enter(active_trace(), obj)  # the compiled function copies what it holds at each call
    if not isinstance(obj, Tracer):
        return made if isinstance(obj, np.ndarray) else fresh(made)
    aval = traceable(made)
    if same_memory(made, obj.shadow):
        return np.reshape(obj, made.shape)
    if obj.const:
        return fresh(made)
    trace = active_trace()
    symbol = symbol_in(trace, np.reshape(obj if obj.dtype == made.dtype else obj.astype(made.dtype), made.shape))
    symbol = relaid(trace.builder.coerce(symbol, aval), made, np.reshape(obj.shadow, made.shape))
    return wrap(trace, symbol, made, user_site(2)[0])


def _of_object(x: Any) -> Any:
    """The array that an object of the user's gives, which may be traced, as NumPy does not allow; else the object."""
    if isinstance(x, (Tracer, np.ndarray, np.generic, type)) or not hasattr(type(x), "__array__"):
        return x
    given = x.__array__()
    return given if isinstance(given, (Tracer, np.ndarray)) else x


def _conversion(name: str) -> Function:
    """Substitute ``np.asarray`` or a relative; an array that already fits is returned as it is."""
    original = getattr(np, name)

    def convert(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
        options.pop("like", None)
        if dtype is not None:
            check_parts(a, np.dtype(dtype))
        return _as(lambda x: original(x, dtype, *args, **options), a)

    return convert


asarray = _conversion("asarray")


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """``np.asarray_chkfinite``."""
    a = asarray(a, dtype, order)
    if a.dtype.kind in "fc" and not np.isfinite(a).all():
        raise ValueError("array must not contain infs or NaNs")
    return a


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """``np.fromiter`` of numbers that may be traced."""
    items = [item for _, item in zip(range(count), iter, strict=False)] if count >= 0 else list(iter)
    if len(items) < count:
        raise ValueError("iterator too short")
    np.fromiter(map(shadow_of, items), dtype)  # NumPy's own errors
    return array(items, dtype) if items else fresh(np.zeros(0, dtype))


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    """``np.take``: NumPy dispatches on the array alone, so an array must be a tracer if its indices are traced."""
    return np.take(_entered(a, indices), indices, axis, out, mode)


def _entered(a: Any, *others: Any) -> Any:
    """Make a plain array a tracer if one of the others is traced."""
    a = joined(a)
    return entered(a) if holds_tracers(others) else a


def _first_enters(name: str) -> Function:
    """Substitute a function for which NumPy dispatches on the first argument alone; lists enter the trace, too."""
    original = getattr(np, name)
    first = FIRST.get(name, "a")

    def call(*args: Any, **options: Any) -> Any:
        if not args and first in options:
            args = (options.pop(first),)
        if args and type(args[0]) is not Tracer:
            return original(_entered(args[0], *args, *options.values()), *args[1:], **options)
        return original(*args, **options)

    return call


def number_type(cls: Any) -> Function:
    """Substitute a class of NumPy scalars where it is called, as in ``np.float64(x)``."""

    def convert(*args: Any) -> Any:
        if not args or not holds_tracers(args):
            return cls(*args)
        if type(value := shadow_of(args[0])) in (int, float, complex):
            cls(value)  # NumPy's own error for a class of real numbers, and for a number that it cannot hold
        made = joined(args[0]).astype(cls)
        return made[()] if isinstance(made.shadow, np.ndarray) else made

    return convert


def isscalar(element: Any) -> bool:
    """``np.isscalar``, which NumPy does not dispatch either."""
    return bool(np.isscalar(shadow_of(element)))


SIZED = ("zeros", "ones", "eye", "identity", "tri", "indices", "diag_indices", "tril_indices", "triu_indices")
CONVERSIONS = ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require")
OF_FIRST = (
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "average",
    "clip",
    "cumprod",
    "cumsum",
    "diag",
    "diagflat",
    "diff",
    "dot",
    "gradient",
    "histogram",
    "interp",
    "max",
    "mean",
    "median",
    "min",
    "nan_to_num",
    "pad",
    "percentile",
    "prod",
    "ptp",
    "quantile",
    "repeat",
    "roll",
    "sort",
    "std",
    "sum",
    "trace",
    "trapezoid",
    "tril",
    "triu",
    "vander",
    "var",
)

FIRST = {  # the names of the first parameters that are not called "a"
    "diag": "v",
    "diagflat": "v",
    "gradient": "f",
    "interp": "x",
    "nan_to_num": "x",
    "pad": "array",
    "trapezoid": "y",
    "tril": "m",
    "triu": "m",
    "vander": "x",
}


@substitutes("numpy")
def _of_numpy(numpy: ModuleType) -> Mapping[str, Any]:
    own = {f.__name__: f for f in (isscalar, array, full, full_like, empty, ndarray, take, fromiter, asarray_chkfinite)}
    numbers = np.number | np.bool
    types = {name: cls for name, cls in vars(np).items() if isinstance(cls, type) and issubclass(cls, numbers)}
    likes = {f"{name}_like": like(value) for name, value in (("zeros", 0), ("ones", 1), ("empty", 0))}
    return {
        **own,
        **likes,
        "copy": lambda a, order="K", subok=False: array(a, order=order),
        **{name: of_sizes(getattr(np, name)) for name in SIZED},
        **{name: _conversion(name) for name in CONVERSIONS},
        **{name: _first_enters(name) for name in OF_FIRST},
        **{name: number_type(cls) for name, cls in types.items()},
    }
