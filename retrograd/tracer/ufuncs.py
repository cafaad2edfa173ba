"""Elementwise operations: NumPy's ufuncs and Python's operators on tracers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import CapturedWriteError
from ..ir.primitive import REGISTRY, Primitive
from ..ir.types import Aval, Kind, aval_of
from ..ops.elementwise import cast, square, where
from ..ops.shape import stop_gradient
from .array import NUMBERS, Tracer, apply, cast_to, check_aval, shadow_of, symbol_in, tracers_in, wrap
from .creation import array, holds_tracers
from .mutation import check_writable, make_traced, write
from .trace import STOPPED, owner, traceable, unsupported
from .where import user_site

Ufunc = Callable[..., Any]


def primitives() -> dict[Ufunc, Primitive]:
    """The primitive of each NumPy ufunc that has one."""
    found = {}
    for prim in REGISTRY.values():
        if prim.ufunc.startswith("np.") and prim.name != "matmul":
            found[getattr(np, prim.ufunc.removeprefix("np."))] = prim
    return found


UFUNCS = primitives()


@lru_cache(maxsize=8192)
def _loop(ufunc: Any, kinds: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """NumPy's choice of dtypes for operands; Python numbers are weak."""
    return tuple(ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout)))


def _kind(shadow: Any) -> Any:
    if isinstance(shadow, bool):
        return np.dtype(bool)
    for number in (int, float, complex):
        if type(shadow) is number:
            return number
    return shadow.dtype


def as_operand(x: Any) -> Any:
    """A tracer, an array or a number; lists become arrays as NumPy would make them."""
    if isinstance(x, (Tracer, np.ndarray, *NUMBERS)):
        return x
    return array(x) if holds_tracers(x) else np.asarray(x)


def elementwise(prim: Primitive, ufunc: Any, operands: Sequence[Any], run: Callable[..., Any]) -> Any:
    """Record ``run(*operands)``, which is ``ufunc`` or an operator that means it."""
    operands = [as_operand(x) for x in operands]
    trace = owner(tracers_in(operands))
    shadows = [shadow_of(x) for x in operands]
    shadow = run(*shadows)
    where_, hint = user_site(2)
    if all(x.const if isinstance(x, Tracer) else not isinstance(x, np.ndarray) for x in operands):
        return wrap(trace, None, shadow, where_)
    out = aval_of(shadow)
    if all(isinstance(s, (bool, int, float, complex)) for s in shadows):
        common = (
            aval_of(shadow).dtype if out.dtype.kind != "b" else np.result_type(*(aval_of(s).dtype for s in shadows))
        )
        dtypes: tuple[np.dtype[Any], ...] = (common,) * len(shadows)
    else:
        dtypes = _loop(ufunc, tuple(map(_kind, shadows)))
    trace.builder.where = where_
    inner: Kind = "array" if out.shape else "python" if out.kind == "python" else "scalar"
    symbols = [
        cast_to(x, Aval(out.shape, d, inner), trace)
        for x, d in zip(operands, dtypes, strict=False)  # the result's dtype follows
    ]
    result = prim(*symbols)
    if result.value.hint is None:
        result.value.hint = hint
    check_aval(prim, result, shadow)
    if STOPPED.get():
        result = stop_gradient(result)
    return wrap(trace, result, shadow, where_)


def _raise_to(x: Any, n: Any) -> Any:
    """``x ** n`` as ndarray does it: plain numbers 2, 1, 0.5, -1 have faster and better-rounded forms."""
    base = shadow_of(x)
    if isinstance(base, np.ndarray) and base.ndim and base.dtype.kind in "fc" and isinstance(n, (int, float)):
        if n == 2:
            return elementwise(square, np.square, [x], np.square)
        if n == 1:
            return np.positive(x)
        if n == 0.5:
            return np.sqrt(x)
        if n == -1:
            return np.divide(1.0, x)
    return elementwise(REGISTRY["power"], np.power, [x, n], operator.pow)


OPERATORS: dict[str, tuple[str, Ufunc, Callable[..., Any]]] = {
    "add": ("add", np.add, operator.add),
    "sub": ("sub", np.subtract, operator.sub),
    "mul": ("mul", np.multiply, operator.mul),
    "truediv": ("div", np.divide, operator.truediv),
    "lt": ("lt", np.less, operator.lt),
    "le": ("le", np.less_equal, operator.le),
    "gt": ("gt", np.greater, operator.gt),
    "ge": ("ge", np.greater_equal, operator.ge),
    "eq": ("eq", np.equal, operator.eq),
    "ne": ("ne", np.not_equal, operator.ne),
}


THROUGH_UFUNCS: dict[str, Ufunc] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift, "floordiv": np.floor_divide, "mod": np.remainder, "divmod": np.divmod,
    "matmul": np.matmul,
}  # fmt: skip


