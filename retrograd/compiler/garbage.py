"""paused, unhurried: no cyclic garbage collection for a while, or a less frequent one."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

SELDOM = 10_000  # new objects between two collections of an unhurried collector


class Around:
    """A context with another setting of the collector; it nests, also across threads: the last to leave restores.

    ``change`` makes the setting, and returns a function that restores the one before.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change = change
        self._lock = threading.Lock()
        self._depth = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._restore = self._change()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._restore()


def stop() -> Callable[[], None]:
    """Look for no cyclic garbage.

    The passes make many objects that live on, and no cycles: each full collection would walk all of them in vain,
    which takes a third of the time to compile 10,000 operations, and more for longer programs.
    """
    collects = gc.isenabled()
    gc.disable()
    return gc.enable if collects else lambda: None


def slow_down() -> Callable[[], None]:
    """Look for cyclic garbage less often.

    Here the user's function runs, which may make such garbage. The objects of a recording live on, and to walk them
    after every few hundred new objects, as is the default, takes a quarter of the time of recording.
    """
    before = gc.get_threshold()
    changed = (SELDOM, *before[1:]) if 0 < before[0] < SELDOM else before  # at 0 it never collects
    gc.set_threshold(*changed)

    def restore() -> None:
        if gc.get_threshold() == changed:  # no other code has changed it
            gc.set_threshold(*before)

    return restore


paused = Around(stop)
unhurried = Around(slow_down)
