"""States of loops that steps change where they stand: what must be read, or stored, before they change."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import loop_of
from .c_texts import text_of
from .decided_formulas import is_formula, is_formula_write
from .decided_places import writes_at
from .elements import FEW
from .indices import count
from .lanes import lanes_of
from .overwriting import order_of

PART = 4  # times that a part fits into its array, if it is stored so that the array need not be copied


@dataclass
class Overwrite:
    """A change of an array where it stands: the single elements that are read before, and what must be stored first."""

    numbers: list[Value] = field(default_factory=list)
    wanted: set[Value] = field(default_factory=set)


def overwrite(
    graph: Graph, node: Node, base: Value, bases: Container[Value], stored: Container[Value]
) -> Overwrite | None:
    """How a write, or a loop that starts from an array, may change the array where it stands.

    None if it must change a copy: the array is neither one of the ``bases`` nor made by a write or a loop, or somebody
    else reads much of it later. A formula reads its parts where it stands.
    """
    if (node.inputs.count(base) > 1 and not is_formula_write(node)) or base in graph.outputs:
        return None
    if base not in bases and not _has_storage(graph.producer.get(base), base):
        return None
    order = order_of(graph)
    found = Overwrite()
    for reader in graph.uses[base]:
        if reader is node or (_is_root(reader) and order[reader] < order[node]):
            continue
        if reader.prim.multi or reader.inputs.count(base) > 1:
            return None
        if reader.prim.name == "getitem" and count(reader.out) == 1:
            found.numbers.append(reader.out)
            continue
        part = _stored_before(graph, reader, node, order)
        if order[reader] > order[node] or count(part) * PART > count(base):
            return None
        if part not in stored:
            found.wanted.add(part)
    return found


def _has_storage(maker: Node | None, array: Value) -> bool:
    """Whether an array has storage that is its own, since a write made it, or the steps of a loop."""
    loop = None if maker is None else loop_of(maker)
    if loop is None or maker is None:
        return maker is not None and writes_at(maker)
    k = maker.outputs.index(array)
    if k >= loop.layout.carry or loop.plan is not None or lanes_of(loop) or count(array) <= FEW:
        return False
    old, new = loop.layout.operands(loop.body.inputs)[1][k], loop.body.outputs[k]
    return new is not old and not {old, new} & {*loop.body.outputs[loop.layout.carry :]}


def _is_root(node: Node) -> bool:
    """Whether a node has read its operands where it stands."""
    return is_formula(node) or loop_of(node) is not None


def _stored_before(graph: Graph, reader: Node, write: Node, order: dict[Node, int]) -> Value:
    """What must be stored so that nobody reads an array through a reader after a write: what is written, or a part."""
    new = write.inputs[1] if writes_at(write) else None
    todo, seen = [reader], {reader}
    while todo:
        node = todo.pop()
        if node.outputs[0] is new:
            continue
        if node.out in graph.outputs:
            return reader.out
        for user in graph.uses.get(node.out, ()):
            if order[user] >= order[write] or user.prim.multi:
                return reader.out
            if user not in seen:
                seen.add(user)
                todo.append(user)
    return reader.out if new is None else new


def state_in_place(body: Graph, old: Value, new: Value, stored: Container[Value]) -> set[Value] | None:
    """What must be stored so that steps change a state where it stands; None if they need another place.

    The next state must be what writes and loops make of it, one after the other; or an operation on its elements and
    others, if nothing else reads it.
    """
    if body.outputs.count(new) > 1:
        return None
    wanted = _changed(body, old, new, stored)
    if wanted is not None:
        return wanted
    node = body.producer.get(new)
    if node is None or list(body.uses.get(old, ())) != [node] or old in body.outputs:
        return None
    text = text_of(node)
    return set() if text is not None and text.c and node.inputs.count(old) == 1 else None


def _changed(body: Graph, old: Value, new: Value, stored: Container[Value]) -> set[Value] | None:
    """What must be stored so that writes and loops make the next state of the present one, where it stands."""
    wanted = set[Value]()
    while new is not old:
        node = body.producer.get(new)
        before = None if node is None else _before(node, new, stored)
        if node is None or before is None:
            return None
        base, inner = before
        found = overwrite(body, node, base, (old,), stored)
        if found is None:
            return None
        wanted |= found.wanted | inner
        new = base
    return wanted


def _before(node: Node, new: Value, stored: Container[Value]) -> tuple[Value, set[Value]] | None:
    """The operand that a node may change into its result, with what must be stored in its steps."""
    if writes_at(node):
        return node.inputs[0], set()
    loop = loop_of(node)
    if loop is None or not _has_storage(node, new):
        return None
    _, carry, _ = loop.layout.operands(loop.body.inputs)
    _, starts, _ = loop.layout.operands(loop.operands)
    k = node.outputs.index(new)
    inner = state_in_place(loop.body, carry[k], loop.body.outputs[k], stored)
    return None if inner is None else (starts[k], inner)
