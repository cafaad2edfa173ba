"""Which results of a kernel may lie in which of its operands: where no element is read after it has been written.

Nests are written one after the other, so an operand that only earlier nests read is free. In the nest of the result,
each round of the outermost loop, and so each thread, must keep to its own row: an earlier stage may read all of the row
that the round writes, and the stage itself the element that it writes. Whatever else reads the operand, such as a loop
over steps, is taken to read all of it, up to the end of its nest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...ir.graph import Graph, Node, Value
from .grouping import OUTERMOST, Stages
from .indices import AxisIndex, Indices
from .sums import SumWriter

Pairs = tuple[tuple[int, int], ...]  # the numbers of results and of operands


class Spot(NamedTuple):
    """Where a root is computed: the numbers of its nest, of its stage there, and of the root in the stage."""

    nest: int
    stage: int = -1
    root: int = -1


class OperandRead(NamedTuple):
    """A read of an operand, at an index of the loops of a root; None for anywhere in it, until the nest ends.

    ``always``: each round of the loops has the read, so that it is a variable for the roots behind.
    """

    spot: Spot
    where: Indices | None = None
    always: bool = False


def may_lie_in(body: Graph, to: SumWriter) -> Pairs:
    """The pairs of a result and an operand that may have one storage, for a body that has been written.

    There are none if the kernel may give up: NumPy would read what was written.
    """
    return () if to.gives_up else _pairs(body, to)


def _pairs(body: Graph, to: SumWriter) -> Pairs:
    spots = _spots(to.groups[body])
    reads: dict[Value, list[OperandRead]] = {v: [] for v in body.inputs}
    for v, read in _reads(body, to, spots):
        reads[v].append(read)
    results = {k: out for k, out in enumerate(body.outputs) if out in spots and out in body.producer}
    return tuple(
        (k, i)
        for k, out in results.items()
        for i, v in enumerate(body.inputs)
        if v.aval == out.aval and out.aval.kind == "array" and body.outputs.count(out) == 1
        if _before(reads[v], spots[out], whole=not to.reduces(out))
    )


def with_one_storage(source: str, pairs: Pairs) -> str:
    """The source where results lie in operands: pointers to them no longer promise to be the only ones."""
    names = "|".join([*(f"out{k}|in{i}" for k, i in pairs), r"a\d+"])  # the last are those of functions of nests
    return source if not pairs else re.sub(rf"\*restrict (?=(?:{names})\b)", "*", source)


def _spots(groups: Sequence[Node | Stages]) -> dict[Value, Spot]:
    return {
        root: Spot(n, s, r)
        for n, group in enumerate(groups)
        if not isinstance(group, Node)
        for s, stage in enumerate(group)
        for r, root in enumerate(stage)
    }


def _before(reads: Sequence[OperandRead], write: Spot, whole: bool) -> bool:
    """Whether each element is read before it is written; ``whole`` if each is written once, as loops reach it."""
    beside = []  # reads by the stage that writes
    for read in reads:
        if read.spot.nest < write.nest:
            continue
        if read.where is None or not whole or read.spot[:2] > write[:2]:
            return False
        if read.spot.stage == write.stage:
            beside.append(read)
        elif read.where[:1] != (OUTERMOST,):
            return False
    known = any(read.always and read.spot.root <= write.root for read in beside)
    return all(_at_point(read.where) and (known or read.spot.root <= write.root) for read in beside)


def _at_point(index: Indices | None) -> bool:
    return index is not None and index == tuple(AxisIndex(f"q{k}") for k in range(len(index)))


def _reads(body: Graph, to: SumWriter, spots: dict[Value, Spot]) -> Iterator[tuple[Value, OperandRead]]:
    """All reads of operands."""
    below, groups, given = _operands_below(body, spots), to.groups[body], {*body.inputs}
    for root, spot in spots.items():
        for v, index in to.read_by.get(root, [(root, None)]):
            late = to.run_of(root) is not None and to.made[root].inputs[0] is v  # a sum of what has storage
            if index is None or late or v not in given:
                yield from ((x, OperandRead(spot)) for x in below[v])
            else:
                yield v, OperandRead(spot, index, root in to.plain)
    for n, group in enumerate(groups):
        for v in group.inputs if isinstance(group, Node) else ():
            yield from ((x, OperandRead(Spot(n))) for x in below[v])
    for v in body.outputs:
        if v not in spots:  # what is small is computed at the end
            yield from ((x, OperandRead(Spot(len(groups)))) for x in below[v])


def _operands_below(body: Graph, stored: dict[Value, Spot]) -> dict[Value, frozenset[Value]]:
    """The operands that are read where a value is; none for one that is stored.

    A loop may hand an operand on, so what reads its results reads its operands.
    """
    below = {v: frozenset([v]) for v in body.inputs}
    for node in body.nodes:
        read = frozenset().union(*(below[v] for v in node.inputs))
        below.update((out, frozenset() if out in stored else read) for out in node.outputs)
    return below
