"""Large nests in parts, which threads may compute: each part is a function of what the nest reads.

How a nest falls into parts depends on its shape alone. Sums over the outermost axis are kept for each part, and added
up in the order of the parts; of a sum in one go, a part keeps what makes it the same without parts. So results have the
same bits on any number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...ir.graph import Node, Value
from .c_names import COMMENT, names_from_outside
from .elements import BEYOND
from .grouping import Stages, row_at_a_time
from .indices import CArray, CNumber, at, c_type, count, extents
from .nests import NestWriter
from .prices import work_of
from .sum_order import BLOCK, LEAF, has_order, kept_terms, unit

LEAST = 200_000  # additions in a nest from which on it falls into parts
MOST = 32  # parts
ALIGNED = 64  # elements: parts of flat loops begin at the start of a line of the cache
ROWS = 8  # rows of a part that adds them up
SUMS = 2**17  # elements of what all parts add up
PRIVATE = 2**15


@dataclass(frozen=True)
class KeptSum:
    """What parts keep of a sum."""

    array: str
    room: int  # numbers of a part
    each: int  # terms of an element or row
    most: int  # terms of a block, if parts keep blocks


class PartWriter(NestWriter):
    """Writes large nests as functions of their own."""

    def __init__(self, stored: set[Value], name: str) -> None:
        super().__init__(stored)
        self.name = name
        self.parts: list[str] = []  # the functions of parts
        self.private: dict[Value, list[str]] = {}  # declarations of storage for a row, by the first root of a nest
        self.kept_rows: dict[Value, int] = {}  # elements of such storage
        self.clipped: dict[str, int] = {}  # variables of loops over a part, and their ends
        self.shared = 0  # elements of the loop whose steps are written for a part of each array

    def _allot(self, groups: list[Node | Stages], want: dict[Value, list[Any]]) -> None:
        self.prices = {}
        for group in groups:
            if not isinstance(group, Node) and sum(map(self._work, (r for stage in group for r in stage))) >= LEAST:
                self.private[group[0][0]] = []
        super()._allot(groups, want)

    def _work(self, root: Value) -> int:
        """The additions that a root takes, about."""
        node = self.made.get(root)
        price = 1 if node is None or root in self.foreign else 1 + work_of(node) + sum(map(self._price, node.inputs))
        return price * math.prod(self.space(root))

    def row_storage(self, root: Value, first: Value) -> CArray:
        """Storage for a row of a value; each part of a large nest has its own, on the stack."""
        shape, dtype = extents(root), root.aval.dtype
        n, kind = count(root) // shape[0], c_type(root.aval.dtype)
        if first not in self.private:
            return super().row_storage(root, first)
        self.kept_rows[first] = self.kept_rows.get(first, 0) + n
        if self.kept_rows[first] > PRIVATE:
            return super().row_storage(root, first)
        name = self.fresh("s", kind if n == 1 else f"{kind} *restrict")
        self.private[first].append(f"{kind} {name};" if n == 1 else f"{kind} {name}[{n}];")
        return CNumber(name, shape, dtype) if n == 1 else row_at_a_time(name, shape, dtype)

    def nest(self, group: Stages, space: tuple[int, ...], flat: bool, var: str) -> None:
        """Write the loops of a group, in parts if it is large and does not belong to a part already."""
        if self.shared:
            self.clipped[var] = self.shared
            super().nest(group, space, flat, var)
            del self.clipped[var]
            return
        private, roots = self.private.get(group[0][0]), [r for stage in group for r in stage]
        n = math.prod(space) if flat else (*space, 1)[0]
        sums = [r for r in roots if self.reduces(r)] if flat else self.across(roots)
        size = _part_size(n, sum(map(count, sums)), flat)
        in_turn = any(self.in_turn(r) or (has_order(self.made[r]) and self.run_of(r) != 0) for r in sums)
        alone = in_turn or self.kept_rows.get(group[0][0], 0) > PRIVATE
        if private is None or alone or n <= 2 * size:
            for line in private or ():
                self.line(line)
            super().nest(group, space, flat, var)
            return
        beside = {unit(r.aval.dtype) for r in sums if self.run_of(r) == 0}
        start, whole = f"least({size} * {{0}}, {n})", flat and len(beside) == 1
        if whole:
            size, start = _whole_blocks(n, min(beside))
        parts, targets = -(-n // size), [self.target[r] for r in sums]
        kept = [self._kept_sum(r, parts, (size, n), flat, whole) for r in sums]
        with self.block() as block:
            for line in private:
                self.line(line)
            for r, sum_ in zip(sums, kept, strict=True):
                name = self.fresh("mine", f"{c_type(r.aval.dtype)} *restrict")
                self.line(f"{self.types[name]} {name} = {sum_.array} + {f'{sum_.room} * ' * (sum_.room > 1)}part;")
                if sum_.most:
                    self.pieces[r] = name, f"{sum_.each} * first" if sum_.each > 1 else "first", sum_.most
                else:
                    self.target[r] = CArray(name, extents(r), r.aval.dtype)
            self.clipped[var] = n
            super().nest(group, space, flat, var)
            del self.clipped[var]
        self.call_of_parts(block.lines, start, parts)
        for r, target, sum_ in zip(sums, targets, kept, strict=True):
            self.target[r] = target
            if self.pieces.pop(r, None):
                self._add_pieces(r, sum_, start, parts)
            else:
                self._add_up(r, sum_.array, parts)

    def _kept_sum(self, root: Value, parts: int, rows: tuple[int, int], flat: bool, whole: bool) -> KeptSum:
        """What parts keep of a sum over so many rows each and in all; ``whole`` if they have whole blocks."""
        room, most, beside = count(root), 0, unit(root.aval.dtype)
        each = 1 if flat else math.prod(self.space(root)[1:])
        if self.run_of(root) == 0:
            sizes = [BLOCK * beside] if whole else [BLOCK * beside, LEAF * beside]
            room, most = min((kept_terms(rows[0] * each, rows[1] * each, beside, m, whole), m) for m in sizes)
        return KeptSum(self.workspace(root, (parts, room)).name, room, each, most)

    def copied(self, target: str, source: str, n: int) -> None:
        """Copy so many elements; steps for a part of each array copy no other."""
        if self.shared:
            self.line(f"memcpy({target} + first, {source} + first, sizeof(*{source}) * (last - first));")
        else:
            super().copied(target, source, n)

    def bounds(self, var: str, start: int, n: int) -> tuple[str, str]:
        """Where a loop from ``start`` to ``n`` begins and ends, or what of it a part has."""
        if var not in self.clipped:
            return super().bounds(var, start, n)
        first = f"(first > {start} ? first : {start})" if start else "first"
        return first, f"(last < {n} ? last : {n})" if n < self.clipped[var] else "last"

    def call_of_parts(self, lines: list[str], start: str, parts: int, in_turn: bool = False) -> None:
        """Make a function of the lines of a part, and call it for all parts; ``start`` is where the part {0} does."""
        plain = COMMENT.sub("", "\n".join(lines))
        names = names_from_outside(plain, self.types)
        types = [self.types[x] if "*" in self.types[x] else f"const {self.types[x]}" for x in names]
        beyond = BEYOND in plain
        k = len(self.parts) + 1
        function = f"{self.name}_part{k}"
        fields = " ".join(f"{kind} {x};" for kind, x in zip(types, names, strict=True))
        text = [f"struct {function} {{ {fields} }};", f"static int {function}(const void *given, int64_t part) {{"]
        text += [f"  const struct {function} *x = given;"]
        text += [f"  {kind} {x} = x->{x};" for kind, x in zip(types, names, strict=True)]
        text += [f"  const int64_t first = {start.format('part')}, last = {start.format('(part + 1)')};"]
        text += ["  int beyond = 0;"] * beyond + [f"  {line}" for line in lines]
        self.parts.append("\n".join([*text, f"  return {BEYOND if beyond else 0};", "}"]))
        self.line(f"const struct {function} x{k} = {{{', '.join(names)}}};")
        self.line(f"{f'{BEYOND} |= ' * beyond}in_parts({function}, &x{k}, {parts}, threads, {int(in_turn)});")

    def _add_pieces(self, root: Value, kept: KeptSum, start: str, parts: int) -> None:
        """A sum of what parts kept."""
        z = self.fresh("z")
        self.begin_run(root, most=kept.most)
        run, times = self.runs[root], f"{kept.each} * " if kept.each > 1 else ""
        ends = ", ".join(times + start.format(x) for x in (z, f"({z} + 1)"))
        call = f"rg_take_part{run.suffix}(&{run.name}, {kept.array} + {kept.room} * {z}, {ends});"
        self.line(f"for (int64_t {z} = 0; {z} < {parts}; {z}++) {call}")
        self.whole(root, self.end_run(root))

    def _add_up(self, root: Value, kept: str, parts: int) -> None:
        """A reduction of those of the parts."""
        self._start(root, None)
        z, m = self.fresh("z"), count(root)
        with self.block() as block:
            self.fold_all(root, f"({kept} + {m} * {z})" if m > 1 else kept, "0" if m > 1 else z)
        self.enclose(f"for (int64_t {z} = 0; {z} < {parts}; {z}++) {{", block.lines)

    def fold_all(self, root: Value, kept: str, first: str = "0") -> None:
        """Fold the reduction of a part into that of all."""
        array, m, k = self.target[root], count(root), self.fresh("z")
        start = array.at(tuple(at(0) for _ in array.shape))
        if m == 1:
            self._fold(root, start, f"{kept}[{first}]")
            return
        with self.block() as block:
            self._fold(root, f"(&{start})[{k}]", f"{kept}[{k}]")
        self.enclose(f"for (int64_t {k} = 0; {k} < {m}; {k}++) {{", block.lines)


def _part_size(n: int, sums: int, flat: bool) -> int:
    """How many of n elements or rows a part has, if it keeps so many sums."""
    size = -(-n // MOST)
    if flat:
        return -(-size // ALIGNED) * ALIGNED
    return max(size, ROWS, -(-n * sums // SUMS)) if sums > 1 else size


def _whole_blocks(n: int, beside: int) -> tuple[int, str]:
    """How many of n terms a part of as many blocks as all others has, and where the part {0} begins.

    All blocks are halves of halves of about the same size: the term in the middle of each tells it.
    """
    most = BLOCK * beside
    blocks = 1 << (-(-n // most) - 1).bit_length()
    size = -(-n * max(blocks // MOST, 1) // blocks)
    return size, f"rg_block_start({n}, {size} * {{0}} + {n // (2 * blocks)}, {beside}, {most})"
