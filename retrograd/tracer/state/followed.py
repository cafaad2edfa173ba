"""Followed: the user's functions that a use of an object may run get rewritten code during a trace.

They are changed in place and keep their identity. For functions of installed libraries, their captured
functions are followed, since a library's decorator contains the user's function.
"""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from types import CellType, FunctionType, MappingProxyType, MethodType
from typing import Any

import numpy as np

from ..ufunc_options import python_function
from .classes import is_a
from .code_rewriter import CodeRewriter
from .libraries import is_builtin, is_library, of_ours, package
from .reads import MISSING, SWAPPED

WRAPPERS = (staticmethod, classmethod, property, functools.cached_property, functools.partial, functools.partialmethod)
RUNNING = (FunctionType, MethodType, type, *WRAPPERS)  # classes of Python's whose objects run code of the user's

# Special methods that are read where a class is called, or an object becomes text, or library code gets it.
MADE_BY = ("__new__", "__init__")
TEXTS = ("__format__", "__str__", "__repr__")
COPIES = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
ASKED = ("__str__", "__repr__", "__dir__", "__sizeof__", *COPIES, "__init_subclass__", "__class_getitem__")
PASSIVE = frozenset((*ASKED, *MADE_BY, "__new_member__", "__post_init__", "__set_name__", "__del__"))


_number = itertools.count(1)


class Followed(ABC):
    """The functions that one recording follows. A reader says what is outside, and takes note."""

    def __init__(self, rewritten: CodeRewriter) -> None:
        self.number = next(_number)
        self._rewritten = rewritten
        self._outside: dict[int, Any] = {}
        self._met: dict[int, Any] = {}
        self._classes: dict[int, type] = {}
        self._special: dict[int, type] = {}  # those of these with special methods
        self._followed: list[FunctionType] = []

    @abstractmethod
    def keep(self, x: Any, name: str | None = None) -> None:
        """Count an object as outside."""

    @abstractmethod
    def adopt(self, x: Any, like: Any, name: str | None = None) -> Any:
        """Count what was found in a place as outside, too."""

    @abstractmethod
    def note(self, place: Any, kind: str, key: Any, value: Any) -> None:
        """Take note of a read."""

    @abstractmethod
    def contents(self, x: Any) -> list[Any]:
        """Take note of what a container holds."""

    @abstractmethod
    def root(self, place: Any) -> None:
        """Count an object as outside everywhere."""

    @abstractmethod
    def is_own(self, cell: CellType) -> bool:
        """Whether a cell belongs to a frame that runs in this recording."""

    def meet(self, x: Any) -> None:
        """Follow the functions that a use of an object may run."""
        t = type(x)
        if id(x) in self._met or (is_builtin(t) and not issubclass(t, RUNNING)):
            return
        if t is FunctionType and self._rewritten.is_observed(code := x.__code__) and SWAPPED.keeps(x, code):
            return
        if t is not MethodType and (is_library(t) or t is FunctionType):
            self._met[id(x)] = x  # objects of the user's are not kept alive
        if t is FunctionType:
            self._follow(x)
        elif t is MethodType:
            self.meet(x.__func__)
        elif is_a(x, type):
            self._follow_class(x)
        elif t is np.ufunc:
            self.meet(python_function(x))
        elif is_a(x, WRAPPERS) or package(t) == "functools":
            self._follow_wrapper(x)
        elif not is_library(t):
            self._follow_class(t)
        elif of_ours(t):
            for v in list(getattr(x, "__dict__", {}).values()):
                user = callable(v) and not is_library(type(v))
                if user or is_a(v, (FunctionType, MethodType, type, functools.partial)):
                    self.keep(v)
                elif callable(v):
                    self.meet(v)

    def _follow(self, f: FunctionType) -> None:
        """Observe what a function reads from now on, if it is the user's; of a library's, what it closes over."""
        cells = f.__closure__ or ()
        if is_library(f):
            for cell in cells:
                with suppress(ValueError):
                    self._keep_functions(cell.cell_contents)
            self.meet(f.__dict__.get("__wrapped__"))
            return
        self._followed.append(f)
        SWAPPED.add(f, self._rewritten, self.number)
        for v in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self.keep(v)

    def _keep_functions(self, held: Any) -> None:
        """Count functions that a library's function holds as outside, also in a registry, as singledispatch has one."""
        if is_a(held, (dict, MappingProxyType)) and any(map(callable, held.values())):
            self.root(held)
            self.contents(held)
        elif callable(held):
            self.keep(held)

    def _note_function(self, f: FunctionType) -> None:
        """Take note of what a function from outside is made of."""
        if is_library(f):
            return
        self.note(f, "code", None, SWAPPED.own_code(f))
        self.note(f, "globals", None, f.__globals__)
        for k, cell in enumerate(f.__closure__ or ()):
            if not self.is_own(cell):
                self.note(f, "closure", k, cell)
        for name in ("__defaults__", "__kwdefaults__"):
            values = getattr(f, name)
            if values:
                self.note(f, "attr", name, values)
                self.keep(values)
                self.contents(values)

    def _follow_wrapper(self, x: Any) -> None:
        for name in ("func", "fget", "fset", "__wrapped__", "__func__"):
            f = getattr(x, name, None)
            if f is not None and f is not x:
                self.meet(f)

    def _note_partial(self, x: functools.partial[Any]) -> None:
        for name in ("func", "args", "keywords"):
            self.note(x, "attr", name, getattr(x, name))
            self.adopt(getattr(x, name), x)
        for held in (x.args, x.keywords):
            self.contents(held)

    def has_special_methods(self, cls: type) -> bool:
        """Whether the user's code answers for objects of a class that was met without being named."""
        return id(cls) in self._special

    def _follow_class(self, cls: type) -> None:
        if id(cls) not in self._classes:
            self._classes[id(cls)] = cls
            self._follow_members(cls)

    def _follow_members(self, cls: type) -> None:
        """Follow what runs without being named: special methods, properties, descriptors. Methods follow when named."""
        for c in cls.__mro__:
            if c is object or is_library(c):
                continue
            self._outside[id(c)] = c
            for name, v in list(vars(c).items()):
                special = name.startswith("__")
                if is_a(v, WRAPPERS) or (special if is_a(v, FunctionType) else not is_library(type(v))):
                    self.meet(v)
                if special and name not in PASSIVE and (callable(v) or is_a(v, WRAPPERS)):
                    self._special[id(cls)] = cls  # Python looks these up by itself
                    self.note(c, "static", name, v)
        if type(cls) is not type and not is_library(type(cls)):
            self.meet(type(cls))

    def look_up(self, cls: type, names: Iterable[str]) -> None:
        """Take note of special methods that Python now looks up in a class by itself, also if there are none."""
        for name in names:
            for c in cls.__mro__:
                if id(c) in self._outside and not is_library(c):
                    self.note(c, "static", name, vars(c).get(name, MISSING))
                if name in vars(c):
                    break

    def _follow_methods(self, cls: type) -> None:
        """Follow all methods: code that is not followed may call them."""
        for c in cls.__mro__:
            if c is not object and not is_library(c):
                for v in list(vars(c).values()):
                    if is_a(v, FunctionType):
                        self.keep(v)

    def stop(self) -> None:
        """Give the functions their own code back."""
        while self._followed:
            SWAPPED.remove(self._followed[-1], self.number)
            self._followed.pop()
