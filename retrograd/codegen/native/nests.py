"""Nests of loops: the statements of roots that share them."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from ...ir.graph import Graph, Node, Value
from .c_texts import SIMD, fold_of, is_elementwise, mask_type, suffix, total_type
from .elements import SHORT, StandsFor
from .grouping import Place, Stages
from .indices import AxisIndex, CArray, Indices, at, c_type, count, everywhere, extents
from .sum_order import added, has_order, zero
from .sums import SumWriter

LONG = 64  # elements of a row, from which on an extremum has a variable for nan
Totals = dict[Any, tuple[Value, str]]  # variables in which reductions add up, by root and place
EXTREMA = {">": "max", "<": "min"}  # OpenMP's names, by the order


class NestWriter(SumWriter):
    """Writes the nests of a graph."""

    def __init__(self, stored: set[Value]) -> None:
        super().__init__(stored)
        self.todo: deque[Node | Stages] = deque()  # the groups that follow
        self.late: dict[Value, CArray] = {}  # sums of rows whose terms are added up later, and where a row keeps them

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
        outer = self.foreign, self.done, self.readers, self.pending, self.todo
        self.foreign = {v for v in placed if v not in graph.producer and not self._few(v)}
        self.done, self.readers, self.pending = set(), {}, set(self.pending)
        self.store_between_pieces(graph)
        groups = self._grouped(graph, self.in_order(graph, placed))
        self._allot(groups, want)
        self.todo = deque(groups)
        while self.todo:
            if isinstance(group := self.todo.popleft(), Node):
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
        self.foreign, self.done, self.readers, self.pending, self.todo = outer
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
        across, places = [] if flat else self.across(roots), {}
        for root in across:
            last, tails = innermost_axis(self.space(root))
            if self.run_of(root) == 0:
                self.begin_run(root, each=len(tails))
            elif last == 0 and self.in_lanes(root):
                places[root] = [self.place(root, (at(0), *tail)) for tail in tails]
                self.begin_lanes(root, places[root], 0)
            elif root not in self.late:
                self._start(root, None)
        if not space:
            for root in roots:
                self.line(f"{self.target[root].at(())} = {self.element(root, ())};")
        elif flat:
            self._flat_loop(roots, var, math.prod(space))
        else:
            self.loop(var, space[0], lambda: self._rows(group, var))
        for root in across:
            if root in self.runs:
                self.whole(root, self.end_run(root))
            elif root in places:
                for place, text in self.end_lanes(root, places[root]).items():
                    self.line(f"{self.target[root].at(place)} = {text};")

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
            self.copied(f"&{target}", source.name, count(root))

    def copied(self, target: str, source: str, n: int) -> None:
        """Copy so many elements."""
        self.line(f"memcpy({target}, {source}, sizeof(*{source}) * {n});")

    def _flat(self, roots: list[Value], space: tuple[int, ...]) -> bool:
        """Whether all that is read is at the same index, so that the axes can be one."""
        todo: list[Value] = []
        for root in roots:
            if root in self.foreign:
                return False
            if not self.reduces(root):
                if not self.target[root].whole or not is_elementwise(self.made[root]):
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
            elif node is None or not is_elementwise(node):
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
            kind = mask_type(self.made[root])
            self.unordered[total] = self.fresh("nan", kind)
            self.line(f"{kind} {self.unordered[total]} = 0;")

    def _add(self, root: Value, total: str, term: str) -> None:
        if total not in self.unordered:
            self._fold(root, total, term)
            return
        self.line(f"{total} = {term} {fold_of(self.made[root]).order} {total} ? {term} : {total};")
        self.line(f"{self.unordered[total]} |= -({mask_type(self.made[root])})({term} != {term});")

    def _total(self, total: str) -> str:
        return f"({self.unordered[total]} ? NAN : {total})" if total in self.unordered else total

    def _simd(self, totals: Totals) -> str:
        clauses = []
        for v, name in totals.values():
            if self.in_turn(v):
                continue
            fold, nan = fold_of(self.made[v]), self.unordered.get(name)
            clause = EXTREMA[fold.order] if nan else fold.clause.format(s=suffix(self.made[v]))
            clauses += [f" reduction({clause}:{name})"] + [f" reduction(|:{nan})"] * bool(nan)
        return "".join([SIMD, *clauses])

    def _flat_loop(self, roots: list[Value], var: str, n: int) -> None:
        """One loop over all elements."""
        runs = [r for r in roots if self.run_of(r) is not None]
        totals = {r: (r, self.fresh_total(r)) for r in roots if self.reduces(r) and r not in runs}
        turns = [r for r in totals if self.in_turn(r)]
        for r in runs:
            self.begin_run(r)
        for r, name in totals.values():
            self._begin(r, name, n)
        for r in turns:
            self.begin_turns(r, [totals[r][1]], n)
        self.innermost([*runs, *turns], var, n, lambda: self._flat_body(roots, totals, var), self._simd(totals))
        for r in runs:
            self.whole(r, self.end_run(r))
        for r, name in totals.values():
            self.whole(r, self._total(name))
        for r in turns:
            del self.runs[r]

    def whole(self, root: Value, text: str) -> None:
        """Store a reduction to one number; a part has none to store."""
        if text:
            self.line(f"{self.target[root].at(tuple(at(0) for _ in extents(root)))} = {text};")

    def _flat_body(self, roots: list[Value], totals: Totals, var: str) -> None:
        for r in itertools.filterfalse(self.is_stored, roots):
            space = self.space(r)  # the axes behind the last one that is longer than 1 do not count
            axis = max((a for a, n in enumerate(space) if n > 1), default=0)
            index = tuple(AxisIndex(var) if a == axis else at(0) for a in range(len(space)))
            text = self.element(r, index)
            if r in self.runs:
                self.take(r, index, text)
            elif r in totals:
                self._add(r, totals[r][1], text)
            else:
                self.line(f"{self.target[r].at(index)} = {text};")
                self._known(r, index, text)

    def _known(self, root: Value, index: Indices, text: str) -> None:
        """What was just stored need not be read."""
        if text.isidentifier():
            self.blocks[-1].memo[root, index] = text

    def _stage(self, roots: list[Value], outer: str) -> None:
        """The inner loops of roots over one space."""
        space = self.space(roots[0])
        last, tails = innermost_axis(space)
        names = [outer, *(self.fresh("j") for _ in range(last))]
        lead = tuple(AxisIndex(name) for name in names)
        begins = {r: first for r in roots if (first := self.run_of(r)) is not None}
        indices = [(*lead, *tail) for tail in tails]
        totals: Totals = {}
        once = self._start_row(roots, begins, indices, last, totals)

        def point() -> None:
            self._point(roots, indices, begins, once, totals)

        def axis(k: int) -> None:
            mine = [r for r in roots if begins.get(r) == k]
            for r in mine:
                self.begin_run(r, lead[:k], len(tails))
            if k < last:
                self.loop(names[k], space[k], lambda: axis(k + 1))
            else:
                lanes, turns = self._begin_totals(roots, totals, once, indices, last)
                self.innermost([*begins, *lanes, *turns], names[k], space[k], point, self._simd(totals))
                for (r, place), (_, name) in totals.items():
                    self._found(r, self.target[r].at(place), self._total(name), r in once or r in turns)
                for r, places in lanes.items():
                    where = dict(zip(places, indices, strict=True))
                    for place, text in self.end_lanes(r, places).items():
                        self._found(r, self._into(r, where[place]), text, r in once)
                for r in turns:
                    del self.runs[r]
            for r in mine:
                index = (*lead[:k], *[at(0)] * (len(space) - k))
                self._found(r, self._into(r, index), self.end_run(r), r in once)

        if last == 0:
            point()
        else:
            axis(1)

    def _begin_totals(
        self, roots: list[Value], totals: Totals, once: set[Value], indices: list[Indices], last: int
    ) -> tuple[dict[Value, list[Indices]], list[Value]]:
        """Start reductions along the innermost axis: sums of a few columns, and those that take one term in turn."""
        lanes = {r: [self.place(r, index) for index in indices] for r in roots if self.in_lanes(r)}
        for root, places in lanes.items():
            self.begin_lanes(root, places, last)
        n = self.space(roots[0])[last]
        turns = list(dict.fromkeys(r for r, _ in totals if self.in_turn(r)))
        for (r, place), (_, name) in totals.items():
            if r in turns:
                start = fold_of(self.made[r]).start if r in once else self.target[r].at(place)
                self.line(f"{c_type(r.aval.dtype)} {name} = {start};")
            else:
                self._begin(r, name, n)
        for root in turns:
            self.begin_turns(root, [totals[root, self.place(root, index)][1] for index in indices], n)
        return lanes, turns

    def _start_row(
        self, roots: list[Value], begins: dict[Value, int], indices: list[Indices], last: int, totals: Totals
    ) -> set[Value]:
        """Start reductions, and tell which of them are there after the loops over a run or over the innermost axis."""
        once = set()
        for r in filter(self.reduces, roots):
            inner, outer = begins.get(r, last), {*self.kept(r)} & {*range(last + 1)}
            if inner > 0 and outer == {*range(min(inner, last + 1))}:
                once.add(r)
            elif 0 in self.kept(r):
                self._start(r, indices[0][0])
            if last > 0 and last not in self.kept(r) and r not in begins and not self.in_lanes(r):
                totals.update({(r, self.place(r, index)): (r, self.fresh_total(r)) for index in indices})
        return once

    def _point(
        self, roots: list[Value], indices: list[Indices], begins: dict[Value, int], once: set[Value], totals: Totals
    ) -> None:
        """What is computed at a point of the loops, for all indices behind them."""
        short: dict[tuple[Value, str], list[str]] = {}  # terms of runs behind the loops
        for k, index in enumerate(indices):
            for r in itertools.filterfalse(self.is_stored, roots):
                text, place = self.element(r, index), self.place(r, index)
                if r in self.runs or r in self.lanes:
                    self.take(r, index, text, k)
                elif r in begins:
                    short.setdefault((r, self._into(r, index)), []).append(text)
                elif (r, place) in totals:
                    self._add(r, totals[r, place][1], text)
                elif self.reduces(r):
                    self._found(r, self._into(r, index), text, False)
                else:
                    self.line(f"{self.target[r].at(index)} = {text};")
                    self._known(r, index, text)
        for (r, into), terms in short.items():
            self._found(r, into, f"{zero(r.aval.dtype)} + ({added(terms, r.aval.dtype)})", r in once)

    def _into(self, root: Value, index: Indices) -> str:
        """Where what is found at a point of the space goes."""
        late = self.late.get(root)
        return self.target[root].at(self.place(root, index)) if late is None else late.at(index)

    def _found(self, root: Value, into: str, text: str, only: bool) -> None:
        """Store what a loop has found, or fold it into what there is."""
        if only or root in self.late:
            self.line(f"{into} = {text};")
        else:
            self._fold(root, into, text)

    def in_turn(self, root: Value) -> bool:
        """Whether a root takes one term after the other: a product of floats, or a short sum that is stored."""
        if not self.reduces(root) or root.aval.dtype.kind not in "fc":
            return False
        node = self.made[root]
        return node.prim.name == "prod" or (has_order(node) and self.run_of(root) is None and self._short(root))

    def in_lanes(self, root: Value) -> bool:
        """Whether a root is a sum along the axis of an innermost loop, with a few elements behind that stay apart."""
        if not self.reduces(root) or not has_order(self.made[root]) or self.run_of(root) is not None:
            return False
        return innermost_axis(self.space(root))[0] not in self.kept(root) and not self._short(root)

    def _short(self, root: Value) -> bool:
        """Whether a reduction has few terms, which are written out where it is not stored."""
        terms: int = math.prod(self.space(root)[a] for a in self.made[root].attrs["axis"])
        return terms <= SHORT


def innermost_axis(space: Sequence[int]) -> tuple[int, list[Indices]]:
    """The axis of the innermost loop, and the indices along those behind it: short ones are written out.

    A last axis as long as a vector is a loop. Axes in front change nothing, so that a batch adds up as single calls do.
    """
    last = len(space) - 1
    while last > 0 and math.prod(space[last:]) <= SHORT and space[-1] < SHORT:
        last -= 1
    return last, everywhere(space[last + 1 :])


def _operands(node: Node) -> tuple[Value, ...]:
    return () if node.prim.name == "broadcast" else node.inputs
