"""States of loops on disk: each file is whole or absent, and goes when it is no longer needed."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...errors import SnapshotError, UnusedPlanWarning
from ...ir.processor import processor
from ...ir.target import VERSION
from ...where import warn
from .file_locks import AVAILABLE, locked, unlocked

KINDS = ("array", "scalar", "python")
NAME = "state-{}.npy"
CHECKSUM = 32  # bytes at the end of a file
CHUNK = 2**16
TEMPORARY = "retrograd-run-"
WRITABLE = "give a directory that exists and can be written to"
OPENED: ContextVar[list[Disk] | None] = ContextVar("retrograd_disks", default=None)


class Disk:
    """Kept states by number, each in a file of its own, in a folder of their own.

    A file is written under another name, forced to the medium, and then renamed: so a file with its own name is whole.
    A checksum at its end tells whether it still is. In a forked child, the files are the parent's: it reads these, and
    its own states go to a folder of its own. Raises SnapshotError.
    """

    def __init__(
        self, folder: Path, *, temporary: bool = True, below: Disk | None = None, lock: int | None = None
    ) -> None:
        self.states: list[int] = list(below) if below is not None else []
        self._take(folder, below, lock).atexit = temporary
        opened = OPENED.get()
        if opened is not None:
            opened.append(self)

    def _take(self, folder: Path, below: Disk | None, lock: int | None = None) -> weakref.finalize[..., Disk]:
        """Make a folder the one of this disk; it goes when the disk does, in the process that runs now."""
        self.folder, self.below, self.process = folder, below, os.getpid()
        self.own: set[int] = set()
        self._end = weakref.finalize(self, _remove, folder, lock, self.process)
        return self._end

    def _move_if_forked(self) -> None:
        """In a forked child, move to a folder of its own above that of the parent."""
        if os.getpid() != self.process:
            parent = copy(self)
            self._take(_new_folder(self.folder), parent)

    def __iter__(self) -> Iterator[int]:
        return iter(self.states)

    @property
    def open(self) -> bool:
        """Whether the folder is still there."""
        return self._end.alive

    def _path(self, i: int) -> Path:
        return self.folder / NAME.format(i)

    def write(self, i: int, *values: Any) -> None:
        """Keep state ``i``."""
        self._move_if_forked()
        target = self._path(i)
        unfinished = target.with_suffix(f".{os.getpid()}.part")
        try:
            with unfinished.open("w+b") as file:
                _dump(file, values)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
            _sync_folder(self.folder)
        except OSError as fault:
            with suppress(OSError):
                unfinished.unlink()
            size = sum(np.asarray(x).nbytes for x in values)
            full = fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            what = f"the disk of {self.folder} is full: a state takes {size:,} bytes" if full else str(fault)
            raise SnapshotError(
                what, remedy="choose another directory, keep fewer states on disk, or keep more of them in memory"
            ) from fault
        self.states.append(i)
        self.own.add(i)

    def read(self, i: int, count: int) -> Any:
        """The first ``count`` values of state ``i``: one value bare, several as a tuple."""
        if i not in self.own and self.below is not None:
            return self.below.read(i, count)
        values = _load(self._path(i))[:count]
        return values[0] if count == 1 else tuple(values)

    def drop(self, i: int) -> None:
        """Drop state ``i``; a file that cannot be removed now goes with the folder."""
        self._move_if_forked()
        self.states.remove(i)
        if i in self.own:
            self.own.remove(i)
            with suppress(OSError):
                self._path(i).unlink()

    def again(self) -> Disk:
        """The same states for one more adjoint sweep, which leaves the states here as they are."""
        return Disk(_new_folder(self.folder), below=self)

    def resumed(self, steps: Iterable[Sequence[Any]], count: int) -> Iterator[Sequence[Any]]:
        """A first sweep that starts at the last whole state, of ``count`` values, of an earlier run on this disk."""
        actions = list(steps)
        whole: list[int] = []
        for verb, i, _ in actions:
            if verb == "store":
                if not self._whole(i, count):
                    break
                whole.append(i)
        try:
            self._clear(set(map(self._path, whole)))
        except OSError as fault:
            raise SnapshotError(str(fault), remedy=f"remove {self.folder}, or give another directory") from fault
        if whole:
            self.states, self.own = list(whole), set(whole)
            yield ("fetch", whole[-1], whole[-1])
            actions = actions[actions.index(("store", whole[-1], whole[-1])) + 1 :]
        yield from actions

    def _clear(self, whole: set[Path]) -> None:
        """Remove the files of an earlier run, but for its whole states."""
        for path in set(self.folder.iterdir()) - whole:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _whole(self, i: int, count: int) -> bool:
        """Whether a state is as a first sweep leaves it; the way back needs fewer values, and writes no others."""
        try:
            return len(_load(self._path(i))) == count
        except SnapshotError:
            return False

    def close(self) -> None:
        """Remove the folder."""
        self._end()


def open_disk(directory: str, key: str = "", operands: Sequence[Any] = ()) -> Disk:
    """A disk in a new folder; with a ``key``, in the folder for this key and these operands.

    That folder may hold states of an earlier run, and stays if the process ends before the states are used up. Loops of
    one gradient that begin with the same numbers each have a folder of their own, in the order in which they run.
    """
    place = Path(directory or tempfile.gettempdir())
    name = _name(key, operands) if key else ""
    if not name:
        _sweep(place)
        folder = _new_folder(place, TEMPORARY)
        try:
            return Disk(folder, lock=_locked(folder))
        except OSError:  # another process sweeps it right now, before it is locked
            return Disk(_new_folder(place, "retrograd-"))
    first = folder = place / name
    taken, nth = {disk.folder for disk in OPENED.get() or () if disk.open}, count(2)
    while folder in taken:
        folder = first.with_name(f"{first.name}-{next(nth)}")
    try:
        lock = _locked(folder)
    except BlockingIOError as fault:
        raise SnapshotError(
            f"the same gradient with the same inputs is running in {folder}",
            remedy="wait for it to end, or choose another directory",
        ) from fault
    except OSError as fault:
        raise SnapshotError(str(fault), remedy=WRITABLE) from fault
    return Disk(folder, temporary=False, lock=lock)


def _name(key: str, operands: Sequence[Any]) -> str:
    """The name of the folder for a key and operands; empty, with a warning, if these cannot be told from others."""
    digest = hashlib.blake2b(f"{key}\n{_here()}".encode(), digest_size=12)
    unknown = [type(x).__name__ for x in operands if not _told(x, digest.update)]
    if unknown:
        warn(
            f"a loop with rg.Tiered(resume=True) takes a {unknown[0]}, which cannot be told from others: if it is "
            "killed, it starts with the first step. Give the loop arrays and numbers only",
            UnusedPlanWarning,
        )
    return "" if unknown else f"retrograd-{digest.hexdigest()}"


def _told(x: Any, tell: Callable[[Any], None]) -> bool:
    """Tell all of an operand: bytes, dtype and layout, on which roundings depend, too; False if that cannot be."""
    kind = type(x)
    if kind in (list, tuple):
        tell(f"{kind.__name__} {len(x)} ".encode())
        return all(_told(part, tell) for part in x)
    if isinstance(x, np.ndarray | np.generic) and not x.dtype.hasobject:
        tell(f"{kind.__name__}{x.dtype.str}{x.shape}{x.strides}".encode())
        tell(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)
        return True
    tell(f"{kind.__name__} {x!r} ".encode())
    return kind in (bool, int, float, complex, range)


@functools.cache
def _here() -> str:
    """What bits depend on beside a program and its operands: versions, the machine, and how many threads BLAS uses."""
    scipy = ""
    with suppress(metadata.PackageNotFoundError):
        scipy = metadata.version("scipy")
    threads = [str(os.cpu_count()), *sorted(f"{k}={v}" for k, v in os.environ.items() if k.endswith("_NUM_THREADS"))]
    return "\n".join((VERSION, sys.version, np.__version__, scipy, *platform.libc_ver(), processor(), *threads))


def _new_folder(place: Path, prefix: str | None = None) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    except OSError as fault:
        raise SnapshotError(str(fault), remedy=WRITABLE) from fault


def _locked(folder: Path) -> int | None:
    """Make the folder, and a lock on it that ends with the process; BlockingIOError if another process holds it.

    The result is None if the platform or the file system has no locks: there, two runs in one folder may find files
    gone.
    """
    if not AVAILABLE:
        folder.mkdir(exist_ok=True)
        return None
    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = locked(folder)
        except FileNotFoundError:  # a run that ended meanwhile has removed the folder
            continue
        except OSError as fault:
            if fault.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
                return None
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                return descriptor
        unlocked(descriptor)


def _sweep(place: Path) -> None:
    """Remove temporary folders of processes that were killed: nobody holds the locks on these any more."""
    for folder in place.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            lock = _locked(folder)
            if lock is not None:
                _remove(folder, lock, os.getpid())


def _remove(folder: Path, lock: int | None, process: int) -> None:
    """Remove the folder, and then give up the lock on it; not in a child of the process whose folder it is."""
    if os.getpid() != process:
        return
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        unlocked(lock)


def cleaning(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that, if it fails, the folders of the disks that it opened are removed."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        opened: list[Disk] = []
        token = OPENED.set(opened)
        try:
            return function(*args)
        except BaseException:
            for disk in opened:
                disk.close()
            raise
        finally:
            OPENED.reset(token)

    return run


def _dump(file: BinaryIO, values: Sequence[Any]) -> None:
    """Write layouts, arrays in the order of their strides, and a checksum."""
    layouts, arrays = [], []
    for x in values:
        array = np.asarray(x)
        order = np.argsort([-abs(s) for s in array.strides], kind="stable").tolist()
        kind = "array" if isinstance(x, np.ndarray) else "scalar" if isinstance(x, np.generic) else "python"
        layouts += [KINDS.index(kind), array.ndim, *order]
        arrays.append(array.transpose(order))
    for part in (np.array([len(arrays), *layouts], np.int64), *arrays):
        np.save(file, part, allow_pickle=False)
    size = file.tell()
    file.seek(0)
    checksum = _checksum(file, size)
    file.seek(size)
    file.write(checksum)


def _load(path: Path) -> list[Any]:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size - CHECKSUM
            whole = _checksum(file, size) == file.read()
            file.seek(0)
            if whole:
                return _values(file)
    except (OSError, ValueError) as fault:
        raise SnapshotError(f"{path} cannot be read back: {fault}", remedy="run the gradient again") from fault
    raise SnapshotError(f"{path} has changed since it was written", remedy="run the gradient again")


def _values(file: BinaryIO) -> list[Any]:
    count, *rest = np.load(file, allow_pickle=False).tolist()
    values: list[Any] = []
    for _ in range(count):
        kind, ndim, *rest = rest
        order, rest = rest[:ndim], rest[ndim:]
        array = np.load(file, allow_pickle=False).transpose(np.argsort(order) if ndim else ())
        values.append(array if KINDS[kind] == "array" else array[()] if KINDS[kind] == "scalar" else array.item())
    return values


def _checksum(file: BinaryIO, size: int) -> bytes:
    """The checksum of the next ``size`` bytes of a file, which are read."""
    digest = hashlib.blake2b(digest_size=CHECKSUM)
    while size > 0 and (part := file.read(min(size, CHUNK))):
        digest.update(part)
        size -= len(part)
    return digest.digest()


def _sync_folder(folder: Path) -> None:
    """Force the new name to the medium, if the platform can open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
