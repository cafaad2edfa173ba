"""Calls that C serves: those of a function that is one kernel.

The server of such a call is C that takes the arguments apart by a pattern, tests them and the check of what was read,
and runs the kernel. The compiled function then has a type whose calls ask the servers in C, without a frame of Python
between. All other calls, and those that fail, go the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import BuiltinFunctionType
from typing import Any

from ..tracer.trace import CURRENT
from .call_patterns import TUPLE, NoPattern, order_of, pattern_of
from .compiled import UNSERVED, Compiled
from .paths import Found, Paths
from .settings import OVERRIDES, config
from .signature import Call
from .unpackers import MOST_LEAVES, SHORTER

SERVED_AS = "served_as"  # the attribute of paths that tells a server that they are its own
MOST = 8  # servers of one function
_SERVED: list[type[Compiled]] = []


def shorten(compiled: Any, found: Found, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let C serve later calls like this one, if it can."""
    paths, call = found.paths, found.call
    settings = compiled._transform.settings()
    if settings.backend == "numpy" or settings.exact or settings.debug_nans or not isinstance(paths, Paths):
        return
    if not call.traced or len(call.leaves) > MOST_LEAVES:
        return
    maker = of_kernel(paths, "server")
    if maker is not None:
        try:
            patterns = pattern_of(call, args, kwargs)
        except NoPattern:
            return
        _serve(compiled, paths, call, maker, patterns)


def of_kernel(paths: Paths, name: str) -> Callable[[Any], Any] | None:
    """A function of the module whose only kernel is all of these paths; None if they do more."""
    ways = list(paths.known.values())  # none, if calls are interpreted
    if len(ways) != 1 or ways[0].derived.later is not None:
        return None
    found = getattr(getattr(paths.code.function, "__self__", None), name, None)
    return found if isinstance(found, BuiltinFunctionType) else None


def _serve(compiled: Any, paths: Paths, call: Call, maker: Callable[[Any], Any], patterns: Any) -> None:
    (way,) = paths.known.values()
    order, assemble = _order(way.assemble, len(paths.code.graph.outputs))
    versions = compiled._cache.versions((compiled._transform.settings(), call.key))
    token, _ = vars(paths).get(SERVED_AS, (object(), None))  # compiled functions of one code share paths
    vars(paths)[SERVED_AS] = token, getattr(paths._relied, "plain", None)
    sizes = len(call.traced), len(call.leaves) - len(call.traced)
    names = SERVED_AS, "check", "_user"
    force = CURRENT, OVERRIDES, vars(config), "base", config.now()
    counted = compiled._cache.served
    server = maker((*force, versions, token, *patterns, *sizes, order, assemble, UNSERVED, (), *names, counted))
    known = [old for old in compiled._servers if isinstance(old, BuiltinFunctionType)]
    for old in known[MOST - 1 :]:
        compiled._servers.remove(old)
    compiled._servers.insert(0, server)
    if type(compiled) is Compiled:
        with suppress(TypeError):  # a Python that does not let it change takes calls in Python
            compiled.__class__ = _served_type(paths)


def _served_type(paths: Paths) -> type[Compiled]:
    """The type of compiled functions whose calls C takes, the same for all."""
    if not _SERVED:
        maker = of_kernel(paths, "served")
        assert maker is not None
        _SERVED.append(maker(((Compiled,), "_servers", UNSERVED, Compiled.call)))
    return _SERVED[0]


def _order(assemble: Callable[[Sequence[Any]], Any], n: int) -> tuple[Any, Any]:
    """The order of the results, or what puts them together; neither, if they are right as they come."""
    known = order_of(assemble, n)
    if n == 1 and known is None:
        return None, lambda result: assemble([result])
    if known is None:
        return None, assemble
    as_it_comes = 0 if n == 1 else (TUPLE, None, (*range(n),))
    return (None, None) if known == as_it_comes else (known, None)


SHORTER.append(shorten)
