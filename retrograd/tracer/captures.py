"""Captures: a traced function runs as a copy that reads arrays of its surroundings as tracers.

The copy has its own cells and a view of the module's globals. In both, a tracer stands for each array and refers to
it, so that operations on the array are recorded. Functions in cells and functions of the same module are copied as
well. Each name that is read is noted: once it is bound to something else, the recording is stale. When the trace ends,
new values of cells and globals are carried back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..errors import LeakedTracerError
from ..where import OURS, View, Where
from .array import Tracer, enter
from .bindings import Binding
from .interception import INTERCEPTION
from .trace import CURRENT, STATEFUL, Trace, stateful

Function = Callable[..., Any]
SEEDED = ("__name__", "__builtins__", "__package__", "__spec__", "__loader__", "__file__")
OPTIMIZED = 0x1  # a flag that the code of a function has and the code of a class body lacks
LIBRARIES = frozenset(OURS) | sys.stdlib_module_names - {"__main__"}


@contextmanager
def following_captures(function: Function) -> Iterator[Function]:
    """Give the copy of a function for the current trace; LeakedTracerError if it stores a traced value outside."""
    trace = CURRENT.get()
    assert trace is not None
    around = Surroundings(trace)
    try:
        yield around.called(function)
    except BaseException:
        around.carry_back()
        raise
    left = around.carry_back()
    for _, watch in around.watches:
        watch.check()
    if left:
        raise LeakedTracerError(
            f"the traced function stores a traced value in {', '.join(left)}",
            where=next(iter(left.values())),
            remedy="return it: its value is known only when the compiled function runs",
        )


class Globals(View):
    """A view of a module's names with captured objects replaced; ``carry_back`` copies new values to the module."""

    def __init__(self, base: dict[str, Any], around: Surroundings) -> None:
        self.base = base
        self.around: Surroundings | None = around
        self.entered: dict[str, Any] = {name: base[name] for name in SEEDED if name in base}
        self.noted: set[str] = set()
        super().__init__(self.entered)

    def __missing__(self, name: str) -> Any:
        value = self.base[name]
        if self.around is None:
            return value
        if name not in self.noted:
            self.noted.add(name)
            self.around.note(self.base, name, value)
        if isinstance(value, FunctionType) and value.__globals__ is not self.base:
            return value
        made = self.around.of(value, name)
        if made is not value:
            self.entered[name] = self[name] = made
        return made

    def settle(self, name: str) -> None:
        """Look a name up now: the body of a class reads the dictionary itself, without ``__missing__``."""
        with suppress(KeyError):
            self.entered[name] = self[name] = self[name]

    def carry_back(self) -> dict[str, Any]:
        """End the view: copy what was stored into it to the module, except traced values; return all of it."""
        stored = {name: x for name, x in self.items() if self.entered.get(name, self) is not x}
        self.base.update((name, x) for name, x in stored.items() if not isinstance(x, Tracer))
        self.around = None
        self.clear()
        self.update((name, self.base[name]) for name in SEEDED if name in self.base)
        return stored


