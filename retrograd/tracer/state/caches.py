"""Functions that remember their results: ``functools.lru_cache`` and ``functools.cache``.

The result of such a function depends on earlier calls, and its own code may not run. So a trace that calls
one relies on the answer: the check of a compiled function asks again, which is as quick as the cache is, and tells a
cache that was cleared, filled by others or has dropped an entry.
"""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any

from .classes import is_a

Key = tuple[tuple[Any, ...], tuple[str, ...]]  # all arguments; the names of the last of them


def question_of(f: Any, args: tuple[Any, ...], names: tuple[str, ...] = ()) -> tuple[Any, Key] | None:
    """The function with a cache that a call runs, and what it is asked; None if there is no cache.

    >>> import math
    >>> root = functools.cache(math.sqrt)
    >>> question_of(root, (4.0,)) == question_of(functools.partial(root, 4.0), ()) == (root, ((4.0,), ()))
    True
    >>> question_of(math.sqrt, (4.0,)) is None
    True
    """
    while not is_a(f, functools._lru_cache_wrapper):
        if is_a(f, functools.partial):
            given = {**f.keywords, **dict(zip(names, args[len(args) - len(names) :], strict=True))}
            args, names = (*f.args, *args[: len(args) - len(names)], *given.values()), tuple(given)
            f = f.func
        elif type(f) is MethodType:
            f, args = f.__func__, (f.__self__, *args)
        else:
            return None
    return (f, (args, names)) if f.cache_info().maxsize != 0 else None


def asked(f: Any, key: Key) -> Any:
    """The answer."""
    args, names = key
    split = len(args) - len(names)
    return f(*args[:split], **dict(zip(names, args[split:], strict=True)))
