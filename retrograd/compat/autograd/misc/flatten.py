"""flatten and flatten_func: lists, tuples and dicts of arrays and numbers as one vector, dicts in the order of keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ....errors import ShapeError, TreeError
from ....tracer.array import shadow_of


class Branch(NamedTuple):
    """A node of a tree: a container of ``items``, or an array with a shape.

    A dict has ``keys``, sorted as its items are, and ``order``, as they stand in the dict.
    """

    kind: type | None
    keys: tuple[Any, ...] = ()
    order: tuple[Any, ...] = ()
    items: tuple[Branch, ...] = ()
    shape: tuple[int, ...] = ()
    real: bool = True

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape)) if self.kind is None else sum(part.size for part in self.items)


class Unflatten:
    """The inverse of ``flatten``: a vector, which may be traced, becomes the tree again. Equal for equal trees."""

    def __init__(self, root: Branch) -> None:
        self._root = root

    def __call__(self, flat: Any) -> Any:
        if np.shape(shadow_of(flat)) != (self._root.size,):
            raise ShapeError(
                f"the tree has {self._root.size} entries, but the vector has the shape {np.shape(shadow_of(flat))}",
                remedy="pass a vector that flatten returned",
            )
        return _made(self._root, flat, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unflatten) and self._root == other._root

    def __hash__(self) -> int:
        return hash(self._root)

    def __repr__(self) -> str:
        return f"<unflatten {self._root.size} entries>"


def flatten(value: Any) -> tuple[Any, Unflatten]:
    """The vector of all entries of a tree, and the function that makes a vector such a tree. Raises TreeError.

    >>> vector, unflatten = flatten({"b": [1.0, 2.0], "a": np.zeros((1, 2))})
    >>> vector
    array([0., 0., 1., 2.])
    >>> unflatten(vector + 1.0)["a"]
    array([[1., 1.]])
    """
    leaves: list[Any] = []
    root = _part(value, leaves)
    return (np.concatenate([np.ravel(x) for x in leaves]) if leaves else np.zeros(0)), _unflatten(root, _typed(root))


@lru_cache(maxsize=256)
def _unflatten(root: Branch, typed: Any) -> Unflatten:
    """One object for equal trees: a function that captures it then captures what it did when it was compiled."""
    return Unflatten(root)


def _typed(part: Branch) -> Any:
    """The types of all keys, since 1, 1.0 and True are equal."""
    return tuple(map(type, part.order)), tuple(map(_typed, part.items))


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Unflatten, Any]:
    """A function of trees as one of vectors, the function that makes them trees, and ``example`` as a vector."""
    flat, unflatten = flatten(example)
    return partial(_flattened, func, unflatten), unflatten, flat


def _flattened(func: Callable[..., Any], unflatten: Unflatten, x: Any, *args: Any) -> Any:
    return flatten(func(unflatten(x), *args))[0]


def _part(value: Any, leaves: list[Any]) -> Branch:
    kind = type(value)
    if kind is dict:
        keys = tuple(sorted(value))
        return Branch(dict, keys, tuple(value), tuple(_part(value[key], leaves) for key in keys))
    if kind is list or kind is tuple:
        return Branch(kind, items=tuple(_part(item, leaves) for item in value))
    plain = np.asarray(shadow_of(value))
    if plain.dtype.kind not in "biufc":
        raise TreeError(
            f"a value of type {kind.__name__} has no entries",
            remedy="flatten lists, tuples and dicts of arrays and numbers",
        )
    leaves.append(value)
    return Branch(None, shape=plain.shape, real=plain.dtype.kind != "c")


def _made(part: Branch, flat: Any, at: int) -> Any:
    if part.kind is None:
        found = np.reshape(flat[at : at + part.size], part.shape)
        return np.real(found) if part.real and np.iscomplexobj(shadow_of(found)) else found
    made = []
    for item in part.items:
        made.append(_made(item, flat, at))
        at += item.size
    if part.kind is dict:
        by_key = dict(zip(part.keys, made, strict=True))
        return {key: by_key[key] for key in part.order}
    return part.kind(made)
