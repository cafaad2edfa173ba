"""numbers: a part of a graph that works on numbers alone; targets may run it on numbers of another type."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Graph
from ...ir.primitive import Primitive, primitive
from ...ir.structure import Structure
from ...ir.types import Aval
from .call import ONCE, run_call


def _shape(*avals: Aval, body: Graph) -> tuple[Aval, ...]:
    if body.in_avals != avals:
        raise ValueError(f"the body takes {', '.join(map(str, body.in_avals))}, not {', '.join(map(str, avals))}")
    return body.out_avals


def _fresh(node: Any) -> range:
    return range(len(node.outputs))


numbers: Primitive = primitive(
    "numbers",
    _shape,
    multi=True,
    final=True,
    run=run_call,
    fresh=_fresh,
    structure=Structure(bodies=(ONCE,), transparent=True),
)
