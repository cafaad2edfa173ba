"""Loops of a graph: small carries are variables, large ones two buffers, and what steps collect are arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...ir.graph import Node, Value
from ...ir.loop_node import LoopNode, loop_of
from .choices import is_choice, parts_of_choice
from .decided_formulas import is_formula_value
from .decided_places import writes_at
from .decided_slices import is_ragged_product, slice_product
from .elements import BEYOND, FEW, CVariables, NeedsStorage, NoC, StandsFor
from .grouping import Place
from .indices import AxisIndex, CArray, c_type, count, everywhere, extents
from .lanes import lanes_of, lanes_of_part
from .states_in_place import state_in_place
from .turned_operands import is_turned, turned
from .writes import WriteWriter, is_place

MOST = 10**8  # steps of a loop with a condition, from which on NumPy runs it
FIRST = 64  # rows for which there is space at first


@dataclass(frozen=True)
class _Small:
    """A carry in variables, with the names of its next elements."""

    names: tuple[str, ...]
    dtype: str
    next: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Large:
    """A carry in two buffers, or in the rows of its stack: then the next state is one row on."""

    value: Value
    now: str
    then: str
    first: str  # where the first state lies
    other: str = ""  # where the second one does; nothing if steps change the first
    stride: int = 0  # between the rows of its stack

    @property
    def dtype(self) -> str:
        return c_type(self.value.aval.dtype)

    def pointers(self) -> list[str]:
        """The declarations of the pointers to the present and the next state."""
        own = [(self.now, self.first), (self.then, self.other)]
        return [f"{self.dtype} *{name} = {place};" for name, place in own if place]

    def last(self, steps: int) -> str:
        """Where the state after so many steps lies."""
        if self.stride:
            return f"{self.first} + INT64_C({steps * self.stride})"
        return self.other if self.other and steps % 2 else self.first


class StepLoopWriter(WriteWriter):
    """Also writes loops with a known number of steps."""

    def loop_node(self, node: Node, want: dict[Value, list[Any]]) -> None:
        """Write the loop, or the writes; its results are held afterwards."""
        if writes_at(node):
            self.write_at(node, want)
            return
        if is_ragged_product(node):
            self.held[node.out] = CVariables((slice_product(self, node),))
            self.home[node.out] = len(self.blocks) - 1
            return
        if is_formula_value(node):
            self.formula_value(node, want)
            return
        if node in self.chained:
            self.write_known(node, want)
            return
        if is_choice(node):
            self._choice(node, want)
            return
        loop = loop_of(node)
        if loop is None or loop.plan is not None:
            raise NoC(f"{node.prim.name} with a plan is NumPy's")
        t = AxisIndex(self.fresh("t"))
        consts, _, rows = loop.layout.operands(loop.body.inputs)
        given, starts, taken = loop.layout.operands(loop.operands)
        for value, source in zip(consts, given, strict=True):
            self._hold_for_all_steps(loop, value, source)
        for value, source in zip(rows, taken, strict=True):
            self.held[value], self.home[value] = StandsFor(source, (t,)), 0
        length = str(loop.length) if loop.count is None else self.pull(loop.count, ())
        places = self._collectors(loop, want)
        states = [self._state(loop, k, start, places) for k, start in enumerate(starts)]
        self.shared = lanes_of(loop)
        if self.shared:
            self._write_lanes(loop, states, places, t)
        else:
            self._write_steps(loop, states, places, t, length)
        for out in node.outputs:
            self.home[out] = len(self.blocks) - 1
            self.deliver(out, want)

    def _hold_for_all_steps(self, loop: LoopNode, value: Value, source: Value) -> None:
        """What all steps read stands for what is there already, but for matrices whose columns are to lie together."""
        self.held[value], self.home[value] = StandsFor(source), 0
        if is_turned(loop, value):
            array = turned(self.workspace(value, extents(value)))
            self.fill(source, array)
            self.held[value], self.home[value] = array, len(self.blocks) - 1

    def _write_steps(
        self, loop: LoopNode, states: list[Any], places: list[CArray | None], t: AxisIndex, length: str
    ) -> None:
        """Write the loop over the steps."""
        for state in states:
            for line in state.pointers() if isinstance(state, _Large) else ():
                self.line(line)
        with self.block(str(t.var)) as block:
            if loop.condition is not None:
                self._decide(loop, states, t)
            for place in places if loop.length < 0 else ():
                self._grow(place, t)
            self._step(loop, states, [None if place is None else (place, (t,)) for place in places])
        ahead = f"for (int64_t {t} = 0;{'' if loop.condition is not None else f' {t} < {length}'}; {t}++) {{"
        down = f"for (int64_t {t} = {length} - 1; {t} >= 0; {t}--) {{"
        if loop.length >= 0:
            down = down.replace(f"{length} - 1", str(loop.length - 1))
        self.enclose(down if loop.reverse else ahead, block.lines)

    def _write_lanes(self, loop: LoopNode, states: list[Any], places: list[CArray | None], t: AxisIndex) -> None:
        """Write the loop over the steps for some elements as a function, which is called for all of them."""
        n, size = self.shared, lanes_of_part(self.shared)
        with self.block() as block:
            self._write_steps(loop, states, places, t, str(loop.length))
        self.shared = 0
        self.call_of_parts(block.lines, f"least({size} * {{0}}, {n})", -(-n // size))
        for out, state in zip(loop.node.outputs, states, strict=False):
            if state is None:  # steps do not change it
                continue
            name = self.fresh("now", f"{state.dtype} *")
            self.line(f"{state.dtype} *{name} = {state.last(loop.length)};")
            self.held[out] = CArray(name, extents(out), out.aval.dtype)

    def _decide(self, loop: LoopNode, states: list[Any], t: AxisIndex) -> None:
        """End the loop where its condition does not hold, or where it takes so long that NumPy's can be interrupted."""
        condition, depth = loop.condition, len(self.blocks) - 1
        assert condition is not None
        given, starts, _ = loop.layout.operands(loop.operands)
        consts, carry, _ = loop.layout.operands(condition.inputs)
        for value, source in zip(consts, given, strict=True):
            self.held[value], self.home[value] = StandsFor(source), 0
        for value, state, start in zip(carry, states, starts, strict=True):
            self.home[value] = 0 if state is None else depth
            if state is None:
                self.held[value] = StandsFor(start)
            elif isinstance(state, _Small):
                self.held[value] = CVariables(state.names)
            else:
                self.held[value] = CArray(state.now, extents(value), value.aval.dtype)
        names: list[str] = []
        self.lower(condition, [names])
        self.gives_up = True
        self.line(f"if (!{names[0]}) break;")
        self.line(f"if ({BEYOND} |= {t} == {MOST}) break;")

    def _grow(self, array: CArray | None, t: AxisIndex) -> None:
        """Make space for the row of a step."""
        assert array is not None
        capacity, row = f"capacity{array.name[5:]}", array.strides[0]
        self.line(f"if ({t} == {capacity}) {{")
        self.line(f"  {capacity} = 2 * {capacity} + {FIRST};")
        self.line(f"  void *more = realloc({array.name}, sizeof(*{array.name}) * {row} * {capacity});")
        self.line(f"  if (!more) {{ {BEYOND} = 1; break; }}")
        self.line(f"  {array.name} = more;")
        self.line("}")

    def _choice(self, node: Node, want: dict[Value, list[Any]]) -> None:
        """Write the branches, of which one runs; its results are held afterwards."""
        choice, operands, branches = parts_of_choice(node)
        decides, places = self.pull(choice, ()), []
        for out in node.outputs:
            own = next((array for array, lead in filter(is_place, want.get(out, ())) if not lead), None)
            places.append((own or self.stack_or_workspace(out), ()))
        written = []
        for branch in branches:
            for value, source in zip(branch.inputs, operands, strict=True):
                self.held[value], self.home[value] = StandsFor(source), 0
            with self.block() as block:
                self.lower(branch, places)
            written.append(block.lines)
        for k, lines in enumerate(written):
            test = f"!{decides}" if choice.aval.dtype.kind == "b" else f"{decides} {'<=' if k == 0 else '=='} {k}"
            self.enclose("else {" if k == len(written) - 1 else f"{'else ' * (k > 0)}if ({test}) {{", lines)
        for out, (array, _) in zip(node.outputs, places, strict=True):
            self.held[out] = array
            self.home[out] = len(self.blocks) - 1
            self.deliver(out, want)

    def _collectors(self, loop: LoopNode, want: dict[Value, list[Any]]) -> list[CArray | None]:
        """The arrays in which results of steps are collected; None where a carry will live in its stack."""
        found: list[CArray | None] = []
        carry = loop.layout.carry
        for out, inner in zip(loop.node.outputs[carry:], loop.body.outputs[carry:], strict=True):
            if loop.length < 0:
                found.append(self._growing(out))
                continue
            own = next((array for array, lead in filter(is_place, want.get(out, ())) if not lead), None)
            if own is None and not loop.reverse and count(inner) > FEW and self._lives_in_stack(loop, inner):
                found.append(None)
                continue
            array = own if own is not None else self.workspace(out, extents(out))
            self.held[out] = array
            found.append(array)
        return found

    def _growing(self, value: Value) -> CArray:
        """An array for the rows of as many steps as there will be."""
        if len(self.blocks) > 1:
            raise NoC("a loop in a loop collects the rows of an unknown number of steps")
        dtype = value.aval.dtype
        name = self.fresh("grown", f"{c_type(dtype)} *")
        self.growing += [f"{c_type(dtype)} *{name}", f"int64_t capacity{name[5:]}"]
        self.gives_up = True
        self.held[value] = array = CArray(name, extents(value), dtype)
        return array

    def _lives_in_stack(self, loop: LoopNode, value: Value) -> bool:
        """Whether a result of each step is a carry, which no other result is and which the step changes."""
        _, carry, _ = loop.layout.operands(loop.body.inputs)
        if value not in carry or loop.body.outputs[carry.index(value)] is value:
            return False
        return loop.body.outputs[len(carry) :].count(value) == 1

    def _state(self, loop: LoopNode, k: int, start: Value, places: list[CArray | None]) -> _Small | _Large | None:
        """A carry with its first state."""
        n = loop.layout.carry
        value, out, new = loop.body.inputs[loop.layout.consts + k], loop.node.outputs[k], loop.body.outputs[k]
        dtype, shape = value.aval.dtype, extents(value)
        if new is value:
            self.held[value] = self.held[out] = StandsFor(start)
            return None
        if count(value) <= FEW and self.stored.isdisjoint((value, out)):
            names = tuple(self.fresh("c", c_type(dtype)) for _ in range(count(value)))
            for name, index in zip(names, everywhere(shape), strict=True):
                self.line(f"{c_type(dtype)} {name} = {self.pull(start, index)};")
            self.held[value] = self.held[out] = CVariables(names)
            return _Small(names, c_type(dtype))
        now, then = (self.fresh(stem, f"{c_type(dtype)} *") for stem in ("now", "then"))
        stacked = [s for s, inner in enumerate(loop.body.outputs[n:]) if inner is value and places[s] is None]
        if stacked:
            stack = loop.node.outputs[n + stacked[0]]
            rows = self.workspace(value, (loop.length + 1, *shape))
            self.held[stack] = CArray(rows.name, extents(stack), dtype)
            state = _Large(value, now, then, rows.name, f"{rows.name} + {count(value)}", count(value))
        elif (wanted := state_in_place(loop.body, value, new, self.stored)) is not None:
            if wanted:
                raise NeedsStorage(*wanted)
            own = self.overwritten(loop.node, start)
            if own is not None:
                self.held[out] = own
                return _Large(value, now, now, own.name)
            state = _Large(value, now, now, self.workspace(value, shape).name)
        else:
            state = _Large(value, now, then, self.workspace(value, shape).name, self.workspace(value, shape).name)
        self.fill(start, CArray(state.first, shape, dtype))
        self.held[out] = CArray(now, shape, dtype)
        return state

    def _step(self, loop: LoopNode, states: list[Any], places: list[Place | None]) -> None:
        depth, carry = len(self.blocks) - 1, loop.layout.operands(loop.body.inputs)[1]
        goes: list[Place | list[str] | None] = []
        for value, state in zip(carry, states, strict=True):
            if state is None:
                goes.append(None)
                continue
            self.home[value] = depth
            if isinstance(state, _Small):
                goes.append(state.next)
                continue
            dtype, shape = c_type(value.aval.dtype), extents(value)
            old, new = self.fresh("old", f"const {dtype} *restrict"), self.fresh("new", f"{dtype} *restrict")
            if not state.other:
                self.bases.add(value)
                self.line(f"{dtype} *restrict {new} = {state.now};")
                own = CArray(new, shape, value.aval.dtype)
                self.held[value] = own
                goes.append((own, ()))
                continue
            self.bases.discard(value)
            self.line(f"const {dtype} *restrict {old} = {state.now}; {dtype} *restrict {new} = {state.then};")
            self.held[value] = CArray(old, shape, value.aval.dtype)
            goes.append((CArray(new, shape, value.aval.dtype), ()))
        self.lower(loop.body, [*goes, *places])
        moves = []
        for state in states:
            if isinstance(state, _Small):
                for name, new in zip(state.names, state.next, strict=True):
                    later = self.fresh("n", state.dtype)
                    self.line(f"const {state.dtype} {later} = {new};")
                    moves.append(f"{name} = {later};")
            elif isinstance(state, _Large) and state.other:
                moves.append(
                    f"{state.now} = {state.then}; {state.then} += {state.stride};"
                    if state.stride
                    else f"{{ void *swapped = {state.now}; {state.now} = {state.then}; {state.then} = swapped; }}"
                )
        for move in moves:
            self.line(move)
