"""Blocks that only have a size, in place of arrays, and meters that count their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.footprint import Undecided


class Above(Exception):  # noqa: N818 - not an error: the rest of the run does not matter
    """The peak is above the limit."""


class Meter:
    """Counts the live bytes, and the most that were live at once.

    If the data choose, ``chosen`` gives the path by the number of the choice; ``rest`` is the path of all other
    choices. ``total`` adds up the live bytes at the making of each block.
    """

    def __init__(self, chosen: Mapping[int, int], rest: int = 0, limit: float = float("inf")) -> None:
        self.live = self.peak = self.total = 0
        self.chosen, self.rest, self.limit = chosen, rest, limit
        self.met: dict[int, tuple[int, int]] = {}  # by choice: the path that was taken, and how many paths there are

    def way(self, choice: int, ways: int) -> int:
        """The path that is assumed for a choice by the data."""
        taken = min(self.chosen.get(choice, self.rest), ways - 1)
        self.met[choice] = taken, ways
        return taken

    def new(self, nbytes: int, scratch: int = 0, label: int = -1) -> Allocation:
        """A block, made with so many bytes of workspace; the label names the operation."""
        self.live += nbytes
        self.total += self.live
        if self.live + scratch > self.peak:
            self.peak = self.live + scratch
            if self.peak > self.limit:
                raise Above
        return Allocation(self, nbytes, label)

    def grown(self, block: Allocation, nbytes: int) -> None:
        """Add bytes to a block."""
        block.nbytes += nbytes
        self.live += nbytes
        if self.live > self.peak:
            self.peak = self.live
            if self.peak > self.limit:
                raise Above

    def freed(self, block: Allocation) -> None:
        """Count a block out: no reference to it is left."""
        self.live -= block.nbytes


class CourseMeter(Meter):
    """Also keeps the course of live bytes over all allocations, and the blocks that were live at the peak."""

    def __init__(self, chosen: Mapping[int, int], rest: int = 0) -> None:
        super().__init__(chosen, rest)
        self.course: list[int] = []
        self.blocks: dict[int, tuple[int, int]] = {}
        self.at_peak: list[tuple[int, int]] = []  # bytes and label

    def new(self, nbytes: int, scratch: int = 0, label: int = -1) -> Allocation:
        """A block, with its place in the course."""
        higher = self.live + nbytes + scratch > self.peak
        block = super().new(nbytes, scratch, label)
        if nbytes or scratch:
            self.course.append(self.live + scratch)
        if nbytes:
            self.blocks[id(block)] = nbytes, label
        if higher:
            self.at_peak = list(self.blocks.values())
        return block

    def grown(self, block: Allocation, nbytes: int) -> None:
        """Add bytes to a block, with the place in the course."""
        higher = self.live + nbytes > self.peak
        super().grown(block, nbytes)
        self.blocks[id(block)] = block.nbytes, block.label
        self.course.append(self.live)
        if higher:
            self.at_peak = list(self.blocks.values())

    def freed(self, block: Allocation) -> None:
        """Count a block out and forget it."""
        super().freed(block)
        self.blocks.pop(id(block), None)


class Allocation:
    """An array of which only the size is known; a view of it is the block itself."""

    __slots__ = ("label", "meter", "nbytes")

    def __init__(self, meter: Meter, nbytes: int, label: int) -> None:
        self.meter, self.nbytes, self.label = meter, nbytes, label

    def __del__(self) -> None:
        self.meter.freed(self)

    def __getitem__(self, _: Any) -> Allocation:
        return self

    def __setitem__(self, _: Any, __: Any) -> None:
        pass

    def __add__(self, _: Any) -> Allocation:
        return self.meter.new(self.nbytes)

    def __index__(self) -> int:
        raise Undecided

    __bool__ = __int__ = __len__ = __index__


class SizedList(list[Any]):
    """A list of which each entry takes some bytes, beside the blocks that it holds."""

    def __init__(self, meter: Meter, each: int) -> None:
        super().__init__()
        self._block, self._each = meter.new(0), each

    def append(self, x: Any) -> None:
        """Add an entry."""
        super().append(x)
        self._block.meter.grown(self._block, self._each)


class SizedDict(dict[int, Any]):
    """A dict of which each entry takes some bytes, beside the blocks that it holds."""

    def __init__(self, meter: Meter, each: int) -> None:
        super().__init__()
        self._block, self._each = meter.new(0), each

    def __setitem__(self, i: int, x: Any) -> None:
        if i not in self:
            self._block.meter.grown(self._block, self._each)
        super().__setitem__(i, x)

    def __delitem__(self, i: int) -> None:
        super().__delitem__(i)
        self._block.meter.grown(self._block, -self._each)


class Arrays:
    """Stands in for NumPy where structural operations make arrays."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    def empty(self, shape: Any, dtype: Any = np.float64, *_: Any) -> Allocation:
        """A block for the shape."""
        return self.meter.new(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)

    zeros = ones = empty

    def ndarray(self, *_: Any) -> Allocation:
        """No bytes: the array lies in memory that is counted."""
        return self.meter.new(0)

    def asarray(self, x: Any, *_: Any) -> Any:
        """The block itself."""
        return x

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class States:
    """Stands in for states on disk, each of blocks of these sizes: a state that is read takes memory again."""

    def __init__(self, meter: Meter, sizes: Sequence[int], kept: Iterable[int] = ()) -> None:
        self.meter, self.sizes = meter, sizes
        self.kept = dict.fromkeys(kept)

    def __iter__(self) -> Iterator[int]:
        return iter(self.kept)

    def write(self, i: int, *_: Any) -> None:
        """Note the number of a state."""
        self.kept[i] = None

    def read(self, _: int, count: int) -> Any:
        """New blocks."""
        found = [self.meter.new(size) for size in self.sizes[:count]]
        return found[0] if count == 1 else found

    def drop(self, i: int) -> None:
        """Drop a state."""
        del self.kept[i]

    def again(self) -> States:
        """The same states."""
        return States(self.meter, self.sizes, self.kept)

    def resumed(self, steps: Any, _: int) -> Any:
        """All steps: the disk holds no state yet."""
        return steps

    def close(self) -> None:
        """Drop all states."""
