"""vectorize: Graph → Graph in which operations on numbers, of one kind and level, are one operation on arrays.

Loops over elements whose bounds move, as in LU, Cholesky or substitution, repeat no step of equal size, but few levels
of them depend on each other. The results of all operations lie in one array, the pool: those of a level are a slice of
it, and operands are read from it by position. The operations are rounded exactly, so the bits are those of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Value
from ..ir.primitive import Primitive
from ..ir.rewrite import mapped
from ..ir.texts import Arg
from ..ir.types import Aval
from ..ops.concatenate import concatenate
from ..ops.gather import gather
from ..ops.index import getitem, setitem
from ..ops.module_arrays import module_arrays
from ..ops.shape import broadcast_to, reshape_to
from ..where import Where
from .levels import TAKEN, Levels, Numbers, OnNumbers, Unsuited
from .own_outputs import own_outputs
from .prune import prune

FEWEST = 256  # operations in all
WIDE = 8  # operations of one kind and level, on average: fewer are faster as numbers
SHARE = 0.95  # of the nodes of a graph that the operations and their reads and writes are
READ = 8  # elements of other arrays for each operation: all of an array go where one of them is read

POOL, CONSTANTS = -1, -2  # where an element is that belongs to no source


def with_levels(graph: Graph) -> Graph:
    """The graph with operations on arrays, also in bodies; the same graph if too few operations are of one level."""
    return mapped(graph, _vectorized)


def _vectorized(graph: Graph) -> Graph:
    if len(graph.nodes) < FEWEST or not any(v.aval.shape for v in graph.inputs):  # Python's numbers are faster
        return graph
    most_plain = (1.0 - SHARE) * len(graph.nodes)
    if sum(n for prim, n in graph.prims.items() if prim.name not in TAKEN) > most_plain:
        return graph
    try:
        levels = Levels(graph, WIDE, most_plain)
    except Unsuited:
        return graph
    groups = levels.groups()
    read = sum(value.aval.size for value in levels.sources)
    few = levels.count < FEWEST or WIDE * len(groups) > levels.count
    return graph if few or read > READ * levels.count else own_outputs(_Vectorized(levels, groups).graph())


class _ReadAt(NamedTuple):
    """Where elements are read: in the pool, in the value that is ``source``, or among the constants.

    ``at`` is an int, a slice, or positions.
    """

    shape: tuple[int, ...]
    origin: int
    at: int | slice | tuple[int, ...]


@dataclass(eq=False)
class _SameLevel:
    """Operations of one kind and level; ``parts`` are where they read their operands, or the groups that these are."""

    phase: int
    prim: Primitive
    where: Where | None
    out: Numbers
    operands: list[Numbers]
    parts: list[_ReadAt | _SameLevel] = field(default_factory=list)
    pooled: bool = False  # whether results are read in another way than as operands of one whole group
    result: Symbol | None = None


def _group(phase: int, prim: Primitive, operations: Sequence[OnNumbers]) -> _SameLevel:
    shape = () if len(operations) == 1 else (-1,)
    out = np.array([op.out for op in operations])
    columns = np.array([op.operands for op in operations]).T
    return _SameLevel(phase, prim, operations[0].node.where, out, [column.reshape(shape) for column in columns])


class _Vectorized:
    """Writes the new graph."""

    def __init__(self, levels: Levels, groups: Mapping[tuple[int, int, Primitive], list[OnNumbers]]) -> None:
        self.levels, self.old = levels, levels.graph
        self.dtype: Any = levels.dtype
        found = sorted(groups.items(), key=lambda item: (*item[0][:2], item[1][0].out))
        self.groups = [_group(phase, prim, operations) for (phase, _, prim), operations in found]
        self.phases: dict[int, list[_SameLevel]] = {k: [] for k in range(max([levels.top, *levels.plain]) + 1)}
        for group in self.groups:
            self.phases[group.phase].append(group)
        self.sources = [*levels.sources]
        self.origin = np.full(len(levels.phase), POOL)  # of each element: its source, or one of these
        self.constants = np.array([*levels.constants.values()], np.int64)
        self.origin[self.constants] = CONSTANTS
        for k, (value, first) in enumerate(levels.sources.items()):
            self.origin[first : first + value.aval.size] = k
        self.whole = levels.whole()
        self.pooled: set[int] = set()  # what else is read in the pool
        self.position = np.full(len(levels.phase), -1)
        self.columns: dict[tuple[int, ...], Symbol | None] = {}  # of positions
        self.parts: dict[Value, _ReadAt] = {}
        self.b = Builder()
        self.pool: Symbol | None = None
        self.flat: dict[Value, Symbol] = {}

    def graph(self) -> Graph:
        b, levels = self.b, self.levels
        self._arrange()
        self.env = dict(zip(self.old.inputs, b.share_inputs(self.old), strict=True))
        self._known()
        for phase, groups in self.phases.items():
            for node in levels.plain.get(phase, ()):
                outs = b.copy_node(node, [self._at(v).value for v in node.inputs])
                self.env.update(zip(node.outputs, outs, strict=True))
            self._grow(phase, sum(group.out.size for group in groups if group.pooled))
            for group in groups:
                self._compute(group)
        return prune(b.graph(self.old.name, [self._at(v) for v in self.old.outputs]))

    def _known(self) -> None:
        """The positions, and the numbers that are known, as arrays of the module."""
        values: list[tuple[Any, ...]] = [*self.columns]
        dtypes, hints = ["int64"] * len(values), ["at"] * len(values)
        if self.levels.known:
            values.append(tuple(self.levels.known))
            dtypes.append(str(self.dtype))
            hints.append("numbers")
        if values:
            made = self.b.emit(module_arrays, (), {"values": tuple(values), "dtypes": tuple(dtypes)}, hints)
            self.columns = dict(zip(self.columns, made, strict=False))  # by order: (1,) and (1.0,) are equal
            self.numbers = made[-1]

    def _arrange(self) -> None:
        """Find out what the pool holds and where, and where all elements are read."""
        by_results = {group.out.tobytes(): group for group in self.groups}
        read = [*self.whole.values()]
        for group in self.groups:
            read += [ids for ids in group.operands if ids.tobytes() not in by_results]
        needed = np.zeros(len(self.position), bool)
        for ids in read:
            needed[ids] = True
            origins = np.unique(self.origin[ids])
            if len(origins) > 1:  # what one source has is read there
                self.pooled.update(origins.tolist())
        for group in self.groups:
            group.pooled = bool(needed[group.out].any())
        self._place()
        for group in self.groups:
            group.parts = [by_results.get(ids.tobytes()) or self._part(ids) for ids in group.operands]
        self.parts = {value: self._part(ids, whole=True) for value, ids in self.whole.items()}

    def _place(self) -> None:
        """Lay out the pool: constants, then the sources and the results of each phase."""
        held = [self.constants[: self.constants.size if CONSTANTS in self.pooled else 0]]
        for phase, groups in self.phases.items():
            held += [np.arange(first, first + v.aval.size) for v, first in self._new(phase)]
            held += [group.out for group in groups if group.pooled]
        order = np.concatenate(held)
        self.position[order] = np.arange(order.size)

    def _new(self, phase: int) -> list[tuple[Value, int]]:
        """The sources that come into the pool in a phase, and the numbers of their first elements."""
        found = [(v, first) for k, (v, first) in enumerate(self.levels.sources.items()) if k in self.pooled]
        return [(v, first) for v, first in found if self.levels.at[v] == phase]

    def _part(self, ids: Numbers, whole: bool = False) -> _ReadAt:
        """Where elements are read; ``whole`` arrays lie in memory without gaps, as new ones do."""
        origin = int(self.origin[ids.flat[0]])
        origin = origin if (self.origin[ids] == origin).all() else POOL
        if origin == POOL:
            flat = self.position[ids].ravel()
        elif origin == CONSTANTS:
            flat = np.searchsorted(self.constants, ids).ravel()
        else:
            flat = (ids - self.levels.sources[self.sources[origin]]).ravel()
        first, step = int(flat[0]), int(flat[1] - flat[0]) if flat.size > 1 else 0
        if (flat == first).all() and not (whole and ids.shape):
            return _ReadAt(ids.shape, origin, first)
        if (step == 1 if whole else step) and (np.diff(flat) == step).all():
            stop = first + step * flat.size
            return _ReadAt(ids.shape, origin, slice(first, stop if stop >= 0 else None, None if step == 1 else step))
        column = tuple(flat.tolist())
        self.columns[column] = self.columns.get(column)
        return _ReadAt(ids.shape, origin, column)

    def _grow(self, phase: int, count: int) -> None:
        """Put the constants and the sources of a phase into the pool, with room for its results."""
        parts = [self.pool] if self.pool is not None else [self.numbers] if CONSTANTS in self.pooled else []
        new = [self._flat(v) for v, _ in self._new(phase)]
        if count or new:
            room = [self.b.zeros(Aval((count,), self.dtype))] if count else []
            parts = [*parts, *new, *room]
            self.pool = concatenate(*parts, axis=0) if len(parts) > 1 else parts[0]

    def _compute(self, group: _SameLevel) -> None:
        b, n = self.b, group.out.size
        b.where = group.where
        operands = [p.result if isinstance(p, _SameLevel) else self._read(p) for p in group.parts]
        group.result = b.emit(group.prim, [x.value for x in operands if x is not None], {})[0]
        if group.pooled:
            first = int(self.position[group.out[0]])
            self.pool = setitem(self.pool, group.result, index=(first if n == 1 else slice(first, first + n),))

    def _flat(self, source: Value) -> Symbol:
        if source not in self.flat:
            self.flat[source] = reshape_to(self.env[source], (source.aval.size,))
        return self.flat[source]

    def _read(self, part: _ReadAt) -> Symbol:
        if part.origin == CONSTANTS and isinstance(part.at, int):
            aval = Aval(part.shape, self.dtype, "array" if part.shape else "scalar")
            return self.b.constant(self.levels.known[part.at], aval)
        x: Any = self.pool
        if part.origin != POOL:
            x = self.numbers if part.origin == CONSTANTS else self._flat(self.sources[part.origin])
        if isinstance(part.at, int):
            found: Symbol = getitem(x, index=(part.at,))
            return broadcast_to(found, part.shape) if part.shape else found
        if isinstance(part.at, tuple):
            found = gather(x, self.columns[part.at], index=(Arg(1),))
        else:
            found = getitem(x, index=(part.at,))
        return reshape_to(found, part.shape)

    def _at(self, value: Value) -> Symbol:
        """A value of the old graph in the new one."""
        if value not in self.env:
            node = self.old.producer[value]
            self.b.where = node.where
            if value in self.parts:
                self.env[value] = self._read(self.parts[value])
            else:
                self.env[value] = self.b.copy_node(node, [self._at(v).value for v in node.inputs])[0]
        return self.env[value]
