"""Elements: each value is a function from an index to C, pulled where it is read.

Elementwise operations and views have no storage. What is pulled becomes a variable at the loop that its index depends
on, once: so common operands are shared, and what does not depend on an inner loop stands outside of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir.graph import Node, Value
from .c_texts import CText, common, fold_of, suffix, text_of, total_type
from .indices import AxisIndex, CArray, Indices, at, c_type, everywhere, extents, full, number
from .signs import has_sign
from .sum_order import added_in_order, has_order

FEW = 16  # elements up to which an array is variables
SHORT = 8  # elements up to which a reduction is written out
BEYOND = "beyond"  # the variable that says whether the kernel gives up
LONGEST = 100_000  # names, also of what is tried and not written
DEEP = 50  # pulls within each other, from which on operands come first
SUBSCRIPTS = re.compile(r"\[.*?\]")
PLAIN = re.compile(r"\w+|\d[\w.+-]*|\(-\w[\w.+-]*\)")  # a name or a number: it needs no variable


class NoC(Exception):  # noqa: N818 - a signal: NumPy computes the kernel
    """There is no C for this."""


class ChangesAt(Exception):  # noqa: N818 - a signal: the loop over this variable falls into two
    """A condition changes at an element."""

    def __init__(self, var: str, at: int) -> None:
        super().__init__(var, at)
        self.var, self.at = var, at


class NeedsStorage(Exception):  # noqa: N818 - a signal: all is written again
    """Some values must have storage."""

    def __init__(self, *values: Value) -> None:
        super().__init__(*values)
        self.values = values


@dataclass
class CBlock:
    """Lines of one loop, and the variables that they define, by value and index."""

    lines: list[str] = field(default_factory=list)
    memo: dict[Any, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StandsFor:
    """A value that is another one, or with ``lead`` a part of it: the row of a step."""

    value: Value
    lead: Indices = ()


@dataclass(frozen=True)
class CVariables:
    """A small array in variables, one for each element in C order."""

    names: tuple[str, ...]


Held = CArray | StandsFor | CVariables


ViewRule = Callable[[Any, Node, Indices], str]
VIEWS: dict[str, ViewRule] = {}  # what else there is in C: operations that move elements


def moves(*names: str) -> Callable[[ViewRule], ViewRule]:
    """Register what operations are in C."""

    def add(rule: ViewRule) -> ViewRule:
        VIEWS.update(dict.fromkeys(names, rule))
        return rule

    return add


def remark(node: Node | None) -> str:
    """The user's line as a comment; nothing of it but letters, digits and dots can end up in the source."""
    if node is None or node.where is None:
        return ""
    return f"  /* {re.sub(r'[^A-Za-z0-9_.:]', '', node.where.short)} */"


