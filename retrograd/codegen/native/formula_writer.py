"""Formulas on parts of arrays: loops over the elements of the parts.

Sums and products within a formula come first, and so do parts of the array that is written into, if the formula reads
them elsewhere than where it writes. What is left are elementwise operations and views, which stand in one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from ...ir.builder import Builder
from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import copy_nodes
from ...ops.formula_text import LETTERS, VIEWS, SliceNumber, Window
from ...ops.formulas import formula_at, numbers_of, value_within, write_within
from .c_texts import SIMD, fold_of, suffix
from .decided_formulas import IN_TURN, SUMS
from .elements import CVariables, ElementWriter, Held, NeedsStorage, StandsFor, moves
from .formula_terms import Terms, tree_of
from .grouping import RootGroups
from .indices import AxisIndex, CArray, Indices, at, c_type
from .turned_operands import lies_turned

EACH = 8  # terms that are added together
ON_STACK = 1024  # elements


@moves("value_within")
def _read_part(to: ElementWriter, node: Node, index: Indices) -> str:
    """An element of a part of an array."""
    (window,) = node.attrs["windows"]
    numbers = {n: v for n, v in numbers_of(node.prim, node.inputs, node.attrs).items() if not n.letter}
    return to.pull(node.inputs[0], _place(to, window, iter([to.pull(v, ()) for v in numbers.values()]), index))


def _place(to: ElementWriter, window: Window, positions: Iterator[str], index: Indices) -> Indices:
    """Where in an array an element of its part lies, by the positions along the axes that have one."""
    rest, found = iter(index), []
    for item in window:
        i = at(0) if item == "#" else next(rest)
        found.append(_moved(to, i, next(positions)) if item == "#" or item[1:] else i)
    return tuple(found)


def _moved(to: ElementWriter, i: AxisIndex, start: str) -> AxisIndex:
    """The index that is further by a number."""
    known = start.strip("()")
    if known.isdecimal():
        return i.moved(int(known))
    if i.var is None:
        to.depth.setdefault(start, 0)
        return AxisIndex(start, i.off)
    block = to.blocks[to.depth[i.var]]
    if ("further", i, start) not in block.memo:
        name = to.fresh("k")
        block.lines.append(f"const int64_t {name} = {start} + {i};")
        block.memo["further", i, start] = name
    name = block.memo["further", i, start]
    to.depth[name] = to.depth[i.var]
    return AxisIndex(name)


class FormulaWriter:
    """Writes a formula into the function under construction."""

    def __init__(self, to: RootGroups, node: Node) -> None:
        self.to, self.node, self.formula = to, node, formula_at(node)
        self.depth = len(to.blocks) - 1
        self.numbers = numbers_of(node.prim, node.inputs, node.attrs)
        self.texts = {n: to.pull(v, ()) for n, v in self.numbers.items()}
        for text in self.texts.values():
            to.depth.setdefault(text, self.depth)
        self.graph = self._expanded()
        self.room: dict[Value, CArray] = {}

    def _expanded(self) -> Graph:
        """A copy of the formula's graph, whose inputs are reads of parts."""
        first, to = int(self.node.prim is write_within), self.to
        b = Builder()
        inputs = b.inputs_like(self.formula.graph.inputs)
        env = dict(zip(self.formula.graph.inputs, inputs, strict=True))
        copy_nodes(b, self.formula.graph.nodes, env)
        graph = b.graph("formula", [env[v] for v in self.formula.graph.outputs])
        for k, (part, window) in enumerate(zip(graph.inputs, self.formula.windows, strict=True)):
            array = self.node.inputs[first + k]
            self._ready(array)
            letters = {item[0] for item in window if item not in ("", "#")}
            wanted = [v for n, v in self.numbers.items() if (n.letter in letters if n.letter else n.operand == k)]
            attrs = {"formula": "x0", "windows": (window,), "limits": ()}
            to.made[part] = Node(value_within, (array, *wanted), attrs, (part,), self.node.where)
        for node in graph.nodes:
            to.made[node.out] = node
        for value in (*graph.inputs, *(node.out for node in graph.nodes)):
            to.home[value] = self.depth
            to.held.pop(value, None)
        return graph

    def _ready(self, array: Value) -> None:
        """An array has storage, if its elements are read at positions."""
        value, held = self._behind(array)
        made = self.to.made.get(value)
        if held is None and value.aval.shape and (made is None or made.prim.name != "const"):
            raise NeedsStorage(value)

    def _behind(self, value: Value) -> tuple[Value, Held | None]:
        """The value that another one stands for, or is a part of, and what holds it."""
        while isinstance(held := self.to.held.get(value), StandsFor):
            value = held.value
        return value, held

    def write(self, array: CArray) -> None:
        """Write the formula into the part of an array that it changes."""
        self._fold_all()
        out, sign = self.graph.outputs[0], self.node.attrs["sign"]
        for part in self._moved_parts(array):
            self._keep(part)
        positions = [self.texts[n] for n in self.numbers if not n.letter and n.operand == -1]

        def write(index: Indices) -> None:
            text = self.to.pull(out, index)
            place = _place(self.to, self.formula.target, iter(positions), index)
            self.to.line(f"{array.at(place)} {sign}= {text};")

        self._everywhere(out.aval.shape, write)

    def value(self, array: CArray) -> None:
        """Write the value in front of an array, and zeros behind."""
        out, z = self.graph.outputs[0], self.to.fresh("z")
        if not LETTERS.keys().isdisjoint(out.aval.shape):
            start = self._extent(out.aval.shape[0]) if out.aval.ndim == 1 else "0"
            n = math.prod(array.shape)
            self.to.line(f"for (int64_t {z} = {start}; {z} < {n}; {z}++) {array.name}[{z}] = 0;")
        self.room[out] = array
        self._fold_all()
        if self.to.held.get(out) is not array:
            self._everywhere(
                out.aval.shape, lambda index: self.to.line(f"{array.at(index)} = {self.to.pull(out, index)};")
            )

    def number(self) -> str:
        """The value, if it is a number."""
        self._fold_all()
        return self.to.pull(self.graph.outputs[0], ())

    def _moved_parts(self, array: CArray) -> list[Value]:
        """Parts of the array that the formula reads elsewhere than where it writes."""
        read = self._parts_below(self.graph.outputs)
        return [
            part for part, here in read.items() if self._lies_in(part, array) and not (here and self._is_target(part))
        ]

    def _parts_below(self, values: Iterable[Value]) -> dict[Value, bool]:
        """The parts that values read, and whether they read elements at their own index alone."""
        found: dict[Value, bool] = {}
        todo, seen = [(v, True) for v in values], set()
        while todo:
            value, here = todo.pop()
            if (value, here) in seen or value in self.to.held:
                continue
            seen.add((value, here))
            if value in self.graph.inputs:
                found[value] = here and found.get(value, True)
                continue
            node = self.graph.producer[value]
            here = here and node.prim.name not in VIEWS
            todo += [(v, here) for v in node.inputs]
        return found

    def _keep_columns(self, node: Node) -> None:
        """Columns that are read for each row of results lie side by side before."""
        for part in self._parts_below(node.inputs):
            window = self.to.made[part].attrs["windows"][0]
            if part.aval.ndim == 1 and window[-1:] == ("#",):
                self._keep(part)

    def _lies_in(self, part: Value, array: CArray) -> bool:
        _, held = self._behind(self.to.made[part].inputs[0])
        return bool(part.aval.shape) and isinstance(held, CArray) and held.name == array.name

    def _is_target(self, part: Value) -> bool:
        """Whether a part is the one that is written."""
        k = self.graph.inputs.index(part)
        own, other = ({n.axis: v for n, v in self.numbers.items() if not n.letter and n.operand == j} for j in (k, -1))
        return self.formula.windows[k] == self.formula.target and own == other

    # loops

    def _extent(self, n: int) -> str:
        letter = LETTERS.get(n)
        return str(n) if letter is None else self.texts[SliceNumber(letter)]

    def _everywhere(self, shape: Sequence[int], body: Callable[[Indices], None], pragma: str = SIMD) -> None:
        """Loops over all elements of a shape."""

        def inside(index: Indices, rest: Sequence[int]) -> None:
            if not rest:
                body(index)
                return
            z = self.to.fresh("z")
            with self.to.block(z) as block:
                inside((*index, AxisIndex(z)), rest[1:])
            marked = pragma if len(rest) == 1 else ""
            self.to.enclose(f"for (int64_t {z} = 0; {z} < {self._extent(rest[0])}; {z}++) {{", block.lines, marked)

        inside((), shape)

    def _storage(self, value: Value) -> CArray:
        """Room for a value of the largest lengths."""
        if value in self.room:
            return self.room[value]
        shape = self.formula.largest(value.aval.shape, self.node.attrs["limits"])
        n = math.prod(shape)
        name = self.to.local(value, n) if n <= ON_STACK else self.to.workspace(value, (n,)).name
        return CArray(name, shape, value.aval.dtype)

    def _keep(self, value: Value) -> None:
        """Compute all elements of a value before others."""
        array = self._storage(value)
        self._everywhere(
            value.aval.shape, lambda index: self.to.line(f"{array.at(index)} = {self.to.pull(value, index)};")
        )
        self.to.held[value] = array

    def _fold_all(self) -> None:
        """Compute the sums, products, extrema and counts of the formula, one after the other."""
        for node in self.graph.nodes:
            if node.prim.name in SUMS | IN_TURN:
                self._fold(node)

    def _fold(self, node: Node) -> None:
        terms, shape = Terms(self.to, node), node.out.aval.shape
        if shape:
            self._keep_columns(node)
        if node.prim.name in IN_TURN:
            found = self._in_turn(node, terms)
        elif shape and terms.across:
            found = self._across(node, terms)
        elif shape and self._is_turned(node):
            found = self._side_by_side(node, terms)
        else:
            found = self._along(node, terms)
        self.to.held[node.out] = found

    def _is_turned(self, node: Node) -> bool:
        """Whether a node multiplies a matrix whose columns lie side by side by a vector."""
        part, *others = node.inputs
        if node.prim.name != "matmul" or part not in self.graph.inputs or others[0].aval.ndim > 1:
            return False
        value, held = self._behind(self.to.made[part].inputs[0])
        return lies_turned(held, value)

    def _results(self, node: Node, result: Callable[[Indices], str]) -> CArray | CVariables:
        """What the results of a fold are, one after the other."""
        if not node.out.aval.shape:
            return CVariables((result(()),))
        array = self._storage(node.out)
        self._everywhere(
            node.out.aval.shape, lambda index: self.to.line(f"{array.at(index)} = {result(index)};"), pragma=""
        )
        return array

    def _in_turn(self, node: Node, terms: Terms) -> CArray | CVariables:
        """Extrema and counts: one term after the other."""
        dtype, fold = c_type(node.out.aval.dtype), fold_of(node)

        def result(index: Indices) -> str:
            total = self.to.fresh("total", dtype)
            self.to.line(f"{dtype} {total} = {fold.start};")

            def take(summed: Indices) -> None:
                term = terms.at(index, summed)
                self.to.line(f"{total} = {fold.step.format(total, term, s=suffix(node))};")

            self._everywhere(terms.summed, take, pragma="")
            return total

        return self._results(node, result)

    def _along(self, node: Node, terms: Terms) -> CArray | CVariables:
        """Sums of terms that lie side by side: of each eighth one, and of those behind the last eight."""
        to, dtype = self.to, c_type(node.out.aval.dtype)

        def result(index: Indices) -> str:
            lanes, rest, found = (
                to.fresh("lanes", f"{dtype} *restrict"),
                to.fresh("total", dtype),
                to.fresh("dot", dtype),
            )
            to.line(f"{dtype} {lanes}[{EACH}] = {{0}}, {rest} = 0;")
            *outer, last = terms.summed

            def row(summed: Indices) -> None:
                k, z = to.fresh("k"), to.fresh("z")

                def eight(first: str) -> None:
                    with to.block(k, z) as inner:
                        to.line(f"const int64_t {z} = {first} + {k};")
                        to.line(f"{lanes}[{k}] += {terms.at(index, (*summed, AxisIndex(z)))};")
                    to.enclose(f"for (int64_t {k} = 0; {k} < {EACH}; {k}++) {{", inner.lines, SIMD)

                self._by_eight(last, eight, lambda z: to.line(f"{rest} += {terms.at(index, (*summed, AxisIndex(z)))};"))

            self._everywhere(outer, row, pragma="")
            to.line(f"const {dtype} {found} = ({tree_of([f'{lanes}[{k}]' for k in range(EACH)])}) + {rest};")
            return found

        return self._results(node, result)

    def _side_by_side(self, node: Node, terms: Terms) -> CArray:
        """Sums along rows that lie side by side, in the order of `_along`: no layout changes a bit."""
        to, (rows,) = self.to, node.out.aval.shape
        array = self._storage(node.out)
        shape = (EACH + 1, *array.shape)
        totals = CArray(to.local(node.out, math.prod(shape)), shape, array.dtype)

        def each_row(lines: Callable[[Indices], Sequence[str]]) -> None:
            def row(index: Indices) -> None:
                for line in lines(index):
                    to.line(line)

            self._everywhere([rows], row)

        def add(row: Indices, k: int, place: AxisIndex) -> str:
            return f"{totals.at((at(k), *row))} += {terms.at(row, (place,))};"

        def all_totals(row: Indices) -> list[str]:
            return [totals.at((at(k), *row)) for k in range(EACH + 1)]

        each_row(lambda row: [f"{total} = 0;" for total in all_totals(row)])
        self._by_eight(
            terms.summed[0],
            lambda first: each_row(lambda row: [add(row, k, AxisIndex(first, k)) for k in range(EACH)]),
            lambda z: each_row(lambda row: [add(row, EACH, AxisIndex(z))]),
        )
        each_row(lambda row: [f"{array.at(row)} = {tree_of(all_totals(row)[:EACH])} + {all_totals(row)[EACH]};"])
        return array

    def _across(self, node: Node, terms: Terms) -> CArray:
        """Sums of terms that lie in rows: eight rows are added at a time, and those behind one by one."""
        to, (*outer, last) = self.to, node.out.aval.shape
        array = self._storage(node.out)

        def rows(index: Indices) -> None:
            self._everywhere([last], lambda inner: to.line(f"{array.at((*index, *inner))} = 0;"))

            def add(summed: Indices) -> None:
                def row(inner: Indices, *places: AxisIndex) -> None:
                    each = [terms.at((*index, *inner), (*summed, place)) for place in places]
                    to.line(f"{array.at((*index, *inner))} += {tree_of(each)};")

                def eight(first: str) -> None:
                    self._everywhere([last], lambda inner: row(inner, *(AxisIndex(first, k) for k in range(EACH))))

                self._by_eight(
                    terms.summed[-1], eight, lambda z: self._everywhere([last], lambda inner: row(inner, AxisIndex(z)))
                )

            self._everywhere(terms.summed[:-1], add, pragma="")

        self._everywhere(outer, rows, pragma="")
        return array

    def _by_eight(self, n: int, eight: Callable[[str], None], one: Callable[[str], None]) -> None:
        """A loop over each eighth position, and one over those behind."""
        to, first, z = self.to, self.to.fresh("z"), self.to.fresh("z")
        whole = f"{self._extent(n)} / {EACH} * {EACH}"
        with to.block(first) as block:
            eight(first)
        to.enclose(f"for (int64_t {first} = 0; {first} < {whole}; {first} += {EACH}) {{", block.lines)
        with to.block(z) as block:
            one(z)
        to.enclose(f"for (int64_t {z} = {whole}; {z} < {self._extent(n)}; {z}++) {{", block.lines)
