"""Ways of changing what a program reads: each is done between two calls, and undone before the third."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Action = Callable[[], object]
Put = Callable[[Any], object]  # binds a number or an array anew, where the program finds it

K = 2.0  # the number that every holder starts with


def nothing() -> None:
    """No action."""


@dataclass(frozen=True)
class Way:
    """``before`` prepares the state, ``change`` alters it, ``back`` restores it."""

    name: str
    change: Action
    back: Action
    before: Action = nothing


def rebound(put: Put, new: Any = 3.5, old: Any = K, name: str = "rebound") -> Way:
    """``put`` binds another value."""
    return Way(name, lambda: put(new), lambda: put(old), lambda: put(old))


def numbers(put: Put) -> list[Way]:
    """Another number, the other sign of zero, an int instead of an equal float."""
    return [
        rebound(put),
        rebound(put, -0.0, 0.0, "sign of zero"),
        rebound(put, 2, 2.0, "int for float"),
    ]


def contents(array: Any, new: Any, name: str = "in place") -> Way:
    """The elements of an array are written."""
    old = array.copy()
    return Way(name, lambda: np.copyto(array, new), lambda: np.copyto(array, old))


def arrays(put: Put) -> list[Way]:
    """An array instead of the number: bound anew, written, of another shape, of another dtype."""
    start = np.array([1.0, 2.0, -3.0])

    def written(new: Any, name: str, old: Any = (1.0, 2.0, -3.0)) -> Way:
        def before() -> None:
            put(start)
            np.copyto(start, old)

        return Way(name, lambda: np.copyto(start, new), lambda: np.copyto(start, old), before)

    return [
        rebound(put, np.array([0.5, -1.0, 4.0]), start, "array rebound"),
        written((0.5, -1.0, 4.0), "array in place"),
        written((1.0, 2.0, 5.0), "one element"),
        written(-0.0, "sign of zero in an array", 0.0),
        rebound(put, np.array([4.0]), start, "another shape"),
        rebound(put, np.array([2, -1, 3]), start, "another dtype"),
        rebound(put, start, 2.0, "array for a number"),
    ]


def both(put: Put) -> list[Way]:
    """Ways that fit a place which may hold numbers and arrays."""
    return numbers(put) + [way for way in arrays(put) if way.name in ("array in place", "another shape")]


def everything(put: Put) -> list[Way]:
    """All of them."""
    return numbers(put) + arrays(put)


def attribute(o: Any, name: str, new: Any, label: str = "") -> Way:
    """An attribute is bound to another object, and given back; deleted again if the object had none of its own."""
    had = name in vars(o)
    old = vars(o).get(name)

    def back() -> None:
        if had:
            setattr(o, name, old)
        else:
            delattr(o, name)

    return Way(label or f"{name} rebound", lambda: setattr(o, name, new), back)


def item(c: Any, key: Any, new: Any, label: str = "") -> Way:
    """An item is bound to another object, and given back or deleted."""
    had = key in c if hasattr(c, "keys") else True
    old = c[key] if had else None

    def back() -> None:
        if had:
            c[key] = old
        else:
            del c[key]

    return Way(label or "item rebound", lambda: c.__setitem__(key, new), back)


def no_attribute(o: Any, name: str) -> Way:
    """An attribute is deleted: plain Python raises."""
    old = getattr(o, name)
    return Way("attribute deleted", lambda: delattr(o, name), lambda: setattr(o, name, old))


def no_item(c: Any, key: Any) -> Way:
    """An item is deleted: plain Python raises."""
    old = c[key]
    return Way("item deleted", lambda: c.__delitem__(key), lambda: c.__setitem__(key, old))


def grown(items: Any, new: Any) -> Way:
    """An element is appended."""
    return Way("grown", lambda: items.append(new), items.pop)


def shrunk(items: Any) -> Way:
    """The last element is removed."""
    old = items[-1]
    return Way("shrunk", items.pop, lambda: items.append(old))


def reordered(d: Any) -> Way:
    """The keys of a dict stand in reverse order."""

    def turn() -> None:
        pairs = list(d.items())[::-1]
        d.clear()
        d.update(pairs)

    return Way("keys reordered", turn, turn)
