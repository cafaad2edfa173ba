"""``float(t)`` and ``complex(t)``: traced numbers stay traced.

Python lets ``float(t)`` return nothing but a plain number. So when code asks a traced value for one, its module is
noted, and the function is traced once more: during that trace, look-alikes of ``float`` and ``complex`` are globals of
the module.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from ..ir.types import Aval
from ..ops.elementwise import cast
from ..where import module_names, user_frame
from .around import Around, kept, renewed
from .array import Tracer, apply, is_known, shadow_of
from .foreign import adviser

T = TypeVar("T")
P = ParamSpec("P")
Namespace = dict[str, Any]
MOST = 64  # modules to serve at most, since some code makes new ones without end


def number(x: Any, cls: type = float) -> Any:
    """A traced number as a Python number of this type."""
    if not isinstance(x, Tracer):
        return cls(x)
    if x.size != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    if cls is float and x.dtype.kind == "c":
        raise TypeError("can't convert complex to float")
    x = np.reshape(x, ()) if x.ndim else x
    return apply(cast, [x], aval=Aval((), np.dtype(cls), "python"))


class LookAlike(type):
    """The class of classes that pass for a builtin type of numbers, except that they take traced values."""

    original: type

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Tracer):
            return number(args[0], cls.original)
        return cls.original(*args, **options)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(shadow_of(x), cls.original)

    def __subclasscheck__(cls, sub: type) -> bool:
        return issubclass(sub, cls.original)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)


LOOK_ALIKES: Mapping[str, Any] = {
    cls.__name__: LookAlike(cls.__name__, (), {"original": cls, "dtype": np.dtype(cls)}) for cls in (float, complex)
}


class Served(Around):
    """A module whose code asked for plain numbers; the look-alikes are in it while some trace needs them."""

    def __init__(self, names: Namespace) -> None:
        super().__init__()
        self._names = names

    def set_up(self) -> None:
        for name, look_alike in LOOK_ALIKES.items():
            self._names.setdefault(name, look_alike)

    def undo(self) -> None:
        for name, look_alike in LOOK_ALIKES.items():
            if self._names.get(name) is look_alike:
                del self._names[name]


class Askers:
    """The modules that are served now."""

    def __init__(self) -> None:
        self._served: WeakValueDictionary[int, Served] = WeakValueDictionary()
        renewed(self)

    def renew_locks(self) -> None:
        self._lock = threading.RLock()

    def served(self, asked: Mapping[int, Namespace]) -> ExitStack:
        """Keep look-alikes in these modules during the block."""
        with self._lock:
            found = [self._served.setdefault(key, Served(names)) for key, names in asked.items()]
        with ExitStack() as stack:
            for served in found:
                stack.enter_context(served)
            return stack.pop_all()


ASKERS = Askers()


_asked: ContextVar[dict[int, Namespace] | None] = ContextVar("retrograd_asked", default=None)
kept(_asked)
_known: dict[int, Namespace] = {}  # modules that asked in earlier traces, to be served at once


def following_numbers(trace: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that traces: it traces again when it finds another module that asks for plain numbers."""

    @functools.wraps(trace)
    def traced(*args: P.args, **options: P.kwargs) -> T:
        asked = dict(_known)
        token = _asked.set(asked)
        try:
            while True:
                served = dict(asked)
                with ASKERS.served(served):
                    try:
                        made = trace(*args, **options)
                    except Exception:
                        if len(asked) == len(served):
                            raise
                    else:
                        if len(asked) == len(served):
                            return made
        finally:
            _asked.reset(token)

    return traced


def _ask(name: str) -> bool:
    """Note the module whose code asks for a plain number; False if it was served already, or does not ask."""
    frame, asked = user_frame(sys._getframe(2)), _asked.get()
    if frame is None or asked is None or name not in frame.f_code.co_names:
        return False
    names = module_names(frame.f_globals)
    if name in names or len(asked) >= MOST:
        return False
    asked[id(names)] = names
    module = sys.modules.get(names.get("__name__", ""))
    if module is not None and vars(module) is names:
        _known[id(names)] = names
    return True


def to_float(self: Tracer) -> float:
    """``__float__``."""
    if self.const:
        return float(self.shadow)
    if not _ask("float") and is_known(self):
        return float(self.shadow)
    raise adviser().refusal(
        "a traced value is converted to a plain number (by code that is not Python, or by a write into an array made "
        "outside the traced function), but it is known only when the compiled function runs",
        "leave it as it is, use the NumPy function of the same purpose, and make arrays inside the function",
    )


def to_complex(self: Tracer) -> complex:
    """``__complex__``."""
    if self.const:
        return complex(self.shadow)
    if not _ask("complex") and is_known(self):
        return complex(self.shadow)
    return complex(to_float(self))
