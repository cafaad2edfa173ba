"""moving_parts: Graph → Graph in which formulas on slices that move and grow have operands of one size.

``a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])`` becomes one ``write_within`` of a formula into a, and
``np.sum(x[:k] * y[:k])`` a ``value_within``. Each step then applies the same operations, and the steps may fold into a
loop. Only operations that have other shapes in each step become parts of formulas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import InternalError, NonDifferentiableError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import Env, rebuild
from ...ir.types import Aval
from ...ops.batching import by_elements
from ...ops.elementwise import const, neg, where
from ...ops.formula_text import MARKERS, Window, derived, formula_of, read, turned
from ...ops.formulas import value_within, write_within
from ...ops.further_reductions import max_, min_
from ...ops.index import additem, getitem, setitem
from ...ops.linear import matmul
from ...ops.reduce import sum_
from ...ops.shape import broadcast, copy, permute, reshape
from ..prune import prune
from .find_repeats import COPIES
from .growing_slices import NUMBER, PRODUCTS
from .readers_first import readers_first

LONGEST = 400  # characters of a formula
WRITES = frozenset({setitem, additem})
FOLDS = frozenset({matmul, max_, min_, sum_})  # what rounds, or chooses, by the order of elements
INNER = FOLDS | {broadcast, copy, reshape, permute, where}


class _NoFormula(Exception):  # noqa: N818 - a signal, not an error
    """A value is not a formula on parts of arrays."""


@dataclass(frozen=True, eq=False)
class _Leaf:
    """A part of an array. Of an array that the loop does not change, a row is read before: ``row`` has its ints."""

    array: Value
    row: tuple[Any, ...]
    index: tuple[Any, ...]

    @property
    def aval(self) -> Aval:
        """The aval of the row."""
        kept = [n for n, item in zip(self.array.aval.shape, self.row, strict=True) if type(item) is not int]
        return Aval(tuple(kept), self.array.aval.dtype, "array" if kept else self._kind())

    def _kind(self) -> Any:
        return "scalar" if self.row else self.array.aval.kind

    def read(self, env: Env) -> Symbol:
        """The row."""
        x = env[self.array]
        ints = any(type(item) is int for item in self.row)
        row: Symbol = getitem(x, index=self.row) if ints else x
        return row


@dataclass(eq=False)
class _FormulaNode:
    """A node that a formula may replace: its text with fields for lengths, these lengths, and the parts it reads."""

    node: Node
    text: str = ""
    lengths: list[int] = field(default_factory=list)
    leaves: dict[tuple[Value, str], _Leaf] = field(default_factory=dict)
    sign: str = ""  # of what is added by a write; of what is written: none

    @property
    def key(self) -> Any:
        """Equal for nodes that may be steps of one loop."""
        node = self.node
        leaves = [
            (leaf.aval, tuple(map(type, leaf.row)), tuple(map(type, leaf.index))) for leaf in self.leaves.values()
        ]
        target = tuple(map(type, node.attrs["index"])) if node.prim in WRITES else ()
        return node.prim, node.where, node.replica, node.out.aval, self.text, self.sign, target, tuple(leaves)


@dataclass(frozen=True, eq=False)
class _FormulaPlan:
    """What nodes of one kind become."""

    formula: str
    windows: tuple[Window, ...]
    target: Window
    limits: tuple[int, ...]
    numbers: list[list[int]]  # of each node


def with_formulas(graph: Graph, few: bool = False) -> Graph:
    """Replace what has other shapes in each step; the graph itself if nothing does so often enough.

    With ``few``, as for C, a few numbers alone are enough.
    """
    kinds: dict[Any, list[_FormulaNode]] = defaultdict(list)
    for found in _Search(graph).found():
        kinds[found.key].append(found)
    several = few or any(len(alike) >= COPIES and alike[0].node.out.aval.shape for alike in kinds.values())
    plans = {}
    for alike in kinds.values():
        plan = _plan(alike) if len(alike) >= (COPIES if several else PRODUCTS) else None
        if plan is not None:
            plans.update(
                {found.node: (found, plan, numbers) for found, numbers in zip(alike, plan.numbers, strict=True)}
            )
    if not plans:
        return graph

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if node not in plans:
            return None
        found, plan, numbers = plans[node]
        operands = [*(leaf.read(env) for leaf in found.leaves.values()), *(b.constant(k, NUMBER) for k in numbers)]
        attrs = {"formula": plan.formula, "windows": plan.windows, "limits": plan.limits}
        if node.prim not in WRITES:
            return [value_within(*operands, **attrs)]
        return [write_within(env[node.inputs[0]], *operands, target=plan.target, sign=found.sign, **attrs)]

    return readers_first(prune(rebuild(graph, rule)))


def without_formulas(graph: Graph) -> Graph:
    """Make formulas that are in no loop what they were."""

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if node.prim not in (value_within, write_within):
            return None
        attrs, first = node.attrs, int(node.prim is write_within)
        windows, target = attrs["windows"], attrs.get("target", ())
        arrays = node.inputs[first : first + len(windows)]
        formula = formula_of(attrs["formula"], tuple(v.aval for v in arrays), windows, target)
        ints = [graph.producer[v].attrs["value"] for v in node.inputs[first + len(windows) :]]
        known = dict(zip(formula.numbers, ints, strict=True))
        lengths = {n.letter: k for n, k in known.items() if n.letter}

        def index(operand: int, window: Window) -> tuple[Any, ...]:
            at = {n.axis: k for n, k in known.items() if not n.letter and n.operand == operand}
            return tuple(
                slice(None) if not item else at[axis] if item == "#" else _slice(at.get(axis, 0), lengths[item[0]])
                for axis, item in enumerate(window)
            )

        parts = [
            getitem(env[v], index=index(k, w)) if any(w) else env[v]
            for k, (v, w) in enumerate(zip(arrays, windows, strict=True))
        ]
        value = read(b, attrs["formula"], {f"x{k}": part for k, part in enumerate(parts)}, lengths)
        if not first:
            return [value]
        value = -value if attrs["sign"] == "-" else value
        return [(additem if attrs["sign"] else setitem)(env[node.inputs[0]], value, index=index(-1, target))]

    return rebuild(graph, rule)


def _slice(start: int, length: int) -> slice:
    return slice(start, start + length)


class _Search:
    """Finds the nodes of a graph that formulas may replace."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.at = {node: i for i, node in enumerate(graph.nodes)}
        shapes: dict[Any, set[Any]] = defaultdict(set)
        results: dict[Any, set[Any]] = defaultdict(set)
        for node in graph.nodes:
            if not node.prim.multi:
                shapes[_kind(node)].add(tuple(v.aval.shape for v in (*node.inputs, node.out)))
                results[_kind(node)].add(node.out.aval.shape)
        self.uneven = {key for key, found in shapes.items() if len(found) > 1}  # lines with operands of several shapes
        self.growing = {key for key, found in results.items() if len(found) > 1}  # ... and results
        self.written: dict[Value, Node] = {}  # the first write of a value
        for node in graph.nodes:
            if node.prim is setitem and _keeps(node):
                self.written.setdefault(node.inputs[1], node)

    def found(self) -> list[_FormulaNode]:
        """The writes of formulas, and values of one shape that are formulas."""
        nodes = []
        for node in self.graph.nodes:
            if node.prim.multi or _kind(node) not in self.uneven or node.out.aval.dtype.char not in "fd":
                continue
            writes = node.prim in WRITES and _plain(node)
            if writes or (node.prim in FOLDS and _kind(node) not in self.growing):
                found = _FormulaNode(node)
                try:
                    written, found.sign = self._signed(node) if writes else (node.out, "")
                    found.text = self._text(found, written, False)
                except _NoFormula:
                    continue
                nodes.append(found)
        return nodes

    def _signed(self, node: Node) -> tuple[Value, str]:
        """What is written, and with which sign it is added."""
        value = node.inputs[1]
        made = self.graph.producer.get(value)
        if node.prim is additem and made is not None and made.prim is neg:
            return made.inputs[0], "-"
        return value, "+" if node.prim is additem else ""

    def _grows(self, value: Value) -> bool:
        node = self.graph.producer.get(value)
        return node is not None and _kind(node) in self.growing

    def _text(self, found: _FormulaNode, value: Value, summed: bool) -> str:
        """The text of a value; whether it is summed, which rounds by the order of elements in memory."""
        node = self.graph.producer.get(value)
        if node is not None and node.prim.multi and self._grows(value):
            raise _NoFormula
        before = self.written.get(value)
        if before is not None and self.at[before] < self.at[found.node] and value.aval.shape:
            if not summed:
                return self._leaf(found, before.out, before.attrs["index"])
            if self._grows(value):
                raise _NoFormula
        if (
            node is not None
            and node.prim is getitem
            and _plain(node)
            and (self._grows(value) or self._changes(node.inputs[0]))
        ):
            index = node.attrs["index"]
            if self._grows(node.inputs[0]):
                if any(item not in (None, slice(None)) for item in index):
                    raise _NoFormula
                return f"reshape({self._text(found, node.inputs[0], summed)}{self._lengths(found, value.aval)})"
            leaf = self._leaf(found, node.inputs[0], tuple(item for item in index if item is not None))
            return f"reshape({leaf}{self._lengths(found, value.aval)})" if None in index else leaf
        if node is not None and node.prim is const and not isinstance(node.attrs["value"], tuple):
            return f"const({node.attrs['value']!r}, {value.aval.dtype.char!r}{self._lengths(found, value.aval)})"
        if node is not None and node.prim is reshape and value.aval.ndim > node.inputs[0].aval.ndim:
            return f"reshape({self._text(found, node.inputs[0], summed)}{self._lengths(found, value.aval)})"
        if node is None or (not self._grows(value) and node is not found.node):
            return self._leaf(found, value, (slice(None),) * value.aval.ndim)
        if node.prim is copy and not summed:
            return self._text(found, node.inputs[0], summed)
        return self._inner(found, node, summed or node.prim in FOLDS)

    def _inner(self, found: _FormulaNode, node: Node, summed: bool) -> str:
        if not (is_elementwise(node) or node.prim in INNER) or (node.prim is matmul and self._shared(node)):
            raise _NoFormula
        args = ", ".join(self._text(found, v, summed) for v in node.inputs)
        if len(args) > LONGEST:
            raise _NoFormula
        if node.prim in (broadcast, reshape):
            return f"{node.prim.name}({args}{self._lengths(found, node.out.aval)})"
        attrs = "".join(f", {name}={value!r}" for name, value in node.attrs.items())
        return f"{node.prim.name}({args}{attrs})"

    def _shared(self, node: Node) -> bool:
        """Whether a formula would compute a product once more that others read, too, and not where it was written."""
        users, written = self.graph.uses.get(node.out, ()), self.written.get(node.out)
        others = [user for user in users if written is None or self.at[user] < self.at[written]]
        return (len(users) > 1 and bool(others)) or node.out in self.graph.outputs

    def _changes(self, array: Value) -> bool:
        """Whether an array is what a write made."""
        made = self.graph.producer.get(array)
        return made is not None and made.prim in WRITES

    def _leaf(self, found: _FormulaNode, x: Value, index: tuple[Any, ...]) -> str:
        if x.aval.dtype != found.node.out.aval.dtype:
            raise _NoFormula
        whole = [*index, *[slice(None)] * x.aval.ndim][: x.aval.ndim]
        key = x, repr(whole)
        changes = self._changes(x)
        row = tuple(slice(None) if changes or type(item) is not int else item for item in whole)
        rest = tuple(item for item, taken in zip(whole, row, strict=True) if type(taken) is not int)
        found.leaves.setdefault(key, _Leaf(x, row, rest))
        return f"x{list(found.leaves).index(key)}"

    @staticmethod
    def _lengths(found: _FormulaNode, aval: Aval) -> str:
        """Fields for the lengths of a shape."""
        found.lengths += aval.shape
        return ", <>" * aval.ndim


