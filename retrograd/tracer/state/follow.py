"""Follow: reads of a traced function from its surroundings are recorded, and outside arrays enter it by reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import MethodType
from typing import Any

from ...errors import LeakedTracerError, TraceLengthError
from ..interception import INTERCEPTION
from ..surroundings import SURROUNDINGS
from ..trace import CURRENT, READER, Trace
from .arguments import unread_parameters
from .checks import Check
from .classes import is_a
from .exact import told
from .finished import finish
from .observers import observed
from .reader import StateReader, Store, reading

Function = Callable[..., Any]
KINDS = {"global": "the global {}", "cell": "a variable of an enclosing function"}


class Watched:
    """Surroundings that are watched by observers in the user's code."""

    def watching(self) -> AbstractContextManager[StateReader]:
        """A reader notes what is read."""
        return reading(observed)

    def check(self) -> Check:
        """A check in generated code."""
        return Check()

    def told(self, x: Any) -> tuple[Any, ...]:
        """What tells a value from all others; its type alone, if what is read of it does."""
        return told(x)

    def unread(self, function: Function) -> frozenset[str]:
        """Names of the parameters of a function that its code never reads."""
        return unread_parameters(function)

    def end(self, trace: Trace) -> None:
        """Constants that outlive the trace become arrays."""
        finish(trace.made)

    @contextmanager
    def following(self, function: Function, statics: Sequence[Any] = ()) -> Iterator[Function]:
        """Give what to call in place of a function in the present trace; ``statics`` are arguments that are not traced.

        Raises LeakedTracerError if the function stores a traced value where a later call would meet it, and puts back
        what was there.
        """
        reader: StateReader | None = READER.get()
        if reader is None:
            with self.watching(), self.following(function, statics) as followed:
                yield followed
            return
        reader.keep(function)
        for x in statics:
            reader.keep(x)
        try:
            yield _stand_in(function, reader)
        except BaseException as fault:
            _put_back(reader)
            trace = CURRENT.get()
            if trace is not None and trace.parent is None and not isinstance(fault, TraceLengthError):
                self.end(trace)  # a trace that is too long is told by its values
            raise
        left = _put_back(reader)
        reader.watch()
        if left:
            named = [KINDS[s.read.kind].format(s.read.key) if s.read.kind in KINDS else str(s.read) for s in left]
            raise LeakedTracerError(
                f"the traced function stores a traced value in {', '.join(dict.fromkeys(named))}",
                where=left[0].value.where,
                remedy="return it: its value is known only when the compiled function runs",
            )


def _put_back(reader: StateReader) -> list[Store]:
    """Put back what traced values have replaced in places of which the function reads; the stores that did so.

    An attribute or an entry that the function writes and never reads from a former call is left as it is: the value is
    an error where somebody uses it.
    """
    left = []
    for store in reversed(reader.stores):
        read, value = store.read, store.value
        if value.home.constant_of(value) is not None:
            continue
        if read.now is value and (read.kind in KINDS or (id(read.place), read.kind, read.key) in reader.reads):
            left.append(store)
            store.put_back()
    reader.stores.clear()
    return left[::-1]


def _stand_in(function: Function, reader: StateReader) -> Function:
    """A function of a library may mean another one in traced code; the arrays of a partial call are captured."""
    if is_a(function, MethodType):
        return function
    if type(function) is partial:
        keywords = {k: reader.seen(v) for k, v in function.keywords.items()}
        return partial(_stand_in(function.func, reader), *map(reader.seen, function.args), **keywords)
    return INTERCEPTION.meaning(function)


SURROUNDINGS.append(Watched())
