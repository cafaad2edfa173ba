"""``float(t)`` and ``complex(t)``: traced numbers stay traced.

Python lets ``float(t)`` return nothing but a plain number. So look-alikes of ``float`` and ``complex`` stand for them
in traced code; code that has none asks a traced value for its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops.elementwise import cast
from .array import Tracer, apply, is_known, shadow_of
from .foreign import adviser

Namespace = dict[str, Any]


def number(x: Any, cls: type = float) -> Any:
    """A traced number as a Python number of this type."""
    if not isinstance(x, Tracer):
        return cls(x)
    if x.ndim:
        cls(x.shadow)  # NumPy's own error, or warning
    if cls is float and x.dtype.kind == "c":
        raise TypeError("can't convert complex to float")
    x = np.reshape(x, ()) if x.ndim else x
    return apply(cast, [x], aval=Aval((), np.dtype(cls), "python"))


class LookAlike(type):
    """The class of classes that pass for a builtin type of numbers, except that they take traced values."""

    original: type

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if any(type(x) is Tracer for x in (*args, *options.values())):
            return MAKERS[cls.original](*args, **options)
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


MAKERS: dict[type, Callable[..., Any]] = {float: number}  # of numbers of these types from traced ones
ASKED: list[Callable[[str], bool]] = []  # what may serve code that asks for a number by this name


def asked(name: str) -> bool:
    """Whether code that asks for a plain number will be served a look-alike, and traced once more."""
    return any(ask(name) for ask in ASKED)


def to_float(self: Tracer) -> float:
    """``__float__``."""
    if self.const or (not asked("float") and is_known(self)):
        return float(self.shadow)
    raise adviser().refusal(
        "a traced value is converted to a plain number (by compiled code, or by a write into an array created "
        "outside the traced function), but its value is known only when the compiled function runs",
        "keep it unconverted, use the NumPy function of the same purpose, or create arrays inside the function",
    )


def to_complex(self: Tracer) -> complex:
    """``__complex__``."""
    if self.const or (not asked("complex") and is_known(self)):
        return complex(self.shadow)
    return complex(to_float(self))
