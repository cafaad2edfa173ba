"""The one graph class: a straight tuple of nodes in SSA form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ..where import Where
from .types import Aval

if TYPE_CHECKING:
    import networkx as nx

    from .primitive import Primitive


T = TypeVar("T")


class Value:
    """One value of a graph: compared by identity."""

    __slots__ = ("aval", "hint")

    def __init__(self, aval: Aval, hint: str | None = None) -> None:
        self.aval = aval
        self.hint = hint

    def __repr__(self) -> str:
        return f"Value({self.hint or '?'}: {self.aval})"


@dataclass(eq=False, slots=True)  # read-only for type checkers alone: it is made five times as fast
class Node:
    """One operation.

    ``replica`` keeps a recomputation apart from its original; it is negative where the original does not run.
    """

    prim: Final[Primitive]
    inputs: Final[tuple[Value, ...]]
    attrs: Final[Mapping[str, Any]]
    outputs: Final[tuple[Value, ...]]
    where: Final[Where | None] = None
    replica: Final[int] = 0

    @property
    def out(self) -> Value:
        """The only output."""
        (out,) = self.outputs
        return out

    @property
    def effect(self) -> bool:
        """Whether it does more than compute results; then it is never merged, dropped or reordered."""
        return self.prim.effect or (self.prim.structure is not None and any(graph.effect for _, graph in self.graphs))

    @property
    def graphs(self) -> list[tuple[str, Graph]]:
        """The graphs among the attributes."""
        if self.prim.structure is None:
            return []
        return [(name, attr) for name, attr in self.attrs.items() if isinstance(attr, Graph)]


@dataclass(frozen=True, eq=False)
class Graph:
    """A function: inputs, nodes in execution order, outputs. Immutable; passes rebuild."""

    name: str
    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]

    @cached_property
    def uses(self) -> dict[Value, list[Node]]:
        """For each value, the nodes that read it, once for each operand position."""
        uses: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                uses.setdefault(value, []).append(node)
        return uses

    @cached_property
    def producer(self) -> dict[Value, Node]:
        """For each computed value, the node that makes it."""
        return {out: node for node in self.nodes for out in node.outputs}

    @cached_property
    def prims(self) -> Counter[Primitive]:
        """The primitives of the nodes, without those of bodies, and how many nodes have each."""
        return Counter([node.prim for node in self.nodes])

    @cached_property
    def nested(self) -> list[Node]:
        """The nodes that have bodies."""
        return [n for n in self.nodes if n.graphs] if any(prim.structure for prim in self.prims) else []

    @cached_property
    def largest(self) -> int:
        """The bytes of the largest input or result of a node, without those of bodies."""
        made = [v.aval.nbytes for node in self.nodes for v in node.outputs]
        return max([*made, *[v.aval.nbytes for v in self.inputs]], default=0)

    @cached_property
    def effect(self) -> bool:
        """Whether a node does more than compute results."""
        return any(prim.effect for prim in self.prims) or any(node.effect for node in self.nested)

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of ``make()``, which derives it from this graph at the first request for ``key``.

        So the calls of one body share its derivatives, which are emitted once.
        """
        if key not in self._derived:
            made = make()
            self._derived[key] = ... if made is self else made  # a graph that held itself would be a cycle
        found: Any = self._derived[key]
        return cast("T", self) if found is ... else found

    def knows(self, key: Hashable) -> bool:
        """Whether a result is known for ``key``."""
        return key in self._derived

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        return tuple(v.aval for v in self.inputs)

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        return tuple(v.aval for v in self.outputs)

    def __str__(self) -> str:
        from .printer import to_text  # noqa: PLC0415 - the printer needs this module

        return to_text(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs>"

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The graph as ``networkx.MultiDiGraph``: vertices are inputs, nodes and outputs; edges are values.

        Vertices are ``"in0"``, ``"n0"``, ``"out0"``, ...; they carry ``label`` and nodes also ``prim``,
        ``where``; edges carry ``operand`` (the position) and ``aval`` (as text).
        """
        made: nx.MultiDiGraph[str] = FORMS["networkx"](self)
        return made


def filled(value: Value, made: Mapping[Value, Node]) -> bool:
    """Whether a value is a number that fills a constant, which the emitter may write as a number without a dtype."""
    node = made.get(value)
    return node is not None and node.prim.name == "const" and not isinstance(node.attrs["value"], tuple)


FORMS: dict[str, Callable[[Graph], Any]] = {}  # what else a graph can be turned into, by name