class Surroundings:
    """All that stands for captured objects in one trace: tracers, copies of functions, cells, views of globals."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._mentioned: set[str] = set()  # names of globals and attributes that the program reads
        self._entered: dict[int, tuple[Any, Any]] = {}  # id: the object, kept alive, and its stand-in
        self._cells: dict[int, tuple[CellType, CellType, Any]] = {}  # id: cell, stand-in, the stand-in's first contents
        self._globals: dict[int, Globals] = {}
        self._copies: list[tuple[FunctionType, FunctionType]] = []
        self.watches = [(kind.classes, kind.watch()) for kind in STATEFUL]

    def called(self, function: Function) -> Function:
        """The stand-in of the function to trace; for a callable object, of its ``__call__``."""
        call = vars(type(function)).get("__call__")
        if isinstance(call, FunctionType) and not _of_library(call):
            function = MethodType(call, function)
        method = function
        while isinstance(method, partial):
            method = method.func
        if isinstance(method, MethodType):
            self._mentioned |= _names_in_methods(method)
            self._note_attributes(method.__self__)
        return self.of(function)  # type: ignore[no-any-return]  # a function for a function

    def of(self, x: Any, name: str | None = None) -> Any:
        """The stand-in of a captured object inside the trace; most objects stand for themselves."""
        if id(x) in self._entered:
            return self._entered[id(x)][1]
        if isinstance(x, ModuleType):
            return x
        made = x
        if type(x) is np.ndarray and x.dtype.kind in "biufc":
            made = enter(self._trace, x, name)
        elif (kind := stateful(x)) is not None:
            made = kind.stand_in(x, name)
        elif _is_copied(x):
            return self._copied(x)
        elif isinstance(x, MethodType):
            made = MethodType(self.of(x.__func__), x.__self__)
        elif type(x) is partial:
            made = partial(self.of(x.func), *map(self.of, x.args), **{k: self.of(v) for k, v in x.keywords.items()})
        elif callable(x):
            made = INTERCEPTION.meaning(x)
        if made is not x:
            self._entered[id(x)] = (x, made)
        return made

    def note(self, names: Mapping[str, Any] | CellType, name: str, value: Any) -> None:
        """Note a name that was read, and those attributes of its value that the program mentions."""
        self._trace.bindings.append(Binding(names, name, value))
        self._note_attributes(value)

    def _note_attributes(self, x: Any) -> None:
        """Note the attributes of an object, its class or a module that the program mentions; watch what has a state."""
        if isinstance(x, FunctionType) or _of_library(x):
            return
        for names in _namespaces(x):
            for classes, watch in self.watches:
                for value in list(names.values()):
                    if isinstance(value, classes):
                        watch.add(value)
            found = [Binding(names, name, names[name]) for name in self._mentioned & names.keys()]
            self._trace.bindings.extend(found)

    def _copied(self, function: FunctionType) -> FunctionType:
        code, closure = function.__code__, function.__closure__ or ()
        self._mentioned.update(_names_in(code))
        names = self._view_of(function.__globals__)
        cells = tuple(map(self._cell, closure))
        made = FunctionType(code, names, function.__name__, None, cells or None)
        self._entered[id(function)] = (function, made)
        made.__dict__ = function.__dict__
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        self._copies.append((function, made))
        for cell, name in zip(closure, code.co_freevars, strict=True):
            if id(cell) in self._cells and self._cells[id(cell)][2] is None:
                self._fill(cell, name)
        defaults = function.__defaults__
        made.__defaults__ = None if defaults is None else tuple(map(self.of, defaults))
        made.__kwdefaults__ = {k: self.of(v) for k, v in (function.__kwdefaults__ or {}).items()}
        for body in _class_bodies(code):
            for name in body.co_names:
                names.settle(name)
        return made

    def _view_of(self, base: dict[str, Any]) -> Globals:
        if isinstance(base, Globals):  # a view of an enclosing trace already replaces what is captured
            return base
        if id(base) not in self._globals:
            self._globals[id(base)] = Globals(base, self)
        return self._globals[id(base)]

    def _cell(self, cell: CellType) -> CellType:
        """The cell itself, or an empty one in its place if its contents must be replaced."""
        if id(cell) in self._cells:
            return self._cells[id(cell)][1]
        try:
            value = cell.cell_contents
        except ValueError:  # the cell is still empty
            return cell
        self.note(cell, "", value)
        enters = type(value) is np.ndarray or _is_copied(value) or isinstance(value, (MethodType, partial))
        enters = enters or stateful(value) is not None
        stands = CellType() if enters or (callable(value) and INTERCEPTION.meaning(value) is not value) else cell
        self._cells[id(cell)] = (cell, stands, None if stands is not cell else value)
        return stands

    def _fill(self, cell: CellType, name: str) -> None:
        stands = self._cells[id(cell)][1]
        if stands is not cell:
            stands.cell_contents = self.of(cell.cell_contents, name)
            self._cells[id(cell)] = (cell, stands, stands.cell_contents)

    def carry_back(self) -> dict[str, Where | None]:
        """End the copies and carry new values back, except traced ones; return where these were stored, by name."""
        left: dict[str, Where | None] = {}
        for names in self._globals.values():
            left |= {f"the global {name}": x.where for name, x in names.carry_back().items() if isinstance(x, Tracer)}
        for cell, stands, first in self._cells.values():
            value = _contents(stands)
            if isinstance(value, Tracer) and value is not first:
                left["a variable of an enclosing function"] = value.where
                cell.cell_contents = _contents(cell) if stands is not cell else first
            elif value is not first:
                cell.cell_contents = value
            if stands is not cell:
                stands.cell_contents = cell.cell_contents
        for function, made in self._copies:
            made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return left


def _contents(cell: CellType) -> Any:
    """The contents of a cell; None if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _namespaces(x: Any) -> Iterator[Mapping[str, Any]]:
    own = getattr(x, "__dict__", None)
    if type(own) is dict:
        yield own
    for cls in (x if isinstance(x, type) else type(x)).__mro__:
        if not _of_library(cls):
            yield vars(cls)


def _is_copied(x: Any) -> bool:
    return isinstance(x, FunctionType) and not isinstance(x.__globals__, Globals) and not _of_library(x)


def _of_library(x: Any) -> bool:
    """Whether an object belongs to Python, NumPy, SciPy or us."""
    names = x.__globals__ if isinstance(x, FunctionType) else vars(x) if isinstance(x, ModuleType) else {}
    module = names.get("__name__", getattr(x, "__module__", None))
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _names_in(code: CodeType) -> set[str]:
    """The names of globals and attributes in the code of a function and of the functions inside it."""
    return {name for inner in _codes(code) for name in inner.co_names}


def _names_in_methods(method: MethodType) -> set[str]:
    """The names in a method and in the methods of the same object that it mentions."""
    names: set[str] = set()
    todo: list[Any] = [method.__func__]
    while todo:
        function = todo.pop()
        new = _names_in(function.__code__) - names if isinstance(function, FunctionType) else set()
        names |= new
        todo += [getattr(type(method.__self__), name, None) for name in new]
    return names


def _class_bodies(code: CodeType) -> Iterator[CodeType]:
    return (inner for inner in _codes(code) if not inner.co_flags & OPTIMIZED)
