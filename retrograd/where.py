"""The user's line behind an operation, and the name of the variable that takes its result."""

from __future__ import annotations

import dis
import sys
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Generic, NamedTuple, TypeVar

OURS = ("retrograd", "numpy", "scipy")
FOREIGN = frozenset(OURS) | sys.stdlib_module_names - {"__main__"}  # code that is not the user's
T = TypeVar("T")
STORES = frozenset({"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"})


class Where(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """The last part of the path and the line, as printed beside nodes and statements: harmless in any text."""
        return f"{_harmless(self.file.rpartition('/')[2])}:{self.line}"


Site = tuple[Where, str | None]  # a line, and the variable that takes the result


@lru_cache(maxsize=256)
def _harmless(name: str) -> str:
    return "".join(c if c.isprintable() and c not in "#{}" else "?" for c in name)


class _Members(dict[str, bool]):
    """Tells whether a module's package is one of a set; the name of each module is split only once."""

    def __init__(self, packages: Collection[str]) -> None:
        super().__init__()
        self.packages = packages

    def __missing__(self, name: str) -> bool:
        self[name] = name.partition(".")[0] in self.packages
        return self[name]


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


_ours, _foreign = _Members(OURS), _Members(FOREIGN)


class View(dict[str, Any]):
    """A dictionary that replaces the names of a module, ``base``, in traced code."""

    base: dict[str, Any]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.base

    def get(self, name: str, default: Any = None) -> Any:
        """Look a name up, in the module itself if the view has not met it yet."""
        return super().get(name, self.base.get(name, default))


def module_names(names: dict[str, Any]) -> dict[str, Any]:
    """The dictionary of the module behind the globals of a frame."""
    return names.base if isinstance(names, View) else names


_found = dict.get  # dict's own method: a view of a module's names holds ``__name__`` itself


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs our code, NumPy's or SciPy's."""
    return _ours[_found(frame.f_globals, "__name__", "")]


def is_foreign(frame: FrameType) -> bool:
    """Whether a frame runs our code, NumPy's, SciPy's or the standard library's."""
    return _foreign[_found(frame.f_globals, "__name__", "")]


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame that is neither ours, NumPy's nor the standard library's."""
    while frame is not None and _foreign[_found(frame.f_globals, "__name__", "")]:
        frame = frame.f_back
    return frame


def user_site(depth: int = 1) -> tuple[Where, str | None] | tuple[None, None]:
    """The user's line that led here, and the variable that its result is stored in, if any."""
    frame = user_frame(sys._getframe(depth))
    if frame is None:
        return None, None
    known = _sites.made.get(id(frame.f_code))
    sites = _sites[frame.f_code] if known is None else known[1]
    site = sites.get(frame.f_lasti)
    if site is None:
        site = sites[frame.f_lasti] = _described(frame, sites.stores)
    return site


def loops_around(frame: FrameType | None, last: int) -> list[Where]:
    """The lines of the user's loops in which a frame and its callers are, the innermost last; ``last`` is an id."""
    found: list[Where] = []
    while frame is not None and id(frame) != last:
        if not is_foreign(frame):
            found += sorted(_loops(frame), reverse=True)
        frame = frame.f_back
    return found[::-1]


def _loops(frame: FrameType) -> Iterator[Where]:
    """The loops around the present instruction of a frame: a jump back spans one."""
    code = {i.offset: i for i in dis.get_instructions(frame.f_code)}
    for jump in code.values():
        if "JUMP_BACKWARD" in jump.opname and jump.argval <= frame.f_lasti <= jump.offset:
            head = code[jump.argval] if code[jump.argval].opname == "FOR_ITER" else jump
            line = head.positions.lineno if head.positions is not None else None
            yield Where(frame.f_code.co_filename, line or frame.f_lineno)


def warn(message: str, category: type[Warning]) -> None:
    """A warning at the user's line."""
    frame = user_frame(sys._getframe(1))
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"), registry)


def _described(frame: FrameType, stores: Mapping[int, str]) -> Site:
    positions = list(frame.f_code.co_positions())
    line = positions[frame.f_lasti // 2][0] or frame.f_lineno
    return Where(frame.f_code.co_filename, line), stores.get(frame.f_lasti)


def _stores(code: CodeType) -> dict[int, str]:
    """The variable's name for each instruction whose result is stored at once."""
    found: dict[int, str] = {}
    before: list[int] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in STORES:
            found.update((offset, instruction.argval) for offset in before)
        before = [instruction.offset]
    return found


_sites = ByCode(_Sites)