class ElementWriter:
    """A function of C under construction. ``stored`` are values that must have storage."""

    def __init__(self, stored: set[Value]) -> None:
        self.stored = stored
        self.held: dict[Value, Held] = {}
        self.made: dict[Value, Node] = {}
        self.home: dict[Value, int] = {}  # the depth of the block in which a value is computed
        self.blocks = [CBlock()]
        self.ranges: dict[str, tuple[int, int]] = {}
        self.depth: dict[str, int] = {}
        self.rows: dict[str, Value] = {}  # of what rows that are looked up are read
        self.pending: set[Value] = set()  # values that get storage later
        self.reads: list[tuple[Value, Indices]] | None = None  # of what has storage, where nothing is written
        self.pulled: dict[Value, set[Indices]] = {}
        self.tables: dict[Value, tuple[CArray, str]] = {}
        self.gives_up = False  # whether an element may make the kernel give up
        self.types: dict[str, str] = {}  # of all names
        self._names = 0
        self._nested = 0  # pulls within each other

    def fresh(self, stem: str, kind: str = "int64_t") -> str:
        """A name that is used nowhere else, for a variable of a type; NoC if there are too many."""
        self._names += 1
        if self._names > LONGEST:
            raise NoC("too many boxes")
        self.types[f"{stem}{self._names}"] = kind
        return f"{stem}{self._names}"

    def line(self, text: str) -> None:
        """Add a statement to the innermost block."""
        self.blocks[-1].lines.append(text)

    @contextmanager
    def block(self, *variables: str) -> Iterator[CBlock]:
        """Open a block, in which variables are defined."""
        self.blocks.append(CBlock())
        depth = len(self.blocks) - 1
        self.depth.update(dict.fromkeys(variables, depth))
        try:
            yield self.blocks[-1]
        finally:
            del self.blocks[depth:]
            for var in variables:
                self.depth.pop(var, None)

    def loop(self, var: str, n: int, body: Callable[[], None], pragma: str = "", start: int = 0) -> None:
        """Repeat the body for each element; where a condition changes, a second loop goes on."""
        self.ranges[var] = start, n
        try:
            with self.block(var) as block:
                body()
            lines = block.lines
        except ChangesAt as split:
            if split.var != var:
                raise
            self.loop(var, split.at, body, pragma, start)
            self.loop(var, n, body, pragma, split.at)
            return
        finally:
            self.ranges.pop(var, None)
        self.repeat(var, start, n, lines, pragma)

    def repeat(self, var: str, start: int, n: int, lines: list[str], pragma: str) -> None:
        """Write a loop from ``start`` to ``n``."""
        if not lines:
            return
        if n - start == 1 and self.bounds(var, start, n) == (str(start), str(n)):
            self.enclose(f"{{ const int64_t {var} = {start};", lines)
            return
        first, last = self.bounds(var, start, n)
        marked = pragma if n - start > 1 else ""
        self.enclose(f"for (int64_t {var} = {first}; {var} < {last}; {var}++) {{", lines, marked)

    def bounds(self, var: str, start: int, n: int) -> tuple[str, str]:
        """Where a loop from ``start`` to ``n`` begins and ends."""
        return str(start), str(n)

    def enclose(self, header: str, lines: list[str], pragma: str = "") -> None:
        """Add lines below a header, with a pragma above it."""
        if pragma:
            self.line(pragma + f" reduction(|:{BEYOND})" * (BEYOND in "".join(lines)))
        self.line(header)
        self.blocks[-1].lines += [f"  {line}" for line in lines]
        self.line("}")

    def within(self, index: AxisIndex, start: int, stop: int) -> bool:
        """Whether ``start <= index < stop``, for all elements of the loop; ChangesAt if this changes inside of it."""
        if index.var is None:
            return start <= index.off < stop
        if index.var in self.rows:
            raise NeedsStorage(self.rows[index.var])
        if index.var not in self.ranges:
            raise NoC("a part of an array at the step of a loop")
        first, end = self.ranges[index.var]
        for bound in (start, stop):  # where the index reaches it, or goes below it
            away = (index.off - bound) // abs(index.scale)
            change = -away if index.scale > 0 else away + 1
            if first < change < end:
                raise ChangesAt(index.var, change)
        return start <= index.scale * first + index.off < stop

    def level(self, value: Value, index: Indices) -> int:
        """The depth of the block in which an element is computed."""
        held = self.held.get(value)
        if isinstance(held, StandsFor):
            return self.level(held.value, (*held.lead, *index))
        return max([self.home.get(value, 0), *(self.depth[i.var] for i in index if i.var is not None)])

    def pull(self, value: Value, index: Indices) -> str:
        """The name, or the number, of an element."""
        held = self.held.get(value)
        if isinstance(held, StandsFor):
            return self.pull(held.value, (*held.lead, *index))
        if value in self.pending:
            if self.reads is None:
                raise NoC("a value is read before it is there")
            self.reads.append((value, index))
            return "0"
        node = self.made.get(value)
        if isinstance(held, CVariables):
            if any(i.var is not None for i in index):
                raise NeedsStorage(value)
            return held.names[int(np.ravel_multi_index([i.off for i in index], extents(value))) if index else 0]
        if held is None and node is not None and node.prim.name == "const":
            return self._constant(node, index)
        level, key = self.level(value, index), (value, index)
        for block in self.blocks[level:]:
            if key in block.memo:
                return block.memo[key]
        if isinstance(held, CArray):
            text = held.read(index)
            if self.reads is not None:
                self.reads.append((value, index))
        elif node is None:
            raise NoC("a value that nothing makes")
        else:
            self.pulled.setdefault(value, set()).add(index)
            self._nested += 1
            if self._nested % DEEP == 0:
                self._pull_below(node, index)
            text = self._element(node, index)
            if " * " in SUBSCRIPTS.sub("", text) and value.aval.dtype.kind == "f":
                text = f"rg_rounded({text})"  # no compiler may contract it with a sum
            self._nested -= 1
        block = self.blocks[level]
        if not PLAIN.fullmatch(text):
            name = self.fresh("v", c_type(value.aval.dtype))
            block.lines.append(f"const {c_type(value.aval.dtype)} {name} = {text};{remark(node)}")
            text = name
        block.memo[key] = text
        return text

    def _pull_below(self, node: Node, index: Indices) -> None:
        """Pull what an element is computed from, without recursion: a long chain would end it."""
        order = [(node, index)]
        seen = {*order}
        for n, i in order:
            text = text_of(n)
            for x in n.inputs if text is not None and text.c else ():
                made = self.made.get(x)
                below = i if x.aval.shape else ()
                if made is None or x in self.held or x in self.pending or (made, below) in seen:
                    continue
                level = self.level(x, below)
                if not any((x, below) in block.memo for block in self.blocks[level:]):
                    seen.add((made, below))
                    order.append((made, below))
        nested, self._nested = self._nested, 0
        for n, i in reversed(order[1:]):
            if len(n.outputs) == 1:
                self.pull(n.out, i)
        self._nested = nested

    def _constant(self, node: Node, index: Indices) -> str:
        value, aval = node.attrs["value"], node.out.aval
        if not isinstance(value, tuple):
            return number(value, aval.dtype)
        array = np.array(value, aval.dtype)
        if all(i.var is None for i in index):
            return number(array[tuple(i.off for i in index)], aval.dtype)
        if node.out not in self.tables:
            name = self.fresh("table", f"const {c_type(aval.dtype)} *")
            items = ", ".join(number(x, aval.dtype) for x in array.reshape(-1).tolist())
            text = f"static const {c_type(aval.dtype)} {name}[] = {{{items}}};"
            self.tables[node.out] = CArray(name, aval.shape, aval.dtype), text
        return self.tables[node.out][0].at(index)

    def _element(self, node: Node, index: Indices) -> str:
        text = text_of(node)
        if text is not None and text.c:
            return self._computed(node, text, index)
        if text is not None and text.fold is not None:
            return self.written_out(node, index)
        rule = VIEWS.get(node.prim.name)
        if rule is None:
            raise NoC(f"{node.prim.name} is NumPy's")
        return rule(self, node, index)

    def _computed(self, node: Node, text: CText, index: Indices) -> str:
        dtype = common(node)
        chosen = node.prim.name == "where"
        operands = [
            self.converted(v, index if v.aval.shape else (), v.aval.dtype if chosen and k == 0 else dtype)
            for k, v in enumerate(node.inputs)
        ]
        s = "f" if dtype in (np.float32, np.complex64) else ""
        if text.beyond:
            self._give_up_where(text.beyond.format(*operands, s=s), node, index)
        c = text.c if isinstance(text.c, str) else text.c(node, [self._known_number(v) for v in node.inputs])
        if text.below and has_sign(node.inputs[0], -1, self.made):
            c = text.below
        found = c.format(*operands, s=s)
        if text.raises and node.out.aval.kind == "python":
            out = self.fresh("v", "double")
            self.blocks[self.level(node.out, index)].lines.append(f"const double {out} = {found};{remark(node)}")
            self._give_up_where(text.raises.format(*operands, out=out, s=s), node, index)
            found = out
        return found

    def _give_up_where(self, condition: str, node: Node, index: Indices) -> None:
        self.gives_up = True
        self.blocks[self.level(node.out, index)].lines.append(f"{BEYOND} |= {condition};")

    def _known_number(self, value: Value) -> Any:
        """The number that a value is; None if that is not known, or it is several."""
        node = self.made.get(value)
        number = node.attrs["value"] if node is not None and node.prim.name == "const" else None
        return None if isinstance(number, tuple) else number

    def converted(self, value: Value, index: Indices, dtype: np.dtype[Any]) -> str:
        """An element as another dtype. A compiler vectorises a choice, but no cast of a bool."""
        node = self.made.get(value)
        if node is not None and node.prim.name == "const" and not isinstance(node.attrs["value"], tuple):
            return number(node.attrs["value"], dtype)
        text = self.pull(value, index)
        if value.aval.dtype == dtype:
            return text
        if dtype.kind == "b":
            return f"({text} != 0)"
        if value.aval.dtype.kind == "b":
            return f"({text} ? {number(1, dtype)} : {number(0, dtype)})"
        return f"({c_type(dtype)}){text}"

    def written_out(self, node: Node, index: Indices) -> str:
        """A reduction over a few elements."""
        (x,), axes, fold = node.inputs, node.attrs["axis"], fold_of(node)
        if math.prod(x.aval.shape[a] for a in axes) > SHORT or node.out in self.stored:
            raise NeedsStorage(node.out)
        kept = [i for a, i in enumerate(index) if not (node.attrs["keepdims"] and a in axes)]
        terms = []
        for k in everywhere([x.aval.shape[a] for a in axes]):
            inner, outer = iter(k), iter(kept)
            terms.append(self.folded(node, tuple(next(inner if a in axes else outer) for a in range(x.aval.ndim))))
        lines, kind = self.blocks[self.level(node.out, index)].lines, total_type(node)
        if has_order(node):
            total = self.fresh("v", kind)
            lines.append(f"const {kind} {total} = {added_in_order(node, terms)};")
            return total
        total = f"({terms[0]} != 0)" if node.out.aval.dtype.kind == "b" else terms[0]
        for term in terms[1:]:
            name = self.fresh("v", kind)
            lines.append(f"const {kind} {name} = {fold.step.format(total, term, s=suffix(node))};")
            total = name
        return total

    def folded(self, node: Node, place: Indices) -> str:
        """What a reduction adds up."""
        (x,) = node.inputs
        text = self.pull(x, place)
        return f"({text} ? 1 : 0)" if node.prim.name == "count" else text

    def part(self, node: Node, index: Indices) -> Indices | None:
        """Where an element lies in the part of the first operand that a write changes; None if it lies outside."""
        places: list[AxisIndex] = []
        axes = iter(zip(index, node.inputs[0].aval.shape, strict=True))
        for item in full(node.attrs["index"], node.inputs[0].aval.ndim):
            if item is None:
                places.append(at(0))
                continue
            i, n = next(axes)
            if isinstance(item, int):
                if not self.within(i, item % n, item % n + 1):
                    return None
                continue
            start, stop, step = item.indices(n)
            if step == 1:
                if not self.within(i, start, max(start, stop)):
                    return None
                places.append(i.moved(-start))
            elif i.var is None:
                if i.off not in range(start, stop, step):
                    return None
                places.append(at((i.off - start) // step))
            else:
                raise NoC("a write with strides")
        return tuple(places)
