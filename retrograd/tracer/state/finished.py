"""Finished: a traced value that depends on no input, after the end of its trace.

Caches, attributes and globals that the user's code filled meanwhile hold such values. Each becomes its array, or its
number, where it is: NumPy and Python compute with it as with that, and another trace captures the array.
"""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..held import Held

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_set_class = vars(object)["__class__"].__set__  # tracers answer for their class themselves


class Finished(Held):
    """An array, or a number, that was made inside a trace which has ended."""

    __slots__ = ()

    @property  # type: ignore[misc]  # it answers for the array
    def __class__(self) -> type:
        return type(self.shadow)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shadow, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.shadow, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*plain(inputs), **plain(options))

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return function(*plain(args), **plain(kwargs))

    def __reduce__(self) -> Any:
        return plain, (self.shadow,)

    def __copy__(self) -> Any:
        return copy.copy(self.shadow)

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.copy(self.shadow)

    def __repr__(self) -> str:
        return repr(self.shadow)

    def __format__(self, spec: str) -> str:
        return format(self.shadow, spec)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.shadow, name, value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.shadow[plain(key)] = plain(value)

    def __getitem__(self, key: Any) -> Any:
        return self.shadow[plain(key)]


def plain(x: Any) -> Any:
    """The value with plain arrays in place of finished ones, also inside containers."""
    t = type(x)
    if t is Finished:
        return x.shadow
    if t in (list, tuple):
        return t(map(plain, x))
    if t is dict:
        return {k: plain(v) for k, v in x.items()}
    return x


def finish(made: Sequence[weakref.ref[Any]]) -> None:
    """Finish those of these traced values that outlived their trace and depend on no input."""
    for reference in made:
        t = reference()
        if t is not None and (found := t.home.constant_of(t)) is not None:
            if isinstance(found, np.ndarray) and found.base is None and found is t.shadow:
                found.flags.writeable = True
            t.shadow = found
            _set_class(t, Finished)


def _install() -> None:
    binary = {name: getattr(operator, f"__{name}__") for name in BINARY}
    for name, f in (*binary.items(), ("divmod", divmod)):
        setattr(Finished, f"__{name}__", _forward(f))
        setattr(Finished, f"__r{name}__", _reflected(f))
    for name in BINARY:
        setattr(Finished, f"__i{name}__", _in_place(getattr(operator, f"__i{name}__")))
    for name in ["lt", "le", "gt", "ge", "eq", "ne"]:
        setattr(Finished, f"__{name}__", _forward(getattr(operator, name)))
    for f in (operator.neg, operator.pos, operator.abs, operator.invert, operator.index):
        setattr(Finished, f"__{f.__name__.strip('_')}__", _single(f))
    for g in (len, iter, bool, int, float, complex, hash, str, bytes):
        setattr(Finished, f"__{g.__name__}__", _single(g))


def _forward(f: Callable[..., Any]) -> Callable[..., Any]:
    def operate(self: Any, other: Any) -> Any:
        own = type(other) is not Finished and isinstance(other, Held)  # a tracer answers itself
        return NotImplemented if own else f(self.shadow, plain(other))

    return operate


def _reflected(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: f(other, self.shadow)


def _in_place(f: Callable[..., Any]) -> Callable[..., Any]:
    def operate(self: Any, other: Any) -> Any:
        found = f(self.shadow, plain(other))
        return self if found is self.shadow else found  # a number is replaced

    return operate


def _single(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: f(self.shadow)


_install()
