"""Unpackers: generated code that takes the arguments of one structure apart, in one pass, and serves the call.

An unpacker finds the paths of a call by its key, and calls the first that hold, with the traced leaves and the others.
It gives UNSERVED if the arguments are built otherwise, or no paths hold. ``take_apart`` handles structures that exact
types cannot identify, at each call.
"""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import chain
from types import FunctionType
from typing import Any
from weakref import WeakSet

import numpy as np

from ..tracer.state.exact import Exact
from ..tracer.surroundings import SURROUNDINGS
from ..tracer.trace import CURRENT
from ..tracer.tree import children, flatten, is_known_dataclass
from .compilation import INSPECTORS
from .compiled import UNSERVED
from .fixed import Fixed
from .paths import Found, Paths
from .settings import OVERRIDES, config
from .signature import Call
from .varying_ints import MOST

MOST_LEAVES = 1000
MOST_UNPACKERS = 16  # of one function
MOST_KEYS = 1000  # of one unpacker
VALUES = frozenset({int, bool, str, bytes})  # static arguments that are known by their value
TYPES = "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]
NUMBERS = frozenset({float, complex, *(np.dtype(code).type for code in TYPES)})  # and by their text
REFUSED: WeakSet[Paths] = WeakSet()  # those of calls that no unpacker can tell
SCOPE = {
    "__name__": __name__,  # its frame is below the user's, and ours
    "ndarray": np.ndarray,
    "is_not": operator.is_not,
    "UNSERVED": UNSERVED,
    "CURRENT": CURRENT,
    "OVERRIDES": OVERRIDES,
    "config": config,
}
SHORTER: list[Callable[[Any, Found, tuple[Any, ...], dict[str, Any]], None]] = []  # make servers that ask less


class _NoExactType(Exception):  # noqa: N818 - never leaves this file
    """A container or a leaf whose exact type does not tell what the call needs to know."""


