"""Closure conversion: a Python function becomes a template, and a dict of the numbers and arrays that it captures."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...compiler.compiled import Compiled
from ...compiler.signature import parameter_names
from ...tracer.array import Tracer, shadow_of
from ...tracer.containers import flatten_like, map_kind, register_container
from ...tracer.tree import flatten, map_leaves, unflatten
from .free_names import free_names

OURS = ("retrograd", "numpy", "scipy", "builtins")

Made = dict[int, Any]  # from the id of a function that is converted to the function rebuilt for it


@dataclass(frozen=True)
class Template:
    """A callable without its captures. ``key`` is equal for equal code over equal values of everything else.

    ``rebuild(captures, made)`` is the callable with these captures; ``made`` holds the enclosing functions that are
    being rebuilt, so that a function can call itself.
    """

    key: Hashable
    rebuild: Callable[[Mapping[str, Any], Made], Callable[..., Any]] = field(compare=False)


class Fn:
    """A function value: a callable and its captures, a dict by name. ``rg.functions.fn`` makes it.

    It is a container: passed to a transform, its captures are traced, and another closure of the same definition
    compiles nothing.

    Examples
    --------
    >>> import retrograd as rg
    >>> slope = 2.0
    >>> line = rg.functions.fn(lambda x, a=slope: a * x)
    >>> float(line(3.0)), float(line.over({"a": 5.0})(3.0))
    (6.0, 15.0)
    """

    __slots__ = ("_function", "captures", "template")

    def __init__(
        self, template: Template, captures: dict[str, Any], function: Callable[..., Any] | None = None
    ) -> None:
        self.template, self.captures = template, captures
        self._function = function

    @property
    def function(self) -> Callable[..., Any]:
        """The plain callable, rebuilt at each access, since its globals hold the stand-ins of the present trace."""
        return self.template.rebuild(self.captures, {}) if self._function is None else self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<function value {getattr(self.function, '__qualname__', self.function)!s} over {list(self.captures)}>"

    def over(self, captures: Mapping[str, Any]) -> Fn:
        """The same function with other captures.

        Parameters
        ----------
        captures : dict
            A dict like ``captures``, with nested functions as dicts.

        Returns
        -------
        Fn
            The function.

        Raises
        ------
        TreeError
            If the names or structures differ.
        """
        leaves = flatten_like(flatten(as_mapping(self))[1], as_mapping(dict(captures)), "the captures")
        opened: Fn = unflatten(flatten(self)[1], leaves)
        return opened


def register_function_container(cls: type[Fn], make: Callable[[Template, dict[str, Any]], Fn]) -> None:
    """Make a class of function values a container of its captures, in the order of their names."""

    def take_apart(f: Fn) -> tuple[tuple[Any, ...], Any, tuple[str, ...]]:
        names = tuple(sorted(f.captures))  # in the order in which dicts are flattened
        return tuple(f.captures[n] for n in names), (f.template, names), names

    def put_together(data: Any, children: Any) -> Fn:
        template, names = data
        return make(template, dict(zip(names, children, strict=True)))

    register_container(cls, take_apart, put_together)


register_function_container(Fn, Fn)


def as_mapping(tree: Any) -> Any:
    """A tree in which dicts of captures replace function values: the structure of their cotangents."""
    return map_kind(Fn, lambda f: {name: as_mapping(value) for name, value in f.captures.items()}, tree)


def is_function(x: Any) -> bool:
    """Whether an argument counts as a function value: it is callable, and not a container of other values."""
    return isinstance(x, Fn) or (callable(x) and flatten(x)[1].is_leaf())


def converted(function: Callable[..., Any]) -> Fn:
    """Convert any callable."""
    return function if isinstance(function, Fn) else _converted(function, ())


def _converted(function: Any, within: tuple[int, ...]) -> Fn:
    within = (*within, id(function))
    if isinstance(function, types.FunctionType):
        return _closure(function, within)
    if isinstance(function, functools.partial):
        return _partial(function, within)
    if isinstance(function, types.MethodType):
        return _method(function, within)
    if isinstance(function, Compiled):
        return _compiled(function, within)
    if _is_callable_object(function):
        return _object(function, within)
    return Fn(Template(Same(function), lambda _, __: function), {}, function)


def _is_callable_object(x: Any) -> bool:
    """Whether it is an instance of one of the user's classes with ``__call__``."""
    return callable(x) and not isinstance(x, type) and not _foreign(type(x).__module__) and hasattr(x, "__dict__")


