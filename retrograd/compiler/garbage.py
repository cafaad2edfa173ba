"""paused, unhurried: no cyclic garbage collection for a while, or a less frequent one."""

from __future__ import annotations

import gc
import operator

from ..tracer.around import Around

SELDOM = 10_000  # new objects between two collections of an unhurried collector
MANY = 1_000_000  # new objects, which take some 150 MB, from which on a full collection is worth its time


class Pause(Around):
    """A context in which Python does not look for cyclic garbage, if it did before.

    The passes make many objects that live on, and no cycles: to walk them in vain takes a third of the time to compile
    10,000 operations. At the end all objects count as old: otherwise the first new one would set off a collection that
    walks them. Python then no longer finds old garbage, so the end is a full collection if many new ones have stayed.
    """

    _collects = False
    _made = _alive = 0  # objects since the last full collection, and those that it left

    def set_up(self) -> None:
        if gc.isenabled():
            self._collects = True
            gc.disable()

    def undo(self) -> None:
        if self._collects:
            (new, some, more), (often, seldom, _) = gc.get_count(), gc.get_threshold()
            self._made += new + often * (some + seldom * more)
            if often and self._made > max(MANY, self._alive // 4) and self._grown():
                gc.collect()
                self._made, self._alive = 0, len(gc.get_objects())
            elif not gc.get_freeze_count():  # freezing again what others have frozen would thaw it
                list(map(operator.call, (gc.freeze, gc.unfreeze)))  # no signal comes between: else all stays frozen
            gc.enable()
            self._collects = False

    def _grown(self) -> bool:
        """Whether half of what was made is there still; to count takes a twentieth of the time of a collection."""
        made, self._made = self._made, len(gc.get_objects()) - self._alive
        return self._made > made // 2


class Unhurried(Around):
    """A context in which Python looks for cyclic garbage less often.

    Here the user's function runs, which may make such garbage. The objects of a recording live on, and to walk them
    after every few hundred new objects, as is the default, takes a quarter of the time of recording.
    """

    _before = _set = gc.get_threshold()

    def set_up(self) -> None:
        now = gc.get_threshold()
        if 0 < now[0] < SELDOM:  # at 0 it never collects
            self._before, self._set = now, (SELDOM, *now[1:])
            gc.set_threshold(*self._set)

    def undo(self) -> None:
        if gc.get_threshold() == self._set:  # no other code has changed it
            gc.set_threshold(*self._before)
            self._set = self._before


paused = Pause()
unhurried = Unhurried()
