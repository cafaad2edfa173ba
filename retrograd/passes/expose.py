"""expose: f(x…) → y… becomes f'(x…, δ…) → y…, a…: for each marked call, δ is added to its results, a its arguments.

The cotangent of δ at δ = -0 is the cotangent of the call: so a derivative of the exposed graph gives, for every
call of a function value, the pair of its input and its cotangent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..errors import UnsupportedError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.types import Aval
from ..ops.structural.applied import applied
from ..ops.structural.call import call, make_call
from ..ops.structural.scan import layout, scan
from .inline import inline_into


class Axis(NamedTuple):
    """A leading axis of what a call takes and gives: the steps of a loop, or the lanes of vmap."""

    size: int
    reverse: bool


@dataclass(frozen=True)
class Site:
    """One marked call of an exposed graph.

    ``key`` names the function value and ``call`` the call as in the mark. ``place`` tells where it stands, in the order
    of running: positions of nodes from the outermost graph inwards, and an Axis for each loop on the way and each lane.
    The graph has one more input for each of ``results``, and one more output for each of ``args``.
    """

    key: int
    call: int
    place: tuple[int | Axis, ...]
    args: int
    results: tuple[Aval, ...]


@dataclass(frozen=True, eq=False)
class Exposed:
    """A graph with a further input per result of a marked call, and a further output per argument of one."""

    graph: Graph
    sites: tuple[Site, ...]


class _Exposer:
    """Rebuilds one graph; ``deltas`` and ``args`` collect the new inputs and outputs in the order of ``sites``."""

    def __init__(self, keys: Collection[int]) -> None:
        self.keys = keys
        self.b = Builder()
        self.sites: list[Site] = []
        self.args: list[Symbol] = []
        self.deltas: list[Value] = []

    def run(self, graph: Graph) -> Exposed:
        env: dict[Value, Value] = dict(
            zip(graph.inputs, (s.value for s in self.b.inputs_like(graph.inputs)), strict=True)
        )
        own = len(graph.inputs)
        for position, node in enumerate(graph.nodes):
            ins = [self.b.symbol(env[v]) for v in node.inputs]
            outs = self._node(position, node, ins)
            env.update((v, s.value) for v, s in zip(node.outputs, outs, strict=True))
        outputs = [env[v] for v in graph.outputs] + [s.value for s in self.args]
        inputs = (*self.b.inputs[:own], *self.deltas)
        return Exposed(Graph(graph.name, inputs, tuple(self.b.nodes), tuple(outputs)), tuple(self.sites))

    def _node(self, position: int, node: Node, ins: list[Symbol]) -> list[Symbol]:
        self.b.where, self.b.replica = node.where, 0
        if node.prim is applied and node.attrs["key"] in self.keys:
            return self._marked(position, node, ins)
        inside = [exposed for _, body in node.graphs if (exposed := expose(body, self.keys)).sites]
        if not inside:
            return self.b.copy_node(node, [s.value for s in ins])
        if node.prim is call:
            return self._call(position, inside[0], ins)
        if node.prim is scan and node.attrs["length"] >= 0:
            return self._scan(position, node, inside[0], ins)
        raise UnsupportedError(
            f"a function value is called inside {node.prim.name}, which makes a number of calls that is not known: "
            "its cotangent is no list of pairs of known length", where=node.where,
            remedy='use fns="captures", or rg.scan, rg.map or a Python loop',
        )  # fmt: skip

    def _marked(self, position: int, node: Node, ins: list[Symbol]) -> list[Symbol]:
        n, axes = node.attrs["args"], node.attrs["axes"]
        args, results = ins[:n], ins[n:]
        avals = [_perturbation(r.aval) for r in results]
        shape = results[0].shape if results else ()
        over: list[int | Axis] = [Axis(size, False) for size in shape[:axes]]
        place = (position, *over)
        deltas = self._site(Site(node.attrs["key"], node.attrs["call"], place, n, tuple(avals)), args)
        return [self.b.coerce(r + d, r.aval) for r, d in zip(results, deltas, strict=True)]

    def _site(self, site: Site, args: Sequence[Symbol]) -> list[Symbol]:
        """Note a call; the symbols of its perturbations."""
        self.sites.append(site)
        self.args += args
        deltas = [self.b.input(aval) for aval in site.results]
        self.deltas += [d.value for d in deltas]
        return deltas

    def _call(self, position: int, body: Exposed, ins: list[Symbol]) -> list[Symbol]:
        deltas = [d for site in body.sites for d in self._declared(position, site)]
        made = make_call(self.b, body.graph, [*ins, *deltas])
        n = len(made) - sum(site.args for site in body.sites)
        self.args += made[n:]
        return made[:n]

    def _scan(self, position: int, node: Node, body: Exposed, ins: list[Symbol]) -> list[Symbol]:
        """The perturbations are further xs; the arguments are collected into arrays."""
        axis = Axis(node.attrs["length"], node.attrs["reverse"])
        deltas = [d for site in body.sites for d in self._declared(position, site, axis)]
        parts, new = layout(node), sum(site.args for site in body.sites)
        outs = body.graph.outputs
        k, ys, stacks = parts.results(outs[: len(outs) - new])
        inner = replace(body.graph, outputs=(*k, *ys, *outs[len(outs) - new :], *stacks))
        attrs = {**node.attrs, "arrays": parts.arrays + new, "body": inner}
        made = self.b.emit(scan, [s.value for s in (*ins, *deltas)], attrs)
        start = len(k) + len(ys)
        self.args += made[start : start + new]
        return [*made[:start], *made[start + new :]]

    def _declared(self, position: int, inner: Site, axis: Axis | None = None) -> list[Symbol]:
        """The perturbations of a call that stands in a body; its arguments are noted once the body's node is made."""
        axes: tuple[int | Axis, ...] = () if axis is None else (axis,)
        place = (position, *axes, *inner.place)
        results = inner.results
        if axis is not None:
            results = tuple(Aval((axis.size, *aval.shape), aval.dtype) for aval in results)
        return self._site(Site(inner.key, inner.call, place, inner.args, results), ())


def _perturbation(aval: Aval) -> Aval:
    return Aval(aval.shape, aval.dtype, "array" if aval.shape else "scalar")


def expose(graph: Graph, keys: Collection[int]) -> Exposed:
    """The graph with its calls of the function values ``keys`` laid open."""
    return graph.once(("expose", tuple(keys)), lambda: _Exposer(keys).run(graph))


def at_rest(graph: Graph, deltas: int) -> Graph:
    """The graph with its last inputs set to -0, which leaves every bit of what it is added to."""
    if not deltas:
        return graph
    b = Builder()
    n = len(graph.inputs) - deltas
    given = b.inputs_like(graph.inputs[:n])
    return b.graph(graph.name, inline_into(b, graph, [*given, *(_minus_zero(b, v.aval) for v in graph.inputs[n:])]))


def _minus_zero(b: Builder, aval: Aval) -> Symbol:
    return b.constant(complex(-0.0, -0.0) if aval.dtype.kind == "c" else -0.0, aval)
