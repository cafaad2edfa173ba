"""Functions, methods and attributes of NumPy that are not traced, and only run on values known during tracing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..where import user_site
from .array import Tracer, is_known, same_memory, shadow_of, wrap
from .protocol import UNTRACED, Untraced
from .trace import owner, unsupported
from .tree import flatten, map_leaves

OF_STAND_INS = ("base", "flags")  # attributes that a stand-in for an array from outside has otherwise than the array
CHANGING = ("byteswap", "resize", "setfield", "setflags")
REMOVED = frozenset({"itemset", "newbyteorder", "ptp"})  # arrays of some versions of NumPy have them, to say that
MUTATORS = (np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal)


def _tracers(tree: Any) -> list[Tracer]:
    return [x for x in flatten(tree)[0] if isinstance(x, Tracer)]


def _all_known(function: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Whether NumPy can run a function on the example values: what it writes into must hold plain numbers only."""
    writes = function in MUTATORS or function == "at" or options.get("out") is not None
    return all(t.const if writes else is_known(t) for t in _tracers((args, dict(options))))


def _of_numbers(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run NumPy's own function on the plain numbers that the tracers hold."""
    tracers = _tracers((args, dict(kwargs)))
    plain, options = map_leaves(shadow_of, (args, dict(kwargs)))
    found = function(*plain, **options)
    if function in MUTATORS or options.get("out") is not None:
        for t in tracers:
            t.storage.version += 1
    return map_leaves(lambda x: _constant(tracers, x), found)


def _constant(tracers: list[Tracer], x: Any) -> Any:
    """Turn a result into a tracer: an operand, a view of one (readable while it holds plain numbers), or a new one."""
    if not isinstance(x, np.ndarray):
        return x
    where = user_site()[0]
    for t in tracers:
        if t.shadow is x:
            return t
        if same_memory(t.shadow, x):
            return Tracer(t.home, x, t.storage, t, None, where)
    return wrap(owner(tracers), None, x, where)


def _missing_method(name: str) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        if self.const or (name not in CHANGING and is_known(self)):
            found = getattr(self.shadow, name)(*args, **options)
            self.storage.version += 1
            return map_leaves(lambda x: _constant([self], x), found)
        raise unsupported(f"the method {name}() of a traced value", "use a NumPy function that is traced")

    return method


def missing_attribute(name: str) -> property:
    """An attribute of ndarray that can be read only while the value is known, and cannot be set."""

    def get(self: Tracer) -> Any:
        if self.const or (name not in OF_STAND_INS and is_known(self)):
            return getattr(self.shadow, name)
        raise unsupported(f"the attribute {name} of a traced value", "use a NumPy function that is traced")

    def put(self: Tracer, value: Any) -> None:
        raise unsupported(f"setting the attribute {name} of a traced array", "write into the array by index")

    return property(get, put)


def install_others() -> None:
    """Give Tracer the methods and attributes of ndarray that are not traced."""
    for name, attribute in vars(np.ndarray).items():
        if not name.startswith("_") and name not in REMOVED and not hasattr(Tracer, name):
            setattr(Tracer, name, _missing_method(name) if callable(attribute) else missing_attribute(name))


UNTRACED.append(Untraced(_all_known, _of_numbers))
