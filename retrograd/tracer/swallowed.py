"""Refusals that the traced function catches: they are raised again where the trace would end.

A refusal says that the plain program would go on where a traced value cannot. What the function's own ``except`` does
in its place is no part of the plain program, so its result would be wrong. Our own code may catch a refusal where it
does what the plain program would do: it calls ``forget``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from ..errors import MADE, CapturedWriteError, RetrogradError, TracerError, UnsupportedError
from ..ir.primitive import TRANSFORMS
from .around import kept
from .outside import trace_here
from .record import RECORDERS
from .trace import CURRENT

T = TypeVar("T")
P = ParamSpec("P")

REFUSALS = (UnsupportedError, CapturedWriteError, TracerError)  # plain NumPy raises nothing where these are raised
NOTE = (
    "The traced function caught this error and went on. The plain function has no such error, so it would go on "
    "otherwise, and what is computed after it would be wrong."
)

_first: ContextVar[list[RetrogradError] | None] = ContextVar("retrograd_first_refusal", default=None)
kept(_first)


def _noted(fault: RetrogradError) -> None:
    """Keep the first refusal of the outermost trace."""
    first = _first.get()
    if first is not None and not first and isinstance(fault, REFUSALS) and trace_here(2) is not None:
        first.append(fault)


@TRANSFORMS.register("forget")
def forget(fault: BaseException) -> None:
    """Forget the refusal that an exception comes from, since our own code caught it."""
    first = _first.get()
    if first and not {*map(id, _chain(fault))}.isdisjoint(map(id, _chain(first[0]))):
        first.clear()


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """An exception, and those that were being handled as it was raised."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [fault]
    while stack:
        each = stack.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            stack += [each.__cause__, each.__context__]


def remembering(trace: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that traces: at the end it raises the first refusal, if the traced function caught it.

    Another exception of the function's is raised as it is, with the refusal as its context.
    """

    @functools.wraps(trace)
    def traced(*args: P.args, **options: P.kwargs) -> T:
        first = _first.get()
        if first is None or CURRENT.get() is None:
            first = []
        token = _first.set(first)
        fresh = not first
        try:
            made = trace(*args, **options)
        except Exception as fault:
            if fresh and first and fault.__context__ is None and all(each is not fault for each in _chain(first[0])):
                fault.__context__ = first[0]
            raise
        finally:
            _first.reset(token)
        if fresh and first:
            first[0].add_note(NOTE)
            raise first[0]
        return made

    return traced


MADE.append(_noted)
RECORDERS.insert(0, remembering)  # within those that trace again: each of their traces ends with its own refusal