def _foreign(module: str | None) -> bool:
    return (module or "").partition(".")[0] in OURS


def _has_captures(x: Any) -> bool:
    """Whether a value can be a function with captures of its own."""
    if isinstance(x, (types.FunctionType, types.MethodType)):
        return not _foreign(x.__module__) or bool(getattr(x, "__closure__", None))
    return isinstance(x, (functools.partial, Compiled)) or _is_callable_object(x)


class Same:
    """A value that a template depends on: numbers and strings by equality, anything else by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same) or type(self.value) is not type(other.value):
            return False
        return self.value is other.value or (isinstance(self.value, PLAIN) and bool(self.value == other.value))

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, PLAIN) else id(self.value)


PLAIN = (int, str, bytes, type(None))
NUMERIC = (Tracer, np.ndarray, np.generic, float, complex)


@dataclass(frozen=True)
class _Divided:
    """Values by name, divided into captures and values that belong to the template.

    ``loops`` names the functions that are already being converted, such as one that calls itself.
    """

    captured: dict[str, Any]
    fixed: tuple[tuple[str, Hashable], ...]
    loops: dict[str, int]


def _split(values: Mapping[str, Any], within: tuple[int, ...]) -> _Divided:
    captured: dict[str, Any] = {}
    fixed: list[tuple[str, Hashable]] = []
    loops: dict[str, int] = {}
    for name, value in values.items():
        if id(value) in within:
            loops[name] = id(value)
            continue
        lifted = map_leaves(lambda x: _lifted(x, within), value) if callable(value) or _is_tree(value) else value
        if any(is_inexact(x) for x in flatten(lifted)[0]):
            captured[name] = lifted
        else:
            fixed.append((name, lifted.template.key if isinstance(lifted, Fn) else Same(value)))
    return _Divided(captured, tuple(fixed), loops)


def is_inexact(x: Any) -> bool:
    """Whether a leaf is a floating-point number or array, traced or not."""
    return isinstance(x, NUMERIC) and np.asarray(shadow_of(x)).dtype.kind in "fc"


def _is_tree(value: Any) -> bool:
    return not flatten(value)[1].is_leaf()


def _lifted(x: Any, within: tuple[int, ...]) -> Any:
    return _converted(x, within) if _has_captures(x) and id(x) not in within else x


def _opened(value: Any, made: Made) -> Any:
    """A capture as the function sees it: plain functions in place of nested function values."""
    return map_kind(Fn, lambda f: f.template.rebuild(f.captures, made), value)


@dataclass(frozen=True, eq=False)
class _Shell:
    """A function without its captures: ``cells``, ``globals`` and ``defaults`` name their places.

    ``loops`` and ``global_loops`` name the places of functions that are being converted around it, with their ids.
    """

    blank: types.FunctionType
    identity: int
    cells: frozenset[str]
    loops: dict[str, int]
    globals: frozenset[str]
    global_loops: dict[str, int]
    defaults: dict[str, Any]
    positional: tuple[str, ...]
    keywords: tuple[str, ...]

    def rebuild(self, values: Mapping[str, Any], made: Made) -> Callable[..., Any]:
        """The function with these captures."""
        scope = self.blank.__globals__
        if self.globals or self.global_loops:
            scope = {**scope, **{n: _opened(values[n], made) for n in self.globals}}
        new = _blank(self.blank, scope, {*self.cells, *self.loops})
        made = {**made, self.identity: new}
        for n, cell in zip(new.__code__.co_freevars, new.__closure__ or (), strict=True):
            if n in self.cells:
                cell.cell_contents = _opened(values[n], made)
            elif n in self.loops:
                cell.cell_contents = made[self.loops[n]]
        scope.update((n, made[k]) for n, k in self.global_loops.items())
        wanted = {*self.positional, *self.keywords} - set(self.defaults)
        defaults = {**self.defaults, **{n: _opened(values[n], made) for n in wanted}}
        new.__defaults__ = tuple(defaults[n] for n in self.positional) or None
        new.__kwdefaults__ = {n: defaults[n] for n in self.keywords} or None
        return new


def _closure(function: types.FunctionType, within: tuple[int, ...]) -> Fn:
    names, world = free_names(function.__code__), function.__globals__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    inside = {n: c.cell_contents for n, c in cells.items() if n not in names.rebound and _filled(c)}
    outside = {n: world[n] for n in names.globals if n in world and n not in inside and not names.writes_globals}
    outside = {n: x for n, x in outside.items() if not isinstance(x, (type, types.ModuleType))}
    parameters, values = parameter_names(function), function.__defaults__ or ()
    positional = tuple(parameters[len(parameters) - len(values) :])
    given = {**dict(zip(positional, values, strict=True)), **(function.__kwdefaults__ or {})}
    in_cells, in_globals, in_defaults = parts = [_split(values, within) for values in (inside, outside, given)]
    captured = frozenset(in_cells.captured)
    shell = _Shell(
        _blank(function, world, {*captured, *in_cells.loops}),
        id(function),
        captured,
        in_cells.loops,
        frozenset(in_globals.captured),
        in_globals.loops,
        {n: x for n, x in given.items() if n not in in_defaults.captured},
        positional,
        tuple(function.__kwdefaults__ or {}),
    )
    shared = tuple(Same(c) for n, c in cells.items() if n not in inside)
    divided = tuple((part.fixed, tuple(part.loops), tuple(part.captured)) for part in parts)
    captures = {n: x for part in parts for n, x in part.captured.items()}
    return Fn(Template((function.__code__, id(world), shared, divided), shell.rebuild), captures, function)


def _blank(function: types.FunctionType, scope: dict[str, Any], empty: Collection[str]) -> types.FunctionType:
    """A copy of a function without defaults, with other globals and with new cells for some of its variables."""
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    closure = tuple(types.CellType() if n in empty else c for n, c in cells)
    new = types.FunctionType(code, scope, function.__name__, None, closure)
    new.__dict__.update(function.__dict__)
    new.__qualname__, new.__doc__, new.__module__ = function.__qualname__, function.__doc__, function.__module__
    return new


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading it is the question
    except ValueError:
        return False
    return True


def _partial(function: functools.partial[Any], within: tuple[int, ...]) -> Fn:
    names = parameter_names(function.func)
    at = [names[i] if i < len(names) else f"arg{i}" for i in range(len(function.args))]
    values = {"func": function.func, **dict(zip(at, function.args, strict=True)), **function.keywords}
    part = _split(values, within)
    kept, keywords = {n: x for n, x in values.items() if n not in part.captured}, list(function.keywords)

    def rebuild(captures: Mapping[str, Any], made: Made) -> Callable[..., Any]:
        filled = {**kept, **{n: _opened(x, made) for n, x in captures.items()}}
        return functools.partial(filled["func"], *(filled[n] for n in at), **{n: filled[n] for n in keywords})

    return Fn(Template(("partial", tuple(values), part.fixed), rebuild), part.captured, function)


def _object(instance: Any, within: tuple[int, ...]) -> Fn:
    part = _split(vars(instance), within)
    blank = copy.copy(instance)
    for name in part.captured:
        vars(blank).pop(name)

    def rebuild(captures: Mapping[str, Any], made: Made) -> Callable[..., Any]:
        new = copy.copy(blank)
        for name, value in captures.items():
            object.__setattr__(new, name, _opened(value, made))
        return new  # type: ignore[no-any-return]  # a callable object stays one

    return Fn(Template((type(instance), part.fixed), rebuild), part.captured, instance)


def _method(method: types.MethodType, within: tuple[int, ...]) -> Fn:
    instance = method.__self__
    if isinstance(instance, type) or not hasattr(instance, "__dict__"):
        return Fn(Template(Same(method), lambda _, __: method), {}, method)
    owner = _object(instance, within)

    def rebuild(captures: Mapping[str, Any], made: Made) -> Callable[..., Any]:
        return types.MethodType(method.__func__, owner.template.rebuild(captures, made))

    return Fn(Template((method.__func__, owner.template.key), rebuild), owner.captures, method)


def _compiled(function: Compiled, within: tuple[int, ...]) -> Fn:
    inner = _converted(function.__wrapped__, within)

    def rebuild(captures: Mapping[str, Any], made: Made) -> Callable[..., Any]:
        return function.of(inner.template.rebuild(captures, made))

    key = (type(function), inner.template.key, Same(function))
    return Fn(Template(key, rebuild), inner.captures, function)