def _kind(node: Node) -> Hashable:
    """What is equal for the copies of a node in the steps of a loop."""
    return node.where, node.prim, node.outputs[0].aval.ndim


def _keeps(write: Node) -> bool:
    """Whether what is written can be read from the array as it was, neither stretched nor cast."""
    if not _plain(write):
        return False
    array, value = (v.aval for v in write.inputs)
    items = zip(write.attrs["index"], array.shape, strict=False)
    part = tuple(len(range(n)[item]) for item, n in items if type(item) is slice)
    return array.dtype == value.dtype and value.shape == part + array.shape[len(write.attrs["index"]) :]


def is_elementwise(node: Node) -> bool:
    """Whether a node applies a ufunc of NumPy's, whose derivatives are formulas of such functions."""
    code = node.prim.numpy
    return by_elements(node.prim) and not node.attrs and bool(code.ufunc) and "scipy" not in code.ufunc


def _plain(node: Node) -> bool:
    """Whether a node reads or writes by ints and slices without steps; if it reads, also by new axes."""
    reads = node.prim is getitem
    plain = all(
        type(item) is int or (type(item) is slice and item.step in (None, 1)) or (reads and item is None)
        for item in node.attrs["index"]
    )
    return plain and len(node.inputs) == (1 if reads else 2)


