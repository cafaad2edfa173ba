"""Small functions that programs take from autograd's util: tuples with other items, and the order of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from ...where import warn
from .test_util import check_grads

Function = Callable[..., Any]


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The items of ``x`` as a tuple, in which the item at each position ``i`` of the pairs ``(i, v)`` is ``v``.

    >>> subvals((1, 2, 3), [(0, "a"), (2, "c")])
    ('a', 2, 'c')
    """
    items = list(x)
    for i, v in ivs:
        items[i] = v
    return tuple(items)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """The items of ``x`` as a tuple, with ``v`` at the position ``i``.

    >>> subval([1, 2, 3], 1, "b")
    (1, 'b', 3)
    """
    return subvals(x, [(i, v)])


def func(f: Function) -> Function:
    """A function of a class, as a plain function: itself."""
    return f


def toposort(end_node: Any, parents: Callable[[Any], Iterable[Any]] = attrgetter("parents")) -> Iterator[Any]:
    """The nodes from which an end was made: the end first, and each node after all nodes that were made from it.

    >>> list(toposort("d", {"d": "bc", "c": "ab", "b": "a", "a": ""}.get))
    ['d', 'c', 'b', 'a']
    """
    uses: dict[Any, int] = {end_node: 0}
    found = [end_node]
    while found:
        for parent in parents(found.pop()):
            if parent not in uses:
                uses[parent] = 0
                found.append(parent)
            uses[parent] += 1
    ready = [end_node]
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            uses[parent] -= 1
            if not uses[parent]:
                ready.append(parent)


def quick_grad_check(
    fun: Function,
    arg0: Any,
    extra_args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **_: Any,
) -> None:
    """Check the gradient by the first argument, as old programs do; ``test_util.check_grads`` has taken its place.

    Its tolerances have no effect. Raises GradientCheckError.

    >>> import numpy as np, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     quick_grad_check(lambda x, k: np.sum(x**k), np.ones(2), (3,))
    """
    warn("quick_grad_check is deprecated; use test_util.check_grads", DeprecationWarning)
    check_grads(fun, modes=["rev"], order=1)(arg0, *extra_args, **(kwargs or {}))
