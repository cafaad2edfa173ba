"""Text of traced values: the number of a Python int, since it may become a name or a key; otherwise the example.

Digits, as in ``f"{loss:.3f}"`` and ``round(float(x), 2)``, are those of the traced call. They may become a
message, a key or a result, so such a trace is valid for this call only: the function is traced at each call, and
an ``UnwatchedWarning`` says so.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TracerConversionError
from .array import Tracer, is_known
from .foreign import adviser
from .python_numbers import to_complex, to_float
from .table import METHODS, implements
from .trace import READER, owner


def text(x: Tracer) -> str:
    """``str(x)``, and ``print(x)``."""
    return str(int(x)) if _is_int(x) else Digits(repr(x))


def formatted(x: Tracer, how: str) -> str:
    """``format(x, how)``, as in ``f"layer{n}"``."""
    if x.const or _is_int(x):
        return format(x.shadow if x.const else int(x), how)
    if not how:
        return Digits(repr(x))
    if for_this_call(x):
        return Digits(format(x.shadow, how))
    owner([x])  # after the trace, this is the fault
    if np.ndim(x.shadow):
        format(x.shadow, how)  # an error in NumPy, too
    raise TracerConversionError(
        f"a traced value is formatted by {how!r}, but its value is known only when the compiled function runs",
        remedy="print the value itself, which shows its example value, or return it",
    )


class Digits(str):
    """A text of a traced value. As a number again it would have lost its derivative."""

    __slots__ = ()

    def __float__(self) -> float:
        raise TracerConversionError(
            "text with digits of a traced value is converted to a number, which would lose its derivative",
            remedy="keep the number, and round it with np.round(x, n)",
        )

    def __int__(self) -> int:
        return int(self.__float__())


def for_this_call(x: Tracer) -> bool:
    """Let the recording hold for this call alone; False where examples may be made up."""
    reader = READER.get()
    if reader is None or isinstance(x.shadow, np.ndarray) or not (x.home.active and x.home.concrete):
        return False
    if not bool(x != x):  # noqa: PLR0124 - whether it is nan, which equals nothing
        hash(x)  # both are guards, so that lanes that differ are refused
    reader.unchecked(DIGITS)
    return True


def as_float(x: Tracer) -> float:
    """``__float__``: for ``"%.3f"`` in a call of ``logging``, the digits of this call; elsewhere a plain number."""
    if sys._getframe(1).f_code.co_filename == LOGGING and (not x.home.active or for_this_call(x)):
        return float(x.shadow)
    return to_float(x if x.const else _in_time(x))


def as_complex(x: Tracer) -> complex:
    """``__complex__``."""
    return to_complex(x if x.const else _in_time(x))


def as_bytes(x: Tracer) -> bytes:
    """``__bytes__``: an int is a number of zeros, everything else of NumPy's is memory, which has no value yet."""
    if isinstance(x.shadow, (int, np.integer)):
        return bytes(operator.index(x))
    if is_known(x) or not isinstance(x.shadow, (np.ndarray, np.generic)):
        return bytes(x.shadow)  # of a number of Python's its error
    raise adviser().refusal("the bytes of a traced value are read", BYTES)


def _in_time(x: Tracer) -> Tracer:
    """The value; LeakedTracerError if its trace has ended."""
    if not x.home.active:
        owner([x])
    return x


def _is_int(x: Tracer) -> bool:
    return type(x.shadow) is int and x.home.active and x.home.concrete


def _of_array(function: Callable[..., str]) -> Callable[..., str]:
    def of_array(a: Any, *args: Any, **options: Any) -> str:
        """The text of a value that is known; else the example, marked as one, whatever the options."""
        return function(a.shadow, *args, **options) if is_known(a) else repr(a)

    return of_array


for _function in (np.array2string, np.array_repr, np.array_str):
    implements(_function)(_of_array(_function))


BYTES = "return the value from the traced function, and take its bytes outside"
DIGITS = type("text with digits of a traced value", (), {})
LOGGING = str(Path(os.__file__).parent / "logging" / "__init__.py")
METHODS["__bytes__"] = as_bytes
METHODS["__str__"] = text
METHODS["__float__"] = as_float
METHODS["__complex__"] = as_complex
METHODS["__format__"] = formatted