def _plan(alike: list[_FormulaNode]) -> _FormulaPlan | None:
    """The formula of nodes that are alike but for lengths and positions; None if there is none or nothing grows."""
    letters: dict[tuple[int, ...], str] = {}
    positions: list[tuple[int, ...]] = []

    def window(avals: Sequence[Aval], indices: Sequence[tuple[Any, ...]]) -> Window:
        items = []
        for axis, size in enumerate(avals[0].shape):
            column = [index[axis] for index in indices]
            if type(column[0]) is int:
                positions.append(tuple(k % size for k in column))
                items.append("#")
                continue
            found = [range(size)[item] for item in column]
            if all(part == range(size) for part in found):
                items.append("")
                continue
            letter = letters.setdefault(tuple(map(len, found)), "abcdefgh"[min(len(letters), 7)])
            starts = tuple(part.start for part in found)
            positions.extend([starts] if any(starts) else [])
            items.append(f"{letter}:" if any(starts) else letter)
        return tuple(items)

    first = alike[0].node
    leaves = list(zip(*(found.leaves.values() for found in alike), strict=True))
    windows = tuple(window([leaf.aval for leaf in column], [leaf.index for leaf in column]) for column in leaves)
    target: Window = ()
    if first.prim in WRITES:
        whole = [[*f.node.attrs["index"], *[slice(None)] * first.out.aval.ndim][: first.out.aval.ndim] for f in alike]
        target = window([first.out.aval], [tuple(index) for index in whole])
    if not any(len(set(column)) > 1 for column in letters) or len(letters) > len(MARKERS):
        return None
    formula = _with_lengths(alike, letters)
    names = sorted(letters, key=lambda column: letters[column])
    numbers = [list(row) for row in zip(*names, *positions, strict=True)]
    plan = _FormulaPlan(formula, windows, target, tuple(map(max, names)), numbers)
    return plan if formula and _is_closed(plan, alike[0]) else None


def _with_lengths(alike: list[_FormulaNode], letters: dict[tuple[int, ...], str]) -> str:
    """The text of a formula with its lengths; "" if one of them is no length of a part."""
    text, *rest = alike[0].text.split("<>")
    for column, further in zip(zip(*(found.lengths for found in alike), strict=True), rest, strict=True):
        if column not in letters and len(set(column)) > 1:
            return ""
        text += f"{letters.get(column, column[0])}{further}"
    return text


def _is_closed(plan: _FormulaPlan, found: _FormulaNode) -> bool:
    """Whether the formula has its shape, and derivatives that are formulas."""
    avals = tuple(leaf.aval for leaf in found.leaves.values())
    try:
        formula_of(plan.formula, avals, plan.windows, plan.target)
        for i in range(len(avals)):
            text, others = derived(plan.formula, avals, plan.windows, i, False)
            if text:
                operands = (i, *others)
                parts = tuple(avals[k] for k in operands), tuple(plan.windows[k] for k in operands)
                formula_of(text, *parts, plan.target)
                turned(text, *parts)
    except (InternalError, NonDifferentiableError, ValueError, KeyError, TypeError):
        return False
    return True
