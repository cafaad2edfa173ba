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
        """Source of the comparison; ``place`` and ``value`` are the names that it reads."""
        return f"{place}.cell_contents is {value}" if self.in_cell else f"{place}.get({self.name!r}) is {value}"


class Contents(NamedTuple):
    """The bytes of a captured array on which the recording depends: Python, or code that is not traced, read them."""

    place: np.ndarray[Any, Any]
    name: str
    value: bytes

    @property
    def in_cell(self) -> bool:
        """Always False: the bytes belong to an array, not to a variable."""
        return False

    @property
    def now(self) -> bytes:
        """The present bytes of the array."""
        return self.place.tobytes()

    def holds(self) -> bool:
        """Whether the bytes are the same."""
        return self.now == self.value

    def test(self, place: str, value: str) -> str:
        """Source of the comparison; ``place`` and ``value`` are the names that it reads."""
        return f"{place}.tobytes() == {value}"


class Bindings:
    """The bindings that several recordings rely on; every call checks them, so the check is compiled source."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], Binding | Contents] = {}
        self._same: Callable[[], bool] = _nothing

    def add(self, bindings: Iterable[Binding | Contents]) -> None:
        """Rely on these too."""
        self._known.update(((id(b.place), b.name), b) for b in bindings)
        self._same = _generated(list(self._known.values()))

    def clear(self) -> None:
        """Forget all bindings."""
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
        self.add([b._replace(value=b.now) for b in self._known.values()])  # equal numbers: compare with the new ones
        return True


def _nothing() -> bool:
    return True


def _generated(bindings: list[Binding | Contents]) -> Callable[[], bool]:
    """Compile the comparison; names enter its source as string literals only."""
    scope: dict[str, Any] = {"__builtins__": {}}
    tests = []
    for k, b in enumerate(bindings):
        scope[f"p{k}"], scope[f"v{k}"] = b.place, b.value
        tests.append(b.test(f"p{k}", f"v{k}"))
    check: Callable[[], bool] = eval("lambda: " + (" and ".join(tests) or "True"), scope)  # noqa: S307 - our own text
    return check
