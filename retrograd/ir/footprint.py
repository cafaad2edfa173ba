"""The footprint of a plan: the memory that its code takes, which a target computes before it emits anything."""

from __future__ import annotations

from math import inf
from typing import NamedTuple, Protocol

from .graph import Node, Value


class Undecided(Exception):  # noqa: N818 - not an error: the data decide how much memory is taken
    """The course of the program, and so its memory, depends on data."""


class Course(NamedTuple):
    """The memory of one call: its peak in bytes, the bytes after each allocation, and the values live at the peak."""

    peak: int
    over_time: list[int]
    at_peak: list[tuple[int, Value | None, Node | None]]


class Footprint(Protocol):
    """The memory that the code of a plan takes, inputs not counted."""

    def peak(self, limit: float = inf) -> int:
        """The peak in bytes; if it is beyond ``limit``, any number greater than ``limit``. Raises ``Undecided``."""

    def course(self) -> Course:
        """The course of a call. Raises ``Undecided``."""
