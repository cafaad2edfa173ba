"""linearize: f(x...) → y... becomes forward(x...) → y..., residuals... and linear(residuals..., ẋ...) → ẏ...."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import TRANSFORMS, JvpMode
from .jvp import jvp_into
from .prune import prune


@dataclass(frozen=True, eq=False)
class Linearized:
    """A function linearized at a point, in two graphs: one of the point, and one that is linear in the tangents.

    ``forward`` returns the outputs and then the ``residuals``, which are values of ``forward`` (inputs included);
    ``linear`` takes residuals and tangents of active inputs, and returns the tangents of active outputs.
    """

    forward: Graph
    linear: Graph
    residuals: tuple[Value, ...]
    out_active: tuple[bool, ...]


@TRANSFORMS.register("linearize")
def linearize(graph: Graph, active: Sequence[bool], *, nan_safe: bool) -> Linearized:
    """Linearize with respect to the active inputs.

    One question divides the nodes of the jvp: does the node depend on a tangent? Values of the other side that the
    linear side reads are residuals; constants are copied instead.
    """
    b = Builder()
    args = b.share_inputs(graph)
    dots = [
        b.input(v.aval, v.hint and f"{v.hint}_dot") if on else None for v, on in zip(graph.inputs, active, strict=True)
    ]
    outs, douts = jvp_into(b, graph, args, dots, JvpMode(split=True, nan_safe=nan_safe))
    tangents = [d.value for d in dots if d is not None]
    targets = [d.value for d in douts if d is not None]

    depends: set[Value] = set(tangents)
    known: list[Node] = []
    linear: list[Node] = []
    for node in b.nodes:
        if not depends.isdisjoint(node.inputs):
            depends.update(node.outputs)
            linear.append(node)
        else:
            known.append(node)
    linear = list(prune(Graph("linear", (), tuple(linear), tuple(targets))).nodes)
    residuals, constants = _read_from_outside(linear, targets, depends, b.made)
    forward = Graph(graph.name, tuple(s.value for s in args), tuple(known), (*(s.value for s in outs), *residuals))
    return Linearized(
        prune(forward),
        Graph(f"{graph.name}_linear", (*residuals, *tangents), (*constants, *linear), tuple(targets)),
        tuple(residuals),
        tuple(d is not None for d in douts),
    )


def _read_from_outside(
    linear: list[Node], targets: list[Value], depends: set[Value], made: dict[Value, Node]
) -> tuple[list[Value], list[Node]]:
    residuals: dict[Value, None] = {}
    constants: dict[Node, None] = {}
    for value in (*(v for node in linear for v in node.inputs), *targets):
        if value in depends:
            continue
        node = made.get(value)
        if node is not None and not node.inputs and not node.prim.effect:
            constants[node] = None
        else:
            residuals[value] = None
    return list(residuals), list(constants)
