"""Graphs of the derivatives of a graph in its first input, x: gradients, Jacobians, and products with them."""

from __future__ import annotations

import numpy as np

from ..ir.builder import Builder
from ..ir.graph import Graph
from ..ir.primitive import TRANSFORMS, JvpMode
from ..ir.types import Aval
from .axes import swap
from .shape import broadcast_to, reshape_to
from .structural.flags import instantiated
from .triangles import tril, triu

REAL = np.dtype(float)


def gradient_of(graph: Graph) -> Graph:
    """(x, p...) → the number that the graph gives, and its gradient in x."""

    def made() -> Graph:
        b = Builder()
        args = b.inputs_like(graph.inputs)
        active = [True, *(False for _ in args[1:])]
        lin = TRANSFORMS.linearize(graph, active, nan_safe=False)
        value, *residuals = TRANSFORMS.inline(b, lin.forward, args)
        ct = None
        if lin.out_active[0]:
            (ct,) = TRANSFORMS.transpose(b, lin.linear, [*residuals, None], [b.constant(1.0, value.aval)])[-1:]
        return b.graph(f"{graph.name}_gradient", [value, instantiated(b, ct, args[0].aval)])

    return graph.once("gradient", made)


def result_of(graph: Graph, k: int) -> Graph:
    """The graph with one of its results alone."""
    made: Graph = graph.once(("result", k), lambda: Graph(graph.name, graph.inputs, graph.nodes, (graph.outputs[k],)))
    return made


def pushed(graph: Graph) -> Graph:
    """(ẋ, x, p...) → A ẋ for the Jacobian A of the result in x."""

    def made() -> Graph:
        b = Builder()
        dot = b.input(graph.inputs[0].aval, "dot")
        args = b.inputs_like(graph.inputs)
        tans = [dot, *(None for _ in args[1:])]
        _, (tangent,) = TRANSFORMS.jvp(b, graph, args, tans, JvpMode(split=False, nan_safe=False))
        return b.graph(f"{graph.name}_pushed", [instantiated(b, tangent, graph.out_avals[0])])

    return graph.once("pushed", made)


def pulled(graph: Graph) -> Graph:
    """(ȳ, x, p...) → Aᵀ ȳ for the Jacobian A of the result in x."""

    def made() -> Graph:
        b = Builder()
        ct = b.input(graph.out_avals[0], "ct")
        args = b.inputs_like(graph.inputs)
        lin = TRANSFORMS.linearize(graph, [True, *(False for _ in args[1:])], nan_safe=False)
        _, *residuals = TRANSFORMS.inline(b, lin.forward, args)
        found = None
        if lin.out_active[0]:
            (found,) = TRANSFORMS.transpose(b, lin.linear, [*residuals, None], [ct])[-1:]
        return b.graph(f"{graph.name}_pulled", [instantiated(b, found, args[0].aval)])

    return graph.once("pulled", made)


def jacobian_of(graph: Graph) -> Graph:
    """(x, p...) → the Jacobian of the result in x, as a matrix."""

    def made() -> Graph:
        b = Builder()
        args = b.inputs_like(graph.inputs)
        n, m = args[0].size, graph.out_avals[0].size
        if not n or not m:
            return b.graph(f"{graph.name}_jacobian", [b.zeros(Aval((m, n), REAL))])
        ones = b.constant(1.0, Aval((n, n), REAL))
        flags = [True, *(False for _ in args)]
        (out,), (wide,) = TRANSFORMS.batch(b, pushed(graph), n, [tril(triu(ones, k=0), k=0), *args], flags)
        columns = out if wide else broadcast_to(reshape_to(out, (1, m)), (n, m))
        return b.graph(f"{graph.name}_jacobian", [swap(columns)])

    return graph.once("jacobian", made)


def product_of(gradient: Graph) -> Graph:
    """(x, v, p...) → the product of the Hessian and v, for the graph of a gradient alone."""

    def made() -> Graph:
        b = Builder()
        x = b.input(gradient.inputs[0].aval, "x")
        v = b.input(gradient.inputs[0].aval, "v")
        rest = b.inputs_like(gradient.inputs[1:])
        return b.graph(f"{gradient.name}_product", TRANSFORMS.inline(b, pushed(gradient), [v, x, *rest]))

    return gradient.once("product", made)
