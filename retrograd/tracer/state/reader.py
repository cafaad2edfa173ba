"""StateReader: the outside state of one trace: which objects belong to it, and which values were read from them.

Objects are outside if they were reached from globals, variables of enclosing functions, defaults, static arguments or
the object of a method. The user's functions that a use of such an object may run are followed: during the trace they
get rewritten code, in place. Code of installed libraries is not followed: its arguments count as read, completely.
"""

from __future__ import annotations

import contextvars
import functools
import marshal
import random
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...where import user_site
from ..array import Tracer, enter, wrap
from ..containers import is_container
from ..interception import StandIn
from ..python_numbers import LookAlike
from ..trace import CURRENT, READER, STATEFUL, Trace, stateful
from .arguments import is_mutable_array
from .classes import AROUND, BUFFERS, BUILTIN, CONTAINERS, PLAIN, VIEWS
from .code_rewriter import CodeRewriter
from .finished import Finished
from .followed import Followed
from .libraries import is_library
from .reads import KINDS, MISSING, Read

# Packages whose objects are taken as they are: loggers, locks, what describes types; and ours.
OPAQUE = frozenset({"logging", "threading", "_thread", "typing", "abc", "inspect", "warnings", "retrograd", "optree"})
HIDDEN = random.random.__self__  # type: ignore[attr-defined]  # from which ``random.random()`` and its kind draw
MANY = 64  # elements from which a container of numbers is compared at once
MOST = 4000  # places in an object that is handed over whole


class Store(NamedTuple):
    """A traced value that was stored outside, and what was there before."""

    read: Read
    value: Tracer
    put_back: Callable[[], None]


