"""The targets that graphs are compiled for, made here, above the passes and code generators that they consist of."""

from __future__ import annotations

from ..codegen.numpy import structural  # noqa: F401 - it registers the emitters of structural primitives
from ..codegen.numpy.footprint.footprint import Simulation
from ..codegen.numpy.target import NumPy
from ..ir.target import TARGETS
from ..passes.place_buffers import place_buffers

TARGETS.add(NumPy(place_buffers, Simulation))
