"""The memory of a plan in which C computes kernels: their results, and the workspaces that they have and keep."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import inf

from ...ir.footprint import Course, Footprint
from ...ir.graph import Graph
from ...ops.structural.kernel import FITS, STORAGE
from .alike_kernels import KEPT
from .kernel_function import KernelFunction, identity_of
from .shim import workspace


def storage_known(body: Graph, kernel: KernelFunction) -> None:
    """Let a kernel's body know the bytes that each call of its C function takes for itself: None if data decide.

    It also gets to know which results may lie in operands.
    """
    nbytes, keeps = workspace(kernel)
    body.once(STORAGE, lambda: None if kernel.grows else 0 if keeps else nbytes)
    body.once(FITS, lambda: kernel.fits)
    body.once(KEPT, lambda: {identity_of(body, kernel): nbytes if keeps else 0})


def kept_by(bodies: Iterable[Graph]) -> int:
    """The bytes that kernels keep from their first call on; equal ones are one function."""
    kept: dict[Hashable, int] = {}
    for body in bodies:
        kept |= body.once(KEPT, dict)
    return sum(kept.values())


@dataclass(frozen=True)
class WithKept:
    """A footprint beside memory that is kept between calls."""

    calls: Footprint
    kept: int

    def peak(self, limit: float = inf) -> int:
        """The peak in bytes; if it is beyond ``limit``, any number greater than ``limit``."""
        return self.kept + self.calls.peak(limit - self.kept)

    def course(self) -> Course:
        """The course of a call that finds the memory of earlier ones."""
        peak, over_time, at_peak = self.calls.course()
        if not self.kept:
            return Course(peak, over_time, at_peak)
        return Course(self.kept + peak, [self.kept + n for n in over_time], [(self.kept, None, None), *at_peak])
