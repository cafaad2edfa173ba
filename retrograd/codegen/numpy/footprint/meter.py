"""Blocks that only have a size, in place of arrays, and meters that count their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.target import Undecided


class Above(Exception):  # noqa: N818 - not an error: more need not be known
    """The peak is above the limit."""


class Meter:
    """Counts the bytes that live, and the most that lived at once.

    Where the data choose, the way is as ``chosen`` says, by the number of the choice, or else ``rest``. ``total`` adds
    up what lived whenever a block was made.
    """

    def __init__(self, chosen: Mapping[int, int], rest: int = 0, limit: float = float("inf")) -> None:
        self.live = self.peak = self.total = 0
        self.chosen, self.rest, self.limit = chosen, rest, limit
        self.met: dict[int, tuple[int, int]] = {}  # by choice, the way that was taken, and how many there are

    def way(self, choice: int, ways: int) -> int:
        """The way that is assumed where the data choose one."""
        taken = min(self.chosen.get(choice, self.rest), ways - 1)
        self.met[choice] = taken, ways
        return taken

    def new(self, nbytes: int, scratch: int = 0, label: int = -1) -> Allocation:
        """A block, made with so many bytes of workspace; the label says by which operation."""
        self.live += nbytes
        self.total += self.live
        if self.live + scratch > self.peak:
            self.peak = self.live + scratch
            if self.peak > self.limit:
                raise Above
        return Allocation(self, nbytes, label)

    def freed(self, block: Allocation) -> None:
        """Nothing refers to a block any longer."""
        self.live -= block.nbytes


class CourseMeter(Meter):
    """Keeps the course over what is allocated, views apart, and what lived at the peak."""

    def __init__(self, chosen: Mapping[int, int], rest: int = 0) -> None:
        super().__init__(chosen, rest)
        self.course: list[int] = []
        self.blocks: dict[int, tuple[int, int]] = {}
        self.at_peak: list[tuple[int, int]] = []  # bytes and label

    def new(self, nbytes: int, scratch: int = 0, label: int = -1) -> Allocation:
        """A block, noted."""
        higher = self.live + nbytes + scratch > self.peak
        block = super().new(nbytes, scratch, label)
        if nbytes or scratch:
            self.course.append(self.live + scratch)
        if nbytes:
            self.blocks[id(block)] = nbytes, label
        if higher:
            self.at_peak = list(self.blocks.values())
        return block

    def freed(self, block: Allocation) -> None:
        """A block is forgotten."""
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


class Arrays:
    """Stands for NumPy where structural operations make arrays."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    def empty(self, shape: Any, dtype: Any = np.float64, *_: Any) -> Allocation:
        """A block for the shape."""
        return self.meter.new(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)

    zeros = ones = empty

    def asarray(self, x: Any, *_: Any) -> Any:
        """The block itself."""
        return x

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class States:
    """Stands for states on disk, each of blocks of these sizes: what is read takes memory again."""

    def __init__(self, meter: Meter, sizes: Sequence[int], kept: Iterable[int] = ()) -> None:
        self.meter, self.sizes = meter, sizes
        self.kept = dict.fromkeys(kept)

    def __iter__(self) -> Iterator[int]:
        return iter(self.kept)

    def write(self, i: int, *_: Any) -> None:
        """Note the number."""
        self.kept[i] = None

    def read(self, _: int, count: int) -> Any:
        """New blocks."""
        found = [self.meter.new(size) for size in self.sizes[:count]]
        return found[0] if count == 1 else found

    def drop(self, i: int) -> None:
        """The file goes."""
        del self.kept[i]

    def again(self) -> States:
        """The same states."""
        return States(self.meter, self.sizes, self.kept)

    def resumed(self, steps: Any) -> Any:
        """All steps: nothing is there yet."""
        return steps

    def close(self) -> None:
        """All files go."""
