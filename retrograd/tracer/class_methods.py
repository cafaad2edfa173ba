"""Methods of other libraries' classes that mean something else for traced values: ``norm.logpdf``, a spline's call.

An object made outside the traced function cannot be replaced by name, as a function of a module can. So while a trace
is active, handlers replace these methods of its class; a handler passes on the calls that it does not answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from types import ModuleType
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
        self._known: dict[str, list[tuple[type, str, Any, Any]]] = {}
        self._patched: list[tuple[type, str, Any]] = []

    def patch(self) -> None:
        """Install the handlers of all loaded modules."""
        for name, providers in PROVIDERS.items():
            module = sys.modules.get(name)
            if module is None:
                continue
            if name not in self._known:
                located = [_located(m) for provider in providers for m in provider(module)]
                self._known[name] = list({found[:2]: found for found in located}.values())  # classes share methods
            for owner, method, original, substitute in self._known[name]:
                self._patched.append((owner, method, original))  # first: an interrupt between the two is undone
                setattr(owner, method, substitute)

    def restore(self) -> None:
        """Restore the methods."""
        for owner, method, original in self._patched:
            setattr(owner, method, original)
        self._patched.clear()


def _located(method: Method) -> tuple[type, str, Any, Any]:
    """The class that defines the method, its name, the method, and its replacement."""
    owner = next(cls for cls in method.cls.__mro__ if method.name in vars(cls))
    original = vars(owner)[method.name]

    @wraps(original)
    def substitute(self: Any, *args: Any, **options: Any) -> Any:
        if trace_here() is None:
            return original(self, *args, **options)
        return method.handler(original, self, *args, **options)

    return owner, method.name, original, substitute


PATCHERS.append(ClassMethods())
