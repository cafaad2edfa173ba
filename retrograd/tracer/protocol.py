"""NumPy's two protocols, and the methods of ndarray, on Tracer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..ir.types import aval_of
from ..ops.elementwise import cast
from . import indexing
from .array import Tracer, apply, is_known, same_memory, shadow_of, wrap
from .flat import flat_of, set_flat
from .foreign import alternative
from .functions import FUNCTIONS, REMEDIES
from .functions.methods import ufunc_method
from .functions.numbers import clip, round_
from .functions.parts import conjugate, imaginary_part, real_part
from .functions.picking import compress
from .functions.shapes import reshape, transpose
from .functions.sorting import partition_in_place, sort_in_place
from .functions.table import as_array
from .operators import install_operators
from .python_numbers import to_complex, to_float
from .trace import noting_failure, owner, unsupported
from .tree import flatten, map_leaves
from .ufuncs import astype, call_ufunc, copy
from .where import user_site

CHANGING = ("byteswap", "resize", "setfield", "setflags")
MUTATORS = (np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal)


def array_ufunc(self: Tracer, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """``__array_ufunc__``: calls, reductions and the like."""
    if method == "__call__":
        out, mask = options.pop("out", None), options.pop("where", True)
        return call_ufunc(ufunc, inputs, out, mask, options)
    try:
        return ufunc_method(ufunc, method, inputs, options)
    except UnsupportedError:
        if not _all_known(method, (inputs, options), options):
            raise
    return _of_numbers(getattr(ufunc, method), inputs, options)


def array_function(
    self: Tracer, function: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """``__array_function__``: by the table of handlers; on plain numbers any function runs, with any option."""
    handler = FUNCTIONS.get(function)
    if handler is not None:
        try:
            return handler(*args, **kwargs)
        except UnsupportedError:
            if not _all_known(function, (args, dict(kwargs)), kwargs):
                raise
    elif not _all_known(function, (args, dict(kwargs)), kwargs):
        name = f"{function.__module__}.{function.__name__}"
        remedy = REMEDIES.get(function) or alternative(name) or "write it with other NumPy functions"
        raise unsupported(f"{name} of a traced value", remedy)
    return _of_numbers(function, args, kwargs)


def _tracers(tree: Any) -> list[Tracer]:
    return [x for x in flatten(tree)[0] if isinstance(x, Tracer)]


def _all_known(function: Any, tree: Any, options: Mapping[str, Any]) -> bool:
    """Whether NumPy can run a function on the example values: what it writes into must hold plain numbers only."""
    writes = function in MUTATORS or function == "at" or options.get("out") is not None
    return all(t.const if writes else is_known(t) for t in _tracers(tree))


def _of_numbers(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """NumPy's own function, on the plain numbers that the tracers hold."""
    tracers = _tracers((args, dict(kwargs)))
    plain, options = map_leaves(shadow_of, (args, dict(kwargs)))
    found = function(*plain, **options)
    if function in MUTATORS or options.get("out") is not None:
        for t in tracers:
            t.storage.version += 1
    return map_leaves(lambda x: _constant(tracers, x), found)


def _constant(tracers: list[Tracer], x: Any) -> Any:
    """A result as a tracer: one of the operands, a view of one (readable while that holds plain numbers), or new."""
    if not isinstance(x, np.ndarray):
        return x
    where = user_site()[0]
    for t in tracers:
        if t.shadow is x:
            return t
        if same_memory(t.shadow, x):
            return Tracer(t.home, x, t.storage, t, None, where)
    return wrap(owner(tracers), None, x, where)


def _method(function: Any) -> Callable[..., Any]:
    handler = FUNCTIONS[function]

    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        return handler(self, *args, **options)

    method.__name__ = function.__name__
    return method


def _reshape(self: Tracer, *dims: Any, order: str = "C") -> Any:
    return reshape(self, dims[0] if len(dims) == 1 else dims, order)


def _transpose(self: Tracer, *axes: Any) -> Any:
    if not axes or axes == (None,):
        return transpose(self)
    return transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def _flatten(self: Tracer, order: str = "C") -> Any:
    return copy(reshape(self, (-1,), order))


def _item(self: Tracer, *index: Any) -> Any:
    if not index and self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    where = index[0] if len(index) == 1 else index or 0
    element = self[where] if isinstance(where, tuple) else reshape(self, (-1,))[where]
    return apply(cast, [element], aval=aval_of(self.dtype.type(0).item()))


def _round(self: Tracer, digits: int | None = None) -> Any:
    """``round(x)``: of a NumPy number as ``np.round``, without digits an int, which is decided here."""
    if self.const:
        return round(self.shadow) if digits is None else round(self.shadow, digits)
    if isinstance(self.shadow, np.ndarray) or not isinstance(self.shadow, np.floating):
        raise unsupported("round() of a traced value that is no NumPy number", "use np.round")
    return int(np.rint(self)) if digits is None else np.round(self, digits)


def _contains(self: Tracer, item: Any) -> bool:
    """``item in x``, which is decided here."""
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


def _missing_method(name: str) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        if self.const or (name not in CHANGING and is_known(self)):
            found = getattr(self.shadow, name)(*args, **options)
            self.storage.version += 1
            return map_leaves(lambda x: _constant([self], x), found)
        raise unsupported(f"the method {name}() of a traced value", "use a NumPy function that is traced")

    return method


def _set_part(name: str, part: Callable[[Any], Any], self: Tracer, value: Any) -> None:
    """``z.real = value``, ``z.imag = value``."""
    if not isinstance(self.shadow, np.ndarray):
        raise AttributeError(f"attribute {name!r} of a number is not writable")  # noqa: TRY004 - as NumPy does
    if name == "imag" and self.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    indexing.put(part(self), ..., value)


def _missing_attribute(name: str) -> property:
    def get(self: Tracer) -> Any:
        if is_known(self):
            return getattr(self.shadow, name)
        raise unsupported(f"the attribute {name} of a traced value", "use a NumPy function that is traced")

    def put(self: Tracer, value: Any) -> None:
        raise unsupported(f"setting the attribute {name} of a traced array", "write into the array by index")

    return property(get, put)


METHODS: dict[str, Callable[..., Any]] = {
    "__array_ufunc__": array_ufunc,
    "__array_function__": array_function,
    "__getitem__": indexing.get,
    "__setitem__": indexing.put,
    "__float__": to_float,
    "__complex__": to_complex,
    "__copy__": copy,
    "__contains__": _contains,
    "__round__": _round,
    "__deepcopy__": lambda self, memo: copy(self),
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
}


def install() -> None:
    """Give Tracer its operators, protocols and methods; each lives in the file of its subject."""
    install_operators(Tracer)
    for name, method in METHODS.items():
        setattr(Tracer, name, noting_failure(method) if name.startswith("__array_") else method)
    for name in ("__getitem__", "__setitem__"):
        setattr(Tracer, name, noting_failure(METHODS[name]))
    setattr(Tracer, "mT", _missing_attribute("mT").getter(FUNCTIONS[np.matrix_transpose]))  # noqa: B010 - as above
    for name, part in (("real", real_part), ("imag", imaginary_part)):
        setattr(Tracer, name, property(part, partial(_set_part, name, part)))
    for name, member in (("flat", property(flat_of, set_flat)), ("device", "cpu")):
        setattr(Tracer, name, member)
    for name, attribute in vars(np.ndarray).items():
        if not name.startswith("_") and not hasattr(Tracer, name):
            setattr(Tracer, name, _missing_method(name) if callable(attribute) else _missing_attribute(name))


install()
