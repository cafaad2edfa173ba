"""Nests of loops: the statements of roots that share them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ir.graph import Graph, Node, Value
from .c_texts import fold_of, suffix, text_of, total_type
from .elements import BEYOND, SHORT, ChangesAt, StandsFor
from .grouping import Place, RootGroups, Stages
from .indices import AxisIndex, CArray, Indices, at, count, everywhere, extents

SAME = frozenset({"cast", "copy", "owned", "named", "putmask", "stop_gradient"})
LONG = 64  # elements of a row, from which on an extremum has a variable for nan
EXTREMA = {">": "max", "<": "min"}  # OpenMP's names, by the order
LANE = 4096  # elements of a long sum that are added up in one go


class NestWriter(RootGroups):
    """Writes the nests of a graph."""

    # graphs

    def lower(self, graph: Graph, wanted: Sequence[Place | list[str] | None]) -> None:
        """Write a graph whose inputs are held. Each result goes to a place, or its elements into a list of names."""
        depth = len(self.blocks) - 1
        outer_graph, self.graph = self.graph, graph
        for node in graph.nodes:
            for out in node.outputs:
                self.made[out], self.home[out] = node, depth
                self.held.pop(out, None)
        want: dict[Value, list[Any]] = {}
        for value, where in zip(graph.outputs, wanted, strict=True):
            if where is not None:
                want.setdefault(value, []).append(where)
        placed = {v for v, places in want.items() if any(isinstance(place, tuple) for place in places)}
        outer = self.foreign, self.done, self.readers, self.pending
        self.foreign = {v for v in placed if v not in graph.producer and not self._few(v)}
        self.done, self.readers, self.pending = set(), {}, set(self.pending)
        self._store_between_pieces(graph)
        groups = self._grouped(graph, self._roots(graph, placed))
        self._allot(groups, want)
        for group in groups:
            if isinstance(group, Node):
                self.pending.difference_update(group.outputs)
                self.loop_node(group, want)
            else:
                self._group(group, want)
        for value, places in want.items():
            for place in places:
                if isinstance(place, list):
                    place.extend(self.pull(value, k) for k in everywhere(extents(value)))
                elif value not in self.done:
                    array, lead = place
                    for k in everywhere(extents(value)):
                        self.line(f"{array.at((*lead, *k))} = {self.pull(value, k)};")
        self.foreign, self.done, self.readers, self.pending = outer
        self.graph = outer_graph

    def loop_node(self, node: Node, want: dict[Value, list[Any]]) -> None:
        """Write a loop of the graph."""
        raise NotImplementedError

    # loops

    def _group(self, group: Stages, want: dict[Value, list[Any]]) -> None:
        roots = [r for stage in group for r in stage]
        self.pending.difference_update(roots)
        space, var = self.space(roots[0]), self.fresh("i")
        flat = len(space) == 1 or (len(group) == 1 and bool(space) and self._flat(group[0], space))
        self.nest(group, space, flat, var)
        for root in roots:
            self._copies(root, want)
            self.done.add(root)

    def nest(self, group: Stages, space: tuple[int, ...], flat: bool, var: str) -> None:
        """Write the loops of a group; ``flat`` if they are one."""
        roots = [r for stage in group for r in stage]
        for root in () if flat else self.across(roots):
            self._start(root, None)
        if not space:
            for root in roots:
                self.line(f"{self.target[root].at(())} = {self.element(root, ())};")
        elif flat:
            self._flat_loop(roots, var, math.prod(space))
        else:
            self.loop(var, space[0], lambda: self._rows(group, var))

    def across(self, roots: list[Value]) -> list[Value]:
        """The reductions over the outermost axis, among others."""
        return [r for r in roots if self.reduces(r) and 0 not in self.kept(r) and self.space(r)]

    def _rows(self, group: Stages, var: str) -> None:
        for stage in group:
            self._stage(stage, var)

    def _copies(self, root: Value, want: dict[Value, list[Any]]) -> None:
        source = self.target[root]
        for array, lead in [place for place in want.get(root, ()) if isinstance(place, tuple)][1:]:
            target = array.at((*lead, *[at(0)] * (len(array.shape) - len(lead))))
            self.line(f"memcpy(&{target}, {source.name}, sizeof(*{source.name}) * {count(root)});")

    def _flat(self, roots: list[Value], space: tuple[int, ...]) -> bool:
        """Whether all that is read is at the same index, so that the axes can be one."""
        todo: list[Value] = []
        for root in roots:
            if root in self.foreign:
                return False
            if not self.reduces(root):
                if not self.target[root].whole or not _elementwise(self.made[root]):
                    return False
                todo += _operands(self.made[root])
            elif len(self.made[root].attrs["axis"]) == len(space):
                todo += self.made[root].inputs
            else:
                return False
        seen: set[Value] = set()
        while todo:
            v = todo.pop()
            if v in seen:
                continue
            seen.add(v)
            held, node = self.held.get(v), self.made.get(v)
            if isinstance(held, StandsFor):
                if held.lead:
                    return False
                todo.append(held.value)
            elif held is not None and v not in roots:
                if not isinstance(held, CArray) or not held.whole or held.shape != space:
                    return False
            elif node is None or not _elementwise(node):
                return False
            else:
                todo += _operands(node)
        return True

    def _start(self, root: Value, outer: AxisIndex | None) -> None:
        """Start a reduction, or the part of it at an outermost index."""
        array, start = self.target[root], fold_of(self.made[root]).start
        lead = () if outer is None else (outer,)
        n = math.prod(array.shape[len(lead) :])
        first = array.at((*lead, *[at(0)] * (len(array.shape) - len(lead))))
        z = self.fresh("z")
        self.line(
            f"{first} = {start};" if n == 1 else f"for (int64_t {z} = 0; {z} < {n}; {z}++) (&{first})[{z}] = {start};"
        )

    def _fold(self, root: Value, into: str, term: str) -> None:
        node, fold = self.made[root], fold_of(self.made[root])
        step = fold.choice if fold.choice and into.endswith("]") else fold.step  # compilers vectorise the former
        self.line(f"{into} = {step.format(into, term, s=suffix(node))};")

    def _begin(self, root: Value, total: str, n: int) -> None:
        """Start a reduction of n elements in a variable."""
        fold = fold_of(self.made[root])
        self.line(f"{total_type(self.made[root])} {total} = {fold.start};")
        if fold.order and n >= LONG:
            self.unordered[total] = self.fresh("nan", "int")
            self.line(f"int {self.unordered[total]} = 0;")

    def _add(self, root: Value, total: str, term: str) -> None:
        if total not in self.unordered:
            self._fold(root, total, term)
            return
        self.line(f"{total} = {term} {fold_of(self.made[root]).order} {total} ? {term} : {total};")
        self.line(f"{self.unordered[total]} |= {term} != {term};")

    def _total(self, total: str) -> str:
        return f"({self.unordered[total]} ? NAN : {total})" if total in self.unordered else total

    def _simd(self, totals: dict[Any, tuple[Value, str]]) -> str:
        clauses = []
        for v, name in totals.values():
            fold, nan = fold_of(self.made[v]), self.unordered.get(name)
            clause = EXTREMA[fold.order] if nan else fold.clause.format(s=suffix(self.made[v]))
            clauses += [f" reduction({clause}:{name})"] + [f" reduction(|:{nan})"] * bool(nan)
        return "".join(["#pragma omp simd", *clauses, f" reduction(|:{BEYOND})" * self.gives_up])

    def _flat_loop(self, roots: list[Value], var: str, n: int) -> None:
        """One loop over all elements; long sums go by parts."""
        totals = {r: (r, self.fresh("total")) for r in roots if self.reduces(r)}
        long = n > LANE and bool(totals) and not self._splits(roots, totals, var, n)
        part = self.fresh("part")
        first, last = self.bounds(var, n)

        def parts() -> None:
            for r, name in totals.values():
                self._begin(r, name, n)
            if long:
                self.ranges[var] = 0, n
                with self.block(var) as block:
                    self._flat_body(roots, totals, var)
                self.ranges.pop(var)
                self.line(self._simd(totals))
                end = f"({part} + {LANE} < {last} ? {part} + {LANE} : {last})"
                self.enclose(f"for (int64_t {var} = {part}; {var} < {end}; {var}++) {{", block.lines)
            else:
                self.loop(var, n, lambda: self._flat_body(roots, totals, var), self._simd(totals))
            for r, name in totals.values():
                into = self.target[r].at(tuple(at(0) for _ in self.target[r].shape))
                if long:
                    self._fold(r, into, self._total(name))
                else:
                    self.line(f"{into} = {self._total(name)};")

        if long:
            for r, _ in totals.values():
                self._start(r, None)
            with self.block(part) as block:
                parts()
            self.enclose(f"for (int64_t {part} = {first}; {part} < {last}; {part} += {LANE}) {{", block.lines)
        else:
            parts()

    def bounds(self, var: str, n: int) -> tuple[str, str]:
        """Where a loop over n elements begins and ends."""
        return "0", str(n)

    def _flat_body(self, roots: list[Value], totals: dict[Any, tuple[Value, str]], var: str) -> None:
        for r in roots:
            space = self.space(r)  # the axes behind the last one that is longer than 1 do not count
            axis = max((a for a, n in enumerate(space) if n > 1), default=0)
            index = tuple(AxisIndex(var) if a == axis else at(0) for a in range(len(space)))
            text = self.element(r, index)
            if r in totals:
                self._add(r, totals[r][1], text)
            else:
                self.line(f"{self.target[r].at(index)} = {text};")
                self._known(r, index, text)

    def _splits(self, roots: list[Value], totals: dict[Any, tuple[Value, str]], var: str, n: int) -> bool:
        """Whether a loop falls into several."""
        blocks, self.blocks = self.blocks, [type(b)() for b in self.blocks]
        self.ranges[var] = 0, n
        try:
            with self.block(var):
                self._flat_body(roots, totals, var)
        except ChangesAt:
            return True
        finally:
            self.ranges.pop(var)
            self.blocks = blocks
        return False

    def _known(self, root: Value, index: Indices, text: str) -> None:
        """What was just stored need not be read."""
        if text.isidentifier():
            self.blocks[-1].memo[root, index] = text

    def _stage(self, roots: list[Value], outer: str) -> None:
        """The inner loops of roots over one space; short last axes are written out, so that a long one is innermost."""
        space = self.space(roots[0])
        last = len(space) - 1
        while last > 1 and math.prod(space[last:]) <= SHORT:
            last -= 1
        if last == 1 and len(space) == 2 and space[1] <= SHORT < space[0]:
            last = 0
        names = [outer, *(self.fresh("j") for _ in range(last))]
        lead = tuple(AxisIndex(name) for name in names)
        tails = everywhere(space[last + 1 :])
        totals: dict[Any, tuple[Value, str]] = {}
        # a sum over the innermost axis alone is there after one loop
        once = {
            r for r in roots if self.reduces(r) and last > 0 and {*range(last)} == {*self.kept(r)} & {*range(last + 1)}
        }
        for r in roots:
            if self.reduces(r) and 0 in self.kept(r) and r not in once:
                self._start(r, lead[0])
            if self.reduces(r) and last > 0 and last not in self.kept(r):
                totals.update({(r, self.place(r, (*lead, *tail))): (r, self.fresh("total")) for tail in tails})

        def point() -> None:
            for index in [(*lead, *tail) for tail in tails]:
                for r in roots:
                    text = self.element(r, index)
                    if self.reduces(r):
                        place = self.place(r, index)
                        if (r, place) in totals:
                            self._add(r, totals[r, place][1], text)
                        else:
                            self._fold(r, self.target[r].at(place), text)
                    else:
                        self.line(f"{self.target[r].at(index)} = {text};")
                        self._known(r, index, text)

        def axis(k: int) -> None:
            if k < last:
                self.loop(names[k], space[k], lambda: axis(k + 1))
                return
            for r, name in totals.values():
                self._begin(r, name, space[k])
            self.loop(names[k], space[k], point, self._simd(totals))
            for (r, place), (_, name) in totals.items():
                if r in once:
                    self.line(f"{self.target[r].at(place)} = {self._total(name)};")
                else:
                    self._fold(r, self.target[r].at(place), self._total(name))

        if last == 0:
            point()
        else:
            axis(1)


def _elementwise(node: Node) -> bool:
    """Whether an element is computed from those at the same index, or from numbers."""
    if node.prim.name == "const":
        return not isinstance(node.attrs["value"], tuple)
    if node.prim.name == "broadcast":
        return node.inputs[0].aval.size == 1
    text = text_of(node)
    return (text is not None and bool(text.c)) or node.prim.name in SAME


def _operands(node: Node) -> tuple[Value, ...]:
    return () if node.prim.name == "broadcast" else node.inputs
