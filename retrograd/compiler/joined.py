"""Several paths of one signature as one graph. Its first result identifies the form of the others, if needed."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.builder import Builder
from ..ir.graph import Graph
from ..ir.types import aval_of
from ..passes.control.merge_paths import merge_paths
from .compilation import INSPECTORS, Compilation, Derived


def joined(ways: Sequence[Compilation], graphs: Sequence[Graph]) -> tuple[Graph, list[Compilation]]:
    """The merged graph of ways, whose graphs have the same inputs, and the first way of each form of results."""
    forms: list[Compilation] = []
    of: list[int] = []
    for way in ways:
        alike = [k for k, first in enumerate(forms) if _alike(first.derived, way.derived)]
        if not alike:
            forms.append(way)
        of.append(alike[0] if alike else len(forms) - 1)
    if len(forms) > 1:
        graphs = [_marked(graph, k) for graph, k in zip(graphs, of, strict=True)]
    return merge_paths(graphs), forms


def _alike(a: Derived, b: Derived) -> bool:
    try:
        return a is b or (a.form is not None and bool(a.form == b.form))
    except Exception:  # noqa: BLE001 - static results of the user's, whose == may do anything
        return False


def _marked(graph: Graph, form: int) -> Graph:
    """The graph with the number of its form as a first result."""
    b = Builder()
    inputs = b.share_inputs(graph)
    for node in graph.nodes:
        b.keep(node)
    b.where = None
    number = b.constant(form, aval_of(form))
    return Graph(graph.name, tuple(s.value for s in inputs), tuple(b.nodes), (number.value, *graph.outputs))


INSPECTORS["joined"] = joined
