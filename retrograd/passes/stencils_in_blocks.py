"""stencils_in_blocks: Graph → Graph in which stencils on large arrays run on few rows at a time.

What is between the slices that a stencil reads and its results then stays in the processor's cache. Rolls along the
rows become slices, too: of the array with the rows that wrap around it, which is made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import Env, mapped, rebuild
from ..ops.batching import by_elements
from ..ops.concatenate import concatenate
from ..ops.index import getitem
from ..ops.roll import roll
from .fewer_rows import LARGE, FewRowGroups, loops_of_groups

FARTHEST = 8  # parts of the rows: rolls by at most one of them read rows that lie near
SAVED = 6  # arrays, at least, that blocks need not write or read again


def with_stencils_in_blocks(graph: Graph) -> Graph:
    """The graph, and its bodies, with loops in place of groups of operations on rows."""
    return mapped(graph, _in_blocks)


def _in_blocks(graph: Graph) -> Graph:
    if graph.largest < LARGE or not (graph.prims[roll] or graph.prims[getitem]):
        return graph
    for n in sorted({node.out.aval.shape[0] for node in graph.nodes if _is_large(node)}, reverse=True):
        sliced = _with_slices(graph, n)
        looped = loops_of_groups(sliced, n, _StencilGroups)
        graph = graph if looped is sliced else looped
    return graph


def _is_large(node: Node) -> bool:
    if node.prim.multi or not by_elements(node.prim):
        return False
    return node.out.aval.ndim > 1 and node.out.aval.nbytes >= LARGE


def _is_near(node: Node, n: int) -> bool:
    """Whether a node moves the rows of a large array, ``n`` in all, by few."""
    if node.prim is not roll or node.attrs["axis"] != 0:
        return False
    aval = node.out.aval
    return aval.shape[0] == n and aval.nbytes >= LARGE and abs(_down(node)) * FARTHEST <= n


def _with_slices(graph: Graph, n: int) -> Graph:
    """The graph in which rolls of arrays of ``n`` rows are slices of longer arrays."""
    downs: dict[Value, list[int]] = {}
    for node in graph.nodes:
        if _is_near(node, n):
            downs.setdefault(node.inputs[0], []).append(_down(node))
    longer: dict[Value, Symbol] = {}

    def sliced(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if not _is_near(node, n):
            return None
        x = node.inputs[0]
        before, behind = max(0, *downs[x]), max(0, *(-k for k in downs[x]))
        if x not in longer:
            last = [_rows(env[x], n - before, None)] if before else []
            first = [_rows(env[x], 0, behind)] if behind else []
            longer[x] = concatenate(*last, env[x], *first, axis=0)
        start = before - _down(node)
        return [_rows(longer[x], start, start + n if start < before + behind else None)]

    return rebuild(graph, sliced)


def _down(rolled: Node) -> int:
    """By how many rows a roll moves others down; less than 0 if it moves them up."""
    shift, n = rolled.attrs["shift"], rolled.out.aval.shape[0]
    return int(shift if 2 * shift <= n else shift - n)


def _rows(x: Symbol, start: int, stop: int | None) -> Symbol:
    part: Symbol = getitem(x, index=(slice(start or None, stop),))
    return part


class _StencilGroups(FewRowGroups):
    """Groups of so many operations that blocks save time, which read an array at several places, or roll columns."""

    def _is_worth_it(self, nodes: Sequence[Node]) -> bool:
        reads = Counter(v for node in nodes for v in self.rows.roles[node].rows if v.aval.nbytes >= LARGE)
        made = {node.out for node in nodes}
        saved = sum(v.aval.nbytes * (reads[v] + (1 if v in made else -1)) for v in reads)
        views = [self.rows.made[v] for v in reads if v in self.rows.made and v not in made]
        places = Counter(view.inputs[0] for view in views if view.prim is getitem)
        stencil = max(places.values(), default=0) > 1 or any(node.prim is roll for node in nodes)
        return stencil and saved >= SAVED * max(v.aval.nbytes for v in reads) and super()._is_worth_it(nodes)
