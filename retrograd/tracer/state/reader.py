"""StateReader: the outside state of one trace: which objects belong to it, and which values were read from them.

Objects are outside if they were reached from globals, variables of enclosing functions, defaults, static arguments or
the object of a method. The user's functions that a use of such an object may run are followed: during the trace they
get rewritten code, in place. Code of installed libraries is not followed: its arguments count as read, completely.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import ProxyTypes

import numpy as np

from ...where import user_site
from ..array import Tracer, enter, wrap
from ..generators import original
from ..interception import StandIn
from ..python_numbers import LookAlike
from ..trace import CURRENT, READER, Trace, stateful
from .arguments import is_mutable_array
from .classes import AROUND, BUILTIN, PLAIN, attributes_of, is_a, is_stateless
from .code_rewriter import CodeRewriter
from .constants import is_constant
from .finished import Finished
from .lent import Lent
from .reads import KINDS, MISSING, Read
from .values import hides, reader_of, value_of
from .whole import Whole


class Store(NamedTuple):
    """A traced value that was stored outside, and what was there before."""

    read: Read
    value: Tracer
    put_back: Callable[[], None]


class StateReader(Whole):
    """The reads of one recording. ``parent`` is that of the recording in the middle of which it happens.

    An object made by the enclosing recording is outside for this one, and not for the parent, which therefore does not
    take note of such a read.
    """

    def __init__(self, rewritten: CodeRewriter, parent: StateReader | None) -> None:
        self.parent = parent
        self.reads: dict[tuple[int, str, Any], Read] = {}
        self.stores: list[Store] = []
        self.lent: Lent = Lent() if parent is None else parent.lent
        self.busy = False
        self.called: dict[tuple[int, int], Any] = {}  # callables of which all that a call reads is known
        self.answers: dict[tuple[int, str], tuple[Any, list[Any]]] = {}  # of properties, and what these were made of
        self.written: set[int] = set()  # containers that were written into by methods such as append
        super().__init__(rewritten)
        self._own: dict[int, CellType] = {}
        self._standing: dict[int, tuple[Trace | None, Any]] = {}

    # ---------------------------------------------------------------------------------------------------- reads

    @property
    def found(self) -> tuple[Read, ...]:
        """The reads so far."""
        return tuple(self.reads.values())

    def sees(self, x: Any) -> bool:
        """Whether an object is outside."""
        return id(x) in self._outside

    def levels(self, place: Any) -> Iterator[StateReader]:
        """The readers for which a place is outside: this one and those around it."""
        cell = type(place) is CellType
        for reader in _with_parents(self):
            if (cell and id(place) not in reader._own) or id(place) in reader._outside:
                yield reader

    def root(self, place: Any) -> None:
        """Count an object as outside everywhere, as the globals of a module are."""
        for reader in _with_parents(self):
            reader._outside[id(place)] = place

    def note(self, place: Any, kind: str, key: Any, value: Any) -> None:
        """Take note of a read; the first one counts, for later ones may see what the recording itself has written."""
        if is_a(value, StandIn):  # what the name means when the recording is over
            value = value.original
        if type(value) is LookAlike:  # it stands there meanwhile
            return
        if id(place) in self._covered or (type(value) is Tracer and value.home.active and not value.const):
            return
        if id(place) in self.written and KINDS[kind].of_contents:
            kind, key, value = "never", None, None
        name = (id(place), kind, key)
        try:
            known = name in self.reads
        except TypeError:  # the key has no hash
            self.whole(place)
            return
        if not known:
            makers: set[StateReader] = set()
            if type(value) is Tracer and not (value.home.active and self._assigns(place, kind, key)):
                makers = set() if value.home.active else set(_with_parents(value.home.reader))
                value = MISSING  # an array stands there when all is recorded
            read = Read(place, kind, key, value, user_site()[0])
            for reader in self.levels(place):
                if reader not in makers:
                    reader.reads.setdefault(name, read)

    def again(self, reads: Sequence[Read]) -> None:
        """Take note of the reads of a recording that is used once more in the middle of this one."""
        for read in reads:
            if type(read.place) is not CellType or not self.is_own(read.place):
                self.root(read.place)
                for reader in self.levels(read.place):
                    reader.reads.setdefault((id(read.place), read.kind, read.key), read)

    def unchecked(self, place: Any) -> None:
        """Take note of a read that cannot be checked: each call is traced."""
        self.root(place)
        self.note(place, "never", None, None)

    def identity(self, x: Any) -> None:
        """Take note that it matters which object this is."""
        if type(x) not in PLAIN and self.sees(x):
            self.note(x, "is", None, x)

    def returned(self, x: Any, trace: Trace) -> Any:
        """Take note that a function returns an object that is no array; what its caller gets.

        An object that the function makes is a new one at each call.
        """
        parent = trace.parent
        x = original(x) if parent is None else x
        self.identity(x)
        body = parent is not None and parent.reader is self  # this recording goes on with the object
        if not body and not is_constant(x, self._knows):
            self.reads.setdefault((id(x), "made", None), Read(type(x), "made", None, None, user_site()[0]))
        return x.original if parent is None and type(x) is StandIn else x

    def _knows(self, x: Any) -> bool:
        return id(x) in self._outside or id(x) in self._arrays

    def rely_on(self, array: np.ndarray[Any, Any]) -> None:
        """Take note that Python, or code that is not traced, has read the contents of an array from outside."""
        self.root(array)
        self.note(array, "bytes", None, array.tobytes())

    def stored(self, read: Read, value: Any, put_back: Callable[[], None]) -> None:
        """Take note that a traced value was stored outside."""
        for reader in self.levels(read.place):
            reader.stores.append(Store(read, value, put_back))

    def assigned(self, place: Any, kind: str, key: Any) -> None:
        """Take note that the function itself assigns to what such a read would give."""
        name = (id(place), "assigned", (kind, key))
        if name not in self.reads:
            read = Read(place, "assigned", (kind, key), None)
            for reader in self.levels(place):
                reader.reads.setdefault(name, read)

    def _assigns(self, place: Any, kind: str, key: Any) -> bool:
        own = id(attributes_of(place)), "assigned", ("get", key)
        names = (id(place), "assigned", (kind, key)), own
        return any(name in reader.reads for reader in _with_parents(self) for name in names)

    def changed(self, x: Any) -> None:
        """Take note that a container was written into: what is read of it from now on differs at the next call."""
        if self.sees(x):
            self.written.add(id(x))
            if is_a(x, AROUND):
                self.written.add(id(x.data))

    def own(self, cell: CellType) -> None:
        """A cell of a frame that runs in this recording: it is no state from outside."""
        for reader in _with_parents(self):
            reader._own[id(cell)] = cell

    def is_own(self, cell: CellType) -> bool:
        """Whether a cell belongs to a frame that runs in this recording."""
        return id(cell) in self._own

    # -------------------------------------------------------------------------------------------------- objects

    def adopt(self, x: Any, like: Any, name: str | None = None) -> Any:
        """Count what was found in the place ``like`` as outside, too; return what stands for it in traced code."""
        if type(x) in PLAIN or is_a(x, (Tracer, ModuleType)):
            return x
        if type(x) is MethodType:
            self.adopt(x.__func__, like)
            self.adopt(x.__self__, like)
        elif not is_a(x, BUILTIN):
            for reader in self.levels(like):
                reader.keep(x, name)
        return self.seen(x)

    def keep(self, x: Any, name: str | None = None) -> None:
        """Count an object as outside, and follow the functions that a use of it may run."""
        if _enters(x):
            self._arrays.setdefault(id(x), (x, name))
        elif id(x) not in self._outside and not is_stateless(x) and not is_a(x, (Tracer, ModuleType)):
            self._outside[id(x)] = x
            if _is_opaque(x):
                self.note(x, "never", None, None)
            self._note_value(x)
            if is_a(x, np.ndarray) and x.dtype.kind in "SUMmV":  # NumPy's own functions read it
                self.note(x, "bytes", None, x.tobytes())
            self.meet(x)
            if self.has_special_methods(type(x)):  # which Python looks up in the class that it has then
                self.note(x, "attr", "__class__", type(x))
            if type(x) is FunctionType:
                self._note_function(x)
            elif type(x) is slice:
                self._note_slice(x)
            elif type(x) is functools.partial:
                self._note_partial(x)
            elif type(x) is MethodType:
                for part in ("__func__", "__self__"):
                    self.note(x, "attr", part, getattr(x, part))
                    self.keep(getattr(x, part))

    def _note_value(self, x: Any) -> None:
        """Take note of what the classes in C above the class of an object hold of it, which their code reads unseen."""
        if reader_of(type(x)) is not None:
            self.note(x, "value", None, value_of(x))
        elif hides(type(x)):
            self.note(x, "is", None, x)

    def _note_slice(self, x: slice) -> None:
        """Take note of all that the bounds of a slice hold: whoever indexes by it asks them unseen."""
        for name in ("start", "stop", "step"):
            self.note(x, "attr", name, getattr(x, name))
            self.keep(getattr(x, name))
        self.whole(x)

    def seen(self, x: Any) -> Any:
        """What stands for a value in traced code: of an array from outside, its tracer."""
        t = type(x)
        if t in PLAIN or t is Tracer:
            return x
        if id(x) in self._arrays:
            return self._standing_for(x)
        if t is Finished:
            self._arrays[id(x)] = (x, None)
            return self._standing_for(x)
        if t in (tuple, list) and id(x) not in self._outside and any(id(e) in self._arrays for e in x):
            if t is tuple:
                return tuple(map(self.seen, x))
            x[:] = map(self.seen, x)  # a library has made it
        return x

    def standing(self, x: Any) -> Any:
        """The same of a list, a tuple or a traced value, at any time: itself while nothing is recorded or noted."""
        return x if self.busy or not self._arrays or CURRENT.get() is None else self.seen(x)

    def _standing_for(self, x: Any) -> Any:
        """The tracer of an array from outside, one for each recording; of a generator, what draws in its place."""
        trace = CURRENT.get()
        made = self._standing.get(id(x))
        if made is None or made[0] is not trace:
            array, name = self._arrays[id(x)]
            kind = stateful(array)
            if kind is not None:
                stands = kind.stand_in(array, name)
            elif trace is None:
                return array
            elif isinstance(array, Finished) and not isinstance(array.shadow, np.ndarray):
                stands = wrap(trace, None, array.shadow, None)
            else:
                stands = enter(trace, array.shadow if isinstance(array, Finished) else array, name)
            made = self._standing[id(x)] = (trace, stands)
        return made[1]

    # ---------------------------------------------------------------------------------------------------- the end

    def stop(self) -> None:
        """Give the functions their own code back, and let go what was met: a value that is kept keeps this reader."""
        super().stop()
        if self.parent is None:
            self.lent.give_back()
        found = self.reads, self._outside, self._met, self._arrays, self._standing
        for held in (*found, self._covered, self._own, self.called, self.answers):
            held.clear()

    def watch(self) -> None:
        """Raise UnsupportedError if a random generator was drawn from unseen."""
        for _, watch in self._watches:
            watch.check()


@contextmanager
def reading(rewritten: CodeRewriter) -> Iterator[StateReader]:
    """Record with a reader of its own."""
    parent = READER.get()
    reader = StateReader(rewritten, parent)
    try:
        try:
            READER.set(reader)
            yield reader
        finally:
            READER.set(parent)
            reader.stop()
    finally:  # once more, in case that an interrupt stops the first time
        READER.set(parent)
        reader.stop()


def _with_parents(reader: StateReader | None) -> Iterator[StateReader]:
    while reader is not None:
        yield reader
        reader = reader.parent


def _is_opaque(x: Any) -> bool:
    """Whether what an object shows may change unseen: a subclass of NumPy's array, another array, a weak proxy."""
    subclass = is_a(x, np.ndarray) and type(x) is not np.ndarray
    return subclass or is_mutable_array(type(x)) or type(x) in ProxyTypes


def _enters(x: Any) -> bool:
    return (type(x) is np.ndarray and x.dtype.kind in "biufc") or type(x) is Finished or stateful(x) is not None
