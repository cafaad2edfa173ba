"""Surroundings: the state that a function reads besides its arguments. Observers register here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from .trace import Trace

if TYPE_CHECKING:
    from .state.reads import Read

Captures = tuple[Any, ...]
Function = Callable[..., Any]


class Reading(Protocol):
    """Takes note of what one recording reads."""

    @property
    def found(self) -> tuple[Read, ...]:
        """The reads so far."""


class Watching(Protocol):
    """Tells whether what recordings have read is the same now."""

    @property
    def run(self) -> Callable[[Any, Sequence[Any]], Captures | None]:
        """Given the function and its static arguments: the present captures, or None if something has changed."""

    def rely_on(self, reads: Sequence[Read], function: Function, statics: Sequence[Any], captures: Captures) -> None:
        """Rely on the reads of a recording, too; ``captures`` are those of all recordings, in order."""

    def changed(self, function: Function, statics: Sequence[Any]) -> str:
        """What differs now, in words."""


class Surroundings(Protocol):
    """How the surroundings of recorded functions are watched."""

    def watching(self) -> AbstractContextManager[Reading]:
        """A context in which reads are noted."""

    def following(self, function: Function, statics: Sequence[Any]) -> AbstractContextManager[Function]:
        """A context that gives what to call in place of a function; ``statics`` are its arguments of no number."""

    def check(self) -> Watching:
        """A check that relies on nothing yet."""

    def told(self, x: Any) -> tuple[Any, ...]:
        """What tells a value from all others, also from equal ones; its type alone, if what is read of it does."""

    def unread(self, function: Function) -> frozenset[str]:
        """Names of the parameters of a function that its code never reads."""

    def end(self, trace: Trace) -> None:
        """The outermost of several traces is over: what it has left behind depends on no input, or is an error."""


class Unwatched:
    """Surroundings that never change."""

    found: tuple[Read, ...] = ()

    def watching(self) -> AbstractContextManager[Reading]:
        return nullcontext(self)

    def following(self, function: Function, statics: Sequence[Any]) -> AbstractContextManager[Function]:
        return nullcontext(function)

    def check(self) -> Watching:
        return Unchecked()

    def told(self, x: Any) -> tuple[Any, ...]:
        return (type(x), x)

    def unread(self, function: Function) -> frozenset[str]:
        return frozenset()

    def end(self, trace: Trace) -> None:
        return


class Unchecked:
    """A check that always holds."""

    def rely_on(self, reads: Sequence[Read], function: Function, statics: Sequence[Any], captures: Captures) -> None:
        self._captures = captures

    def run(self, function: Any, statics: Sequence[Any]) -> Captures | None:
        return self._captures

    def changed(self, function: Function, statics: Sequence[Any]) -> str:
        return "nothing"


SURROUNDINGS: list[Surroundings] = [Unwatched()]  # the last that was registered counts
