"""Trees of containers: the only file that knows optree."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import optree

from ..errors import TreeError
from .around import renewed

NAMESPACE = "retrograd"
_dataclasses: set[type] = set()
_nondiff_fields: dict[Any, frozenset[str]] = {}
NONDIFF = "nondiff"  # the key in a field's metadata
Spec = optree.PyTreeSpec


def nondiff_leaves(spec: Spec) -> list[bool]:
    """For each leaf, whether it lies in a dataclass field marked as nondiff: its gradient is then None.

    >>> from dataclasses import dataclass, field
    >>> import retrograd as rg
    >>> @dataclass
    ... class Spring:
    ...     stretch: float
    ...     stiffness: float = field(default=2.0, metadata={"nondiff": True})
    >>> rg.grad(lambda s: 0.5 * s.stiffness * s.stretch**2)(Spring(3.0))
    Spring(stretch=np.float64(6.0), stiffness=None)
    """
    if spec.is_leaf():
        return [False]
    fixed = _nondiff_fields.get(spec.type, frozenset())
    parts = zip(spec.entries(), spec.children(), strict=True)
    return [f for name, part in parts for f in ([True] * part.num_leaves if name in fixed else nondiff_leaves(part))]


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """Leaves and structure. Dicts, lists, tuples, namedtuples, None and dataclasses are containers."""
    leaves, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    new = {type(x) for x in leaves if dataclasses.is_dataclass(x) and not isinstance(x, type)}
    if not new:
        return leaves, spec
    for cls in new:
        _register_dataclass(cls)
    return flatten(tree)


def unflatten(spec: Spec, leaves: Iterable[Any]) -> Any:
    """The inverse of ``flatten``."""
    return optree.tree_unflatten(spec, leaves)


def children(spec: Spec) -> list[Spec]:
    """The structures of the direct children."""
    return spec.children()


def leaf_paths(spec: Spec) -> list[str]:
    """A name for each leaf: keys, attributes and positions on its way, joined by underscores."""
    return ["_".join(str(p) for p in path) for path in spec.paths()]


def map_leaves(function: Callable[..., Any], tree: Any) -> Any:
    """The tree with ``function`` applied to each leaf."""
    leaves, spec = flatten(tree)
    return unflatten(spec, map(function, leaves))


def map_kind(kind: type, function: Callable[..., Any], tree: Any) -> Any:
    """The tree with ``function`` applied to each container of the class ``kind``; everything else stays."""

    def found(x: Any) -> bool:
        return isinstance(x, kind)

    return optree.tree_map(lambda x: function(x) if found(x) else x, tree, is_leaf=found, namespace=NAMESPACE)


def flatten_up_to(spec: Spec, tree: Any, what: str) -> list[Any]:
    """The parts of ``tree`` at the leaves of ``spec``, of any type; TreeError if the containers differ."""
    try:
        parts: list[Any] = spec.flatten_up_to(tree)
    except ValueError as fault:
        raise TreeError(
            f"{what} does not fit the structure {spec}: {fault}",
            remedy="pass the same containers",
        ) from None
    return parts


def flatten_like(spec: Spec, tree: Any, what: str) -> list[Any]:
    """The leaves of ``tree``; TreeError unless it has the structure ``spec``."""
    leaves, found = flatten(tree)
    if found != spec:
        raise TreeError(
            f"{what}: the structure is {found}, expected {spec}",
            remedy="pass the same containers",
        )
    return leaves


def prefix_leaves(prefix: Any, spec: Spec, what: str) -> list[Any]:
    """One value of ``prefix`` (a tree, or one value for a whole subtree) per leaf of ``spec``."""
    dummy = optree.tree_unflatten(spec, [0] * spec.num_leaves)
    shared = object()  # None is a value in a prefix, and a container in the full tree
    prefix = optree.tree_map(lambda x: shared if x is None else x, prefix, none_is_leaf=True, namespace=NAMESPACE)
    try:
        spread: Sequence[Any] = optree.broadcast_prefix(prefix, dummy, namespace=NAMESPACE)
    except ValueError as fault:
        raise TreeError(
            f"{what} does not fit the structure {spec}: {fault}",
            remedy="give one value for all, or a tree of values with this structure",
        ) from None
    return [None if x is shared else x for x in spread]


def register_container(
    cls: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any] | tuple[Iterable[Any], Any, Iterable[str]]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Make a class a container: ``flatten_func(x) -> (children, data)``, ``unflatten_func(data, children)``.

    ``flatten_func`` may return a third part, the names of the children, which then name arguments in generated code.
    Raises ValueError for a class that is registered already.

    >>> import retrograd as rg
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> rg.register_container(Interval, lambda x: ((x.low, x.high), None), lambda _, ends: Interval(*ends))
    >>> float(rg.grad(lambda x: x.high**2 - x.low)(Interval(1.0, 3.0)).high)
    6.0
    """
    optree.register_pytree_node(cls, flatten_func, unflatten_func, namespace=NAMESPACE)


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
