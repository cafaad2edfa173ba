"""What the NumPy target writes for structural primitives; importing it registers the emitters."""

from . import branches, calls, loops, sweeps, way_back

__all__ = ["branches", "calls", "loops", "sweeps", "way_back"]
