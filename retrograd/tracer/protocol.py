"""NumPy's two protocols on Tracer, and its methods of ndarray; the packages above fill the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import UnsupportedError
from ..ir.primitive import TRANSFORMS
from . import indexing
from .array import Tracer
from .foreign import adviser
from .operators import install_operators
from .table import FUNCTIONS, METHODS, REMEDIES, UFUNC_METHODS
from .trace import noting_failure, unsupported
from .ufuncs import call_ufunc, copy


class Untraced(NamedTuple):
    """How NumPy runs a function that is not traced, if all values among its arguments are known."""

    known: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], bool]
    run: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]


UNTRACED: list[Untraced] = []  # the last is asked


def array_ufunc(self: Tracer, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """``__array_ufunc__``: calls, reductions and the like."""
    if method == "__call__":
        special = options or ufunc.ntypes == 1  # as that of a Python function
        return UFUNC_METHODS[method](ufunc, *inputs, **options) if special else call_ufunc(ufunc, inputs)
    handler = UFUNC_METHODS.get(method)
    try:
        if handler is None:
            raise unsupported(f"np.{ufunc.__name__}.{method} of a traced value", "call the ufunc itself")
        return handler(ufunc, *inputs, **options)
    except UnsupportedError as fault:
        if not UNTRACED[-1].known(method, inputs, options):
            raise
        TRANSFORMS.forget(fault)
    return UNTRACED[-1].run(getattr(ufunc, method), inputs, options)


def array_function(
    self: Tracer, function: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """``__array_function__``: call the handler in the table; on plain numbers any function runs, with any option."""
    handler = FUNCTIONS.get(function)
    if handler is not None:
        try:
            return handler(*args, **kwargs)
        except UnsupportedError as fault:
            if not UNTRACED[-1].known(function, args, kwargs):
                raise
            TRANSFORMS.forget(fault)
    elif not UNTRACED[-1].known(function, args, kwargs):
        name = f"{function.__module__}.{function.__name__}"
        remedy = REMEDIES.get(function) or adviser().alternative(name) or "write it with other NumPy functions"
        raise unsupported(f"{name} of a traced value", remedy)
    return UNTRACED[-1].run(function, args, kwargs)


OWN: dict[str, Callable[..., Any]] = {
    "__array_ufunc__": array_ufunc,
    "__array_function__": array_function,
    "__getitem__": indexing.get,
    "__setitem__": indexing.put,
    "__copy__": copy,
    "__deepcopy__": lambda self, memo: copy(self),
}
NOTED = {"__array_ufunc__", "__array_function__", "__array_namespace__", "__getitem__", "__setitem__"}


def install() -> None:
    """Give Tracer its operators, protocols and methods, once the tables are full."""
    install_operators(Tracer)
    for name, member in {**OWN, **METHODS}.items():
        setattr(Tracer, name, noting_failure(member) if name in NOTED else member)
