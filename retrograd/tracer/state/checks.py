"""Check: generated code that tests whether all reads of a trace are unchanged, and returns the captured arrays.

Reads that start at the function or at a static argument are written as paths from it, so that an equal object passes
and no check keeps an object alive. Other places are constants of the code. An array that was found in a place may be
replaced by another one of the same shape and dtype: the check gives the array that is there now.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ..interception import StandIn
from .classes import attributes_of, is_a, is_stateless
from .reads import KINDS, MISSING, SCOPE, UNHELD, Form, Read, form_of, same, same_elements

Captures = tuple[Any, ...]
STEPS = frozenset({"attr", "item", "get", "cell", "closure"})  # reads whose value may be a step of a path
PARTS = frozenset({"attr", "item", "get"})  # reads of a part of an object
VALUES = (bool, int, float, complex, str, bytes, type(None), type, np.generic, np.dtype)
FIXED = (type, np.dtype)  # classes of objects that a key tells by identity


class Part:
    """The test of one read: source of its value and of the test, and words for messages.

    ``expected`` names the constant to compare with, ``name`` the variable that an array or a step of a path gets, or
    has in another place.
    """

    __slots__ = ("expected", "kind", "name", "test", "text", "words")

    def __init__(self, kind: str, text: str, test: str, expected: str, words: str, name: str = "") -> None:
        self.kind, self.text, self.test, self.expected, self.words, self.name = kind, text, test, expected, words, name

    def holds(self, now: Any, expected: Any) -> bool:
        """Whether a present value is as it was."""
        if self.kind == "value":
            return same(now, expected)
        if self.kind == "made":
            return same_elements(now, expected)
        if self.kind == "array":
            return _alike(now, expected)
        if self.kind == "code":
            return now is expected()
        return now is expected  # a type, or the answer True


class Check:
    """``run(function, statics)`` gives the present captures, or None if something that was read has changed.

    Numbers are compared by type, value and sign, arrays by shape and dtype, other objects by identity, or along their
    paths by what was read of them.
    """

    def __init__(self) -> None:
        self._scope: dict[str, Any] = {
            "__builtins__": {},
            "alike": _alike,
            "any": any,
            "distinct": _distinct,
            "is_not": operator.is_not,
            "map": map,
            "same": same,
            "same_elements": same_elements,
            "Exception": Exception,
            "type": type,
            **SCOPE,
        }
        self._first = "pass"  # what the check begins with
        self._parts: dict[str, Part] = {}  # by the source of the value
        self._constant: dict[int, str] = {}  # names of places that are constants
        self._given: dict[int, tuple[Any, str]] = {}  # the captures, each with the name of its place
        self._plain: list[tuple[Any, Any]] = []
        self._relied, self._order = -1, list[str]()  # the number of parts of ``run``, and the names that it gives
        self.run: Callable[[Any, Sequence[Any]], Captures | None] = _nothing

    def rely_on(self, reads: Sequence[Read], function: Any, statics: Sequence[Any], captures: Captures) -> None:
        """Rely on the reads of a recording, too; ``captures`` are those of all recordings, in order."""
        held = zip(self._order, self.run(function, statics) or (), strict=False)
        self._names = self._starts(function, statics)
        self._arrays: dict[int, str] = {}
        places = {id(r.place) for r in reads if not _of_class(r)}  # of the others, it matters which ones they are
        never = [read for read in reads if read.kind == "never"]
        for read in never or reads:  # beside one that never holds no other matters, and to ask a cache would fill it
            if read.kind != "assigned":
                self._add(read, places)
        self._apart(reads)
        for name, array in held:  # a former capture, which this recording has found in another place
            other = self._arrays.get(id(array), name)
            if other != name:
                test = f"{name} is {other}"
                self._parts[test] = Part("again", test, test, self._held("v", True), "which places hold one array")
        for c in captures:  # the place of a capture is where it was when a way first had it
            if id(c) not in self._given:
                self._given[id(c)] = c, self._arrays.get(id(c)) or self._held("c", c)
        self._names, self._arrays = {}, {}
        order = [self._given[id(c)][1] for c in captures]
        if (len(self._parts), order) != (self._relied, self._order):  # else it is this check already
            self.run = self._compiled(f"({''.join(f'{name}, ' for name in order)})")
            self._relied, self._order = len(self._parts), order

    def _apart(self, reads: Sequence[Read]) -> None:
        """Where the function assigns to one of several places, these stay different objects."""
        groups: dict[Any, dict[str, None]] = {r.key: {} for r in reads if r.kind == "assigned" and r.key[0] in PARTS}
        for read in reads if groups else ():
            of = read.key if read.kind == "assigned" else (read.kind, read.key)
            if of in groups:
                groups[of][self._place(read.place)] = None
        for (_, key), names in groups.items():
            if len(names) > 1:
                test = f"distinct({', '.join(names)})"
                self._parts[test] = Part("again", test, test, self._held("v", True), f"which objects have one {key!r}")

    def _starts(self, function: Any, statics: Sequence[Any]) -> dict[int, str]:
        """Names of the objects at which paths start: the function, what it is made of, and the static arguments."""
        names: dict[int, str] = {}
        for k, x in enumerate(statics):
            if id(x) in names:  # one object in two places
                test = f"s[{k}] is {names[id(x)]}"
                self._parts[test] = Part("again", test, test, self._held("v", True), "which arguments are one object")
            elif not is_stateless(x) and not is_a(x, FIXED):
                names |= _names(x, f"s[{k}]")
        name = "f"
        while not is_a(function, (FunctionType, MethodType)) and hasattr(function, "__wrapped__"):
            names.setdefault(id(function), name)
            function, name = function.__wrapped__, f"{name}.__wrapped__"
        names.setdefault(id(function), name)
        module = getattr(function, "__globals__", None)  # of a method, its function's
        if is_a(function, MethodType):
            names |= _names(function.__self__, f"{name}.__self__")
            module, name = function.__func__.__globals__, f"{name}.__func__"
        if module is not None:
            names[id(module)] = "g"
            self._first = f"g = {name}.__globals__"
        if is_a(function, FunctionType):
            cells = enumerate(function.__closure__ or ())
            names |= {id(cell): f"{name}.__closure__[{k}]" for k, cell in cells}
        return names

    def _held(self, letter: str, value: Any) -> str:
        """A name for a constant of the code."""
        name = f"{letter}{len(self._scope)}"
        self._scope[name] = value
        return name

    def _place(self, place: Any) -> str:
        found = self._arrays.get(id(place)) or self._known(place)
        if not found:
            found = self._constant[id(place)] = self._held("p", place)
        return found

    def _known(self, x: Any) -> str:
        """The name of an object that was met, as a step of a path or as a constant."""
        return self._names.get(id(x)) or self._constant.get(id(x)) or ""

    def _add(self, read: Read, places: set[int]) -> None:
        """Add the test of one read, unless nothing can have changed."""
        place, value = self._place(read.place), read.value
        text = self._text(read, place)
        if self._always(read, place) or (read.kind == "closure" and id(value) not in places):
            return
        known = self._parts.get(text)
        array = type(value) is np.ndarray and value.dtype.kind in "biufc"
        step = place[0] != "p" and id(value) in places and read.kind in STEPS
        step = step and not array and not is_a(value, VALUES)
        step = step or (read.kind == "target" and value is not None)  # nothing keeps it alive
        step = step or (read.kind == "property" and not array and not is_a(value, (*VALUES, tuple)))  # made anew
        if known is not None and known.name:  # an array, a step of a path, or one of these again
            names = self._arrays if array else self._names
            other = names.setdefault(id(value), ("" if array else self._known(value)) or known.name)
            test = f"({text}) is {other}"
            if other != known.name and test not in self._parts:  # two places hold one thing, which held two before
                self._parts[test] = Part("again", test, test, self._held("v", True), str(read))
        elif known is None:
            self._parts[text] = part = self._part(read, text, place, array, step)
            if part.kind == read.kind == "code" and (place == "f" or type(read.place) is FunctionType):
                self._plain.append((None if place == "f" else read.place, self._scope[part.expected]))
            elif part.kind == "value" and read.kind == "global" and place == "g" and read.value is not MISSING:
                self._plain.append((read.key, read.value))

    def _always(self, read: Read, place: str) -> bool:
        """Whether a read gives the same value as long as the place is the same."""
        fixed = place[0] == "p"
        if _of_class(read) and place[0] == "q":  # a step, whose class is tested
            return True
        if read.kind == "attr" and self._known(read.value) == f"{place}.{read.key}":  # where a path starts
            return True
        if read.kind == "closure":
            return fixed or bool(self._known(read.value))
        if read.kind == "globals":
            return fixed or place[0] == "f"
        return fixed and (read.kind == "is" or (read.kind == "item" and isinstance(read.place, tuple)))

    def _text(self, read: Read, place: str) -> str:
        """Source of the expression that reads it now."""
        form = KINDS[read.kind].text
        literal = type(read.key) in (str, int, bool, type(None)) or "{k}" not in form
        return form.format(p=place, k=repr(read.key) if literal else self._held("k", read.key), n=read.key)

    def _part(self, read: Read, text: str, place: str, array: bool, step: bool) -> Part:
        """The test of a read of a kind that was not met before."""
        value, words = read.value, str(read)
        start = self._known(value)
        reached = self._arrays.get(id(value)) if array else start if start and (step or start[0] in "fs") else None
        if read.kind == "is":
            held = self._held("v", _weak(value))
            return Part("code", text, f"{text} is {held}()", held, words)
        if read.kind in UNHELD:
            return Part("never", text, "False", self._held("v", None), words)
        if reached is not None:  # in another place, too
            test = f"({text}) is {reached}"
            return Part("again", test, test, self._held("v", True), words, reached)
        if array and read.form is not None:
            name, held, form = self._held("a", None), self._held("v", value), self._held("v", read.form)
            self._arrays[id(value)] = name
            found = f"({name} := {text})"
            test = f"{found} is {held} and {name}.shape == {read.form[0]} or alike({name}, {form})"
            return Part("array", found, test, form, words, name)
        if step:
            name, held = self._held("q", None), self._held("v", type(value))
            self._names |= _names(value, name)
            found = f"type({name} := {text})"
            return Part("step", found, f"{found} is {held}", held, words, name)
        if read.kind == "code":  # which lives no longer for it
            held = self._held("v", weakref.ref(value))
            test = f"{place}.__code__ is {held}() or own_code({place}) is {held}()"
            return Part("code", text, test, held, words)
        held = self._held("v", value)
        if read.kind in ("property", "value"):  # whose answers may be equal numbers and texts, made anew
            found = self._held("q", None)
            return Part("value", text, f"({found} := {text}) is {held} or same({found}, {held})", held, words)
        if not KINDS[read.kind].equal:
            return Part("value", text, f"({text}) is {held}", held, words)
        test = f"({text}) == {held}"
        if type(value) in (list, tuple):  # 1 equals True, and an Enum member of text its text
            found = self._held("q", None)
            same = f"len({found} := {text}) == {len(value)} and not any(map(is_not, {found}, {held}))"
            test = f"{same} or same_elements({found}, {held})"
        return Part("made", text, test, held, words)

    @property
    def plain(self) -> tuple[tuple[Any, Any], ...] | None:
        """All reads, if they are of codes and globals, and nothing is captured.

        Each is a function, or None for the function itself, with a weak reference to its code, or the name of a global
        with its value. The check passes if these are the same objects. It may pass if they are not.
        """
        return (*self._plain,) if len(self._plain) == len(self._parts) and not self._given else None

    def _compiled(self, given: str) -> Callable[[Any, Sequence[Any]], Captures | None]:
        parts = list(self._parts.values())
        tests = " and ".join(f"({p.test})" for p in parts)
        fast = f"if {tests}:\n            return {given}" if parts else f"return {given}"
        each = "".join(f"    yield {p.text}\n" for p in parts)
        self.source = (
            f"def check(f, s):\n    try:\n        {self._first}\n        {fast}\n"
            "    except Exception:\n        pass\n    return slow(f, s)\n"
            f"def values(f, s):\n    {self._first}\n{each}    yield {given}\n"
        )
        self._scope["slow"] = self._slow
        exec(compile(self.source, "<check>", "exec"), self._scope)  # noqa: S102 - our own text
        found: Callable[[Any, Sequence[Any]], Captures | None] = self._scope["check"]
        return found

    def _slow(self, function: Any, statics: Sequence[Any]) -> Captures | None:
        """Compare values that are no longer the same objects; equal ones are compared with from now on."""
        differs, found = self._compared(function, statics)
        if differs is not None:
            return None
        for part, now in zip(self._parts.values(), found, strict=False):  # then follow the captures
            if part.kind == "value" and type(now) is not StandIn:  # which other threads see while one traces
                self._scope[part.expected] = now
        given: Captures = found[-1]
        return given

    def changed(self, function: Any, statics: Sequence[Any]) -> str:
        """What differs now, in words: the first of the reads that do."""
        differs, _ = self._compared(function, statics)
        return "nothing" if differs is None else differs.words

    def _compared(self, function: Any, statics: Sequence[Any]) -> tuple[Part | None, list[Any]]:
        """The first part that differs, if any, and the values read until then; if none does, also the captures.

        What comes later is not read: it may run the user's code, of which plain Python would ask something else now.
        """
        values, found = self._scope["values"](function, statics), []
        for part in self._parts.values():
            try:
                found.append(next(values))
                holds = part.kind != "never" and part.holds(found[-1], self._scope[part.expected])
            except Exception:  # noqa: BLE001 - what is read may raise anything
                holds = False
            if not holds:
                return part, found
        return None, [*found, *values]


def _names(x: Any, name: str) -> dict[int, str]:
    """Names of an object and of what holds its attributes."""
    own = attributes_of(x)
    return {id(x): name} | ({id(own): f"{name}.__dict__"} if type(own) is dict else {})


def _of_class(read: Read) -> bool:
    return read.kind == "attr" and read.key == "__class__"


def _nothing(function: Any, statics: Sequence[Any]) -> Captures:
    return ()


def _weak(x: Any) -> Callable[[], Any]:
    """What gives an object, and does not keep it alive where that is possible."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x


def _distinct(*places: Any) -> bool:
    return len(set(map(id, places))) == len(places)


def _alike(a: Any, form: Form) -> bool:
    """Whether an array may be in the place of one that had this form."""
    return form_of(a) == form
