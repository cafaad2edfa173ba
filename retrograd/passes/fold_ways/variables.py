"""Variables: for each operand in the body of a loop, which variable it is, from its value in each step.

A value of the same step is an item, or differs by the side of a choice. A value from before the step is a carry: it is
alive from the step that made it to the last one that reads it, and two of these that agree are one. What is found holds
for the traces. For other answers of the decisions it is a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...ir.graph import Node, Value
from ...ir.types import Aval
from ...ops.gather import INT
from .overlay import Entry, Row, Stretch
from .words import MANY, Unfoldable

MOST = 64  # carries of a loop
Vals = Mapping[int, Value]  # the value in each step


class Outside(NamedTuple):
    """A value from before the loop, or a number."""

    value: Value


class ResultOf(NamedTuple):
    """A result of an item."""

    item: Entry
    out: int


class Phi(NamedTuple):
    """What differs by the side of a choice; ``key`` finds it among the phis of the item."""

    item: Entry
    key: Any


class Column(NamedTuple):
    """Numbers, one for each step."""

    aval: Aval
    numbers: tuple[Any, ...]


class Nothing(NamedTuple):
    """What no step of the recordings reads."""


@dataclass(eq=False)
class Carry:
    """A variable that lives from step to step: its values when steps begin, and its source when they end.

    The step after the last one is the end of the loop.
    """

    heads: dict[int, Value]
    aval: Aval
    update: Any = None
    known: int = -1  # how many heads there were when the update was found


class Variables:
    """Finds the sources of all operands in a loop, and the values after it."""

    def __init__(self, steps: Stretch) -> None:
        self.steps, self.made = steps, steps.made
        self.producer = steps.words.producer
        self.carries: list[Carry] = []
        self.rest = [self._rest(k) for k in range(len(steps.words.nodes))]
        self._study()  # what is carried tells in the second study whether a value is a variable at first, or none
        self.carries = [Carry(carry.heads, carry.aval) for carry in self.carries]
        for item in steps.body.walk():
            item.sources, item.phis, item.places = [], {}, {}
        self._study()
        self.finals = self._finals()

    def _rest(self, k: int) -> list[Node]:
        """The operations of a recording behind its loop."""
        end = self.steps.spans[k * MANY + self.steps.counts[k] - 1][1]
        return self.steps.words.nodes[k][end:]

    def _study(self) -> None:
        for item in self.steps.body.walk():
            self._look(item)
        after = self._read_after()
        while True:
            carry = next((each for each in self.carries if each.known != len(each.heads)), None)
            if carry is None:
                later = [vals for vals in after if self._end(vals) is None]
                if not later:
                    return
                self._carry(later[0])
                continue
            if len(self.carries) > MOST:
                raise Unfoldable("too many variables")
            carry.known, carry.aval = len(carry.heads), wide(carry.heads.values())
            ends = {step - 1: value for step, value in carry.heads.items() if step % MANY}
            body = self.steps.body
            carry.update = self.source(body, len(body.items), ends, carry) if ends else carry

    def _look(self, item: Entry) -> None:
        """Find the sources of the operands of an item, and the ints of its index that count."""
        first = item.node
        for k, part in enumerate(first.attrs.get("index", ())):
            parts = {step: node.attrs["index"][k] for step, node in item.nodes.items()}
            if type(part) is int and len(set(parts.values())) > 1:
                item.places[k] = self._counting(parts)
            elif any(each != part for each in parts.values()):
                raise Unfoldable("slices that move")
        for i in range(len(first.inputs)):
            vals = {step: node.inputs[i] for step, node in item.nodes.items()}
            item.sources.append(self.source(item.row, item.at, vals))

    def _counting(self, ints: Mapping[int, int]) -> Column:
        """The ints of all steps, where those that are known count up or down."""
        known = {step % MANY: value for step, value in ints.items()}
        (a, first), (b, last) = min(known.items()), max(known.items())
        step = (last - first) // max(b - a, 1)
        numbers = tuple(first + step * (k - a) for k in range(self.steps.length))
        if any(numbers[step % MANY] != value for step, value in ints.items()):
            raise Unfoldable("indices that do not count")
        return Column(Aval((), INT, "scalar"), numbers)

    def source(self, row: Row, upto: int, vals: Vals, hold: Carry | None = None) -> Any:
        """The variable that has these values in front of the item at ``upto``; ``hold`` is the one whose end is sought.

        Where no step tells, that one keeps its value.
        """
        some = next(iter(vals.values()))
        here = {step for step, value in vals.items() if value in self.made and self.made[value][0] == step}
        inside = any(value in self.made for value in vals.values())
        if not inside:
            for carry in self.carries:
                if len(set(carry.heads.values())) > 1 and all(carry.heads.get(s) is v for s, v in vals.items()):
                    return carry
            if all(value is some for value in vals.values()):
                return Outside(some)
            if (column := self._column(vals)) is not None:
                return column
        if len(here) == len(vals):
            _, item, out = self.made[some]
            if all(self.made[v][1:] == (item, out) for v in vals.values()) and item.row.holds(row):
                return ResultOf(item, out)
        apart = not inside and len({id(v) for v in vals.values()}) > 1
        while True:
            choice = self._parting(row.items[:upto], vals, here, apart) if here or apart else None
            if choice is not None:
                return self._phi(choice, vals, hold)
            parent = row.parent
            if parent is None:
                break
            row, upto = parent.row, parent.at
        if here:
            raise Unfoldable("an operand that is not a variable")
        if hold is not None and all(hold.heads.get(step) is value for step, value in vals.items()):
            return hold
        return self._carry(vals)

    def _phi(self, choice: Entry, vals: Vals, hold: Carry | None) -> Phi:
        key = (id(hold), *((step, id(value)) for step, value in vals.items()))
        if key not in choice.phis:
            assert choice.sides is not None
            both = []
            for side in choice.sides:
                part = {step: value for step, value in vals.items() if step in side.steps}
                if part:
                    both.append(self.source(side, len(side.items), part, hold))
                else:
                    both.append(Nothing() if hold is None else hold)
            choice.phis[key] = (both[0], both[1])
        return Phi(choice, key)

    def _parting(self, items: Sequence[Entry], vals: Vals, here: set[int], apart: bool) -> Entry | None:
        """The choice by which a variable differs: values are made in it, or it alone tells them apart."""
        choices = [item for item in items if item.sides is not None]
        for item in reversed(choices):
            if any(self.made[vals[step]][1].inside(item) for step in here):
                return item
        told: dict[int, Any] = {s: self.made[v][1:] if s in here else None for s, v in vals.items()}
        if apart:
            told = {step: id(value) for step, value in vals.items()}
        if len(set(told.values())) == 1:
            return None
        partly = None
        for item in choices:
            assert item.sides is not None
            no, yes = ({what for step, what in told.items() if step in side.steps} for side in item.sides)
            if len(no) == len(yes) == 1 and no != yes:
                return item
            if no != yes and not apart:
                partly = item
        return partly

    def _column(self, vals: Vals) -> Outside | Column | None:
        """A number, or numbers that Python computes for each step."""
        nodes = [self.producer.get(value) for value in vals.values()]
        if any(node is None or node.prim.name != "const" for node in nodes):
            return None
        numbers: dict[int, Any] = {}
        for step, node in zip(vals, nodes, strict=True):
            assert node is not None
            number = node.attrs["value"]
            if isinstance(number, tuple) or repr(numbers.setdefault(step % MANY, number)) != repr(number):
                raise Unfoldable("numbers that differ between traces")
        aval = wide(vals.values())
        if len(set(map(repr, numbers.values()))) == 1:
            return Outside(next(value for value in vals.values() if value.aval == aval))
        if len(numbers) < self.steps.length:
            raise Unfoldable("numbers that are known in some steps only")
        return Column(aval, tuple(numbers[k] for k in range(self.steps.length)))

    def _carry(self, vals: Vals) -> Carry:
        """The variable that has these values when the steps begin."""
        heads: dict[int, Value] = {}
        for step, value in vals.items():
            made = self.made[value][0] if value in self.made else step // MANY * MANY - 1
            if made // MANY != step // MANY and value in self.made:
                raise Unfoldable("a value of another trace")
            for head in range(made + 1, step + 1):
                if heads.setdefault(head, value) is not value:
                    raise Unfoldable("two values of one variable")
        for known in self.carries:
            both = known.heads.keys() & heads.keys()
            if both and all(known.heads[head] is heads[head] for head in both):
                known.heads.update(heads)
                return known
        made_anew = Carry(heads, wide(heads.values()))
        self.carries.append(made_anew)
        return made_anew

    def _read_after(self) -> list[dict[int, Value]]:
        """The values that are read after the loop, each by recording."""
        words, counts = self.steps.words, self.steps.counts
        found: dict[tuple[Value, ...], None] = {}
        for nodes in zip(*self.rest, strict=False):
            if len({len(node.inputs) for node in nodes}) == 1:
                found.update(dict.fromkeys(zip(*(node.inputs for node in nodes), strict=True)))
        found.update(dict.fromkeys(zip(*words.outputs, strict=False)))
        return [
            {k * MANY + counts[k]: value for k, value in enumerate(values)}
            for values in found
            if all(value in self.made for value in values)
        ]

    def _end(self, vals: Vals) -> Carry | None:
        """The carry that has these values at the end."""
        return next((c for c in self.carries if all(self._last(c, k // MANY) is v for k, v in vals.items())), None)

    def _last(self, carry: Carry, recording: int) -> Value | None:
        """The value of a carry at the end of a recording's loop."""
        end = recording * MANY + self.steps.counts[recording]
        if end in carry.heads:
            return carry.heads[end]
        source = carry.update
        while True:
            if isinstance(source, Phi):
                assert source.item.sides is not None
                source = source.item.phis[source.key][end - 1 in source.item.sides[1].steps]
            elif isinstance(source, ResultOf):
                node = source.item.nodes.get(end - 1)
                return None if node is None else node.outputs[source.out]
            elif isinstance(source, Carry):
                return source.heads.get(end - 1)
            else:
                return source.value if isinstance(source, Outside) else None

    def _finals(self) -> dict[Value, Carry]:
        """The values of the first recording that are read after its loop, and the carries that have them."""
        found = {}
        for vals in self._read_after():
            carry = self._end(vals)
            if carry is None:
                raise Unfoldable("a value that is read after the loop is not a variable")
            found[vals[self.steps.counts[0]]] = carry
        return found


def wide(values: Iterable[Value]) -> Aval:
    """The aval of a variable: a NumPy scalar where it starts as a number of Python."""
    avals = list(dict.fromkeys(value.aval for value in values))
    kinds = [aval for aval in avals if aval.kind != "python"]
    if len(kinds) > 1 or (kinds and (kinds[0].kind == "array" or kinds[0].dtype.kind != "f") and len(avals) > 1):
        raise Unfoldable("a variable of several types")
    if not kinds and len(avals) > 1:
        raise Unfoldable("a variable of several types of Python")
    return kinds[0] if kinds else avals[0]
