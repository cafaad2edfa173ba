"""paused, unhurried: no cyclic garbage collection for a while, or a less frequent one."""

from __future__ import annotations

import gc
import threading
from types import TracebackType

SELDOM = 10_000  # new objects between two collections of an unhurried collector


class Around:
    """A context with another setting of the collector; it nests, also across threads: the last to leave restores."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0

    def begin(self) -> None:
        """Change the setting."""
        raise NotImplementedError

    def end(self) -> None:
        """Restore it."""
        raise NotImplementedError

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self.begin()
            self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self.end()


class Pause(Around):
    """A context in which Python does not look for cyclic garbage, if it did before.

    The passes make many objects that live on, and no cycles: each full collection would walk all of them in vain,
    which takes a third of the time to compile 10,000 operations, and more for longer programs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._collects = False

    def begin(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def end(self) -> None:
        if self._collects:
            gc.enable()


class Unhurried(Around):
    """A context in which Python looks for cyclic garbage less often.

    Here the user's function runs, which may make such garbage. The objects of a recording live on, and to walk them
    after every few hundred new objects, as is the default, takes a quarter of the time of recording.
    """

    def __init__(self) -> None:
        super().__init__()
        self._before = self._set = gc.get_threshold()

    def begin(self) -> None:
        self._before = self._set = gc.get_threshold()
        if 0 < self._before[0] < SELDOM:  # at 0 it never collects
            self._set = (SELDOM, *self._before[1:])
            gc.set_threshold(*self._set)

    def end(self) -> None:
        if gc.get_threshold() == self._set:  # no other code has changed it
            gc.set_threshold(*self._before)


paused = Pause()
unhurried = Unhurried()
