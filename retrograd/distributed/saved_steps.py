"""The state of an optimiser in a file: whole or not there at all, checked when it is read, and no program in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import OptionError, SnapshotError
from ..ops.structural.file_locks import AVAILABLE, locked, unlocked
from .vectors import Named

MAGIC = b"retrograd steps 2\n"
BODY = len(MAGIC) + 65  # where the hash ends
BLOCK = 1 << 20


@dataclass(frozen=True)
class SavedState:
    """What a file holds: numbers, the values of all steps, and vectors, of which it reads the entries it is asked for.

    ``kinds`` are the dtypes of the vectors, in the order in which they follow each other from the byte ``start``.
    """

    path: Path
    numbers: dict[str, float]
    values: list[float]
    kinds: dict[str, str]
    size: int
    start: int

    def read(self, first: int, last: int) -> Named:
        """All vectors, from one entry to another."""
        found = {}
        with self.path.open("rb") as source:
            for name, (kind, at) in places(self.kinds, self.size, self.start).items():
                source.seek(at + first * kind.itemsize)
                found[name] = np.fromfile(source, kind, last - first)
        return found


def places(kinds: Mapping[str, str], size: int, start: int) -> dict[str, tuple[np.dtype[Any], int]]:
    """The dtype of each vector, and the byte where it begins."""
    found = {}
    for name, text in kinds.items():
        found[name] = np.dtype(text), start
        start += size * found[name][0].itemsize
    return found


class SavedSteps:
    """A file for the state of one run; ``identity`` is plain data that tells which run it belongs to.

    The file is locked while the run goes on, so that a second one with the same file is refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any], size: int) -> None:
        self._path, self._identity, self._size = Path(path), json.loads(json.dumps(identity)), size
        self._process = os.getpid()
        self._lock = _locked(self._path.with_name(f"{self._path.name}.lock"))

    def read(self) -> SavedState | None:
        """The state, or None without a file. SnapshotError for a damaged file, OptionError for that of another run."""
        try:
            source = self._path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise SnapshotError(f"{self._path} cannot be read: {fault.strerror}", remedy="check the path") from fault
        with source:
            if source.read(len(MAGIC)) != MAGIC or source.read(65) != _digest(source):
                raise SnapshotError(
                    f"{self._path} is not a complete optimiser state",
                    remedy="give the path of a complete state, or remove the file and start again",
                )
            source.seek(BODY)
            head, start = json.loads(source.readline()), source.tell()
        self._check(head["run"])
        numbers = {name: float.fromhex(text) for name, text in head["numbers"].items()}
        return SavedState(
            self._path, numbers, [*map(float.fromhex, head["values"])], head["vectors"], self._size, start
        )

    def _check(self, found: dict[str, Any]) -> None:
        for name, value in self._identity.items():
            if found.get(name) != value:
                raise OptionError(
                    f"{self._path} belongs to another run: its {name} is {found.get(name)}, but here it is {value}",
                    remedy="call with the same parameters, shards and options, or give another path",
                )

    def write(self, numbers: Mapping[str, float], values: Iterable[float], pieces: Iterable[Named]) -> None:
        """Write the state in one step: what is read later is the old state or the new one.

        The pieces follow each other; each is in memory only while it is written.
        """
        head = {
            "run": self._identity,
            "numbers": {name: float(x).hex() for name, x in numbers.items()},
            "values": [float(x).hex() for x in values],
        }
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with beside.open("w+b") as target:
                self._fill(target, head, pieces)
                os.fsync(target.fileno())
            beside.replace(self._path)
        except OSError as fault:
            if fault.errno is None:  # of no file, but of whoever gives the pieces
                raise
            raise SnapshotError(
                f"{self._path} cannot be written: {fault.strerror}", remedy="give a path on a disk with free space"
            ) from fault
        finally:
            beside.unlink(missing_ok=True)

    def _fill(self, target: BinaryIO, head: dict[str, Any], pieces: Iterable[Named]) -> None:
        target.write(MAGIC + b" " * 64 + b"\n")
        first = 0
        layout: dict[str, tuple[np.dtype[Any], int]] = {}
        for piece in pieces:
            if not layout:
                kinds = {name: x.dtype.str for name, x in piece.items()}
                target.write(json.dumps({**head, "vectors": kinds}).encode() + b"\n")
                layout = places(kinds, self._size, target.tell())
            for name, (kind, at) in layout.items():
                target.seek(at + first * kind.itemsize)
                target.write(np.ascontiguousarray(piece[name]).data)
            first += len(piece["x"])
        target.seek(BODY)
        digest = _digest(target)
        target.seek(len(MAGIC))
        target.write(digest)
        target.flush()

    def close(self) -> None:
        """Let others use the file; a forked child does not have the lock."""
        if self._lock is not None and os.getpid() == self._process:
            unlocked(self._lock)
            self._lock = None
            self._path.with_name(f"{self._path.name}.lock").unlink(missing_ok=True)


def _digest(source: BinaryIO) -> bytes:
    """The line with the hash of what follows in a file."""
    found = hashlib.sha256()
    while block := source.read(BLOCK):
        found.update(block)
    return found.hexdigest().encode() + b"\n"


def _locked(path: Path) -> int | None:
    """A lock that ends with the process; None where there are none. SnapshotError if another run holds it."""
    if not AVAILABLE:
        return None
    try:
        return locked(path, os.O_RDWR | os.O_CREAT)
    except BlockingIOError as fault:
        raise SnapshotError(
            f"another run is using {path.name.removesuffix('.lock')}", remedy="wait for it to end, or give another path"
        ) from fault
    except OSError as fault:
        raise SnapshotError(
            f"{path} cannot be created: {fault.strerror}", remedy="give a path in a folder that exists"
        ) from fault
