"""Shards: the further arguments of a loss, in memory, as files, as functions that load them, or as parts of dask's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..api import tree
from ..compiler.signature import name_of
from ..errors import OptionError, TreeError
from .kernels import needs_dask

Loader = Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True)
class InMemory:
    """The arguments themselves."""

    arguments: tuple[Any, ...]

    def fetch(self) -> tuple[Any, ...]:
        return self.arguments


@dataclass(frozen=True)
class ToLoad:
    """Arguments that a function loads where they are needed: ``load(source)``, or ``source()``."""

    number: int
    source: Any
    load: Loader | None

    def fetch(self) -> tuple[Any, ...]:
        found = self.source() if self.load is None else self.load(self.source)
        return arguments_of(found, self.number, "what the function that loads it returns")


@dataclass(frozen=True)
class Partition:
    """A partition of dask's collections: ``delayed`` gives it, ``load`` makes the arguments of it."""

    number: int
    delayed: Any
    load: Loader | None

    def fetch(self) -> tuple[Any, ...]:
        return self.made(needs_dask("dask").compute(self.delayed, scheduler="synchronous")[0])

    def made(self, part: Any) -> tuple[Any, ...]:
        """The arguments that a computed partition stands for."""
        found = (part if isinstance(part, tuple) else (part,)) if self.load is None else self.load(part)
        return arguments_of(found, self.number, "what load returns")


Shard = InMemory | ToLoad | Partition


def shards_of(given: Any, load: Loader | None) -> list[Shard]:
    """The shards that a user means; OptionError, TreeError for anything else.

    ``given`` is a list of tuples, paths, functions or anything that ``load`` takes, or one of dask's collections, or a
    tuple of dask's arrays with the same rows.
    """
    if load is not None and not callable(load):
        raise OptionError(f"load={load!r:.80}", remedy="pass a function that turns an entry into a tuple of arguments")
    if _is_dask(given) or (isinstance(given, tuple) and given and all(map(_is_dask, given))):
        parts = _partitions(given)
        return [Partition(k, part, load) for k, part in enumerate(parts)]
    if isinstance(given, (str, bytes, dict, np.ndarray)) or not isinstance(given, Iterable):
        raise OptionError(
            f"shards is a {type(given).__name__}", remedy="pass a list with one tuple of arguments for each shard"
        )
    entries = list(given)
    if not entries:
        raise OptionError("there are no shards", remedy="pass at least one: shards=[(x, y)]")
    return [_shard(k, entry, load) for k, entry in enumerate(entries)]


def _shard(k: int, entry: Any, load: Loader | None) -> Shard:
    if _is_dask(entry):
        return Partition(k, entry, load)
    if load is not None:
        return ToLoad(k, entry, load)
    if isinstance(entry, (str, os.PathLike)):
        return ToLoad(k, str(os.fspath(entry)), _reader(Path(entry)))
    if callable(entry):
        return ToLoad(k, entry, None)
    return InMemory(arguments_of(entry, k, "it"))


def _reader(path: Path) -> Loader:
    readers: dict[str, Loader] = {".npy": _from_npy, ".npz": _from_npz}
    if path.suffix not in readers:
        raise OptionError(
            f"shard {path} is not an .npy or .npz file", remedy="define how to read it: load=lambda path: (array, ...)"
        )
    return readers[path.suffix]


def _from_npy(path: Any) -> tuple[Any, ...]:
    return (np.load(path, allow_pickle=False),)


def _from_npz(path: Any) -> tuple[Any, ...]:
    with np.load(path, allow_pickle=False) as arrays:
        return tuple(arrays.values())


def arguments_of(found: Any, number: int, what: str) -> tuple[Any, ...]:
    """A tuple of arguments, laid out as it is after a journey; TreeError for anything but a tuple."""
    if type(found) is not tuple:
        raise TreeError(
            f"shard {number} is not a tuple of arguments: {what} is a {type(found).__name__}",
            remedy="each shard is a tuple of the loss's further arguments: (x, y), or (x,) for one",
        )
    laid: tuple[Any, ...] = as_shipped(found)
    return laid


def as_shipped(x: Any) -> Any:
    """A tree whose arrays have no gaps in memory, and are read-only: so it is in this process and after a journey.

    How an array lies in memory may decide the last bits. A shard that its loss writes into would be another one at the
    next step, and after a retry.
    """
    return tree.map(_packed, x)


def _packed(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    packed = x.view() if x.flags.c_contiguous or x.flags.f_contiguous else np.ascontiguousarray(x)
    packed.flags.writeable = False
    return packed


def nbytes_of(x: Any) -> int:
    """The bytes of all arrays and numbers of a tree."""
    return sum(np.asarray(leaf).nbytes for leaf in tree.leaves(x) if isinstance(leaf, (np.ndarray, np.generic, float)))


def _is_dask(x: Any) -> bool:
    return hasattr(x, "__dask_graph__")


def _partitions(given: Any) -> Sequence[Any]:
    """The partitions of a collection; of several arrays, the tuples of blocks with the same rows."""
    if not isinstance(given, tuple):
        return list(_flat([given])[0]) if hasattr(given, "to_delayed") else [given]
    columns = _flat(given)
    rows = {tuple(x.chunks[0]) for x in given}
    if len(rows) > 1:
        raise OptionError(
            f"the arrays have the rows {sorted(rows)} in their chunks", remedy="x.rechunk({0: y.chunks[0]})"
        )
    tied = needs_dask("dask").delayed(_tied, pure=True)
    return [tied(*row) for row in zip(*columns, strict=True)]


def _tied(*parts: Any) -> tuple[Any, ...]:
    return parts


def _flat(collections: Iterable[Any]) -> list[list[Any]]:
    found = []
    for x in collections:
        chunks = getattr(x, "chunks", None)
        if chunks is not None and any(len(sizes) > 1 for sizes in chunks[1:]):
            raise OptionError(
                f"a dask array has the chunks {chunks}: rows are cut into pieces", remedy="x.rechunk({1: -1})"
            )
        found.append(list(np.ravel(np.asarray(x.to_delayed(), dtype=object))))
    return found


def named(loader: Any) -> str:
    """The name of a function that loads shards, for tasks."""
    return name_of(loader) or "shard"
