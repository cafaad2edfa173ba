"""An unknown number of steps in a fixed number of slots.

While n < (c + 1)(c + 2) / 2, hardly a step has to run a third time: the gaps between kept states grow, the first gap
first, to c + 1, c, c − 1, … (P. Stumm and A. Walther, SIAM J. Sci. Comput. 32, 2010, algorithm I). Beyond that, each
state has a level, and a state is dispensable if a later state has a higher level; if no state is dispensable, the
newest is replaced, one level up (Q. Wang, P. Moin and G. Iaccarino, SIAM J. Sci. Comput. 31, 2009).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.embedded_functions import embedded


@embedded()
def online_room(slots: int) -> Iterator[int]:
    """For each state 0, 1, … in turn: the kept state to drop before it is kept, -1 for none, -2 not to keep it."""
    kept: list[int] = []
    gap, new = 0, 0
    while new < (slots + 1) * (slots + 2) // 2 or slots == 1:
        longest = slots + 1 - gap
        if len(kept) < slots:
            yield -1
            kept.append(new)
        elif gap + 2 < len(kept) and kept[gap + 2] - kept[gap] > longest:
            gap += 1
            continue
        elif gap + 2 < len(kept) or (gap + 1 < len(kept) and new - kept[gap] <= longest):
            yield kept.pop(gap + 1)
            kept.append(new)
        else:
            yield -2
        new += 1
    levels = [1] * len(kept)
    while True:
        drop, highest = len(kept) - 1, levels[-1]
        while drop > 0 and levels[drop] >= highest:
            highest = levels[drop]
            drop -= 1
        level = 0
        if drop == 0:
            drop = len(kept) - 1
            level = levels[drop] + 1
        levels.pop(drop)
        yield kept.pop(drop)
        levels.append(level)
        kept.append(new)
        new += 1
