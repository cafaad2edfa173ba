"""numbers: a part of a graph that works on numbers only; targets may run it on numbers of another type."""

from __future__ import annotations

from typing import Any

from ...ir.primitive import Primitive, primitive
from ...ir.structure import Structure
from .call import ONCE, results_of, run_call


def _fresh(node: Any) -> range:
    return range(len(node.outputs))


numbers: Primitive = primitive(
    "numbers",
    results_of,
    multi=True,
    final=True,
    run=run_call,
    fresh=_fresh,
    structure=Structure(bodies=(ONCE,), transparent=True),
)
