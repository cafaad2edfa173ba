"""The emitters of structural primitives for the NumPy target; importing this package registers them."""

from . import branches, calls, loops, sweeps, way_back

__all__ = ["branches", "calls", "loops", "sweeps", "way_back"]
