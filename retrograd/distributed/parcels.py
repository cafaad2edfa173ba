"""Parcels: trees in transport, as their leaves and a pickle of the structure, which each process unpickles once.

cloudpickle sends classes of scripts by value, and sets their methods again each time that it unpickles an object of
theirs. A function that reads such a class would then be compiled again at each step.
"""

from __future__ import annotations

import pickle
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..api import tree
from .faults import TravelError
from .kernels import by_value
from .shards import as_shipped


class Parted(NamedTuple):
    """The leaves of a tree, and a pickle of the tree with their numbers in their places."""

    leaves: tuple[Any, ...]
    form: bytes

    def whole(self) -> Any:
        """The tree again."""
        return tree.map(lambda k: self.leaves[k], _structure(self.form))


def parted(x: Any) -> Parted:
    """A tree in parts."""
    leaves, spec = tree.flatten(x)
    return Parted(tuple(leaves), form_of(spec))


@lru_cache(maxsize=64)
def form_of(spec: Any) -> bytes:
    """A structure, pickled."""
    numbered = tree.unflatten(spec, range(spec.num_leaves))
    return by_value(numbered)


@lru_cache(maxsize=64)
def _structure(form: bytes) -> Any:
    return pickle.loads(form)  # noqa: S301 - from the client, whom workers trust, or from its workers


class Packed:
    """What the client sent, as it was pickled there; a process unpickles it once, whoever handed it on."""

    def __init__(self, data: bytes, form: bytes) -> None:
        self.data, self.form = data, form

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, (self.data, self.form)

    def __len__(self) -> int:
        """Bytes that travel."""
        return len(self.data) + len(self.form)

    def __sizeof__(self) -> int:
        return 2 * len(self.data)  # and what is made of it

    @cached_property
    def content(self) -> Any:
        """The tree itself; its arrays are read-only, as they are in the client's process."""
        leaves = pickle.loads(self.data)  # noqa: S301 - from the client, whom workers trust
        return as_shipped(Parted(leaves, self.form).whole())


class Raveled:
    """Parameters as one flat array, and a pickle of the way back to their tree; a process goes it once."""

    def __init__(self, flat: np.ndarray[Any, Any], back: bytes) -> None:
        self.flat, self.back = flat, back

    def __reduce__(self) -> tuple[Any, ...]:
        return Raveled, (self.flat, self.back)

    def __sizeof__(self) -> int:
        return 2 * self.flat.nbytes  # and what is made of it

    @cached_property
    def content(self) -> tuple[Any, ...]:
        """The one parameter, with read-only arrays."""
        found: tuple[Any, ...] = as_shipped((_structure(self.back)(self.flat),))
        return found


def packed(x: Any, what: str, name: str) -> Packed:
    """A tree, pickled leaf by leaf; TravelError for what cannot be."""
    leaves, form = parted(x)
    return Packed(pickled(leaves, what, name), form)


def pickled(x: Any, what: str, name: str) -> bytes:
    """Bytes of an object; TravelError if it cannot be pickled."""
    try:
        return by_value(x)
    except Exception as fault:
        raise TravelError(
            f"{what} of {name} cannot be sent to workers: {type(fault).__name__}: {fault}",
            remedy="pass arrays, numbers and containers of these; use load= so that workers open files",
        ) from fault