def install_operators(cls: Any) -> None:
    """Give Tracer its operators, reflected ones and in-place ones."""
    for name, (prim_name, ufunc, run) in OPERATORS.items():
        prim = REGISTRY[prim_name]

        def forward(self: Any, other: Any, prim: Any = prim, ufunc: Any = ufunc, run: Any = run) -> Any:
            return elementwise(prim, ufunc, [self, other], run)

        def reflected(self: Any, other: Any, prim: Any = prim, ufunc: Any = ufunc, run: Any = run) -> Any:
            return elementwise(prim, ufunc, [other, self], run)

        def in_place(self: Any, other: Any, ufunc: Any = ufunc, forward: Any = forward) -> Any:
            if not isinstance(self.shadow, np.ndarray):
                return forward(self, other)
            return ufunc(self, other, out=self)

        setattr(cls, f"__{name}__", forward)
        if name in ("add", "sub", "mul", "truediv"):
            setattr(cls, f"__r{name}__", reflected)
            setattr(cls, f"__i{name}__", in_place)
    cls.__pow__ = _raise_to
    cls.__rpow__ = lambda self, other: _raise_to(other, self)
    cls.__ipow__ = lambda self, n: _assign(self, _raise_to(self, n)) if isinstance(self.shadow, np.ndarray) else self**n
    cls.__neg__ = lambda self: elementwise(REGISTRY["neg"], np.negative, [self], operator.neg)
    cls.__pos__ = lambda self: np.positive(self)
    cls.__abs__ = lambda self: elementwise(REGISTRY["abs"], np.abs, [self], _abs)
    cls.__invert__ = lambda self: np.invert(self)
    for name, ufunc in THROUGH_UFUNCS.items():

        def call(self: Any, other: Any, ufunc: Any = ufunc) -> Any:
            return ufunc(self, other)

        def called(self: Any, other: Any, ufunc: Any = ufunc) -> Any:
            return ufunc(other, self)

        def into(self: Any, other: Any, ufunc: Any = ufunc) -> Any:
            return ufunc(self, other, out=self) if isinstance(self.shadow, np.ndarray) else ufunc(self, other)

        setattr(cls, f"__{name}__", call)
        setattr(cls, f"__r{name}__", called)
        if name != "divmod":
            setattr(cls, f"__i{name}__", into)


def _abs(x: Any) -> Any:
    return np.abs(x)


def copy(x: Any) -> Tracer:
    """The same value in memory of its own."""
    trace = owner([x])
    where_, _ = user_site(2)
    shadow = np.array(x.shadow) if isinstance(x.shadow, np.ndarray) else x.shadow
    return wrap(trace, None if x.const else symbol_in(trace, x), shadow, where_)


def _bitwise(name: str) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        if all(np.asarray(shadow_of(x)).dtype == np.bool_ for x in operands):
            return getattr(np, name)(*operands)
        raise unsupported("bitwise operations on traced integers", "compute them outside the traced function")

    return call


COMPOSED: dict[Ufunc, Callable[..., Any]] = {  # `functions.products` adds matmul
    np.positive: lambda x: copy(x) if isinstance(x, Tracer) else np.positive(x),
    np.bitwise_and: _bitwise("logical_and"),
    np.bitwise_or: _bitwise("logical_or"),
    np.bitwise_xor: _bitwise("not_equal"),
    np.invert: _bitwise("logical_not"),
}


def _of_constants(ufunc: Any, inputs: Sequence[Any]) -> Any:
    """Plain numbers only: any ufunc runs."""
    where_ = user_site(2)[0]
    found = ufunc(*map(shadow_of, inputs))
    if not any(isinstance(x, Tracer) for x in inputs):
        return found
    trace = owner(tracers_in(inputs))
    if isinstance(found, tuple):
        return tuple(wrap(trace, None, x, where_) for x in found)
    return wrap(trace, None, found, where_)


def call_ufunc(ufunc: Any, inputs: Sequence[Any], out: Any, where_mask: Any, options: dict[str, Any]) -> Any:
    """``ufunc(*inputs, out=, where=)`` with a tracer among its arguments."""
    if options:
        raise unsupported(f"np.{ufunc.__name__} with {', '.join(options)}", "cast with astype before or after")
    if all(x.const if isinstance(x, Tracer) else not isinstance(x, np.ndarray) for x in inputs):
        result = _of_constants(ufunc, inputs)
    elif ufunc in COMPOSED:
        result = COMPOSED[ufunc](*inputs)
    elif ufunc in UFUNCS:
        result = elementwise(UFUNCS[ufunc], ufunc, inputs, ufunc)
    else:
        raise unsupported(f"np.{ufunc.__name__} of a traced value", "write it with other NumPy functions")
    if out is None:
        if where_mask is not True:
            raise unsupported(f"np.{ufunc.__name__} with where= but without out=", "pass out=, or use np.where")
        return result
    if len(out) > 1:
        raise unsupported(f"np.{ufunc.__name__} with several arrays as out=", "drop out=")
    (target,) = out
    if not isinstance(target, Tracer):
        raise CapturedWriteError(
            f"the result of np.{ufunc.__name__} is written into an array made outside the traced function",
            where=user_site()[0], remedy="make the array inside the traced function, or drop out=",
        )  # fmt: skip
    if where_mask is not True:
        result = apply(where, [where_mask, result, target])
    return _assign(target, result)


def _assign(target: Tracer, value: Any) -> Tracer:
    """``target[...] = value`` with NumPy's cast; the target itself."""
    trace = owner([target, *tracers_in([value])])
    check_writable(target, trace)
    if target.const and (not isinstance(value, Tracer) or value.const):
        np.copyto(target.shadow, shadow_of(value), casting="same_kind")
        target.storage.version += 1
        return target
    make_traced(target)  # records the old contents, so before the example value changes
    np.copyto(target.shadow, shadow_of(value), casting="same_kind")
    write(target, cast_to(value, Aval(target.shape, target.dtype), trace))
    return target


def astype(x: Any, dtype: Any) -> Any:
    """``x.astype(dtype)``."""
    if not isinstance(x, Tracer):
        return np.asarray(x).astype(dtype)
    target = np.dtype(dtype)
    traceable(np.empty(0, target))
    if target == x.dtype and not isinstance(x.shadow, (int, float, complex)):
        return copy(x)
    return apply(cast, [x], aval=Aval(x.shape, target, "array" if isinstance(x.shadow, np.ndarray) else "scalar"))
