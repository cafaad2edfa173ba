"""Memory plans: how many states a loop keeps for its derivative, and which steps it computes again instead."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..compiler.memory.available import available_bytes
from ..errors import OptionError, SnapshotError
from ..ir.primitive import TRANSFORMS

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([a-z]*|%)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Snapshots:
    """Keep at most ``slots`` states of a loop, with the fewest repeated steps for that number.

    Let r be the least number with C(slots + r, r) ≥ n. Then none of n steps runs more than r + 1 times (A. Griewank and
    A. Walther, ACM Trans. Math. Softw. 26, 2000).

    Parameters
    ----------
    slots : int
        The number of states, the initial one included.
    mixed : bool
        Whether a slot may hold residuals of single steps instead of a state, in as many slots as they take up. This
        saves steps if residuals are small. The number of steps must be known, and loops inside must have no plans.

    Raises
    ------
    OptionError
        If ``slots`` is not a positive integer.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> def last(x, n):
    ...     return rg.scan(lambda c, _: (np.sin(c), None), x, None, n, memory=rg.Snapshots(3))[0]
    >>> with rg.debug_counters() as c:
    ...     slope = rg.grad(lambda x: last(x, 20))(1.0)
    >>> c.advances, c.snapshots_peak
    (45, 3)
    """

    slots: int
    mixed: bool = False

    def __post_init__(self) -> None:
        _whole("Snapshots", "slots", self.slots)


@dataclass(frozen=True)
class Log:
    """Keep about log₂ n states of a loop, whatever its number n of steps turns out to be.

    The trailing zeros of a counter decide which states are kept. The adjoint sweep places further states in the slots
    that become free.

    Parameters
    ----------
    reverse : "binomial" or "ctz"
        How the adjoint sweep places further states: binomially, or by the same counter again.

    Raises
    ------
    OptionError
        If ``reverse`` is neither of the two.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> loop = lambda x: rg.while_loop(lambda c: c < 100.0, lambda c: c * 1.5, x, memory=rg.Log())
    >>> round(float(rg.grad(loop)(1.0)), 6)
    129.746338
    """

    reverse: Literal["binomial", "ctz"] = "binomial"

    def __post_init__(self) -> None:
        if self.reverse not in ("binomial", "ctz"):
            raise OptionError(f"Log(reverse={self.reverse!r})", remedy="choose 'binomial' or 'ctz'")


@dataclass(frozen=True)
class Periodic:
    """Keep every ``every``-th state, and on the adjoint sweep the states of one period.

    The plan keeps the residuals of that period instead if they are no larger than the states and the number of steps
    is known. Then no step runs a third time.

    Parameters
    ----------
    every : int, optional
        The period; by default ⌈√n⌉ for n steps.

    Raises
    ------
    OptionError
        If ``every`` is not a positive integer.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> loop = lambda x: rg.fori_loop(9, lambda i, c: np.sin(c), x, memory=rg.Periodic(3))
    >>> float(rg.grad(loop)(0.0))
    1.0
    """

    every: int | None = None

    def __post_init__(self) -> None:
        if self.every is not None:
            _whole("Periodic", "every", self.every)


@dataclass(frozen=True)
class Everything:
    """Keep all residuals and repeat nothing, whatever an enclosing plan says.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> body = lambda c, _: (np.sin(c), None)
    >>> float(rg.grad(lambda x: rg.scan(body, x, None, 2, memory=rg.Everything())[0])(0.0))
    1.0
    """


@dataclass(frozen=True)
class Tiered:
    """Keep ``ram`` states in memory and the ``disk`` earliest further ones in files.

    States are placed as for ``Snapshots(ram + disk)``. The files stand in a folder of their own, which is removed when
    the gradient is done or fails.

    Parameters
    ----------
    ram : int
        The number of states in memory.
    disk : int
        The number of states in files.
    directory : path, optional
        Where the folder is made; by default the directory for temporary files.
    resume : bool
        Whether the folder belongs to the loop and its inputs. If the process was killed, the same gradient then
        continues from the last whole state in it.

    Raises
    ------
    OptionError
        If a number is wrong or the directory does not exist.
    SnapshotError
        If a state cannot be written or read while the gradient runs.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> def last(x):
    ...     return rg.scan(lambda c, _: (np.sin(c), None), x, None, 50, memory=rg.Tiered(ram=3, disk=4))[0]
    >>> float(rg.grad(last)(1.0)) == float(rg.grad(lambda x: rg.fori_loop(50, lambda i, c: np.sin(c), x))(1.0))
    True
    """

    ram: int
    disk: int
    directory: str | os.PathLike[str] | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        _whole("Tiered", "ram", self.ram)
        _whole("Tiered", "disk", self.disk)
        if self.directory is not None and not Path(self.directory).is_dir():
            raise SnapshotError(
                f"there is no directory {str(self.directory)!r}",
                remedy="create it, or omit directory=, which uses the directory for temporary files",
            )
        if self.resume and self.directory is None:
            raise OptionError(
                "Tiered(resume=True) without a directory",
                remedy="name the directory in which an earlier run left its states",
            )


MemoryPlan = Snapshots | Log | Periodic | Tiered | Everything | int | float | str | None


def _whole(name: str, field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{name}({field}={value!r})", remedy=f"give a number {field} of 1 or more")


def plan_of(memory: MemoryPlan, known: bool = True) -> tuple[Any, ...] | None:
    """A plan as the attribute of a loop; ``known`` says whether the number of steps is known before it runs."""
    unplaced = (isinstance(memory, Snapshots) and memory.mixed) or isinstance(memory, Tiered)
    if not known and (unplaced or memory == Periodic()):
        raise OptionError(
            f"memory={memory} needs a known number of steps",
            remedy="give rg.Log(), rg.Snapshots(c), rg.Periodic(every) or a number of bytes instead",
        )
    match memory:
        case None:
            return None
        case Snapshots(slots, mixed):
            return ("mixed", slots) if mixed else ("snapshots", slots)
        case Log(reverse):
            return ("log", reverse)
        case Periodic(every):
            return ("periodic", every)
        case Tiered(ram, disk, directory, resume):
            return ("tiered", ram, disk, "" if directory is None else os.fspath(directory), resume)
        case Everything():
            return ("everything",)
    return ("bytes", bytes_of(memory))


@TRANSFORMS.register("bytes_of")
def bytes_of(memory: object) -> int:
    """A budget in bytes: a number, a text such as "64 MiB", "available", or "50 %" of that. Raises OptionError.

    >>> bytes_of("1.5 kB"), bytes_of("2 GiB"), bytes_of(100), bytes_of(1.5e6)
    (1500, 2147483648, 100, 1500000)
    """
    if isinstance(memory, str) and memory == "available":
        return available_bytes()
    if isinstance(memory, (int, float, np.integer, np.floating)) and memory is not True and 1 <= memory < math.inf:
        return int(memory)
    found = SIZE.fullmatch(memory) if isinstance(memory, str) else None
    if found is not None and found[2] == "%" and 0 < float(found[1]) <= 100:
        return int(available_bytes() * float(found[1]) / 100)
    if found is None or found[2].lower() not in UNITS:
        raise OptionError(
            f"memory={memory!r} is neither a plan nor a number of bytes",
            remedy='give bytes, as 2**26, "64 MiB", "available" or "50 %"; loops take plans, too, as rg.Snapshots(c)',
        )
    return math.floor(float(found[1]) * UNITS[found[2].lower()])
