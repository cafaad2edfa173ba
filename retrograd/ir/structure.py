"""The structure of a structural primitive: its bodies, how often each runs, and the groups of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InternalError

if TYPE_CHECKING:
    from .graph import Graph, Node

Attrs = Mapping[str, Any]
T = TypeVar("T")


class Runs(Enum):
    """How often a body runs when its node does."""

    ONCE = "once"
    ONE_OF = "one of them"  # the operand ``choice`` says which of the bodies name0, name1, ...
    AT_MOST_ONCE = "at most once"  # the operand ``choice`` decides
    STEPS = "step by step"
    NEVER = "never"  # it serves derivatives alone


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbours among the operands or results of a node, or among the inputs or outputs of its bodies.

    ``size`` is their number, the attribute that holds it, or a function of the attributes; None takes all that remain.
    Passes know groups by these names, and a primitive may have others of its own:

    - operands: ``count``, the number of steps; ``choice``, which decides what runs; ``consts``, which every run gets
      unchanged; ``carry``, which the first step gets; ``xs``, of which each step gets its row
    - results: ``results`` of the only run; ``carry`` of the last step; ``arrays``, which collect steps along a new
      first axis; ``stacks``, which collect steps in lists
    - outputs of a body alone: ``decision``, whether there is a further step
    """

    name: str
    size: int | str | Callable[[Attrs], int] | None = None

    def count(self, attrs: Attrs) -> int | None:
        """The number of members; None for all that remain."""
        if self.size is None or isinstance(self.size, int):
            return self.size
        return int(attrs[self.size] if isinstance(self.size, str) else self.size(attrs))


@dataclass(frozen=True, slots=True)
class Body:
    """A graph among the attributes of a node.

    Its inputs are the groups that it ``takes``, its outputs the groups that it ``gives``. For ``Runs.STEPS``, ``times``
    is the number of steps, as an attribute or a function of the attributes; -1 stands for a number that is found at run
    time. A step that ``advances`` leaves no residuals for the adjoint sweep; ``again`` says that it ran before.
    """

    name: str
    runs: Runs
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    times: str | Callable[[Attrs], int] = ""
    advances: bool = False
    again: bool = False

    def among(self, attrs: Attrs) -> bool:
        """Whether a node with these attributes has this body."""
        return attrs.get(self.name) is not None


