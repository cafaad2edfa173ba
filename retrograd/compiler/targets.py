"""The targets that graphs are compiled for, created here, above their passes and code generators."""

from __future__ import annotations

from functools import partial

from ..codegen.native.taken import takes
from ..codegen.native.target import Native
from ..codegen.numpy import structural  # noqa: F401 - it registers the emitters of structural primitives
from ..codegen.numpy.footprint.footprint import Simulation
from ..codegen.numpy.target import NumPy
from ..ir.target import CHOICE, TARGETS
from ..passes.fuse import Policy, fuse
from ..passes.place_buffers import place_buffers
from .settings import config


def _choice() -> str:
    """The target of the settings; only NumPy's own code has NumPy's bits."""
    settings = config.now()
    return "numpy" if settings.exact else settings.backend


NUMPY = NumPy(place_buffers, Simulation)
TARGETS.add(NUMPY)
TARGETS.add(Native(NUMPY, partial(fuse, policy=Policy(takes=takes))))
CHOICE.append(_choice)
