"""numbers: a part of a graph that works on numbers only; targets may run it on numbers of another type."""

from __future__ import annotations

import math

from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive
from ...ir.structure import Structure
from ...ir.types import Aval
from .call import ONCE, results_of, run_call


def all_fresh(node: Node) -> range:
    """The positions of all results: none shares storage with another."""
    return range(len(node.outputs))


numbers: Primitive = primitive(
    "numbers",
    results_of,
    multi=True,
    final=True,
    run=run_call,
    fresh=all_fresh,
    structure=Structure(bodies=(ONCE,), transparent=True),
)


def _elements_shape(x: Aval) -> tuple[Aval, ...]:
    return (Aval((), x.dtype, "scalar"),) * x.size


def _assembled_shape(*avals: Aval, shape: tuple[int, ...]) -> Aval:
    if len(avals) != math.prod(shape) or any(a.shape or a.dtype != avals[0].dtype for a in avals):
        raise ValueError(f"{', '.join(map(str, avals))} do not fill an array of shape {shape}")
    return Aval(shape, avals[0].dtype)


def nested(texts: list[str], shape: tuple[int, ...]) -> str:
    """Texts as nested tuples of a shape."""
    if not shape:
        return texts[0]
    step = len(texts) // shape[0]
    parts = [nested(texts[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _assembled(node: Node) -> str:
    shape = node.attrs["shape"]
    return f"np.array({nested([f'{{{i}}}' for i in range(len(node.inputs))], shape)})"


# the numbers in an array, in C order, and an array of numbers
elements: Primitive = primitive("elements", _elements_shape, "{0}.flat", multi=True, final=True)
assemble: Primitive = primitive("assemble", _assembled_shape, _assembled, final=True)
