"""Bindings: what names meant when a function was recorded, and the check that they mean the same now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CellType
from typing import Any, NamedTuple

import numpy as np

NUMBERS = (int, float, complex, str, bytes, np.generic)


class Binding(NamedTuple):
    """The value of a name in a namespace, or of a cell."""

    place: Mapping[str, Any] | CellType
    name: str
    value: Any

    @property
    def in_cell(self) -> bool:
        """Whether it is a variable of an enclosing function."""
        return isinstance(self.place, CellType)

    @property
    def now(self) -> Any:
        """The present value; None where there is none."""
        if not isinstance(self.place, CellType):
            return self.place.get(self.name)
        try:
            return self.place.cell_contents
        except ValueError:  # it was emptied
            return None

    def holds(self) -> bool:
        """Whether the name means the same: the same object, or an equal number."""
        now = self.now
        if now is self.value:
            return True
        return type(now) is type(self.value) and isinstance(now, NUMBERS) and bool(now == self.value)

    def test(self, place: str, value: str) -> str:
        """Source that compares, over the names of the place and of the value."""
        return f"{place}.cell_contents is {value}" if self.in_cell else f"{place}.get({self.name!r}) is {value}"


class Contents(NamedTuple):
    """The bytes of a captured array that Python, or code that is not traced, has looked at."""

    place: np.ndarray[Any, Any]
    name: str
    value: bytes

    @property
    def in_cell(self) -> bool:
        """An array is no variable."""
        return False

    @property
    def now(self) -> bytes:
        """What it holds at present."""
        return self.place.tobytes()

    def holds(self) -> bool:
        """Whether it holds the same."""
        return self.now == self.value

    def test(self, place: str, value: str) -> str:
        """Source that compares, over the names of the array and of the bytes."""
        return f"{place}.tobytes() == {value}"


class Bindings:
    """The bindings that several recordings rely on; ``hold()`` is generated, since every call asks."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], Binding | Contents] = {}
        self._same: Callable[[], bool] = _nothing

    def add(self, bindings: Iterable[Binding | Contents]) -> None:
        """Rely on these too."""
        self._known.update(((id(b.place), b.name), b) for b in bindings)
        self._same = _generated(list(self._known.values()))

    def clear(self) -> None:
        """Rely on nothing any more."""
        self._known.clear()
        self._same = _nothing

    def hold(self) -> bool:
        """Whether all names mean what they meant."""
        try:
            if self._same():
                return True
        except ValueError:  # a cell is empty
            return False
        if not all(b.holds() for b in self._known.values()):
            return False
        self.add([b._replace(value=b.now) for b in self._known.values()])  # equal numbers: the new ones from now on
        return True


def _nothing() -> bool:
    return True


def _generated(bindings: list[Binding | Contents]) -> Callable[[], bool]:
    """A function that compares; names enter its source as string literals only."""
    scope: dict[str, Any] = {"__builtins__": {}}
    tests = []
    for k, b in enumerate(bindings):
        scope[f"p{k}"], scope[f"v{k}"] = b.place, b.value
        tests.append(b.test(f"p{k}", f"v{k}"))
    check: Callable[[], bool] = eval("lambda: " + (" and ".join(tests) or "True"), scope)  # noqa: S307 - our own text
    return check
