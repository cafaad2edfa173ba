"""Calls that C serves: a function that is one kernel, called with plain arrays and numbers by position.

The server of such a call is C that tests the arguments and the check of what was read, and runs the kernel. It leaves
all other calls, and those that fail, to the general way.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Any

from ..tracer.trace import CURRENT
from .compiled import UNSERVED
from .paths import Found, Paths
from .settings import OVERRIDES, config
from .unpackers import SHORTER

SERVED_AS = "served_as"  # the attribute of paths that tells a server that they are its own
MOST = 4  # servers of one function


def shorten(compiled: Any, found: Found, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let C serve later calls like this one, if it can."""
    paths, call = found.paths, found.call
    settings = compiled._transform.settings()
    if settings.backend == "numpy" or settings.exact or settings.debug_nans or kwargs or not isinstance(paths, Paths):
        return
    if not args or len(call.traced) != len(args) or any(map(operator.is_not, args, call.leaves)):
        return
    _serve(compiled, paths, call.key)


def _serve(compiled: Any, paths: Paths, key: Any) -> None:
    function = paths.code.function
    ways = list(paths.known.values())
    maker = getattr(getattr(function, "__self__", None), "server", None)
    if not isinstance(maker, BuiltinFunctionType) or len(ways) != 1 or ways[0].derived.later is not None:
        return
    order, assemble = _order(ways[0].assemble, len(paths.code.graph.outputs))
    versions = compiled._cache.versions((compiled._transform.settings(), key))
    token = object()
    vars(paths)[SERVED_AS] = token, getattr(paths._relied, "plain", None)
    names = SERVED_AS, "check", "_user"
    force = CURRENT, OVERRIDES, vars(config), "base", config.now()
    server = maker((*force, versions, token, order, assemble, UNSERVED, (), *names))
    known = [old for old in compiled._servers if isinstance(old, BuiltinFunctionType)]
    for old in known[MOST - 1 :]:
        compiled._servers.remove(old)
    compiled._servers.insert(0, server)


def _order(assemble: Callable[[Sequence[Any]], Any], n: int) -> tuple[Any, Any]:
    """The order of the results in tuples, or what puts them together; neither, if they are right as they come."""
    marks = [object() for _ in range(n)]
    places = {id(mark): k for k, mark in enumerate(marks)}

    def order(x: Any) -> Any:
        return tuple(map(order, x)) if type(x) is tuple else places[id(x)]

    try:
        known = order(assemble(marks))
    except Exception:  # noqa: BLE001 - containers of the user's, which may refuse marks; others, and constants
        known = None
    if n == 1:
        return None, None if known == 0 else lambda result: assemble([result])
    if known is None:
        return None, assemble
    return (None, None) if known == (*range(n),) else (known, None)


SHORTER.append(shorten)
