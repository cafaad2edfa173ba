"""NumPy's two protocols on Tracer, and its methods of ndarray; the rooms above fill the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..where import user_site
from . import indexing
from .array import Tracer, is_known, same_memory, shadow_of, wrap
from .foreign import adviser
from .operators import install_operators
from .python_numbers import to_complex, to_float
from .table import FUNCTIONS, METHODS, REMEDIES, UFUNC_METHODS
from .trace import noting_failure, owner, unsupported
from .tree import flatten, map_leaves
from .ufuncs import call_ufunc, copy

CHANGING = ("byteswap", "resize", "setfield", "setflags")
MUTATORS = (np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal)


def array_ufunc(self: Tracer, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """``__array_ufunc__``: calls, reductions and the like."""
    if method == "__call__":
        return UFUNC_METHODS["__call__"](ufunc, *inputs, **options) if options else call_ufunc(ufunc, inputs)
    handler = UFUNC_METHODS.get(method)
    try:
        if handler is not None:
            return handler(ufunc, *inputs, **options)
        raise unsupported(f"np.{ufunc.__name__}.{method} of a traced value", "call the ufunc itself")
    except UnsupportedError:
        if not _all_known(method, (inputs, options), options):
            raise
    return _of_numbers(getattr(ufunc, method), inputs, options)


def array_function(
    self: Tracer, function: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """``__array_function__``: call the handler in the table; on plain numbers any function runs, with any option."""
    handler = FUNCTIONS.get(function)
    if handler is not None:
        try:
            return handler(*args, **kwargs)
        except UnsupportedError:
            if not _all_known(function, (args, dict(kwargs)), kwargs):
                raise
    elif not _all_known(function, (args, dict(kwargs)), kwargs):
        name = f"{function.__module__}.{function.__name__}"
        remedy = REMEDIES.get(function) or adviser().alternative(name) or "write it with other NumPy functions"
        raise unsupported(f"{name} of a traced value", remedy)
    return _of_numbers(function, args, kwargs)


def _tracers(tree: Any) -> list[Tracer]:
    return [x for x in flatten(tree)[0] if isinstance(x, Tracer)]


def _all_known(function: Any, tree: Any, options: Mapping[str, Any]) -> bool:
    """Whether NumPy can run a function on the example values: what it writes into must hold plain numbers only."""
    writes = function in MUTATORS or function == "at" or options.get("out") is not None
    return all(t.const if writes else is_known(t) for t in _tracers(tree))


def _of_numbers(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run NumPy's own function on the plain numbers that the tracers hold."""
    tracers = _tracers((args, dict(kwargs)))
    plain, options = map_leaves(shadow_of, (args, dict(kwargs)))
    found = function(*plain, **options)
    if function in MUTATORS or options.get("out") is not None:
        for t in tracers:
            t.storage.version += 1
    return map_leaves(lambda x: _constant(tracers, x), found)


def _constant(tracers: list[Tracer], x: Any) -> Any:
    """Turn a result into a tracer: an operand, a view of one (readable while it holds plain numbers), or a new one."""
    if not isinstance(x, np.ndarray):
        return x
    where = user_site()[0]
    for t in tracers:
        if t.shadow is x:
            return t
        if same_memory(t.shadow, x):
            return Tracer(t.home, x, t.storage, t, None, where)
    return wrap(owner(tracers), None, x, where)


def _missing_method(name: str) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        if self.const or (name not in CHANGING and is_known(self)):
            found = getattr(self.shadow, name)(*args, **options)
            self.storage.version += 1
            return map_leaves(lambda x: _constant([self], x), found)
        raise unsupported(f"the method {name}() of a traced value", "use a NumPy function that is traced")

    return method


def missing_attribute(name: str) -> property:
    """An attribute of ndarray that can be read only while the value is known, and cannot be set."""

    def get(self: Tracer) -> Any:
        if is_known(self):
            return getattr(self.shadow, name)
        raise unsupported(f"the attribute {name} of a traced value", "use a NumPy function that is traced")

    def put(self: Tracer, value: Any) -> None:
        raise unsupported(f"setting the attribute {name} of a traced array", "write into the array by index")

    return property(get, put)


OWN: dict[str, Callable[..., Any]] = {
    "__array_ufunc__": array_ufunc,
    "__array_function__": array_function,
    "__getitem__": indexing.get,
    "__setitem__": indexing.put,
    "__float__": to_float,
    "__complex__": to_complex,
    "__copy__": copy,
    "__deepcopy__": lambda self, memo: copy(self),
}
NOTED = {"__array_ufunc__", "__array_function__", "__array_namespace__", "__getitem__", "__setitem__"}


def install() -> None:
    """Give Tracer its operators, protocols and methods, once the tables are full."""
    install_operators(Tracer)
    for name, member in {**OWN, **METHODS}.items():
        setattr(Tracer, name, noting_failure(member) if name in NOTED else member)
    for name, attribute in vars(np.ndarray).items():
        if not name.startswith("_") and not hasattr(Tracer, name):
            setattr(Tracer, name, _missing_method(name) if callable(attribute) else missing_attribute(name))
