"""Substitutes for functions of SciPy when an argument is traced; for plain arguments SciPy's own function runs."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from ..ops.shape import stop_gradient
from ..tracer.array import Tracer, apply, is_known, shadow_of, tracers_in
from ..tracer.creation import fresh, joined
from ..tracer.interception import substitutes
from ..tracer.operands import as_array, astype
from ..tracer.outside import trace_here
from ..tracer.trace import unsupported
from ..tracer.tree import flatten, map_leaves
from ..tracer.ufuncs import as_operand

Function = Callable[..., Any]

BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_handlers: dict[str, dict[str, Function]] = {}


def stands_for(path: str, *, closures: bool = False, pairs: bool = False) -> Callable[[Function], Function]:
    """Make the decorated function the substitute of a SciPy function, such as ``scipy.special.logsumexp``.

    Users reach it by SciPy's name inside a traced function, or import the result of the decoration. With ``closures``
    it handles all arguments while a trace is active, since functions among them may close over traced values. With
    ``pairs`` an argument is a pair of other things; elsewhere a list or tuple of traced numbers is an array.
    """
    module, _, name = path.rpartition(".")

    def register(handler: Function) -> Function:
        @wraps(handler)
        def call(*args: Any, **options: Any) -> Any:
            original = getattr(importlib.import_module(module), name)
            if closures and trace_here() is not None:
                return _handled(original, handler, args, options)
            return dispatch(original, handler, args, options, pairs)

        if module not in _handlers:
            _provide(module)
        _handlers[module][name] = call
        return call

    return register


def _provide(module: str) -> None:
    _handlers[module] = {}

    @substitutes(module)
    def _of_module(loaded: ModuleType) -> Mapping[str, Any]:
        return _handlers[module]


def dispatch(
    original: Function, handler: Function, args: Sequence[Any], options: Mapping[str, Any], pairs: bool = False
) -> Any:
    """``handler`` if an argument is traced; else the original, on the plain numbers that tracers may hold."""
    leaves = flatten((tuple(args), dict(options)))[0]
    tracers = tracers_in(leaves)
    if not tracers:
        return original(*args, **options)
    if not all(t.const for t in tracers):
        if not pairs:
            args, options = [*map(joined, args)], {name: joined(x) for name, x in options.items()}
        return _handled(original, handler, args, options)
    plain_args, plain_options = map_leaves(shadow_of, (tuple(args), dict(options)))
    found = original(*plain_args, **plain_options)
    return map_leaves(lambda x: fresh(x) if isinstance(x, np.ndarray) else x, found)


def _handled(original: Function, handler: Function, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What the handler gives; if it does not take the arguments as they are, those that it takes in another way."""
    try:
        return handler(*args, **options)
    except TypeError as fault:
        if fault.__traceback__ is None or fault.__traceback__.tb_next is not None:  # the handler has begun
            raise
        found = _as_taken(original, handler, args, options)
        if found is None:
            raise
    return handler(*found[0], **found[1])


def _as_taken(
    original: Function, handler: Function, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]] | None:
    """The arguments as a handler takes them: by name, without those that it lacks and that have SciPy's default.

    None if SciPy's function does not take them, either. Raises UnsupportedError if others are left over.
    """
    try:
        scipys = inspect.signature(original).parameters
        inspect.signature(original).bind(*args, **options)
    except (TypeError, ValueError):  # a ufunc's arguments may have no names
        return None
    ours = inspect.signature(handler).parameters
    count = sum(p.kind in BY_POSITION for p in ours.values())
    names = [name for name, p in scipys.items() if p.kind in BY_POSITION]
    if len(args) > len(names):  # a method, whose arguments have no names here
        return None
    named = {**dict(zip(names[count:], args[count:], strict=False)), **options}
    lacking = {name: x for name, x in named.items() if name in scipys and name not in ours}
    for name, x in lacking.items():
        if x is not scipys[name].default:
            package = original.__module__.rpartition("._")[0] or original.__module__
            raise unsupported(f"{package}.{original.__name__} with {name}=", f"leave {name}= out") from None
    return args[:count], {name: x for name, x in named.items() if name not in lacking}


def answered(method: Function) -> Function:
    """The handler of a class's method: ``method(self, ...)`` if an argument is traced, else the original."""

    def handler(original: Function, self: Any, *args: Any, **options: Any) -> Any:
        def own(*args: Any, **options: Any) -> Any:
            return original(self, *args, **options)

        def ours(*args: Any, **options: Any) -> Any:
            return method(self, *args, **options)

        return dispatch(own, ours, args, options)

    return handler


def rest_of(module: str, own: Mapping[str, Any] = {}) -> Callable[[str], Any]:
    """A module's ``__getattr__``: its ``own`` substitutes by name; for other names, and for classes, SciPy's object."""

    def find(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return own[name] if name in own else getattr(importlib.import_module(module), name)

    return find


class Lazy:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def stopped(x: Any) -> Any:
    """``x`` as a constant of derivatives."""
    return apply(stop_gradient, [x]) if isinstance(x, Tracer) else x


def inexact(x: Any) -> Any:
    """An operand as floating-point or complex numbers; a Python int as a Python float."""
    x = as_operand(x)
    if isinstance(shadow_of(x), int):
        return x * 1.0
    dtype = np.asarray(shadow_of(x)).dtype
    return x if dtype.kind in "fc" else np.multiply(x, 1.0)


def double(x: Any) -> Any:
    """An operand in double precision, in which SciPy's distributions compute."""
    x = inexact(x)
    shadow = shadow_of(x)
    if np.iscomplexobj(shadow):
        raise unsupported("a distribution or a factorial of complex numbers", "take np.real of them")
    if isinstance(shadow, (np.ndarray, np.generic)) and shadow.dtype == np.float64:
        return x
    return astype(x, np.float64) if isinstance(x, Tracer) else np.asarray(x, np.float64)[()]


def array(x: Any) -> Any:
    """An operand as an array of floating-point or complex numbers, even if it is a Python number."""
    x = inexact(x)
    return as_array(x) if isinstance(x, Tracer) else np.asarray(x)


def cast(operands: Sequence[Any], dtype: Any) -> list[Any]:
    """Operands of one dtype."""
    return [x if x.dtype == dtype else astype(x, dtype) for x in operands]


def known(x: Any) -> bool:
    """Whether an operand holds plain numbers that Python may look at."""
    return is_known(x) if isinstance(x, Tracer) else True


def where(condition: Any, value: Any, other: Any) -> Any:
    """``np.where`` that gives a NumPy scalar for numbers, as a ufunc does."""
    found = np.where(condition, value, other)
    return found if np.ndim(shadow_of(found)) else found[()]


def guarded(condition: Any, value: Any, other: float) -> Any:
    """``value`` where a condition holds, else ``other``; a condition that is true of plain numbers costs nothing."""
    if known(condition) and np.all(shadow_of(condition)):
        return value
    return where(condition, value, other)
