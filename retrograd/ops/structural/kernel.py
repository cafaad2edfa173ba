"""kernel: operations that a target computes together, with results of their own storage.

The last passes make kernels, for a target that asks for them. Nothing differentiates or batches kernels.
"""

from __future__ import annotations

from ...ir.graph import Graph
from ...ir.primitive import Primitive, primitive
from ...ir.structure import Structure
from ...ir.types import Aval
from .call import ONCE, results_of, run_call
from .on_numbers import all_fresh

STORAGE = "storage"  # under which bodies know the bytes that another language takes for them beside the results
FITS = "fits"  # likewise, the pairs of a result and an operand, by number, that may have one storage


def _shape(*avals: Aval, body: Graph, size: int = 0) -> tuple[Aval, ...]:
    """The avals of the results of the body; ``size`` is how many elements to work on at a time, 0 for all of them."""
    return results_of(*avals, body=body)


kernel: Primitive = primitive(
    "kernel",
    _shape,
    multi=True,
    final=True,
    run=run_call,
    fresh=all_fresh,
    structure=Structure(bodies=(ONCE,), transparent=True),
)
