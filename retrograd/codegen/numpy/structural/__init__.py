"""The emitters of structural primitives for the NumPy target; importing this package registers them."""

from . import block_writer, branches, calls, loops, module_tables, sweeps, way_back

__all__ = ["block_writer", "branches", "calls", "loops", "module_tables", "sweeps", "way_back"]
