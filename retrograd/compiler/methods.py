"""Compiled methods: bound to an instance, which has compilations of its own while it lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .compilation import INSPECTORS


def bound(compiled: Any, instance: Any, owner: type | None, caches: Callable[[], dict[str, Any]]) -> Any:
    """A compiled function as a method of an instance, as functions are bound; itself if it wraps no function."""
    if not hasattr(compiled._user, "__get__"):
        return compiled
    method = object.__new__(type(compiled))
    method.__dict__.update(compiled.__dict__)
    method._bound = compiled, instance
    method._user = compiled._user.__get__(instance, owner)
    method._function = compiled._transform.build(method._user)
    known = compiled._methods.get(id(instance))
    if known is None:
        known = compiled._methods[id(instance)] = (_keeper(compiled, instance), caches())
    method.__dict__.update(known[1])
    return method


def _keeper(compiled: Any, instance: Any) -> Any:
    """The finalizer of an instance, which drops its compilations with it; or the instance itself."""
    try:
        end = weakref.finalize(instance, compiled._methods.pop, id(instance), None)
    except TypeError:  # no weak references to it: it is kept, so that its identity stays its own
        return instance
    end.atexit = False
    return end


INSPECTORS["bound"] = bound
