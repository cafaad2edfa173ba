"""rewrite: walk over the nodes of a graph, map its bodies, rebuild it node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

from .builder import Builder, Symbol
from .graph import Graph, Node, Value
from .primitive import TRANSFORMS

Env = dict[Value, Symbol]  # the values of the new graph, by values of the old one
Rule = Callable[[Builder, Node, Env], Sequence[Symbol] | None]
Change = Callable[[Graph], Graph]
Nested = Callable[[Graph, Change], Graph]  # a change that gets the one of bodies


def walk(root: Graph | Node) -> Iterator[Node]:
    """Each node of a graph, or a single node; right after each node come the nodes of its bodies.

    A body that several nodes hold is walked once.
    """
    if isinstance(root, Graph) and not root.nested:
        return iter(root.nodes)
    return _walk(root.nodes if isinstance(root, Graph) else (root,), set())


def _walk(nodes: Iterable[Node], seen: set[Graph]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for _, body in node.graphs if node.prim.structure is not None else ():
            if body not in seen:
                seen.add(body)
                yield from _walk(body.nodes, seen)


def with_bodies(node: Node, change: Callable[[Graph], Graph]) -> Node:
    """The node with ``change`` applied to its bodies; the node itself if none changes."""
    if node.prim.structure is None:
        return node
    bodies = {name: new for name, body in node.graphs if (new := change(body)) is not body}
    return replace(node, attrs={**node.attrs, **bodies}) if bodies else node


def with_nodes(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """The graph with other nodes, which must define its outputs; the graph itself if they are its own."""
    nodes = tuple(nodes)
    return graph if nodes == graph.nodes else replace(graph, nodes=nodes)  # a node equals only itself


def recursively(graph: Graph, change: Nested, done: dict[Graph, Graph] | None = None) -> Graph:
    """``change(graph, inner)``, where ``inner`` does so to a body; one that several nodes hold is changed once."""
    done = {} if done is None else done
    if graph not in done:
        done[graph] = change(graph, partial(recursively, change=change, done=done))
    return done[graph]


def mapped(graph: Graph, change: Change) -> Graph:
    """Apply ``change`` to the bodies, then to the graph; it sees bodies that are changed already."""

    def changed(graph: Graph, inner: Change) -> Graph:
        nodes = map(with_bodies, graph.nodes, repeat(inner)) if graph.nested else graph.nodes
        return change(with_nodes(graph, nodes))

    return recursively(graph, changed)


def copy_nodes(b: Builder, nodes: Iterable[Node], env: Env, rule: Rule | None = None) -> None:
    """Rebuild nodes in ``b``; ``env`` holds their operands, and gets their results.

    ``rule(b, node, env)`` gives the results of a node, or None to copy it. What it makes gets the line and replica tag.
    """
    for node in nodes:
        outs = None
        try:
            if rule is not None:
                b.where, b.replica = node.where, node.replica
                outs = rule(b, node, env)
                b.replica = 0
            if outs is None:
                outs = b.copy_node(node, [env[v].value for v in node.inputs])
            env.update(zip(node.outputs, outs, strict=True))
        except Exception as fault:
            TRANSFORMS.blame(fault, rule, node)
            raise


def rebuild(graph: Graph, rule: Rule) -> Graph:
    """The graph with nodes replaced by ``rule``, as in ``copy_nodes``.

    It shares the inputs, and nodes whose operands did not change; if no node changes, it is the graph itself.
    """
    b = Builder()
    env = dict(zip(graph.inputs, b.share_inputs(graph), strict=True))
    copy_nodes(b, graph.nodes, env, rule)
    outs = [env[v] for v in graph.outputs]
    same = tuple(b.nodes) == graph.nodes and all(a.value is v for a, v in zip(outs, graph.outputs, strict=True))
    return graph if same else b.graph(graph.name, outs)
