"""Methods of other libraries' classes that mean something else for traced values: ``norm.logpdf``, a spline's call.

An object made outside the traced function cannot be replaced by name, as functions of modules are. So while a trace is
active these methods of its class are ours; they hand every call over that is not ours to answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from types import ModuleType
from typing import Any, NamedTuple

from .trace import CURRENT


class Method(NamedTuple):
    """A method of a class, and ``handler(original, self, *args, **options)`` that stands for it inside a trace."""

    cls: type
    name: str
    handler: Callable[..., Any]


Provider = Callable[[ModuleType], Iterable[Method]]
PROVIDERS: dict[str, list[Provider]] = {}


def methods(module: str) -> Callable[[Provider], Provider]:
    """The decorated function lists the methods of a module's classes that have handlers, once the module is loaded."""

    def register(provider: Provider) -> Provider:
        PROVIDERS.setdefault(module, []).append(provider)
        return provider

    return register


class ClassMethods:
    """Puts handlers in on the first of several overlapping traces, and the methods back after the last."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[type, str, Any, Any]]] = {}
        self._patched: list[tuple[type, str, Any]] = []

    def patch(self) -> None:
        """Put the handlers in, for the modules that are loaded."""
        for name, providers in PROVIDERS.items():
            module = sys.modules.get(name)
            if module is None:
                continue
            if name not in self._known:
                located = [_located(m) for provider in providers for m in provider(module)]
                self._known[name] = list({found[:2]: found for found in located}.values())  # classes share methods
            for owner, method, original, substitute in self._known[name]:
                setattr(owner, method, substitute)
                self._patched.append((owner, method, original))

    def restore(self) -> None:
        """Put the methods back."""
        for owner, method, original in self._patched:
            setattr(owner, method, original)
        self._patched.clear()


def _located(method: Method) -> tuple[type, str, Any, Any]:
    """The class that defines the method, its name, the method, and what stands for it."""
    owner = next(cls for cls in method.cls.__mro__ if method.name in vars(cls))
    original = vars(owner)[method.name]

    @wraps(original)
    def substitute(self: Any, *args: Any, **options: Any) -> Any:
        if CURRENT.get() is None:
            return original(self, *args, **options)
        return method.handler(original, self, *args, **options)

    return owner, method.name, original, substitute
