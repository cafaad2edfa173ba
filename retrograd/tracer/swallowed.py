"""Refusals that the traced function catches: they are raised again where the trace would end.

A refusal says that the plain program would go on where a traced value cannot. What the function's own ``except`` does
in its place is no part of the plain program, so its result would be wrong. Our own code may catch a refusal where it
does what the plain program would do: it calls ``forget``, or ``forget_since``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from ..errors import MADE, CapturedWriteError, RetrogradError, TraceLengthError, TracerError, UnsupportedError
from ..ir.primitive import TRANSFORMS
from .around import kept
from .outside import trace_here
from .record import RECORDERS
from .trace import CURRENT

T = TypeVar("T")
P = ParamSpec("P")

# Plain NumPy raises nothing where these are raised.
REFUSALS = (UnsupportedError, CapturedWriteError, TraceLengthError, TracerError)
NOTE = (
    "The traced function caught this error and went on. The plain function has no such error, so it would go on "
    "otherwise, and what is computed after it would be wrong."
)

_made: ContextVar[list[RetrogradError] | None] = ContextVar("retrograd_refusals", default=None)
kept(_made)


def _note(fault: RetrogradError) -> None:
    """Keep a refusal with the outermost trace."""
    made = _made.get()
    if made is not None and isinstance(fault, REFUSALS) and trace_here(2) is not None:
        made.append(fault)


@TRANSFORMS.register("refusals")
def refusals() -> int:
    """How many refusals the outermost trace has made."""
    return len(_made.get() or ())


@TRANSFORMS.register("forget_since")
def forget_since(count: int) -> None:
    """Forget all refusals but so many: our own code does what the plain program would do in place of the others."""
    made = _made.get()
    if made:
        del made[count:]


@TRANSFORMS.register("forget")
def forget(fault: Exception) -> None:
    """Forget one refusal, which our own code caught."""
    made = _made.get()
    if made and isinstance(fault, RetrogradError) and fault in made:
        made.remove(fault)


def remembering(trace: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that traces: at the end it raises the first refusal, if the traced function caught it.

    Another exception of the function's is raised as it is, with the refusal as its context.
    """

    @functools.wraps(trace)
    def traced(*args: P.args, **options: P.kwargs) -> T:
        made = _made.get()
        if made is None or CURRENT.get() is None:
            made = []
        token, before = _made.set(made), len(made)
        try:
            found = trace(*args, **options)
        except Exception as fault:
            if len(made) > before and fault.__context__ is None and fault is not made[before]:
                fault.__context__ = made[before]
            raise
        finally:
            _made.reset(token)
        if len(made) > before:
            refusal = made[before]
            if NOTE not in getattr(refusal, "__notes__", ()):
                refusal.add_note(NOTE)
            raise refusal
        return found

    return traced


MADE.append(_note)
RECORDERS.insert(0, remembering)  # within those that trace again: each of their traces ends with its own refusal
