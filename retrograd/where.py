"""The user's line behind an operation, and the name of the variable that takes its result."""

from __future__ import annotations

import dis
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import Generic, NamedTuple, TypeVar

OURS = ("retrograd", "numpy", "scipy")
STANDARD = dis.__file__.rpartition("dis.")[0]  # the folder of Python's own modules
SHOWN = ("LOAD_CONST", "SWAP", "BINARY_SUBSCR" if sys.version_info < (3, 14) else "BINARY_OP")  # to an observer
T = TypeVar("T")
CELLS: list[Callable[[Where], str | None]] = []  # what else names a line, such as the cell of a notebook
STORES = frozenset({"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"})


class Where(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return next(filter(None, (name(self) for name in CELLS)), f"{self.file}:{self.line}")

    @property
    def short(self) -> str:
        """The last part of the path and the line, as printed beside nodes and statements: harmless in any text."""
        return next(filter(None, (c(self) for c in CELLS)), f"{_harmless(self.file.rpartition('/')[2])}:{self.line}")


Site = tuple[Where, str | None]  # a line, and the variable that takes the result


@lru_cache(maxsize=256)
def _harmless(name: str) -> str:
    return "".join(c if c.isprintable() and c not in "#{}" else "?" for c in name)


class Packages(dict[str, bool]):
    """Tells whether the module of a name is of one of some packages; a name is looked into only once.

    A file of the user's that comes first on Python's path, as ``profile.py`` beside the program may, is of none.
    """

    def __init__(self, packages: frozenset[str]) -> None:
        super().__init__()
        self.packages = packages

    def __missing__(self, name: str) -> bool:
        package = str(name).partition(".")[0]  # a program may have put anything there
        module = sys.modules.get(name) or sys.modules.get(package)  # it may be imported later
        found = package in self.packages and (package in OURS or not _is_users(module, package))
        return self.setdefault(name, found) if module or not found else True


class ByCode(Generic[T]):
    """What ``make(code)`` gives for code objects, made once for each and kept while it lives."""

    def __init__(self, make: Callable[[CodeType], T]) -> None:
        self._make = make
        self.made: dict[int, tuple[weakref.ref[CodeType], T]] = {}

    def __len__(self) -> int:
        return len(self.made)

    def __getitem__(self, code: CodeType) -> T:
        key = id(code)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = (weakref.ref(code, lambda _: self.made.pop(key, None)), self._make(code))
        return found[1]


class _Sites(dict[int, Site]):
    """The sites of the instructions of one code object, and the variables that its instructions store into."""

    def __init__(self, code: CodeType) -> None:
        super().__init__()
        self.stores = _stores(code)


_ours = Packages(frozenset(OURS))
FOREIGN = Packages(sys.stdlib_module_names - {"__main__"} | {*OURS, "dask", "distributed", "jax", "optree", "torch"})


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs our code, NumPy's or SciPy's."""
    return _ours[frame.f_globals.get("__name__", "")]


def is_foreign(frame: FrameType) -> bool:
    """Whether a frame runs code that is not the user's: ours, a library's that calls it, the standard library's."""
    return FOREIGN[frame.f_globals.get("__name__", "")]


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame that is neither ours, NumPy's nor the standard library's."""
    while frame is not None and FOREIGN[frame.f_globals.get("__name__", "")]:
        frame = frame.f_back
    return frame


def user_site(depth: int = 1) -> tuple[Where, str | None] | tuple[None, None]:
    """The user's line that led here, and the variable that its result is stored in, if any."""
    frame: FrameType | None = sys._getframe(depth)
    known = None  # the sites of the user's code, if it was met before
    while frame is not None and (known := _sites.made.get(id(frame.f_code))) is None:
        if not FOREIGN[frame.f_globals.get("__name__", "")]:  # as in ``user_frame``: calls take long
            break
        frame = frame.f_back
    if frame is None:
        return None, None
    sites = _sites[frame.f_code] if known is None else known[1]
    site = sites.get(frame.f_lasti)
    if site is None:
        site = sites[frame.f_lasti] = _described(frame, sites.stores)
    return site


def warn(message: str, category: type[Warning]) -> None:
    """A warning at the user's line."""
    frame = user_frame(sys._getframe(1)) or sys._getframe(1)
    registry, name = frame.f_globals.setdefault("__warningregistry__", {}), frame.f_globals.get("__name__")
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def _is_users(module: object, package: str) -> bool:
    """Whether a module's file is not of the standard library or installed; without one, whether no import made it."""
    if not (file := str(getattr(module, "__file__", None) or "")):
        return getattr(sys.modules.get(package), "__spec__", 0) is None
    installed = "site-packages" in file or "dist-packages" in file or file.startswith(STANDARD)
    return file.endswith((".py", ".pyc")) and not installed


def _described(frame: FrameType, stores: Mapping[int, str]) -> Site:
    positions = list(frame.f_code.co_positions())
    line = positions[frame.f_lasti // 2][0] or frame.f_lineno
    return Where(frame.f_code.co_filename, line), stores.get(frame.f_lasti)


def _stores(code: CodeType) -> dict[int, str]:
    """The variable's name for each instruction whose result is stored at once, or once an observer was shown it."""
    found: dict[int, str] = {}
    names = [(i.opname, i.offset, i.argval) for i in dis.get_instructions(code)]
    k = 0
    before: list[int] = []
    while k < len(names):
        opname, offset, variable = names[k]
        if opname in STORES:
            found.update((o, variable) for o in before)
        shown = tuple(name for name, _, _ in names[k : k + 3]) == SHOWN
        k += 3 if shown else 1
        before = [*before, offset] if shown else [offset]
    return found


_sites = ByCode(_Sites)
