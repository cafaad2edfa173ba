"""NumPy's own errors: where the stand-in of a function fails, and NumPy's function too, NumPy's error is raised."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..errors import TracerError
from ..tracer.array import Tracer, shadow_of
from ..tracer.operators import ARITHMETIC
from ..tracer.sequences import listed
from ..tracer.swallowed import forget
from ..tracer.table import FUNCTIONS, METHODS, UFUNC_METHODS
from ..tracer.tree import flatten, map_leaves

Function = Callable[..., Any]

# Functions with errors of their own that their stand-ins do not have: NumPy's run on the example values before.
CHECKED: frozenset[Function] = frozenset(
    {
        *(np.place, np.putmask, np.copyto, np.put, np.fill_diagonal, np.insert),
        *(np.cov, np.histogram_bin_edges, np.interp, np.unwrap, np.compress),
        *(np.astype, np.ascontiguousarray, np.tril_indices_from, np.triu_indices_from),
        *(np.linalg.multi_dot, np.linalg.vecdot),
    }
)


def _examples(tree: Any) -> Any:
    """Example values, in memory of their own, since they may be written into; one copy of each."""
    copies: dict[int, Any] = {}

    def example(x: Any) -> Any:
        value, parts = shadow_of(x), listed(x)
        if parts is not x:  # a sequence that is no list
            return map_leaves(example, parts)
        return copies.setdefault(id(value), value.copy()) if isinstance(value, ndarray) else value

    return map_leaves(example, tree)


def numpys_error(function: Function, args: tuple[Any, ...], options: Mapping[str, Any]) -> Exception | None:
    """What NumPy raises for the example values, if anything; a function of the user's is not called again."""
    if any(callable(x) and not isinstance(x, (type, np.ufunc, Tracer)) for x in flatten((args, dict(options)))[0]):
        return None
    plain, named = _examples((args, dict(options)))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*plain, **named)
    except Exception as fault:  # noqa: BLE001 - what NumPy raises is what is asked for
        return fault
    return None


def check_by_numpy(function: Function, *args: Any, **options: Any) -> None:
    """Raise what NumPy's function raises for the example values."""
    if own := numpys_error(function, args, options):
        raise own from None


def with_own_errors(handler: Function, function: Function, skip: int = 0) -> Function:
    """The handler, with NumPy's errors in place of its own; ``function`` is called without ``skip`` arguments."""

    @functools.wraps(handler)
    def call(*args: Any, **options: Any) -> Any:
        if function in CHECKED:
            check_by_numpy(function, *args, **options)
        try:
            return handler(*args, **options)
        except Exception as fault:
            if isinstance(fault, TracerError):
                raise
            own = numpys_error(function, args[skip:], options)
            if own is None or type(own) is type(fault):
                raise
            forget(fault)
            raise own from None

    return call


def _method(name: str) -> Function:
    return lambda self, *args, **options: getattr(self, name)(*args, **options)


def _of_ufunc(method: str, handler: Function) -> Function:
    @functools.wraps(handler)
    def call(ufunc: Any, *args: Any, **options: Any) -> Any:
        return with_own_errors(handler, getattr(ufunc, method), 1)(ufunc, *args, **options)

    return call


def install_own_errors() -> None:
    """Wrap what the tables hold, and the operators that write; before tracers get their methods."""
    for function, handler in FUNCTIONS.items():
        FUNCTIONS[function] = with_own_errors(handler, function)
    for name, member in METHODS.items():
        original = getattr(np.ndarray, name, None)
        if not name.startswith("_") and callable(member) and callable(original):
            METHODS[name] = with_own_errors(member, _method(name))
    for name, handler in UFUNC_METHODS.items():
        UFUNC_METHODS[name] = _of_ufunc(name, handler)


def install_in_operators() -> None:
    """Wrap the operators; after tracers have them."""
    for name in (*(f"__i{name}__" for name in (*ARITHMETIC, "pow")), "__matmul__", "__rmatmul__"):
        if handler := getattr(Tracer, name, None):
            setattr(Tracer, name, with_own_errors(handler, getattr(operator, name, getattr(np.ndarray, name))))
