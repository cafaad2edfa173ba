"""Trees of containers, as every transform takes them: map, reduce, flatten, unflatten, leaves, structure, ravel.

Dicts, lists, tuples, namedtuples, None, dataclasses and registered classes are containers; everything else is a leaf.
All of this also works on traced values, and is differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import OptionError, ShapeError, TreeError
from ..tracer.array import shadow_of
from ..tracer.containers import flatten_until, flatten_up_to
from ..tracer.tree import Spec, written
from ..tracer.tree import flatten as take_apart
from ..tracer.tree import unflatten as put_together

__all__ = ["flatten", "leaves", "map", "ravel", "reduce", "structure", "unflatten"]

IsLeaf = Callable[[Any], bool] | None
_NOTHING = object()


def __dir__() -> list[str]:
    """What users find here."""
    return __all__


def map(function: Callable[..., Any], tree: Any, *others: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to each leaf of a tree, and to the leaves of further trees beside it.

    Parameters
    ----------
    function : callable
        It takes one leaf of each tree.
    tree : tree
        Nested containers.
    *others : tree
        Trees of the same structure.
    is_leaf : callable, optional
        It is asked of each container whether it counts as a leaf.

    Returns
    -------
    tree
        The structure of ``tree`` with the results as leaves.

    Raises
    ------
    TreeError
        If the structures differ.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> params, gradient = {"w": np.ones(2), "b": 1.0}, {"w": np.array([0.5, 1.0]), "b": 2.0}
    >>> rg.tree.map(lambda p, g: p - 0.5 * g, params, gradient)
    {'w': array([0.75, 0.5 ]), 'b': 0.0}
    """
    first, structure = flatten(tree, is_leaf)
    columns = [flatten_up_to(structure, other, "a further tree") for other in others]
    return put_together(structure, [function(*row) for row in zip(first, *columns, strict=True)])


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Spec]:
    """The leaves of a tree, and its structure.

    Parameters
    ----------
    tree : tree
        Nested containers. Keys of dicts are sorted.
    is_leaf : callable, optional
        It is asked of each container whether it counts as a leaf.

    Returns
    -------
    tuple
        The list of leaves, and the structure that ``unflatten`` takes.

    Raises
    ------
    TreeError
        If the tree contains itself, or nests too deeply.

    Examples
    --------
    >>> import retrograd as rg
    >>> leaves, structure = rg.tree.flatten({"b": 1.0, "a": (2.0, None)})
    >>> leaves, rg.tree.unflatten(structure, [10.0, 20.0])
    ([2.0, 1.0], {'b': 20.0, 'a': (10.0, None)})
    """
    return take_apart(tree) if is_leaf is None else flatten_until(tree, is_leaf)


