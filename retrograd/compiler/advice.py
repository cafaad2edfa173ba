"""Recompilation, as compiled functions tell of it: two warnings, why a call would compile again, and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import RetraceWarning, UnwatchedWarning
from ..tracer.state.exact import Exact, exactly
from ..tracer.tree import written
from ..where import warn
from .cache import SHARING, CacheInfo
from .compilation import INSPECTORS
from .compiled import member
from .paths import Paths
from .settings import Settings
from .signature import Call
from .varying_ints import as_known


def _once(category: type[Warning], said: str, instead: str) -> Callable[[Any, Paths, Sequence[Any]], None]:
    """A warning that names what a function read and was another; once for each function."""

    def warn_once(compiled: Any, paths: Paths, statics: Sequence[Any]) -> None:
        if category not in compiled._told:
            compiled._told.add(category)
            warn(f"{compiled!r} {said}: {paths.changed(compiled._user, statics)}. {instead}", category)

    return warn_once


retraced = _once(  # it has all the versions of one signature that are kept
    RetraceWarning,
    "was compiled many times for one signature, because a value that it reads changes each time. Last change",
    "Pass the value as an argument: an array or a float",
)
unwatched = _once(  # its recordings hold for one call each
    UnwatchedWarning,
    "is traced at each call and not compiled, because it changes what it reads, reads what cannot be checked, or makes "
    "an object that it returns",
    "Each call takes about as long as the first. Pass the value as an argument, and return the new value; a counter, "
    "or an object that holds no traced value, belongs around the call",
)


@member
def explain_retrace(self: Any, /, *args: Any, **kwargs: Any) -> str:
    """Say what a call with these arguments would compile, and why.

    Parameters
    ----------
    *args, **kwargs
        The arguments of a call, which is not made.

    Returns
    -------
    str
        The reason.

    Raises
    ------
    RetrogradError
        If the arguments cannot be taken.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> f = rg.jit(np.sin)
    >>> y = f(np.ones(3))
    >>> f.explain_retrace(np.zeros(3))
    'nothing would be compiled: a version for these arguments is valid'
    """
    return _explained(self, self._take(args, kwargs))


@member
def cache_info(self: Any, /) -> CacheInfo:
    """Counts of calls and compilations.

    Returns
    -------
    CacheInfo
        ``hits``, the calls that found their signature compiled; ``misses``, the calls that compiled it; and the number
        of signatures that are kept.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> f = rg.jit(np.sin)
    >>> results = [f(np.ones(n)) for n in (3, 3, 4)]
    >>> f.cache_info().hits, f.cache_info().misses
    (1, 2)
    """
    found: CacheInfo = self._cache.info()
    return found


def _explained(compiled: Any, call: Call) -> str:
    call = as_known(compiled, call)
    key, entries = (compiled._transform.settings(), call.key), compiled._cache.entries
    statics = call.statics()
    versions = [*entries.get(key, ()), *(SHARING[-1].versions_of(compiled._user, (compiled._transform, key)) or ())]
    if any(paths.check(compiled._user, statics) is not None for paths in versions):
        return "nothing would be compiled: a version for these arguments is valid"
    if versions:
        return f"state that the function reads has changed: {versions[0].changed(compiled._user, statics)}"
    others = [known for known, kept in entries.items() if kept]
    if not others:
        return "nothing has been compiled yet"
    return min((list(_differences(known, key, call)) for known in reversed(others)), key=len)[0]


def _differences(known: Any, key: Any, call: Call) -> Iterator[str]:
    """How a key differs from one that is known."""
    for name, before, now in zip(Settings._fields, known[0], key[0], strict=True):
        if before != now:
            yield f"rg.config.{name} is {now!r}, but was {before!r}"
    told, *leaves = known[1]
    spec, orders = told[0].value
    if exactly(spec) != exactly(call.spec):
        yield f"the structure of the arguments is {written(call.spec)}, but was {written(spec)}"
        return
    if told != key[1][0]:
        yield f"the keys of dicts have the order {call.orders}, but had {orders}"
    for name, before, now in zip(call.names, leaves, call.leaf_keys(), strict=True):
        if before != now:
            yield f"{name} is {_described(now)}, but was {_described(before)}"


def _described(key: Any) -> str:
    """A part of a key in words: an array, a type, or a value that is static."""
    if isinstance(key, tuple) and key and isinstance(key[0], tuple):
        shape, dtype, *steps = key
        return f"an array of dtype {dtype} and shape {shape}{f' with the strides {steps[0]}' if steps else ''}"
    if isinstance(key, tuple) and key:
        if type(key[-1]) is Exact:
            return f"the static value {key[-1].value!r}"
        return f"the static value {key[1]!r}" if len(key) > 1 else f"of type {key[0].__name__}"
    return "not read"


INSPECTORS |= {"retraced": retraced, "unwatched": unwatched}
