"""pullback: build the graph of a second half, which takes the residuals and the cotangents."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.builder import Builder
from ..ir.graph import Graph
from .differentiate import filled
from .linearize import Linearized
from .transpose import transpose_into


def pullback(lin: Linearized, seeded: Sequence[bool]) -> Graph:
    """(residuals..., ȳ...) → x̄...; each output that is ``seeded`` gets an input for its cotangent."""
    b = Builder()
    residuals = b.inputs_like(lin.linear.inputs[: len(lin.residuals)])
    outputs = lin.forward.outputs[: len(lin.out_active)]
    cts = [b.input(v.aval, "ct") if on else None for v, on in zip(outputs, seeded, strict=True)]
    tangents = lin.linear.inputs[len(residuals) :]
    seeds = [ct for ct, on in zip(cts, lin.out_active, strict=True) if on]
    found = transpose_into(b, lin.linear, [*residuals, *[None] * len(tangents)], seeds)
    b.where = None
    grads = [filled(b, ct, v.aval) for ct, v in zip(found, tangents, strict=True)]
    return b.graph(lin.linear.name.removesuffix("_linear") + "_pullback", grads)
