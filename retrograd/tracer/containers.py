"""Classes of containers, and trees that go together: prefixes of a tree, and its parts by another structure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import optree

from ..errors import TreeError
from .tree import NAMESPACE, Spec, flatten, written

REGISTERED: set[type] = set()  # classes that were made containers


def map_kind(kind: type, function: Callable[..., Any], tree: Any) -> Any:
    """The tree with ``function`` applied to each container of the class ``kind``; everything else stays."""

    def found(x: Any) -> bool:
        return isinstance(x, kind)

    return optree.tree_map(lambda x: function(x) if found(x) else x, tree, is_leaf=found, namespace=NAMESPACE)


def flatten_until(tree: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], Spec]:
    """Leaves and structure, where containers for which ``is_leaf`` holds are leaves."""
    flatten(tree)  # which registers dataclasses
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def flatten_like(spec: Spec, tree: Any, what: str) -> list[Any]:
    """The leaves of ``tree``; TreeError unless it has the structure ``spec``."""
    leaves, found = flatten(tree)
    if found != spec:
        raise TreeError(
            f"{what}: the structure is {written(found)}, expected {written(spec)}",
            remedy="pass the same containers",
        )
    return leaves


def flatten_up_to(spec: Spec, tree: Any, what: str) -> list[Any]:
    """The parts of ``tree`` at the leaves of ``spec``, of any type; TreeError if the containers differ."""
    try:
        parts: list[Any] = spec.flatten_up_to(tree)
    except ValueError as fault:
        raise TreeError(
            f"{what} does not fit the structure {written(spec)}: {fault}",
            remedy="pass the same containers",
        ) from None
    return parts


def prefix_leaves(prefix: Any, spec: Spec, what: str) -> list[Any]:
    """One value of ``prefix`` (a tree, or one value for a whole subtree) per leaf of ``spec``."""
    dummy = optree.tree_unflatten(spec, [0] * spec.num_leaves)
    shared = object()  # None is a value in a prefix, and a container in the full tree
    prefix = optree.tree_map(lambda x: shared if x is None else x, prefix, none_is_leaf=True, namespace=NAMESPACE)
    try:
        spread: Sequence[Any] = optree.broadcast_prefix(prefix, dummy, namespace=NAMESPACE)
    except ValueError as fault:
        raise TreeError(
            f"{what} does not fit the structure {written(spec)}: {fault}",
            remedy="give one value for all, or a tree of values with this structure",
        ) from None
    return [None if x is shared else x for x in spread]


def is_container(cls: type) -> bool:
    """Whether objects of a class of the user's are containers."""
    return cls in REGISTERED or dataclasses.is_dataclass(cls)


def parts_of(x: Any) -> list[Any]:
    """What a container holds directly; nothing of any other object."""
    if optree.tree_is_leaf(x, namespace=NAMESPACE):
        return []
    return list(optree.tree_flatten_one_level(x, namespace=NAMESPACE)[0])


def register_container(
    cls: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any] | tuple[Iterable[Any], Any, Iterable[str]]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Make a class a container, so that transforms take and return its instances.

    Parameters
    ----------
    cls : type
        The class.
    flatten_func : callable
        ``flatten_func(x)`` returns the children and data: hashable objects, or lists and dicts of these. A third part
        may give the names of the children, which then name arguments in generated code.
    unflatten_func : callable
        ``unflatten_func(data, children)`` returns an instance.

    Raises
    ------
    ValueError
        If the class is registered already.

    Examples
    --------
    >>> import retrograd as rg
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> rg.register_container(Interval, lambda x: ((x.low, x.high), None), lambda _, ends: Interval(*ends))
    >>> float(rg.grad(lambda x: x.high**2 - x.low)(Interval(1.0, 3.0)).high)
    6.0
    """
    optree.register_pytree_node(cls, flatten_func, unflatten_func, namespace=NAMESPACE)
    REGISTERED.add(cls)
