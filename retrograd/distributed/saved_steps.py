"""The state of an optimiser in a file: whole or not there at all, checked when it is read, and no program in it."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OptionError, SnapshotError

MAGIC = b"retrograd steps 1\n"
State = dict[str, np.ndarray[Any, Any]]


class SavedSteps:
    """A file for the state of one run; ``identity`` is plain data that tells which run it belongs to.

    The file is locked while the run goes on, so that a second one with the same file is refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
        self._path, self._identity = Path(path), json.loads(json.dumps(identity))
        self._lock = _locked(self._path.with_name(f"{self._path.name}.lock"))

    def read(self) -> State | None:
        """The state, or None without a file. SnapshotError for a damaged file, OptionError for that of another run."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise SnapshotError(f"{self._path} cannot be read: {fault.strerror}", remedy="check the path") from fault
        digest, body = data[len(MAGIC) : len(MAGIC) + 65], data[len(MAGIC) + 65 :]
        if not data.startswith(MAGIC) or digest != hashlib.sha256(body).hexdigest().encode() + b"\n":
            raise SnapshotError(
                f"{self._path} is not a complete optimiser state",
                remedy="give the path of a complete state, or remove the file and start again",
            )
        line, _, arrays = body.partition(b"\n")
        self._check(json.loads(line))
        with np.load(io.BytesIO(arrays), allow_pickle=False) as found:
            return dict(found)

    def _check(self, found: dict[str, Any]) -> None:
        for name, value in self._identity.items():
            if found.get(name) != value:
                raise OptionError(
                    f"{self._path} belongs to another run: its {name} is {found.get(name)}, but here it is {value}",
                    remedy="call with the same parameters, shards and options, or give another path",
                )

    def write(self, state: State) -> None:
        """Write the state in one step: what is read later is the old state or the new one."""
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **state)
        body = json.dumps(self._identity).encode() + b"\n" + file.getvalue()
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with beside.open("wb") as target:
                target.write(MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                target.flush()
                os.fsync(target.fileno())
            beside.replace(self._path)
        except OSError as fault:
            raise SnapshotError(
                f"{self._path} cannot be written: {fault.strerror}", remedy="give a path on a disk with free space"
            ) from fault
        finally:
            beside.unlink(missing_ok=True)

    def close(self) -> None:
        """Let others use the file."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
            self._path.with_name(f"{self._path.name}.lock").unlink(missing_ok=True)


def _locked(path: Path) -> int | None:
    """A lock that ends with the process; None where there are none. SnapshotError if another run holds it."""
    if find_spec("fcntl") is None:
        return None
    fcntl = import_module("fcntl")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as fault:
        raise SnapshotError(
            f"{path} cannot be created: {fault.strerror}", remedy="give a path in a folder that exists"
        ) from fault
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as fault:
        os.close(descriptor)
        raise SnapshotError(
            f"another run is using {path.name.removesuffix('.lock')}", remedy="wait for it to end, or give another path"
        ) from fault
    return descriptor