def unflatten(structure: Spec, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with other leaves.

    Parameters
    ----------
    structure : Spec
        The structure that ``flatten`` returns.
    leaves : iterable
        The leaves.

    Returns
    -------
    tree
        The tree.

    Raises
    ------
    TreeError
        If the leaves are too many or too few.

    Examples
    --------
    >>> import retrograd as rg
    >>> leaves, structure = rg.tree.flatten({"a": 1.0, "b": (2.0, 3.0)})
    >>> rg.tree.unflatten(structure, [10.0 * leaf for leaf in leaves])
    {'a': 10.0, 'b': (20.0, 30.0)}
    """
    given = [*leaves]
    if len(given) != structure.num_leaves:
        raise TreeError(
            f"{len(given)} leaves for a tree of {structure.num_leaves}",
            remedy="give one for each leaf of the structure",
        )
    return put_together(structure, given)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in the order of ``flatten``.

    Parameters
    ----------
    tree : tree
        Nested containers.
    is_leaf : callable, optional
        It is asked of each container whether it counts as a leaf.

    Returns
    -------
    list
        The leaves.

    Raises
    ------
    TreeError
        If the tree contains itself, or nests too deeply.

    Examples
    --------
    >>> import retrograd as rg
    >>> rg.tree.leaves([1.0, {"x": 2.0}, None])
    [1.0, 2.0]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> Spec:
    """The structure of a tree, which ``unflatten`` takes; equal trees of containers have equal ones.

    Parameters
    ----------
    tree : tree
        Nested containers.
    is_leaf : callable, optional
        It is asked of each container whether it counts as a leaf.

    Returns
    -------
    Spec
        The structure.

    Raises
    ------
    TreeError
        If the tree contains itself, or nests too deeply.

    Examples
    --------
    >>> import retrograd as rg
    >>> rg.tree.structure([1.0, (2.0,)]) == rg.tree.structure([3.0, (4.0,)])
    True
    """
    return flatten(tree, is_leaf)[1]


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NOTHING, is_leaf: IsLeaf = None) -> Any:
    """Combine the leaves of a tree, in the order of ``flatten``.

    Parameters
    ----------
    function : callable
        It takes what was combined so far, and a leaf.
    tree : tree
        Nested containers.
    initializer : optional
        The first operand; without it, the first leaf.
    is_leaf : callable, optional
        It is asked of each container whether it counts as a leaf.

    Returns
    -------
    object
        The result of the last call.

    Raises
    ------
    OptionError
        If the tree has no leaves, and there is no initializer.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> float(rg.tree.reduce(lambda total, x: total + np.sum(x**2), {"w": np.array([1.0, 2.0]), "b": 3.0}, 0.0))
    14.0
    """
    found = leaves(tree, is_leaf)
    if initializer is _NOTHING and not found:
        raise OptionError("reduce of a tree without leaves", remedy="give an initializer: rg.tree.reduce(f, tree, 0.0)")
    return functools.reduce(function, found if initializer is _NOTHING else [initializer, *found])


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All numbers of a tree as one flat array, and the way back.

    Parameters
    ----------
    tree : tree
        Arrays and numbers.

    Returns
    -------
    tuple
        The flat array, with the common dtype of the leaves, and a function that makes such a tree of a flat array. It
        gives each leaf its shape and dtype back, as ``astype`` does, in memory of its own. For real leaves beside
        complex ones it takes the real part.

    Raises
    ------
    OptionError
        If a leaf is not a number; from the function, for complex numbers where all leaves are real.
    ShapeError
        From the function, for an array of another shape.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> flat, unravel = rg.tree.ravel({"w": np.array([[1.0, 2.0]]), "b": 3.0})
    >>> flat
    array([3., 1., 2.])
    >>> unravel(2 * flat)
    {'w': array([[2., 4.]]), 'b': np.float64(6.0)}
    """
    found, structure = take_apart(tree)
    examples = [np.asarray(shadow_of(x)) for x in found]
    for x in examples:
        if x.dtype.kind not in "biufc":
            raise OptionError(
                f"a leaf of the tree has the dtype {x.dtype}, which is not a number", remedy="leave such leaves out"
            )
    dtype = np.result_type(*[x.dtype for x in examples]) if examples else np.dtype(float)
    numbers = [not isinstance(shadow_of(x), np.ndarray) for x in found]
    back = Unravel(structure, tuple((x.shape, x.dtype, on) for x, on in zip(examples, numbers, strict=True)))
    if not found:
        return np.zeros(0, dtype), back
    return np.concatenate([np.reshape(x, -1) for x in found], dtype=dtype), back


class Unravel:
    """Makes a tree of a flat array; two are equal if the trees are alike."""

    def __init__(self, structure: Spec, leaves: tuple[tuple[tuple[int, ...], np.dtype[Any], bool], ...]) -> None:
        self._structure, self._leaves = structure, leaves

    def __call__(self, flat: Any) -> Any:
        sizes = [int(np.prod(shape)) for shape, _, _ in self._leaves]
        if np.shape(shadow_of(flat)) != (sum(sizes),):
            raise ShapeError(
                f"a flat array of {sum(sizes)} numbers is needed, not one of shape {np.shape(shadow_of(flat))}",
                remedy="pass an array of the shape that rg.tree.ravel returned",
            )
        if flat.dtype.kind == "c" and self._leaves and all(dtype.kind != "c" for _, dtype, _ in self._leaves):
            raise OptionError("complex numbers for a tree of real ones", remedy="pass the real part")
        made, at = [], 0
        for (shape, dtype, number), size in zip(self._leaves, sizes, strict=True):
            part = flat[at : at + size]
            part = np.reshape(np.real(part) if dtype.kind != "c" else part, shape).astype(dtype)
            made.append(part[()] if number else part)
            at += size
        return put_together(self._structure, made)

    def _key(self) -> tuple[Any, ...]:
        return self._structure, self._leaves

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unravel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<unravel to {written(self._structure)}>"
