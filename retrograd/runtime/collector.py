"""paused: no cyclic garbage collection for a while."""

from __future__ import annotations

import gc
import threading
from types import TracebackType


class Pause:
    """A context in which Python does not look for cyclic garbage, if it did before; it nests, also across threads.

    The passes make many objects that live on and no cycles: each full collection would walk all of them in vain,
    which is a third of the time to compile 10,000 operations and more for longer programs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._collects = False

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._collects = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._collects:
                gc.enable()


paused = Pause()
