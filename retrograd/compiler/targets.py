"""The targets that graphs are compiled for, created here, above their passes and code generators."""

from __future__ import annotations

from ..codegen.numpy import structural  # noqa: F401 - it registers the emitters of structural primitives
from ..codegen.numpy.footprint.footprint import Simulation
from ..codegen.numpy.target import NumPy
from ..ir.target import TARGETS
from ..passes.place_buffers import place_buffers

TARGETS.add(NumPy(place_buffers, Simulation))
