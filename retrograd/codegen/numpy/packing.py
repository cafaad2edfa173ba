"""packing: Plan → where large intermediate results lie in one piece of memory that is kept from call to call."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import loop_of
from ...ir.plan import Plan
from .at_once import at_once
from .footprint.scratch import PART, scratch_of
from .workspaces import StateRows, looped_once, rows_of_states, workspaces

ALIGNED = 64  # bytes to which each place is aligned
MORE = 1 / 64  # of the peak of a call: how much the peak may grow
Block = tuple[int, int]  # the length of the arrays, and of their largest part that is worked on at a time
MOST = 200  # values with storage of their own, beyond which the search for places would take long


@dataclass
class _LiveStorage:
    """Storage of some values, and the numbers of the nodes between which it is needed."""

    value: Value
    others: list[Value]
    nbytes: int
    first: int
    last: int
    rows: StateRows | None = None  # if it is the state of a loop
    node: Node | None = None  # the loop in whose body it is
    taken: list[tuple[int, int, int]] = field(default_factory=list)  # bytes without the piece, with these times
    at: int = 0

    @property
    def end(self) -> int:
        """Where the storage ends, if it begins at its place."""
        return self.at + -(-self.nbytes // ALIGNED) * ALIGNED


@dataclass(frozen=True)
class WorkspaceLayout:
    """The bytes of the piece, the place of each value that is first in its storage, and all values in the piece.

    ``fullest`` are first values of storage that is live together, as many bytes as ever are, with their bytes and the
    nodes that make them. ``rows`` has the body of a value in a loop, and the rows for it if it is a state.
    """

    nbytes: int = 0
    places: dict[Value, int] = field(default_factory=dict)
    members: frozenset[Value] = frozenset()
    fullest: tuple[tuple[Value, int, Node], ...] = ()
    rows: dict[Value, tuple[StateRows | None, Graph]] = field(default_factory=dict)


def pack(plan: Plan, block: Block | None = None, elsewhere: Container[Value] = ()) -> WorkspaceLayout:
    """Lay storage that nothing needs after the call into one piece; storage whose times are apart shares places.

    The large ones come first. Storage stays outside if the piece and what is outside would take more than the call
    takes without a piece: what lies in the piece is not freed when it is dead. With ``block``, the function computes
    parts of arrays, and writes results into given storage, in which the values lie that are ``elsewhere``.
    """
    found = _candidates(plan, block)
    candidates = [storage for storage in found if storage.value not in elsewhere]
    if not candidates or len(candidates) > MOST:
        return WorkspaceLayout()
    live = _live(plan, block)
    for storage in found:
        if storage.value in elsewhere:
            _without(live, storage)
    most = (1 + MORE) * live.max()
    taken, outside = candidates, live.copy()
    for storage in candidates:
        _without(outside, storage)
    if _placed(taken) + outside.max() > most:
        taken, outside = [], live
        for storage in sorted(candidates, key=lambda s: (-s.nbytes, s.first)):
            without = outside.copy()
            _without(without, storage)
            if _placed([*taken, storage]) + without.max() <= most:
                taken, outside = [*taken, storage], without
    nbytes = _placed(taken)
    taken.sort(key=lambda s: s.first)
    live_with = ([s for s in taken if s.first <= t.first <= s.last] for t in taken)
    fullest = max(live_with, key=lambda group: sum(s.nbytes for s in group), default=[])
    return WorkspaceLayout(
        nbytes,
        {s.value: s.at for s in taken},
        frozenset(v for s in taken for v in s.others),
        tuple((s.value, s.nbytes, s.node or plan.order.producer[s.value]) for s in fullest),
        {s.value: (s.rows, loop.body) for s in taken if s.node is not None and (loop := loop_of(s.node)) is not None},
    )


def _without(live: np.ndarray[Any, np.dtype[np.int64]], storage: _LiveStorage) -> None:
    """Take the bytes of a storage out of those that are live."""
    for first, last, nbytes in storage.taken or [(storage.first, storage.last, storage.nbytes)]:
        live[first : last + 1] -= nbytes


def _candidates(plan: Plan, block: Block | None) -> list[_LiveStorage]:
    made = {out: i for i, node in enumerate(plan.order.nodes) for out in node.outputs}
    found = [
        _LiveStorage(value, others, bytes_of(value, block), made[value], max(plan.last_use[v] for v in others))
        for value, others in workspaces(plan, results=block is None).items()
    ]
    return found if block is not None else [*found, *_states(plan)]


def _states(plan: Plan) -> list[_LiveStorage]:
    """What steps of loops compute: for themselves alone, or states that the function does not return.

    References to states may live to its end.
    """
    order = plan.order
    loops = [(i, loop) for i, node in enumerate(order.nodes) if (loop := loop_of(node)) is not None]
    alone = looped_once(order) if loops else set()
    returned = {plan.buffer[v] for v in order.outputs}
    found = []
    for i, loop in loops:
        if loop.body not in alone or at_once(order, loop):
            continue
        body, outs = plan.bodies[loop.body], loop.node.outputs
        for value in workspaces(body):
            one = value.aval.nbytes
            found.append(_LiveStorage(value, [], one, i, i, None, loop.node, [(i, i, one)]))
        for value, rows in rows_of_states(loop, body).items():
            results = [outs[k] for k in rows.results]
            if not returned.isdisjoint(plan.buffer[out] for out in results):
                continue
            one = value.aval.nbytes
            taken = [(i, plan.last_use[out], rows.number * one) for out in results if out.aval.steps is not None]
            if not taken:  # the next state, and the one that it follows
                taken = [(i, i, one), *((i, plan.last_use[out], one) for out in results)]
            found.append(_LiveStorage(value, [], rows.number * one, i, len(order.nodes), rows, loop.node, taken))
    return found


def bytes_of(value: Value, block: Block | None) -> int:
    """The bytes of an array or of its part in a block, or of all arrays in a list of steps if their number is known."""
    nbytes = max(value.aval.nbytes, 0)
    if block is not None and value.aval.shape[-1:] == block[:1]:
        return nbytes // block[0] * block[1]
    return nbytes


def _live(plan: Plan, block: Block | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The live bytes at each node, and at the end, by storage.

    With those of one step while a loop runs, and with what operations take for themselves.
    """
    order, n = plan.order, len(plan.order.nodes)
    outside = {plan.buffer[v] for v in order.inputs}
    outside |= {plan.buffer[node.out] for node in order.nodes if node.prim.name == "const"}
    given = frozenset() if block is None else frozenset(order.outputs)
    first: dict[int, tuple[int, int]] = {}
    last: dict[int, int] = {}
    for i, node in enumerate(order.nodes):
        for out in node.outputs:
            number = plan.buffer[out]
            if number not in outside and out not in given:
                first.setdefault(number, (i, bytes_of(out, block)))
                last[number] = max(last.get(number, 0), plan.last_use[out])
    changes = np.zeros(n + 2, np.int64)
    for number, (i, nbytes) in first.items():
        changes[i] += nbytes
        changes[min(last[number], n) + 1] -= nbytes
    live = np.cumsum(changes)[: n + 1]
    for i, node in enumerate(order.nodes):
        inside = sum(plan.bodies[body].peak for _, body in node.graphs if body in plan.bodies)
        live[i] += inside if block is None else inside // block[0] * block[1]
        live[i] += scratch_of(node, most=PART if block is None else block[1])
    return live


def _placed(storages: list[_LiveStorage]) -> int:
    """Give each storage, in the order of their times, the first gap among those that are live; the bytes in total."""
    live: list[_LiveStorage] = []
    for storage in sorted(storages, key=lambda s: s.first):
        live = sorted((s for s in live if s.last >= storage.first), key=lambda s: s.at)
        storage.at = 0
        for other in live:
            if storage.end <= other.at:
                break
            storage.at = max(storage.at, other.end)
        live.append(storage)
    return max((s.end for s in storages), default=0)
