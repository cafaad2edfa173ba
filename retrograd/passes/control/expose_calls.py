"""expose: f(x…) → y… becomes f'(x…, δ…) → y…, a…: for each marked call, δ is added to its results, a its arguments.

The cotangent of δ at δ = -0 is the cotangent of the call. So a derivative of the exposed graph gives the pair of input
and cotangent for every call of a function value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...errors import UnsupportedError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import LoopNode, loop_of
from ...ir.primitive import TRANSFORMS
from ...ir.structure import Runs
from ...ir.types import Aval
from ...ops.elementwise import BOOL
from ...ops.structural.applied import applied
from ...ops.structural.cond import make_cond
from ..inline import inline_into

FLAG = Aval((), BOOL, "scalar")


class Axis(NamedTuple):
    """A leading axis of the arguments and results of a call: the steps of a loop, or the lanes of vmap."""

    size: int
    reverse: bool


@dataclass(frozen=True)
class Site:
    """One marked call of an exposed graph.

    ``key`` names the function value and ``call`` the call as in the mark. ``place`` says where the call stands, in the
    order of execution: positions of nodes from the outermost graph inwards, and an Axis for each enclosing loop and
    each axis of lanes. The graph has one more input for each of ``results``, and one more output for each of ``args``.
    A call in a branch of ``cond`` is ``chosen``: one further output says whether it was made.
    """

    key: int
    call: int
    place: tuple[int | Axis, ...]
    args: int
    results: tuple[Aval, ...]
    chosen: bool = False

    @property
    def outputs(self) -> int:
        """How many outputs of the graph belong to the site."""
        return self.args + self.chosen


@dataclass(frozen=True, eq=False)
class Exposed:
    """A graph with a further input per result of a marked call, and a further output per argument of a marked call."""

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
        structure, loop = node.prim.structure, loop_of(node)
        if structure is not None and all(body.runs is Runs.ONCE for body in structure.bodies):
            return self._call(position, node, inside[0], ins)
        if structure is not None and (branches := structure.branches(node)):
            return self._choice(position, node, branches, ins)
        if loop is not None and loop.length >= 0:
            return self._loop(position, loop, inside[0], ins)
        raise UnsupportedError(
            f"a function value is called inside {node.prim.name}, where the number of calls is unknown or "
            "a custom derivative replaces them",
            where=node.where,
            remedy='use fns="captures", or rg.scan, rg.map or a Python loop',
        )

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

    def _call(self, position: int, node: Node, body: Exposed, ins: list[Symbol]) -> list[Symbol]:
        operands = [*ins, *(d for site in body.sites for d in self._declared(position, site))]
        values = [self.b.coerce(x, aval).value for x, aval in zip(operands, body.graph.in_avals, strict=True)]
        made = self.b.emit(node.prim, values, {**node.attrs, "body": body.graph})
        n = len(made) - sum(site.outputs for site in body.sites)
        self.args += made[n:]
        return made[:n]

    def _loop(self, position: int, loop: LoopNode, body: Exposed, ins: list[Symbol]) -> list[Symbol]:
        """Emit a loop: perturbations become further xs, and the arguments are collected into arrays."""
        axis = Axis(loop.length, loop.reverse)
        deltas = [d for site in body.sites for d in self._declared(position, site, axis)]
        parts, new = loop.layout, sum(site.outputs for site in body.sites)
        outs = body.graph.outputs
        k, ys, stacks = parts.results(outs[: len(outs) - new])
        inner = replace(body.graph, outputs=(*k, *ys, *outs[len(outs) - new :], *stacks))
        attrs = loop.attrs(inner, replace(parts, arrays=parts.arrays + new))
        made = self.b.emit(loop.node.prim, [s.value for s in (*ins, *deltas)], attrs)
        start = len(k) + len(ys)
        self.args += made[start : start + new]
        return [*made[:start], *made[start + new :]]

    def _choice(self, position: int, node: Node, branches: Sequence[Graph], ins: list[Symbol]) -> list[Symbol]:
        """Emit a choice: each branch takes all perturbations, and returns zeros for arguments of other branches."""
        opened = [expose(branch, self.keys) for branch in branches]
        deltas = [d for k, body in enumerate(opened) for s in body.sites for d in self._declared(position, s, k)]
        n = len(node.outputs)
        avals = [body.graph.out_avals[n:] for body in opened]
        graphs = []
        for k, body in enumerate(opened):
            inner = Builder()
            own = inner.inputs_like(body.graph.inputs[: len(ins) - 1])
            given = [inner.inputs_like(other.graph.inputs[len(ins) - 1 :]) for other in opened]
            outs = inline_into(inner, body.graph, [*own, *given[k]])
            left = [self._left(inner, other, avals[j], outs[n:] if j == k else None) for j, other in enumerate(opened)]
            graphs.append(inner.graph(body.graph.name, [*outs[:n], *(x for part in left for x in part)]))
        made = make_cond(self.b, ins[0], graphs, [*ins[1:], *deltas])
        self.args += made[n:]
        return made[:n]

    def _left(
        self, inner: Builder, body: Exposed, avals: Sequence[Aval], outs: Sequence[Symbol] | None
    ) -> list[Symbol]:
        """The arguments of the calls in a branch, and whether each was made; ``outs`` is None for other branches."""
        rest = iter([inner.zeros(aval) for aval in avals] if outs is None else outs)
        left: list[Symbol] = []
        for site in body.sites:
            left += [next(rest) for _ in range(site.args)]
            left.append(next(rest) if site.chosen else inner.constant(outs is not None, FLAG))
        return left

    def _declared(self, position: int, inner: Site, within: Axis | int | None = None) -> list[Symbol]:
        """The perturbations of a call in a body, ``within`` a loop or branch; the node returns the arguments later."""
        place = (position, *(() if within is None else (within,)), *inner.place)
        results = inner.results
        if isinstance(within, Axis):
            results = tuple(Aval((within.size, *aval.shape), aval.dtype) for aval in results)
        chosen = inner.chosen or isinstance(within, int)
        return self._site(Site(inner.key, inner.call, place, inner.args, results, chosen), ())


def _perturbation(aval: Aval) -> Aval:
    return Aval(aval.shape, aval.dtype, "array" if aval.shape else "scalar")


def expose(graph: Graph, keys: Collection[int]) -> Exposed:
    """Expose the calls of the function values ``keys`` in a graph."""
    return graph.once(("expose", tuple(keys)), lambda: _Exposer(keys).run(graph))


@TRANSFORMS.register("at_rest")
def at_rest(graph: Graph, deltas: int) -> Graph:
    """The graph with its last inputs set to -0: adding -0 changes no bit."""
    if not deltas:
        return graph
    b = Builder()
    n = len(graph.inputs) - deltas
    given = b.inputs_like(graph.inputs[:n])
    return b.graph(graph.name, inline_into(b, graph, [*given, *(_minus_zero(b, v.aval) for v in graph.inputs[n:])]))


def _minus_zero(b: Builder, aval: Aval) -> Symbol:
    return b.constant(complex(-0.0, -0.0) if aval.dtype.kind == "c" else -0.0, aval)
