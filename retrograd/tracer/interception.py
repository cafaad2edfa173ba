"""Names of modules with another meaning inside a trace: ``np.zeros``, ``math.sin``, ``scipy.linalg.expm``.

NumPy does not dispatch such calls to its operands. So while some thread traces, each module with registered
substitutes has a subclass of ModuleType as its class, in which the intercepted names are properties. The getter looks
at its caller: only code that is neither NumPy's, SciPy's nor ours, at an instruction that loads that very name, in a
context with an active trace, gets the substitute; everyone else gets the module's own object.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FrameType, ModuleType
from typing import Any

from ..where import ByCode, is_ours
from .around import Around
from .array import Tracer
from .outside import trace_here
from .trace import CURRENT

Provider = Callable[[ModuleType], Mapping[str, Any]]

UFUNC_METHODS = frozenset({"accumulate", "outer", "reduce", "reduceat"})
LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"})
PROVIDERS: dict[str, list[Provider]] = {}


def substitutes(module: str) -> Callable[[Provider], Provider]:
    """Register a function that is given the module, once it is loaded, and returns substitutes by name.

    A function stands for a function. What stands for a class is used only where the class is called, so that
    ``isinstance`` and ``dtype=`` keep the class.
    """

    def register(provider: Provider) -> Provider:
        PROVIDERS.setdefault(module, []).append(provider)
        return provider

    return register


class StandIn:
    """A substitute for a function: outside a trace it is the function, which it equals, describes and pickles as."""

    def __init__(self, original: Callable[..., Any], substitute: Callable[..., Any]) -> None:
        self.original, self._substitute = original, substitute
        self.__module__, self.__doc__ = getattr(original, "__module__", ""), original.__doc__

    __class__ = property(lambda self: type(self.original))  # for ``isinstance``

    def __call__(self, *args: Any, **options: Any) -> Any:
        if CURRENT.get() is None:
            return self.original(*args, **options)
        for x in args:
            if type(x[0] if type(x) is list and x else x) is Tracer:  # this is part of a trace, which is slow to find
                return self._substitute(*args, **options)
        call = self.original if trace_here() is None else self._substitute
        return call(*args, **options)

    def __getattr__(self, name: str) -> Any:
        own = self._substitute if name in UFUNC_METHODS else self.original
        return getattr(own, name, None) or getattr(self.original, name)

    def __repr__(self) -> str:
        return repr(self.original)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.original

    def __hash__(self) -> int:
        return hash(self.original)

    def __reduce__(self) -> Any:
        return operator.getitem, ((self.original,), 0)


def _called_by_user(frame: FrameType, name: str, called: bool) -> bool:
    """Whether this frame is the user's and its present instruction loads ``name``; with ``called``, to call it.

    Compiled extensions have no frames: their callers look like the user's code, but are at another
    instruction. A tracer handed to them could crash the process.
    """
    loaded, callee = ("", False) if is_ours(frame) else _loads[frame.f_code].get(frame.f_lasti, ("", False))
    return loaded in {name, "getattr"} and (callee or not called)


def _loads_of(code: CodeType) -> Iterator[tuple[int, tuple[str, bool]]]:
    """For each instruction that loads an attribute: its name, and whether it is called there.

    A call of ``getattr`` counts as a load of the name ``getattr``.
    """
    spans = [(i, i.positions) for i in dis.get_instructions(code)]
    starts: dict[Any, list[Any]] = {}
    for i, at in spans:
        if at is not None and at.lineno is not None:
            starts.setdefault((at.lineno, at.col_offset), []).append(((at.end_lineno, at.end_col_offset), i))
    for i, at in spans:
        here = starts.get(None if at is None else (at.lineno, at.col_offset), [])
        end = None if at is None else (at.end_lineno, at.end_col_offset)
        if i.opname in LOADS:
            wider = sorted((e for e in here if e[0] > end), key=lambda e: e[0])
            next_up = [x.opname for e, x in wider if e == wider[0][0]]
            yield i.offset, (i.argval, i.opname == "LOAD_METHOD" or any("CALL" in op for op in next_up))
        elif "CALL" in i.opname:
            inside = [(e, x) for e, x in here if end is not None and e < end]
            if len({e for e, _ in inside}) == 1 and inside[0][1].argval == "getattr":  # not a call of its result
                yield i.offset, ("getattr", False)


_loads = ByCode(lambda code: dict(_loads_of(code)))


class Substituted:
    """A module with substitutes: the class that it has during traces, and its stand-ins for functions."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.original = module, type(module)
        self.stand_ins: list[StandIn] = []
        found = {key: item for provider in PROVIDERS[module.__name__] for key, item in provider(module).items()}
        names = {key: self._intercepted(key, item) for key, item in found.items() if key in vars(module)}
        self.cls = type("TracingModule", (type(module),), {"__slots__": (), "__getattr__": _fallback, **names})

    def _intercepted(self, name: str, substitute: Any) -> property:
        original = vars(self.module)[name]
        called = isinstance(original, type)
        stand_in = StandIn(original, substitute) if callable(original) else substitute
        if isinstance(stand_in, StandIn) and not called:
            self.stand_ins.append(stand_in)

        def getter(module: ModuleType) -> Any:
            found = vars(module)[name]
            if CURRENT.get() is None or found is not original or not _called_by_user(sys._getframe(1), name, called):
                return found
            return stand_in if isinstance(stand_in, StandIn) or trace_here(2) is not None else found

        def setter(module: ModuleType, value: Any) -> None:
            vars(module)[name] = value.original if isinstance(value, StandIn) else value

        return property(getter, setter, lambda module: vars(module).pop(name))