def know(compiled: Any, found: Found, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let later calls like this one go straight to its paths."""
    call = found.call
    if not isinstance(found.paths, Paths) or type(call) is not Call or len(call.leaves) > MOST_LEAVES:
        return
    if found.paths in REFUSED:
        return
    arranged = getattr(compiled._transform, "fixed", None)
    given = (args, kwargs) if arranged is None else arranged(compiled._function, args, kwargs)
    _know(compiled, found.paths, call, args, kwargs, given)
    for shorter in SHORTER:
        shorter(compiled, found, *given)


def _know(
    compiled: Any, paths: Paths, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], given: tuple[Any, Any]
) -> None:
    """Let an unpacker find the paths, unless none can tell such calls; ``given`` has ``Fixed`` for static numbers."""
    servers = compiled._servers
    unpackers = [server for server in servers if isinstance(server, FunctionType)]
    for unpack in unpackers:
        if unpack.__globals__["traced"] == call.traced and (key := unpack(None, args, kwargs)) is not UNSERVED:
            break
    else:
        leaves, spec = flatten(given)
        if spec != call.spec or any(map(operator.is_not, leaves, call.leaves)):
            REFUSED.add(paths)  # the transform takes arguments in its own way
            return
        try:
            unpack = _made(*_UnpackerWriter(call.traced, leaves).source(spec, *given))
        except (_NoExactType, RecursionError):  # of containers within hundreds of others
            REFUSED.add(paths)
            return
        key = unpack(None, args, kwargs)
        assert key is not UNSERVED
        for old in unpackers[MOST_UNPACKERS - 1 :]:
            servers.remove(old)
        servers.insert(0, unpack)  # the newest is asked first
    known, arguments = key
    if len(known) >= MOST_KEYS:
        known.clear()
    known[arguments] = compiled._cache.versions((compiled._transform.settings(), call.key))


INSPECTORS["known"] = know


class _UnpackerWriter:
    """Writes the source of an unpacker: tests of containers, from outside to inside, then those of leaves."""

    def __init__(self, traced: tuple[int, ...], leaves: list[Any]) -> None:
        self._traced, self._leaves = {*traced}, leaves
        self._lines: list[str] = []
        self._found: list[str] = []  # variables of the leaves so far
        self._key: list[str] = []  # what tells the call from others of this structure
        self._keyed: dict[str, tuple[Any, ...]] = {}  # variables of dicts, and their keys, of which equal ones differ
        self._names = 0
        usual = {"usual": config.base, "known": {}, "others": defaultdict(dict)}  # one dict for each of the settings
        self._told = SURROUNDINGS[-1].told
        self._scope: dict[str, Any] = {**SCOPE, **usual, "traced": traced, "told": self._told}

    def source(self, spec: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The source, and what it names."""
        positional, keywords = children(spec)
        self._positions(args, positional, "args", "len(args) != {n}")
        self._entries(kwargs, keywords, "kwargs", "(*kwargs,) != {keys}" if kwargs else "kwargs")
        self._keys_of_all()
        traced: list[str] = []
        static: list[str] = []
        for k, (x, name) in enumerate(zip(self._leaves, self._found, strict=True)):
            (traced if k in self._traced else static).append(name)
            self._key += self._leaf(x, name, k in self._traced)
        lines = [
            "if CURRENT.get() is not None:",
            "    return UNSERVED",
            *self._lines,
            "settings = OVERRIDES.get() or config.base",
            "versions = known if settings is usual else others[settings]",
            f"key = ({''.join(part + ', ' for part in self._key)})",
            "if compiled is None:",
            "    return versions, key",
            f"statics = [{', '.join(static)}]",
            "for paths in versions.get(key, ()):",
            "    captures = paths.check(compiled._user, statics)",
            "    if captures is not None:",
            f"        result = paths.call(compiled, [{', '.join(traced)}], captures, statics)",
            "        compiled._cache.hits += 1",
            "        return result",
            "return UNSERVED",
        ]
        return "\n    ".join(["def unpack(compiled, args, kwargs):", *lines]), self._scope

    def _leaf(self, x: Any, name: str, traced: bool) -> Iterator[str]:
        """Test the type of a leaf; the parts of the key for it."""
        kind = type(x)
        if kind is np.ndarray and traced:
            self._unless(f"type({name}) is not ndarray")
            shape = f"s{name}"
            self._lines.append(f"{shape} = {name}.shape")
            self._unless(f"len({shape}) {'> 1' if x.ndim < 2 else '< 2'}")
            yield from (shape, f"{name}.dtype")
            if x.ndim > 1:
                yield f"{name}.flags.c_contiguous or {name}.strides"
            return
        self._unless(f"type({name}) is not {self._held(kind)}")
        if kind is int and traced:
            self._unless(f"not {-MOST} <= {name} <= {MOST}")
        elif traced or kind in VALUES:
            yield from () if traced else (name,)
        elif (key := self._told(x)) != (kind,):
            told = f"told({name})"  # a value that code in C reads unseen, or that nothing else tells
            fixed = type(key[0]) is Exact and key[0].fixed
            yield f"{self._held(key)} if {name} is {self._held(x)} else {told}" if fixed else told

    def _part(self, x: Any, spec: Any, name: str) -> None:
        """Test a container, and take it apart."""
        kind = type(x)
        if spec.is_leaf():
            self._found.append(name)
        elif x is None:
            self._unless(f"{name} is not None")
        elif kind is Fixed:
            self._fixed(x.value, name)
        elif kind in (dict, OrderedDict):
            self._unless(f"type({name}) is not {self._held(kind)} or len({name}) != {len(x)}")
            self._entries(x, spec, name, self._other_keys(x, name))
        elif kind in (list, tuple) or (isinstance(x, tuple) and hasattr(kind, "_fields")):
            self._positions(x, spec, name, f"type({name}) is not {self._held(kind)} or len({name}) != {{n}}")
        elif is_known_dataclass(kind):
            self._unless(f"type({name}) is not {self._held(kind)}")
            names = [self._name() for _ in fields(kind)]
            self._lines += [f"{inner} = {name}.{f.name}" for inner, f in zip(names, fields(kind), strict=True)]
            for inner, f, sub in zip(names, fields(kind), children(spec), strict=True):
                self._part(getattr(x, f.name), sub, inner)
        else:
            raise _NoExactType

    def _fixed(self, x: Any, name: str) -> None:
        """Test a static number, or a tuple of such."""
        kind = type(x)
        if x is None:
            self._unless(f"{name} is not None")
        elif kind is tuple:
            self._unless(f"type({name}) is not tuple or len({name}) != {len(x)}")
            names = [self._name() for _ in x]
            self._lines += [f"{', '.join(names)}, = {name}"] if names else []
            for part, inner in zip(x, names, strict=True):
                self._fixed(part, inner)
        elif kind in VALUES or kind in NUMBERS:
            self._unless(f"type({name}) is not {self._held(kind)}")
            self._key.append(name if kind in VALUES else f"told({name})")
        else:
            raise _NoExactType

    def _positions(self, x: Any, spec: Any, name: str, otherwise: str) -> None:
        """A sequence."""
        self._unless(otherwise.format(n=len(x)))
        names = [self._name() for _ in x]
        if names:
            self._lines.append(f"{', '.join(names)}, = {name}")
        for each, sub, inner in zip(x, children(spec), names, strict=True):
            self._part(each, sub, inner)

    def _entries(self, x: dict[Any, Any], spec: Any, name: str, otherwise: str) -> None:
        """A dict; the leaves come in the order of its structure, which sorts the keys of a plain dict."""
        self._unless(otherwise.format(keys=self._held((*x,))))
        names = {key: self._name() for key in x}
        if names:
            self._lines.append(f"{', '.join(names.values())}, = {name}.values()")
        for key, sub in zip(spec.entries(), children(spec), strict=True):
            self._part(x[key], sub, names[key])

    def _other_keys(self, x: dict[Any, Any], name: str) -> str:
        """The test whether keys differ, also if they are equal: first whether they are the same objects, unchanged."""
        kinds = {*map(type, x)}
        same = f"any(map(is_not, {name}, {{keys}}))"
        if kinds <= VALUES and len(kinds) < 2:
            return f"{same} and (set(map(type, {name})) != {self._held(kinds)} or (*{name},) != {{keys}})"
        self._keyed[name] = (*x,)
        return self._otherwise_told((*x,), name, same)

    def _otherwise_told(self, keys: tuple[Any, ...], names: str, same: str) -> str:
        """The test whether what is spread from ``names`` is told otherwise than these keys."""
        told = self._told(keys)
        key = self._held(told)
        other = f"told((*{names},)) != {key}"
        if not told[0].watched:
            return other
        return f"{same} and {other}" if told[0].fixed else f"({same} or {key}[0].changed()) and {other}"

    def _keys_of_all(self) -> None:
        """Test the keys of several dicts together: which of them are one object is told, too."""
        if len(self._keyed) > 1:
            keys, names = tuple(chain.from_iterable(self._keyed.values())), ", *".join(self._keyed)
            same = f"any(map(is_not, (*{names},), {self._held(keys)}))"
            self._unless(self._otherwise_told(keys, names, same))

    def _unless(self, test: str) -> None:
        self._lines += [f"if {test}:", "    return UNSERVED"]

    def _name(self) -> str:
        self._names += 1
        return f"x{self._names}"

    def _held(self, x: Any) -> str:
        name = f"c{len(self._scope)}"
        self._scope[name] = x
        return name


@functools.lru_cache(256)
def _compiled(source: str) -> Any:
    return compile(source, "<generated unpacker>", "exec")


def _made(source: str, scope: dict[str, Any]) -> FunctionType:
    exec(_compiled(source), scope)  # noqa: S102 - our own text
    made: FunctionType = scope["unpack"]
    return made
