"""state_key: what tells the states of one loop on disk from those of all others."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

from ...ir.graph import Graph, Node
from ...ir.printer import to_text
from ...ir.rewrite import mapped, walk, with_nodes
from .host import host


def key_of(sweep: Node) -> str:
    """A digest of all that decides the states of a sweep, but for its operands: the node and its operations' code.

    The node is taken as it is compiled, with all attributes. Neither the user's lines nor calls that count steps
    change a state.
    """
    bare = mapped(Graph("sweep", tuple(dict.fromkeys(sweep.inputs)), (sweep,), sweep.outputs), _bare)
    codes = dict.fromkeys(_code(node) for node in walk(bare))
    return blake2b("\n".join((to_text(bare), *codes)).encode(), digest_size=12).hexdigest()


def decided_by_operands(graph: Graph) -> bool:
    """Whether results follow from operands: those of host functions and of draws do not, as far as a graph tells."""
    generators = any(v.aval.kind == "generator" for node in walk(graph) for v in node.inputs)
    return not generators and not any(node.prim is host for node in walk(graph))


def _bare(graph: Graph) -> Graph:
    """The graph without the user's lines, and as it is if nobody counts."""
    return with_nodes(graph, [replace(node, where=None, attrs=_uncounted(node)) for node in graph.nodes])


def _uncounted(node: Node) -> dict[str, object]:
    return {name: x for name, x in node.attrs.items() if name != "count" or not node.prim.final}


def _code(node: Node) -> str:
    """The source of an operation: a primitive of the user's is known by a name that others may have had before."""
    text = node.prim.numpy
    names = [f"_{k}" for k in range(len(node.inputs))]
    return f"{node.prim.name} {text.ufunc} {text.render(node, names, text.statement or text.code)} {text.helper}"
