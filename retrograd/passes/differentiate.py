"""differentiate: build graphs of gradients from linearize, transpose and inline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph
from ..ir.primitive import REGISTRY
from ..ir.types import Aval
from .inline import inline_into
from .linearize import Linearized
from .transpose import transpose_into


def value_and_grad(
    graph: Graph, active: Sequence[bool], lin: Linearized, keep: bool = True, turned: Mapping[str, Any] | None = None
) -> Graph:
    """f(x...) → y, aux... becomes x... → y, aux..., x̄...: one cotangent per active input, for ȳ = 1.

    Without ``keep`` only the cotangents are returned. The cotangent of a Python number is a NumPy scalar. If ``turned``
    is given, a turn with these attributes marks where the adjoint begins.
    """
    b = Builder()
    args = b.share_inputs(lin.forward)
    results = inline_into(b, lin.forward, args)
    if turned is not None:
        b.emit(REGISTRY["turn"], (), turned)
    outs, residuals = results[: len(graph.outputs)], results[len(graph.outputs) :]
    b.where = None
    seeds = [
        b.constant(1, o.aval) if i == 0 else None
        for i, (o, on) in enumerate(zip(outs, lin.out_active, strict=True))
        if on
    ]
    wanted = [a for a, on in zip(args, active, strict=True) if on]
    found = transpose_into(b, lin.linear, [*residuals, *[None] * len(wanted)], seeds)
    b.where = None
    grads = [filled(b, ct, a.aval) for ct, a in zip(found, wanted, strict=True)]
    return b.graph(f"{graph.name}_grad", [*outs, *grads] if keep else grads)


def filled(b: Builder, ct: Symbol | None, aval: Aval) -> Symbol:
    """A cotangent of a value of this aval: zeros instead of None, a NumPy scalar for a Python number."""
    target = replace(aval, kind="scalar") if aval.kind == "python" else aval
    return b.zeros(target) if ct is None else b.coerce(ct, target)
