"""Reads: the values of outside state that a trace has read, each with a test that it is unchanged.

A read is a place, a kind, a key and the value that was found. The place is kept itself, so that no path is needed to
find it again. ``text`` is the source of the expression that reads it now, for the generated check of a compilation.
"""

from __future__ import annotations

import functools
import marshal
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from ...ir.types import in_order
from ...where import Where
from ..around import renewed
from ..interception import StandIn
from ..swallowed import forget_since, refusals
from .caches import asked
from .classes import is_a
from .exact import exactly
from .values import SIMPLE, value_of

OF, KEY = ".of", ".key"  # names of variables that hold the operands of a subscript until it is read


class _Missing:
    """Stands for the value of a name that is not there."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


class Kind(NamedTuple):
    """A kind of read: source over the place ``p``, the key ``k`` and the name ``n``; and words for messages.

    ``equal`` reads give a new value each time, of builtin types, and are compared by ``==``; those ``of_contents`` tell
    what a container holds.
    """

    text: str
    words: str
    equal: bool = False
    of_contents: bool = False


KINDS = {
    "attr": Kind("{p}.{n}", "the attribute {k!r} of {p}"),
    "property": Kind("{p}.{n}", "the property {k!r} of {p}"),
    "is": Kind("{p}", "the object {p}"),
    "value": Kind("value_of({p})", "the value of {p}"),
    "code": Kind("own_code({p})", "the code of {p}"),
    "globals": Kind("{p}.__globals__", "the module of {p}"),
    "method": Kind("{p}.{n}.__func__", "the method {k!r} of {p}"),
    "item": Kind("{p}[{k}]", "the element {k!r} of {p}", of_contents=True),
    "get": Kind("{p}.get({k}, MISSING)", "the entry {k!r} of {p}", of_contents=True),
    "global": Kind("{p}.get({k}, MISSING)", "the global {k!r}"),
    "cell": Kind("{p}.cell_contents", "a variable of an enclosing function"),
    "closure": Kind("{p}.__closure__[{k}]", "the captured variables of {p}"),
    "context": Kind("{p}.get(MISSING)", "the context variable {p}"),
    "static": Kind("{p}.__dict__.get({k}, MISSING)", "{p}.{k}"),
    "truth": Kind("bool({p})", "whether {p} is empty", equal=True),
    "len": Kind("len({p})", "the length of {p}", equal=True, of_contents=True),
    "keys": Kind("[*{p}]", "the keys of {p}", equal=True, of_contents=True),
    "in": Kind("({k} in {p})", "whether {k!r} is in {p}", equal=True, of_contents=True),
    "set": Kind("[*{p}]", "the elements of {p}", equal=True, of_contents=True),
    "members": Kind("members({p})", "the names in {p}", equal=True),
    "has": Kind("hasattr({p}, {k})", "whether {p} has the attribute {k!r}", equal=True),
    "asked": Kind("asked({p}, {k})", "what {p} has remembered"),
    "target": Kind("{p}()", "the target of a weak reference"),
    "buffer": Kind("bytes({p})", "the contents of {p}", equal=True, of_contents=True),
    "data": Kind("dumps({p}, 2)", "the numbers and strings in {p}", equal=True, of_contents=True),
    "types": Kind("types({p})", "the types of what is in {p}", equal=True, of_contents=True),
    "bytes": Kind("{p}.tobytes()", "the contents of an array", equal=True),
    "elements": Kind("{p}.ravel().tolist()", "the elements of an array of objects", equal=True),
    "assigned": Kind("None", "an assignment to {p}"),  # which tests nothing, see ``Check``
    "made": Kind("MISSING", "an object of the class {p} that the function makes and returns"),
    "never": Kind("MISSING", "{p}, which cannot be checked"),
}


class Codes(NamedTuple):
    """A function, the code that the user wrote, the observed one, and who needs that."""

    function: FunctionType
    own: CodeType
    observed: CodeType
    holders: set[int]


class Swapped:
    """The functions that have observed code at present, in any thread, each with its own code and who needs it.

    An interrupt may stop either method: what was begun is undone when the one who needs it is removed, also twice.
    """

    def __init__(self) -> None:
        self._known: dict[int, Codes] = {}
        renewed(self)

    def renew_locks(self) -> None:
        """Make the lock under which code is swapped."""
        self._lock = threading.RLock()

    def add(self, f: FunctionType, rewritten: Callable[[CodeType], CodeType], holder: int) -> None:
        """Give a function observed code, until each holder is removed."""
        with self._lock:
            known, own = self._known.get(id(f)), self.own_code(f)
            if known is None or known.own is not own:  # others may have given it another code meanwhile
                known = Codes(f, own, rewritten(own), set() if known is None else known.holders)
                self._known[id(f)] = known
            f.__code__ = known.observed
            known.holders.add(holder)

    def remove(self, f: FunctionType, holder: int) -> None:
        """Give a function its own code back, unless another recording needs it observed."""
        with self._lock:
            known = self._known.get(id(f))
            if known is not None:
                known.holders.discard(holder)
                if not known.holders:
                    f.__code__ = self.own_code(f)
                    self._known.pop(id(f), None)

    def keeps(self, f: FunctionType, code: CodeType) -> bool:
        """Whether a function keeps the observed code that it has: no other recording may take it back."""
        with self._lock:
            return id(f) not in self._known and f.__code__ is code

    def own_code(self, f: FunctionType) -> CodeType:
        """The code that the user wrote."""
        known, code = self._known.get(id(f)), f.__code__
        return code if known is None or code is not known.observed else known.own


def members(place: Any) -> list[str]:
    """The names that a class itself, or a module, defines, but for special ones."""
    return [name for name in vars(place) if not name.startswith("__")]


def types(x: Any) -> tuple[type, ...]:
    """The types of the elements of a container, then of theirs."""
    found, todo = list[type](), [x]
    for inner in todo:
        elements = [*inner.values()] if type(inner) is dict else inner
        kinds = [*map(type, elements)]
        found += kinds
        if not {list, tuple, dict}.isdisjoint(kinds):
            todo += [e for e in elements if type(e) in (list, tuple, dict)]
    return tuple(found)


SWAPPED = Swapped()
SCOPE = {
    "asked": asked,
    "MISSING": MISSING,
    "len": len,
    "members": members,
    "types": types,
    "hasattr": hasattr,
    "bytes": bytes,
    "bool": bool,
    "dumps": marshal.dumps,
    "own_code": SWAPPED.own_code,
    "value_of": value_of,
}
UNHELD = ("never", "made")  # which hold for one call

Form = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...] | None]


def form_of(x: Any) -> Form | None:
    """What must stay of an array, though the program may change it in place: shape, dtype, and the order in memory."""
    return (x.shape, x.dtype, None if in_order(x) else x.strides) if type(x) is np.ndarray else None


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """One read: ``place`` gave ``value`` by ``kind`` and ``key``, at the user's line ``where``.

    An array that was found had this ``form``.
    """

    place: Any
    kind: str
    key: Any
    value: Any
    where: Where | None = None
    form: Form | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", form_of(self.value))

    @property
    def now(self) -> Any:
        """The present value; ``MISSING`` where there is none."""
        before = refusals()
        try:
            return _reader(self.kind, self.key if "{n}" in KINDS[self.kind].text else None)(self.place, self.key)
        except Exception:  # noqa: BLE001 - a property of the user's may raise anything
            forget_since(before)
            return MISSING

    def holds(self) -> bool:
        """Whether it would give the same value now."""
        test = same_elements if KINDS[self.kind].equal else same
        return self.kind not in UNHELD and test(now := self.now, self.value) and form_of(now) == self.form

    def __str__(self) -> str:
        words = KINDS[self.kind].words.format(p=_named(self.place), k=self.key)
        return f"{words} (read at {self.where})" if self.where else words


_readers: dict[tuple[str, str | None], Callable[[Any, Any], Any]] = {}


def _reader(kind: str, name: str | None) -> Callable[[Any, Any], Any]:
    found = _readers.get((kind, name))
    if found is None:
        text = KINDS[kind].text.format(p="p", k="k", n=name)
        found = _readers[kind, name] = eval(f"lambda p, k: {text}", dict(SCOPE))  # noqa: S307 - our own text
    return found


def _named(x: Any) -> str:
    if is_a(x, (type, FunctionType, BuiltinFunctionType, functools._lru_cache_wrapper)):
        return str(x.__qualname__)
    return f"an object of the class {type(x).__qualname__}"


def same(a: Any, b: Any) -> bool:
    """Whether two values are one object, or equal numbers and texts of one type, also in tuples.

    Floats are compared with their sign. Equal lists are two objects, each of which may change later.

    >>> same(0.0, -0.0), same(float("nan"), float("nan")), same(1, 1.0), same((1.0,), (1.0,)), same([1.0], [1.0])
    (False, True, False, True, False)
    """
    if type(a) is StandIn:  # a name means this while some trace lasts
        a = a.original
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (float, complex):
        z, w = complex(a), complex(b)
        return struct.pack("dd", z.real, z.imag) == struct.pack("dd", w.real, w.imag)
    if is_a(a, np.generic) and type(a).__module__ == "numpy":
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    if is_a(a, np.dtype):
        return exactly(a) == exactly(b)
    if type(a) in (int, str, bytes):
        return bool(a == b)
    if is_a(a, MethodType):
        return a.__func__ is b.__func__ and a.__self__ is b.__self__
    return type(a) is tuple and len(a) == len(b) and all(map(same, a, b))


def same_elements(a: Any, b: Any) -> bool:
    """Whether two values are the same, or lists of elements that are, which were made for the comparison.

    >>> same_elements([1.0], [1.0]), same_elements([1], [True])
    (True, False)
    """
    if type(a) is not list or type(b) is not list:
        return same(a, b)
    kinds = [*map(type, a)]
    if SIMPLE.issuperset(kinds) and SIMPLE.issuperset(map(type, b)):
        return kinds == [*map(type, b)] and a == b
    return same((*a,), (*b,))
