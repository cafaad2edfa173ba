"""Trees of containers."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import optree

from ..errors import TreeError
from .around import renewed

NAMESPACE = "retrograd"
_dataclasses: set[type] = set()
_nondiff_fields: dict[Any, frozenset[str]] = {}
NONDIFF = "nondiff"  # the key in a field's metadata
Besides = type("Besides", (tuple,), {})  # what a container of the user's holds besides its parts
Spec = optree.PyTreeSpec


def nondiff_leaves(spec: Spec) -> list[bool]:
    """For each leaf, whether it lies in a dataclass field marked as nondiff: its gradient is then None."""
    found: list[bool] = []
    rest = [(spec, False)]
    while rest:
        part, fixed = rest.pop()
        if part.is_leaf():
            found.append(fixed)
        else:
            names, entries = _nondiff_fields.get(part.type, frozenset()), reversed(part.entries())
            rest += [(x, fixed or k in names) for k, x in zip(entries, reversed(part.children()), strict=True)]
    return found


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """Leaves and structure. Dicts, lists, tuples, namedtuples, None and dataclasses are containers."""
    try:
        leaves, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    except RecursionError:
        remedy = "pass fewer than 1000 levels: a flat list, or arrays stacked by np.stack"
        raise TreeError("containers are nested too deeply, or one contains itself", remedy=remedy) from None
    for cls in (new := {type(x) for x in leaves if dataclasses.is_dataclass(x) and not isinstance(x, type)}):
        _register_dataclass(cls)
    return flatten(tree) if new else (leaves, spec)


def unflatten(spec: Spec, leaves: Iterable[Any]) -> Any:
    """The inverse of ``flatten``."""
    return optree.tree_unflatten(spec, leaves)


def is_known_dataclass(cls: type) -> bool:
    """Whether objects of this class were met as containers."""
    return cls in _dataclasses


def key_orders(tree: Any) -> tuple[Any, ...]:
    """The keys of dicts in order of insertion, which structures do not tell; what the user's containers hold besides.

    >>> key_orders([{"b": 1, "a": {}}, 2])
    (('b', 'a'), ())
    """
    found, rest = [], [tree]
    while rest:
        x = rest.pop()
        if type(x) in (dict, OrderedDict, defaultdict):
            found.append(tuple(x))
            rest += reversed(x.values())
        elif not optree.tree_is_leaf(x, namespace=NAMESPACE):
            row = issubclass(type(x), (list, tuple))
            parts, held, *_ = (x, None) if row else optree.tree_flatten_one_level(x, namespace=NAMESPACE)
            found += [Besides([held])] if held is not None else []
            rest += reversed(parts)
    return tuple(found)


def children(spec: Spec) -> list[Spec]:
    """The structures of the direct children."""
    return spec.children()


def leaf_paths(spec: Spec) -> list[str]:
    """A name for each leaf: keys, attributes and positions on its way, joined by underscores."""
    return ["_".join(map(_named, path)) for path in spec.paths()]


def _named(key: Any) -> str:
    with suppress(Exception):  # which a key of the user's may raise
        return str(key)
    return type(key).__name__


def written(spec: Spec, levels: int = 12) -> str:
    """A structure as Python writes it, with a dot for each leaf, down to some levels.

    >>> written(flatten(([1.0, 2.0], {"a": (3.0,), "b": None}))[1])
    "([·, ·], {'a': (·,), 'b': None})"
    """
    if spec.is_leaf():
        return "·" if levels < 12 else "a single value"
    if not levels or spec.type is type(None):
        return "None" if spec.type is type(None) else "..."
    kind: Any = spec.type
    parts = [written(x, levels - 1) for x in spec.children()]
    if kind is tuple:
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    names = getattr(kind, "_fields", spec.entries())
    if issubclass(kind, dict):
        text = f"{{{', '.join(f'{k!r}: {x}' for k, x in zip(names, parts, strict=True))}}}"
    elif kind is not list and all(isinstance(k, str) for k in names):
        text = ", ".join(f"{k}={x}" for k, x in zip(names, parts, strict=True))
    else:
        text = f"[{', '.join(parts)}]"
    return text if kind in (list, dict) else f"{kind.__name__}({text})"


def map_leaves(function: Callable[..., Any], tree: Any) -> Any:
    """The tree with ``function`` applied to each leaf."""
    leaves, spec = flatten(tree)
    return unflatten(spec, map(function, leaves))


class _Registration:
    """Dataclasses become containers one at a time."""

    def __init__(self) -> None:
        renewed(self)

    def renew_locks(self) -> None:
        self._lock = threading.RLock()

    def __call__(self, cls: type) -> None:
        with self._lock, suppress(ValueError):  # an interrupt may have come when it was registered
            if cls not in _dataclasses:  # another thread may have met it meanwhile
                _register(cls)
        _dataclasses.add(cls)


_register_dataclass = _Registration()


def _register(cls: type) -> None:
    names = tuple(f.name for f in dataclasses.fields(cls))
    _nondiff_fields[cls] = frozenset(f.name for f in dataclasses.fields(cls) if f.metadata.get(NONDIFF))

    def take_apart(x: Any) -> tuple[list[Any], None, tuple[str, ...]]:
        return [getattr(x, n) for n in names], None, names

    def put_together(_: Any, values: Iterable[Any]) -> Any:
        made: Any = object.__new__(cls)
        for name, value in zip(names, values, strict=True):
            object.__setattr__(made, name, value)
        return made

    optree.register_pytree_node(cls, take_apart, put_together, namespace=NAMESPACE)