def _fallback(module: ModuleType, name: str) -> Any:
    """Do what the module does for a missing name; a class that has this is not specialised as a plain module."""
    own = vars(module).get("__getattr__")
    if own is not None:
        return own(name)
    raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")


class Patcher:
    """Something else that means another thing during traces, such as a name bound early or a method of a class."""

    def follow(self, stand_ins: Mapping[int, StandIn]) -> None:
        """Take note of further stand-ins, by the id of the original."""

    def patch(self) -> None:
        """Put what is meant into place, as the first of several overlapping traces begins."""
        raise NotImplementedError

    def restore(self) -> None:
        """Undo that after the last, or as much of it as there is; an interrupted one is repeated."""
        raise NotImplementedError


PATCHERS: list[Patcher] = []


class Interception(Around):
    """Swaps the modules' classes when the first of several overlapping traces begins, and back after the last.

    If the interpreter refuses the swap, names are not intercepted: ``np.zeros`` makes a plain array, and writing a
    traced value into it raises a named error.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Substituted] = {}
        self._by_original: dict[int, StandIn] = {}
        self._swapped: list[Substituted] = []

    def meaning(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The substitute of a function that is traced directly, as in ``grad(scipy.special.logsumexp)``."""
        return self._by_original.get(id(function), function)

    def set_up(self) -> None:
        for name in PROVIDERS:
            module = sys.modules.get(name)
            if module is None:  # not loaded, as SciPy may be
                continue
            if name not in self._known:
                known = Substituted(module)
                stand_ins = {id(s.original): s for s in known.stand_ins}
                self._by_original.update(stand_ins)
                for patcher in PATCHERS:
                    patcher.follow(stand_ins)
                self._known[name] = known
            self._swapped.append(self._known[name])  # first, so that an interrupt between the two is undone
            with suppress(TypeError):
                module.__class__ = self._known[name].cls
        for patcher in PATCHERS:
            patcher.patch()

    def undo(self) -> None:
        for patcher in reversed(PATCHERS):
            patcher.restore()
        for known in self._swapped:
            known.module.__class__ = known.original
        self._swapped.clear()


INTERCEPTION = Interception()