class StateReader(Followed):
    """The reads of one recording. ``parent`` is that of the recording in the middle of which it happens.

    An object made by the enclosing recording is outside for this one, and not for the parent, which therefore does not
    take note of such a read.
    """

    def __init__(self, rewritten: CodeRewriter, parent: StateReader | None) -> None:
        self.parent = parent
        self.reads: dict[tuple[int, str, Any], Read] = {}
        self.stores: list[Store] = []
        self.busy = False
        self.called: dict[tuple[int, int], Any] = {}  # callables of which all that a call reads is known
        self.written: set[int] = set()  # containers that were written into by methods such as append
        super().__init__(rewritten)
        self._own: dict[int, CellType] = {}
        self._covered: dict[int, Any] = {}  # containers whose contents are known as a whole
        self._arrays: dict[int, tuple[Any, str | None]] = {}
        self._standing: dict[int, tuple[Trace | None, Any]] = {}
        self._watches = [(kind.classes, kind.watch()) for kind in STATEFUL]

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
        cell = isinstance(place, CellType)
        for reader in _with_parents(self):
            if (cell and id(place) not in reader._own) or id(place) in reader._outside:
                yield reader

    def root(self, place: Any) -> None:
        """Count an object as outside everywhere, as the globals of a module are."""
        for reader in _with_parents(self):
            reader._outside[id(place)] = place

    def note(self, place: Any, kind: str, key: Any, value: Any) -> None:
        """Take note of a read; the first one counts, for later ones may see what the recording itself has written."""
        if isinstance(value, StandIn):  # what the name means when the recording is over
            value = value.original
        if type(value) is LookAlike:  # it stands there meanwhile
            return
        makers: set[StateReader] = set()
        if type(value) is Tracer and not value.home.active:  # an array stands there when all is recorded
            makers, value = set(_with_parents(value.home.reader)), MISSING
        elif type(value) is Tracer and not value.const:
            return
        if id(place) in self._covered:
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
            read = Read(place, kind, key, value, user_site()[0])
            for reader in self.levels(place):
                if reader not in makers:
                    reader.reads.setdefault(name, read)

    def again(self, reads: Sequence[Read]) -> None:
        """Take note of the reads of a recording that is used once more in the middle of this one."""
        for read in reads:
            if not isinstance(read.place, CellType) or not self.is_own(read.place):
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

    def rely_on(self, array: np.ndarray[Any, Any]) -> None:
        """Take note that Python, or code that is not traced, has read the contents of an array from outside."""
        self.root(array)
        self.note(array, "bytes", None, array.tobytes())

    def stored(self, read: Read, value: Any, put_back: Callable[[], None]) -> None:
        """Take note that a traced value was stored outside."""
        for reader in self.levels(read.place):
            reader.stores.append(Store(read, value, put_back))

    def changed(self, x: Any) -> None:
        """Take note that a container was written into: what is read of it from now on differs at the next call."""
        if self.sees(x):
            self.written.add(id(x))
            if isinstance(x, AROUND):
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
        if type(x) in PLAIN or isinstance(x, (Tracer, ModuleType)):
            return x
        if type(x) is MethodType:
            self.adopt(x.__func__, like)
            self.adopt(x.__self__, like)
        elif not isinstance(x, BUILTIN):
            for reader in self.levels(like):
                reader.keep(x, name)
        return self.seen(x)

    def keep(self, x: Any, name: str | None = None) -> None:
        """Count an object as outside, and follow the functions that a use of it may run."""
        if _enters(x):
            self._arrays.setdefault(id(x), (x, name))
        elif id(x) not in self._outside and type(x) not in PLAIN and not isinstance(x, (Tracer, ModuleType)):
            self._outside[id(x)] = x
            if is_mutable_array(type(x)) or (isinstance(x, np.ndarray) and type(x) is not np.ndarray):
                self.note(x, "never", None, None)
            if isinstance(x, np.ndarray) and x.dtype.kind in "SUMmV":  # NumPy's own functions read it
                self.note(x, "bytes", None, x.tobytes())
            self.meet(x)
            if type(x) is FunctionType:
                self._note_function(x)
            elif type(x) is functools.partial:
                self._note_partial(x)
            elif type(x) is MethodType:
                self.keep(x.__func__)
                self.keep(x.__self__)
                self.note(x, "attr", "__func__", x.__func__)
                self.note(x, "attr", "__self__", x.__self__)

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

    def whole(self, x: Any) -> None:
        """Everything in an object counts as read: code that is not followed gets it."""
        todo, seen = [x], set()
        while todo:
            x = todo.pop()
            if type(x) in PLAIN or id(x) in seen or isinstance(x, (Tracer, type, ModuleType, FunctionType)):
                continue
            seen.add(id(x))
            if len(seen) > MOST:
                self.note(x, "never", None, None)
                return
            if (kind := stateful(x)) is not None:
                next(watch for classes, watch in self._watches if classes is kind.classes).add(x)
            elif isinstance(x, (np.ndarray, Finished)):
                if id(x) in self._arrays and type(x) is np.ndarray:
                    self.rely_on(x)
                elif isinstance(x, np.ndarray) and x.dtype == object:
                    self.note(x, "elements", None, x.ravel().tolist())
            elif isinstance(x, VIEWS) and self.sees(x):
                mapping = x.mapping  # type: ignore[attr-defined]  # isinstance with a tuple of views gives object
                self.adopt(mapping, x)
                todo.append(mapping)
            elif isinstance(x, CONTAINERS) and type(x).__module__.partition(".")[0] != "scipy":
                todo += self.contents(x)
            elif isinstance(x, (MethodType, *BUILTIN)):
                todo.append(x.__self__)
            elif isinstance(x, contextvars.ContextVar):
                self.note(x, "context", None, x.get(MISSING))
            elif isinstance(x, BUFFERS):
                self.note(x, "buffer", None, bytes(x))
            elif isinstance(x, weakref.ref):
                todo.append(self.target(x))
            elif isinstance(x, (Iterator, random.Random)):
                if x is HIDDEN:
                    self.root(x)
                self.note(x, "never", None, None)
            else:
                todo += self._state(x)

    def tree(self, x: Any) -> None:
        """The containers of an argument of one of our functions count as read, with what they hold."""
        todo = [x]
        while todo:
            x = todo.pop()
            if isinstance(x, CONTAINERS):
                todo += self.contents(x)
            elif self.sees(x) and is_container(type(x)):
                todo += self._state(x)

    def target(self, x: weakref.ref[Any]) -> Any:
        """Take note of what a weak reference points at, if anything; the object."""
        found = x()
        self.note(x, "target", None, found)
        self.adopt(found, x)
        return found

    def contents(self, x: Any) -> list[Any]:
        """Take note of what a container holds; its elements."""
        if not self.sees(x) or id(x) in self._covered:
            return list(x.values() if isinstance(x, dict) else x)
        if len(x) >= MANY and type(x) in (list, tuple, dict) and self._cover(x):
            return []
        if isinstance(x, (dict, MappingProxyType)):
            self.note(x, "keys", None, [*x])
            kind, items = ("get", dict.items(x)) if isinstance(x, dict) else ("item", x.items())
            found = list(items)
            for k, v in found:
                self.note(x, kind, k, v)
                self.adopt(v, x)
            return [v for _, v in found]
        if isinstance(x, (set, frozenset)):
            if isinstance(x, set):
                self.note(x, "set", None, frozenset(x))
        else:
            self.note(x, "len", None, len(x))
            for k, v in enumerate(x):
                self.note(x, "item", k, v)
        for v in x:
            self.adopt(v, x)
        return [*x]

    def _cover(self, x: Any) -> bool:
        """Take note of all numbers and texts in a large container at once; False if it holds anything else."""
        try:
            data = marshal.dumps(x, 2)  # tells types and signs apart
        except ValueError:
            return False
        self.note(x, "data", None, data)
        todo = [x]
        while todo:
            inner = todo.pop()
            if isinstance(inner, CONTAINERS):
                self._covered[id(inner)] = inner
                todo += inner.values() if isinstance(inner, dict) else inner
        return True

    def _state(self, x: Any) -> list[Any]:
        """Take note of an object's attributes; their values."""
        t = type(x)
        if t.__module__.partition(".")[0] in OPAQUE:
            return []
        found = []
        own = getattr(x, "__dict__", None)
        if type(own) is dict:
            self.adopt(own, x)
            found += self.contents(own)
        for k in _slots(t):
            v = getattr(x, k, MISSING)
            if v is not MISSING:
                self.note(x, "attr", k, v)
                self.adopt(v, x)
                found.append(v)
        self._follow_methods(t)
        return found

    # ---------------------------------------------------------------------------------------------------- the end

    def stop(self) -> None:
        """Give the functions their own code back, and let go what was met: a value that is kept keeps this reader."""
        super().stop()
        found = self.reads, self._outside, self._met, self._arrays, self._standing
        for held in (*found, self._covered, self._own, self.called):
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


def _enters(x: Any) -> bool:
    return (type(x) is np.ndarray and x.dtype.kind in "biufc") or type(x) is Finished or stateful(x) is not None


def _slots(t: type) -> list[str]:
    return [
        k for c in t.__mro__ if not is_library(c) for k, v in vars(c).items() if isinstance(v, MemberDescriptorType)
    ]