@dataclass(frozen=True, slots=True)
class Structure:
    """The declaration of a structural primitive; its methods answer for a node of this primitive.

    ``inner`` are groups that the primitive itself hands to its bodies. ``loop`` marks a loop that saves residuals in
    its stacks, and takes a memory plan for them: ``LoopNode`` shows such a node. A ``transparent`` node means the same
    as its body in its place.
    """

    bodies: tuple[Body, ...]
    operands: tuple[Group, ...] = (Group("consts"),)
    results: tuple[Group, ...] = (Group("results"),)
    inner: tuple[Group, ...] = ()
    loop: bool = False
    transparent: bool = False

    def parts(self, node: Node) -> list[tuple[Body, Graph]]:
        """The bodies of a node."""
        attrs, found = node.attrs, []
        for body in self.bodies:
            if body.runs is Runs.ONE_OF:
                names = (f"{body.name}{k}" for k in range(len(attrs)))
                found += [(body, attrs[name]) for name in names if name in attrs]
            elif body.among(attrs):
                found.append((body, attrs[body.name]))
        return found

    def branches(self, node: Node) -> list[Graph]:
        """The bodies from which one is chosen to run."""
        return [graph for body, graph in self.parts(node) if body.runs is Runs.ONE_OF]

    def body(self, node: Node) -> Graph:
        """The body that gives the results; there must be one."""
        first, *_ = self.results
        (graph,) = (graph for body, graph in self.parts(node) if first.name in body.gives)
        return graph

    def condition(self, node: Node) -> Graph | None:
        """The body that decides whether there is a further step."""
        return next((graph for body, graph in self.parts(node) if "decision" in body.gives), None)

    def times(self, node: Node, body: Body) -> int:
        """How often a body runs; -1 if that is found at run time, as for bodies that may be skipped."""
        if body.runs is Runs.STEPS:
            found = node.attrs[body.times] if isinstance(body.times, str) else body.times(node.attrs)
            return max(int(found), -1)
        return {Runs.ONCE: 1, Runs.NEVER: 0}.get(body.runs, -1)

    def of_operands(self, node: Node, items: Sequence[T]) -> dict[str, list[T]]:
        """Divide items, one per operand, by group."""
        return divided(self.operands, node.attrs, items)

    def of_results(self, node: Node, items: Sequence[T]) -> dict[str, list[T]]:
        """Divide items, one per result, by group."""
        return divided(self.results, node.attrs, items)

    def of_inputs(self, node: Node, body: Body, items: Sequence[T]) -> dict[str, list[T]]:
        """Divide items, one per input of a body, by group."""
        return divided(_named(body.takes, (*self.operands, *self.inner)), node.attrs, items)

    def of_outputs(self, node: Node, body: Body, items: Sequence[T]) -> dict[str, list[T]]:
        """Divide items, one per output of a body, by group."""
        return divided(_named(body.gives, (*self.results, *self.inner)), node.attrs, items)

    def sources(self, node: Node, body: Body, graph: Graph) -> list[int | None]:
        """For each input of a body the position of the operand that feeds it; None for inputs of ``inner`` groups."""
        places = self.of_operands(node, range(len(node.inputs)))
        return _among(places, self.of_inputs(node, body, graph.inputs))

    def targets(self, node: Node, body: Body, graph: Graph) -> list[int | None]:
        """For each output of a body the result that it goes to, by position; None for outputs that stay inside."""
        places = self.of_results(node, range(len(node.outputs)))
        return _among(places, self.of_outputs(node, body, graph.outputs))

    def group(self, node: Node, k: int) -> str:
        """The name of the group that the k-th result belongs to."""
        return next(name for name, at in self.of_results(node, range(len(node.outputs))).items() if k in at)

    def chooses(self, node: Node, i: int) -> int:
        """The number of branches among which the i-th operand chooses; 0 if it does not choose."""
        if i not in self.of_operands(node, range(len(node.inputs))).get("choice", ()):
            return 0
        return len(self.branches(node)) or 2  # to run the body, or to go on without it

    def attrs(self, node: Node, **changed: Any) -> dict[str, Any]:
        """The attributes of a node with other bodies or sizes of groups; attributes that it lacks are left out."""
        return {**node.attrs, **{name: x for name, x in changed.items() if name in node.attrs}}


def _named(names: Sequence[str], groups: Sequence[Group]) -> list[Group]:
    known = {group.name: group for group in groups}
    return [known.get(name, Group(name)) for name in names]


def _among(places: Mapping[str, Sequence[int]], items: Mapping[str, Sequence[Any]]) -> list[int | None]:
    return [at for name, own in items.items() for at in places.get(name, [None] * len(own))]


def condition_of(node: Node) -> Graph:
    """The body that decides whether a loop makes a further step; InternalError if there is none."""
    found = node.prim.structure.condition(node) if node.prim.structure is not None else None
    if found is None:
        raise InternalError(f"{node.prim.name} has no condition", where=node.where)
    return found


def divided(groups: Sequence[Group], attrs: Attrs, items: Sequence[T]) -> dict[str, list[T]]:
    """Divide items by group; InternalError if their number does not fit."""
    counts = [group.count(attrs) for group in groups]
    rest = len(items) - sum(n for n in counts if n is not None)
    if rest < 0 or counts.count(None) > 1 or (rest and None not in counts):
        raise InternalError(f"{len(items)} items are not {', '.join(group.name for group in groups)}")
    found, at = {}, 0
    for group, n in zip(groups, counts, strict=True):
        end = at + (rest if n is None else n)
        found[group.name] = list(items[at:end])
        at = end
    return found


@dataclass(frozen=True)
class Layout:
    """The groups of a loop's operands and results: consts, carry, xs → carry, arrays, stacks.

    The body is ``(consts, carry, x_t) -> (carry, arrays, stacks)``. Arrays are collected into one array with
    a leading axis of steps, stacks into a list of references. A while loop has neither xs nor arrays.
    """

    consts: int
    carry: int
    arrays: int = 0

    def operands(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        a, b = self.consts, self.consts + self.carry
        return list(items[:a]), list(items[a:b]), list(items[b:])

    def results(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        a, b = self.carry, self.carry + self.arrays
        return list(items[:a]), list(items[a:b]), list(items[b:])
