"""Errors about code that does not accept traced values, and the hook for more specific advice."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from ..errors import TracerConversionError
from ..where import Where


class Adviser(NamedTuple):
    """Says what can be said about a call of foreign code."""

    refusal: Callable[[str, str], TracerConversionError]  # of a traced value; given are what to say, and the remedy
    alternative: Callable[[str], str | None]  # the remedy for a call of the function with this full name
    translated: Callable[[Exception], TracerConversionError | None]  # for a complaint about a traced value
    loops: Callable[[FrameType | None, int], list[Where]]  # the user's loops around a frame, up to one with this id


ADVISERS = [
    Adviser(
        lambda what, remedy: TracerConversionError(what, remedy=remedy), lambda _: None, lambda _: None, lambda *_: []
    )
]


def adviser() -> Adviser:
    """The one that knows most: the last that was registered."""
    return ADVISERS[-1]
