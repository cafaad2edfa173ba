"""Sums of columns in large nests: rows keep their terms, which the parts of a nest add up one after the other.

So the order is NumPy's, for any number of threads. The terms of a few rows stay in the cache: to add them up takes no
longer than if each row adds to the sums.
"""

from __future__ import annotations

import math
from itertools import takewhile

from ...ir.graph import Value
from .grouping import Stages
from .in_parts import PRIVATE, PartWriter
from .indices import AxisIndex, CArray, CNumber, at, c_type, count, extents
from .nests import NestWriter, innermost_axis
from .sum_order import BLOCK, LEAF, has_order, kept_terms, unit
from .sums import SUFFIXES, TermRun

TERMS = 2**13  # of the rows of a part


class LateSumWriter(PartWriter):
    """Writes nests with sums of columns in parts, which add up in turn."""

    def __init__(self, stored: set[Value], name: str) -> None:
        super().__init__(stored, name)
        self.rows_of_terms: dict[Value, CArray] = {}  # what the rows of a part keep, while its nest is written

    def nest(self, group: Stages, space: tuple[int, ...], flat: bool, var: str) -> None:
        """Write the loops of a group; if it is large and has sums of columns, in parts that add up in turn."""
        roots, first = [r for stage in group for r in stage], group[0][0]
        sums = [] if flat else self.across(roots)
        late = [r for r in sums if self._adds_rows(r)]
        others = [r for r in sums if r not in late]
        size = self._rows_of_part(late, others, self.kept_rows.get(first, 0)) if late and first in self.private else 0
        if not size or space[0] <= 2 * size or not all(map(self._any_part, others)):
            super().nest(group, space, flat, var)
            return
        for r in late:
            self._start(r, None)
        wholes = {r: self._begin_whole(r, size) for r in others}
        turn = self.fresh("turn", "int64_t *")
        self.line(f"int64_t *{turn} = (int64_t[]){{0}};")
        with self.block() as block:
            for line in self.private[first]:
                self.line(line)
            for r in late:
                self._keep_terms(r, size)
            for r in others:
                self._keep_part(r, size)
            self.clipped[var] = space[0]
            NestWriter.nest(self, group, space, False, var)  # not in parts again
            del self.clipped[var]
            self.line(f"await_turn({turn}, part);")
            for r in late:
                self._add_terms(r)
            for r in others:
                self._add_part(r, wholes[r])
            self.line(f"end_turn({turn}, part);")
        self.call_of_parts(block.lines, f"least({size} * {{0}}, {space[0]})", -(-space[0] // size), in_turn=True)
        for r in others:
            self._end_whole(r, wholes[r])

    def _adds_rows(self, root: Value) -> bool:
        """Whether a root is a sum to which one row after the other adds its terms."""
        if not self.reduces(root) or 0 in self.kept(root) or not has_order(self.made[root]) or self.in_turn(root):
            return False
        return self.run_of(root) != 0 and not (self.in_lanes(root) and innermost_axis(self.space(root))[0] == 0)

    def _terms_of_row(self, root: Value) -> tuple[int, ...]:
        """The axes of the terms of a row, with one for what is added up in one go."""
        space, kept, first = self.space(root), self.kept(root), self.run_of(root)
        if first is None:
            first = innermost_axis(space)[0] if self.in_lanes(root) else len(space)
        return tuple(n if a in kept or a < first else 1 for a, n in enumerate(space) if a > 0)

    def _any_part(self, root: Value) -> bool:
        """Whether a reduction over the rows can be put together from those of parts."""
        return self.run_of(root) == 0 or not (has_order(self.made[root]) or self.in_turn(root))

    def _rows_of_part(self, late: list[Value], others: list[Value], kept: int) -> int:
        """The rows of a part, whose terms stay in the cache; 0 if there is no space for one row."""
        row = sum(math.prod(self._terms_of_row(r)) for r in late)
        size = max(1, TERMS // row)
        return size if size * row + sum(self._room(r, size) for r in others) + kept <= PRIVATE else 0

    def _room(self, root: Value, rows: int) -> int:
        """The numbers that a part with so many rows keeps of a reduction that has no terms of columns."""
        return self._block(root, rows)[0] if self.run_of(root) == 0 else count(root)

    def _block(self, root: Value, rows: int) -> tuple[int, int]:
        """... of a sum in one go, and the most terms of its blocks."""
        space, beside = self.space(root), unit(root.aval.dtype)
        each, n = rows * math.prod(space[1:]), math.prod(space)
        return min((kept_terms(each, n, beside, k * beside, False), k * beside) for k in (BLOCK, LEAF))

    def _keep_terms(self, root: Value, rows: int) -> None:
        """Declare storage for the terms of so many rows."""
        shape, kind = (rows, *self._terms_of_row(root)), c_type(root.aval.dtype)
        name = self.fresh("terms", f"{kind} *restrict")
        self.line(f"{kind} {name}[{math.prod(shape)}];")
        self.late[root] = self.rows_of_terms[root] = CArray(name, shape, root.aval.dtype)

    def _rows(self, group: Stages, var: str) -> None:
        for root, terms in self.rows_of_terms.items():
            row, m = self.fresh("row", f"{c_type(terms.dtype)} *restrict"), math.prod(terms.shape[1:])
            self.line(f"{self.types[row]} {row} = {terms.name} + {f'{m} * ' * (m > 1)}({var} - first);")
            self.late[root] = CArray(row, (1, *terms.shape[1:]), terms.dtype)
        super()._rows(group, var)

    def _add_terms(self, root: Value) -> None:
        """Add up the terms of all rows of a part."""
        terms, kept = self.rows_of_terms.pop(root), self.kept(root)
        del self.late[root]
        axes = [a for a, n in enumerate(terms.shape) if a > 0 and n > 1]
        columns = list(takewhile(lambda a: a in kept, reversed(axes)))
        added = list(takewhile(lambda a: a not in kept, axes[-len(columns) - 1 :: -1]))
        outer = axes[: len(axes) - len(columns) - len(added)]  # ... and between them some that are kept
        rows, m = (math.prod(terms.shape[a] for a in some) for some in (added, columns))
        loops = {a: self.fresh("z") for a in (0, *outer)} if outer else {}
        index = tuple(AxisIndex(loops[a]) if a in loops else at(0) for a in range(len(terms.shape)))
        to, of = self.target[root].at(self.place(root, index)), terms.at(index)
        n = str(rows) if outer else f"{f'{rows} * ' * (rows > 1)}(last - first)"
        for a, z in loops.items():
            self.line(f"for (int64_t {z} = 0; {z} < {terms.shape[a] if a else 'last - first'}; {z}++)")
        self.line(f"rg_add_rows{SUFFIXES[terms.dtype.str[1:]]}(&{to}, &{of}, {n}, {m});")

    def _begin_whole(self, root: Value, rows: int) -> tuple[str, TermRun | CArray]:
        """Start a reduction, to which all parts add: its name in them, and what it is outside of them."""
        if self.run_of(root) != 0:
            self._start(root, None)
            found = self.target[root]
            if not isinstance(found, CNumber):
                return found.name, found
            name = self.fresh("all", f"{c_type(found.dtype)} *restrict")
            self.line(f"{self.types[name]} {name} = {found.name};")
            return name, found
        self.begin_run(root, most=self._block(root, rows)[1])
        run = self.runs.pop(root)
        name = self.fresh("all", f"struct rg_sum{run.suffix} *")
        self.line(f"{self.types[name]} {name} = &{run.name};")
        return name, run

    def _keep_part(self, root: Value, rows: int) -> None:
        """Declare what a part keeps of a reduction."""
        kind, each = c_type(root.aval.dtype), math.prod(self.space(root)[1:])
        name = self.fresh("mine", f"{kind} *restrict")
        self.line(f"{kind} {name}[{self._room(root, rows)}];")
        if self.run_of(root) == 0:
            self.pieces[root] = name, f"{each} * first", self._block(root, rows)[1]
        else:
            self.target[root] = CArray(name, extents(root), root.aval.dtype)

    def _add_part(self, root: Value, whole: tuple[str, TermRun | CArray]) -> None:
        """Add what a part has kept."""
        name, found = whole
        if isinstance(found, CArray):
            mine, self.target[root] = self.target[root].name, CArray(name, found.shape, found.dtype)
            self.fold_all(root, mine)
            self.target[root] = found
        else:
            piece, first, _ = self.pieces.pop(root)
            each = math.prod(self.space(root)[1:])
            self.line(f"rg_take_part{found.suffix}({name}, {piece}, {first}, {each} * last);")

    def _end_whole(self, root: Value, whole: tuple[str, TermRun | CArray]) -> None:
        if isinstance(whole[1], TermRun):
            self.runs[root] = whole[1]
            self.whole(root, self.end_run(root))
