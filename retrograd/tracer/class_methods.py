"""Methods of other libraries' classes with another meaning for traced values: ``norm.logpdf``, a spline's call.

An object made outside the traced function cannot be replaced by name, as a function of a module can. So while a trace
is active, handlers replace these methods of its class; a handler passes on the calls that it does not answer. A method
that was bound before, as in ``f = norm.logpdf``, holds the function itself, so the code of the function is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from .interception import PATCHERS, Patcher
from .outside import trace_here


class Method(NamedTuple):
    """A method of a class, and ``handler(original, self, *args, **options)`` that stands for it inside a trace."""

    cls: type
    name: str
    handler: Callable[..., Any]


Provider = Callable[[ModuleType], Iterable[Method]]
PROVIDERS: dict[str, list[Provider]] = {}


def methods(module: str) -> Callable[[Provider], Provider]:
    """Register a function that lists the methods with handlers of a module's classes, once the module is loaded."""

    def register(provider: Provider) -> Provider:
        PROVIDERS.setdefault(module, []).append(provider)
        return provider

    return register


class ClassMethods(Patcher):
    """Installs handlers when the first of several overlapping traces begins; restores the methods after the last."""

    def __init__(self) -> None:
        self._known: dict[str, list[Located]] = {}
        self._patched: list[Located] = []

    def patch(self) -> None:
        """Install the handlers of all loaded modules."""
        for name, providers in PROVIDERS.items():
            module = sys.modules.get(name)
            if module is None:
                continue
            if name not in self._known:
                located = [_located(m) for provider in providers for m in provider(module)]
                self._known[name] = list({x.place: x for x in located}.values())  # classes share methods
            for found in self._known[name]:
                self._patched.append(found)  # first: an interrupt between the two is undone
                found.replace()

    def restore(self) -> None:
        """Restore the methods."""
        for found in self._patched:
            found.put_back()
        self._patched.clear()


class Located:
    """A method where its class defines it, and what replaces it there."""

    def __init__(self, owner: type, name: str, original: Any, substitute: Any, code: CodeType | None) -> None:
        self.place = owner, name
        self._original, self._substitute = original, substitute
        self._own = original.__code__ if code is not None else None
        self._code = code

    def replace(self) -> None:
        """Let calls of the method go to the substitute, also of those that were bound before."""
        if self._code is None:
            setattr(*self.place, self._substitute)
        else:
            self._original.__code__ = self._code

    def put_back(self) -> None:
        """Undo that."""
        if self._code is None:
            setattr(*self.place, self._original)
        else:
            self._original.__code__ = self._own


def _located(method: Method) -> Located:
    owner = next(cls for cls in method.cls.__mro__ if method.name in vars(cls))
    original = vars(owner)[method.name]
    by_code = type(original) is FunctionType and not original.__code__.co_freevars
    plain = _copy(original) if by_code else original

    @wraps(original)
    def substitute(self: Any, *args: Any, **options: Any) -> Any:
        if trace_here() is None:
            return plain(self, *args, **options)
        return method.handler(plain, self, *args, **options)

    return Located(owner, method.name, original, substitute, _passing_on(original, substitute) if by_code else None)


def _copy(function: FunctionType) -> FunctionType:
    """A function of the same code, which keeps it."""
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _passing_on(function: FunctionType, substitute: Callable[..., Any]) -> CodeType:
    """Code for a function that calls the substitute, which is a constant of the code."""

    def call(*args: Any, **options: Any) -> Any:
        stands_for: Any = "the substitute"
        return stands_for(*args, **options)

    own, code = call.__code__, function.__code__
    consts = tuple(substitute if x == "the substitute" else x for x in own.co_consts)
    return own.replace(
        co_consts=consts, co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=code.co_firstlineno
    )


PATCHERS.append(ClassMethods())
