"""Creation functions inside a trace: ``np.zeros(3)`` called by the user's code gives a traced, mutable array.

NumPy never hands such calls over. So while a trace is active in some thread, the class of the module ``numpy``
is a subclass of ModuleType in which the intercepted names are properties. The getter looks at its caller:
only code that is neither NumPy's, SciPy's nor ours, at an instruction that loads that very name, in a context
with an active trace, gets the substitute; everyone else gets NumPy's own function.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from .array import Tracer, enter, shadow_of, wrap
from .concatenators import Concatenator
from .trace import CURRENT, Trace, traceable, unsupported
from .where import OURS, user_site

LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"})
NUMBERS = (bool, int, float, complex, np.generic)

_loads: dict[int, tuple[CodeType, dict[int, str]]] = {}


def active_trace() -> Trace:
    """The trace that creation calls belong to."""
    trace = CURRENT.get()
    assert trace is not None
    return trace


def fresh(value: Any) -> Any:
    """A traced array whose contents are plain numbers so far; an array of strings or dates stays as it is."""
    if isinstance(value, tuple):  # np.linspace(..., retstep=True)
        return tuple(map(fresh, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "SUMm":
        return value
    traceable(value)
    return wrap(active_trace(), None, value, user_site(2)[0])


def _numbers_only(name: str) -> Callable[..., Any]:
    original = getattr(np, name)

    def create(*args: Any, **options: Any) -> Any:
        if holds_tracers((*args, *options.values()), const=False):
            raise unsupported(f"np.{name} of a traced value", "make the array of plain numbers, then scale or shift it")
        return fresh(original(*map(shadow_of, args), **{key: shadow_of(x) for key, x in options.items()}))

    return create


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """``np.full``, whose value may be traced."""
    shadow = shadow_of(fill_value)
    made = fresh(np.full(shape, shadow, dtype, "F" if order == "F" else "C"))
    if isinstance(fill_value, Tracer) and not fill_value.const:
        made[...] = fill_value
    return made


def empty(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """``np.empty``, filled with zeros so that a trace never depends on stale memory."""
    return fresh(np.zeros(shape, dtype, order))


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
    if isinstance(obj, Tracer):
        made = np.copy(obj) if copy or not isinstance(obj.shadow, np.ndarray) else obj
    elif holds_tracers(obj):
        made = np.stack([x if isinstance(x, Tracer) else array(x) for x in obj])
    elif isinstance(obj, np.ndarray) and not copy:
        return np.asarray(obj, dtype)
    else:
        return fresh(np.array(obj, dtype, order=order, ndmin=ndmin))
    if dtype is not None and made.dtype != traceable(np.empty(0, dtype)).dtype:
        made = made.astype(dtype)
    return np.reshape(made, (1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def asarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    """``np.asarray``: an array, traced or not, is returned as it is."""
    return array(a, dtype, copy=False)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """``np.take``, which NumPy hands over only if the array is traced, but not if the indices are."""
    if not isinstance(a, Tracer) and holds_tracers([indices], const=False):
        a = enter(active_trace(), np.asarray(a))
    return np.take(a, indices, axis, out, mode)  # type: ignore[call-overload]  # of all kinds of arguments


def holds_tracers(obj: Any, const: bool = True) -> bool:
    """Whether nested lists hold tracers; unless ``const``, only those whose value is not known count."""
    if not isinstance(obj, (list, tuple)):
        return False
    return any(const or not x.const if isinstance(x, Tracer) else holds_tracers(x, const) for x in obj)


def isscalar(element: Any) -> bool:
    """``np.isscalar``, which NumPy does not hand over either."""
    return bool(np.isscalar(shadow_of(element)))


SUBSTITUTES: dict[str, Any] = {
    "isscalar": isscalar,
    "array": array,
    "asarray": asarray,
    "asanyarray": asarray,
    "full": full,
    "empty": empty,
    "take": take,
    "r_": Concatenator(np.r_, columns=False, fresh=fresh),
    "c_": Concatenator(np.c_, columns=True, fresh=fresh),
    **{
        name: _numbers_only(name)
        for name in ("zeros", "ones", "arange", "linspace", "eye", "identity", "tri", "logspace")
    },
}


def _called_by_user(frame: FrameType, name: str) -> bool:
    """Whether this frame is the user's and its present instruction loads ``name``.

    Compiled extensions have no frames: their callers look like the user's code, but are at another
    instruction. A tracer handed to them could crash the process.
    """
    if frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        return False
    code = frame.f_code
    if id(code) not in _loads:
        loads = {i.offset: i.argval for i in dis.get_instructions(code) if i.opname in LOADS}
        _loads[id(code)] = (code, loads)
    return _loads[id(code)][1].get(frame.f_lasti) == name


def _intercepted(name: str, substitute: Any) -> property:
    def getter(module: ModuleType) -> Any:
        if CURRENT.get() is not None and _called_by_user(sys._getframe(1), name):
            return substitute
        return module.__dict__[name]

    def setter(module: ModuleType, value: Any) -> None:
        module.__dict__[name] = value

    return property(getter, setter)


class TracingModule(ModuleType):
    """The class of the module ``numpy`` while some trace is active."""

    __slots__ = ()


for _name, _substitute in SUBSTITUTES.items():
    setattr(TracingModule, _name, _intercepted(_name, _substitute))


class Swap:
    """Swaps the module's class on the first of several overlapping traces, and back after the last."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._lock, self._count = module, threading.Lock(), 0
        self._original: type[ModuleType] = ModuleType

    def enter(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._original = type(self._module)
                self._module.__class__ = TracingModule

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                self._module.__class__ = self._original


SWAP = Swap(np)
