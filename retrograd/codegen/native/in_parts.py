"""Large nests in parts, which threads may compute: each part is a function of what the nest reads.

How a nest falls into parts depends on its shape alone. Sums over the outermost axis are kept for each part, and added
up in the order of the parts. So results have the same bits on any number of threads.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ...ir.graph import Node, Value
from .elements import BEYOND
from .grouping import Stages, row_at_a_time, work_of
from .indices import CArray, CNumber, at, c_type, count, extents
from .nests import NestWriter

LEAST = 200_000  # additions in a nest from which on it falls into parts
MOST = 32  # parts
ALIGNED = 64  # elements: parts of flat loops begin at the start of a line of the cache
ROWS = 8  # rows of a part that adds them up
SUMS = 2**17  # elements of what all parts add up
PRIVATE = 2**15  # elements of rows that a part keeps on its stack

DECLARED = re.compile(r"\b(?:double|float|int64_t|int|_Bool)(?: _Complex)? \*?(?:restrict )?(\w+)|, (\w+) = ")
COMMENT = re.compile(r"/\*.*?\*/")


class PartWriter(NestWriter):
    """Writes large nests as functions of their own."""

    def __init__(self, stored: set[Value], name: str) -> None:
        super().__init__(stored)
        self.name = name
        self.parts: list[str] = []  # the functions of parts
        self.private: dict[Value, list[str]] = {}  # declarations of storage for a row, by the first root of a nest
        self.kept_rows: dict[Value, int] = {}  # elements of such storage
        self.clipped: dict[str, int] = {}  # variables of loops over a part, and their ends

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
        """Write the loops of a group, in parts if it is large."""
        private, roots = self.private.get(group[0][0]), [r for stage in group for r in stage]
        n = math.prod(space) if flat else (*space, 1)[0]
        sums = [r for r in roots if self.reduces(r)] if flat else self.across(roots)
        size = _part_size(n, sum(map(count, sums)), flat)
        if private is None or self.kept_rows.get(group[0][0], 0) > PRIVATE or n <= 2 * size:
            for line in private or ():
                self.line(line)
            super().nest(group, space, flat, var)
            return
        parts, targets = -(-n // size), [self.target[r] for r in sums]
        kept = [self.workspace(r, (parts, count(r))).name for r in sums]
        with self.block() as block:
            for line in private:
                self.line(line)
            for r, array in zip(sums, kept, strict=True):
                name = self.fresh("mine", f"{c_type(r.aval.dtype)} *restrict")
                self.line(f"{self.types[name]} {name} = {array} + {f'{count(r)} * ' * (count(r) > 1)}part;")
                self.target[r] = CArray(name, extents(r), r.aval.dtype)
            self.clipped[var] = n
            super().nest(group, space, flat, var)
            del self.clipped[var]
        self._call_of_parts(block.lines, size, n)
        for r, target, array in zip(sums, targets, kept, strict=True):
            self.target[r] = target
            self._add_up(r, array, parts)

    def header(self, var: str, start: int, n: int) -> str:
        """The header of a loop from ``start`` to ``n``, or over what of it a part has."""
        if var not in self.clipped:
            return super().header(var, start, n)
        first = f"(first > {start} ? first : {start})" if start else "first"
        last = f"(last < {n} ? last : {n})" if n < self.clipped[var] else "last"
        return f"for (int64_t {var} = {first}; {var} < {last}; {var}++) {{"

    def bounds(self, var: str, n: int) -> tuple[str, str]:
        """Where a loop over n elements begins and ends."""
        return ("first", "last") if var in self.clipped else super().bounds(var, n)

    def _call_of_parts(self, lines: list[str], size: int, n: int) -> None:
        """Make a function of the lines of a part, and call it for all parts."""
        plain = COMMENT.sub("", "\n".join(lines))
        own = {name for names in DECLARED.findall(plain) for name in names}
        names = [x for x in dict.fromkeys(re.findall(r"\w+", plain)) if x in self.types and x not in own]
        types = [self.types[x] if "*" in self.types[x] else f"const {self.types[x]}" for x in names]
        beyond = BEYOND in plain
        k = len(self.parts) + 1
        function = f"{self.name}_part{k}"
        fields = " ".join(f"{kind} {x};" for kind, x in zip(types, names, strict=True))
        text = [f"struct {function} {{ {fields} }};", f"static int {function}(const void *given, int64_t part) {{"]
        text += [f"  const struct {function} *x = given;"]
        text += [f"  {kind} {x} = x->{x};" for kind, x in zip(types, names, strict=True)]
        text += [f"  const int64_t first = {size} * part, last = first + {size} < {n} ? first + {size} : {n};"]
        text += ["  int beyond = 0;"] * beyond + [f"  {line}" for line in lines]
        self.parts.append("\n".join([*text, f"  return {BEYOND if beyond else 0};", "}"]))
        self.line(f"const struct {function} x{k} = {{{', '.join(names)}}};")
        self.line(f"{f'{BEYOND} |= ' * beyond}in_parts({function}, &x{k}, {-(-n // size)}, threads);")

    def _add_up(self, root: Value, kept: str, parts: int) -> None:
        """A reduction of those of the parts."""
        array, m = self.target[root], count(root)
        self._start(root, None)
        start = array.at(tuple(at(0) for _ in array.shape))
        z, k = self.fresh("z"), self.fresh("z")
        with self.block() as block:
            if m == 1:
                self._fold(root, start, f"{kept}[{z}]")
            else:
                self.line(f"for (int64_t {k} = 0; {k} < {m}; {k}++) {{")
                self._fold(root, f"(&{start})[{k}]", f"{kept}[{m} * {z} + {k}]")
                self.line("}")
        self.enclose(f"for (int64_t {z} = 0; {z} < {parts}; {z}++) {{", block.lines)


def _part_size(n: int, sums: int, flat: bool) -> int:
    """How many of n elements or rows a part has, if it keeps so many sums."""
    size = -(-n // MOST)
    if flat:
        return -(-size // ALIGNED) * ALIGNED
    return max(size, ROWS, -(-n * sums // SUMS)) if sums > 1 else size
