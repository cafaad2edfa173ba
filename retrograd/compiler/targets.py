"""The targets that graphs are compiled for, created here, above their passes and code generators."""

from __future__ import annotations

from ..codegen.numpy import in_workspace, structural  # noqa: F401 - they register emitters
from ..codegen.numpy.footprint.footprint import Simulation
from ..codegen.numpy.target import PASSES, NumPy
from ..ir.target import CHOICE, TARGETS
from ..passes.block_kernels import with_blocks
from ..passes.dead_writes import without_dead_writes
from ..passes.place_buffers import place_buffers
from ..passes.vectorize import with_levels
from .settings import config


def _choice() -> str:
    """The target of the settings; only NumPy's own code has NumPy's bits."""
    settings = config.now()
    name = "numpy" if settings.exact else settings.backend
    if name not in TARGETS:
        from . import native_target  # noqa: F401, PLC0415 - it registers the target, and takes a while to import
    return name


NUMPY = NumPy(place_buffers, Simulation)
TARGETS.add(NUMPY)
CHOICE.append(_choice)
PASSES[:0] = [with_levels, without_dead_writes]
PASSES.append(with_blocks)
