"""Writes the text of a module with a block in place of each operation, which has the size of its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ....ir.footprint import Undecided
from ....ir.graph import Node, Value
from ....ir.loop_node import LoopNode, loop_of
from ....ir.plan import Plan
from ....ir.types import Aval
from ....ops.cumulative import runs_backwards
from ....ops.implicit import certified, solution, solve_krylov
from ....ops.module_arrays import module_arrays
from ....ops.ode import ode
from ....ops.ode_events import crossed, ode_path
from ....ops.structural.call import call
from ....ops.structural.exit_if import exit_if
from ....ops.structural.guard import guard
from ....ops.structural.host import host
from ....ops.structural.in_blocks import at_a_time, largest_block
from ....ops.structural.kernel import STORAGE, kernel
from ....ops.structural.on_numbers import elements, numbers
from ....ops.structural.stack import absent, step_numbers
from ....ops.structural.throw import throw_if
from ..at_once import at_once
from ..emitter import EMITTERS, Emitter, Scope
from ..in_workspace import WorkspaceEmitter
from ..packing import WorkspaceLayout, bytes_of
from ..structural.block_writer import BlockWriter, length_of, operands_and_results
from ..structural.steps_at_once import StepsWriter, write_steps
from .scratch import scratch_of
from .thinned import STEADY

CALLS = frozenset({certified, crossed, ode, ode_path, solution, solve_krylov})  # of functions that compute with values
RESULTS = CALLS | {elements, host}  # of which only the results and the workspace are known
NO_MEMORY = frozenset({absent, module_arrays, step_numbers})  # the second belongs to the module, not to a call


class Sizes(WorkspaceEmitter):
    """Writes blocks in place of operations."""

    at_a_time = 1  # how many of the function run
    short = True  # with fewer steps in long loops, where further steps take no more memory

    def __init__(self, plan: Plan, scope: Scope) -> None:
        super().__init__(plan, scope)
        assert isinstance(scope, Numbered)
        self.labels, self.choices = scope.labels, scope.choices

    def _block(self, value: Value, node: Node) -> str:
        size, scratch = self.bytes_of(value), self.scratch(node)
        if self.short and not size and not scratch:
            return "__nothing"
        self.labels.append((value, node))
        return f"__block({size}, {scratch}, {len(self.labels) - 1})"

    def scratch(self, node: Node) -> int:
        """The bytes that an operation takes for itself."""
        return scratch_of(node)

    def _works(self, node: Node) -> None:
        """Write the workspace of an operation whose result has its place."""
        if scratch := self.scratch(node):
            self.labels.append((None, node))
            self.line(f"__block(0, {scratch}, {len(self.labels) - 1})")

    def memory(self, packed: WorkspaceLayout) -> str:
        """Blocks for the values that fill the memory, and one for gaps."""
        parts, gaps = [], self.at_a_time * packed.nbytes
        for value, nbytes, node in packed.fullest:
            taken = nbytes if value in packed.rows else self.bytes_of(value)
            self.labels.append((value, node))
            parts.append(f"__block({taken}, 0, {len(self.labels) - 1})")
            gaps -= taken
        self.labels.append((None, packed.fullest[0][2]))
        return f"({', '.join(parts)}, __block({gaps}, 0, {len(self.labels) - 1}))"

    def bytes_of(self, value: Value) -> int:
        """The bytes of an array; none for numbers."""
        return value.aval.nbytes if value.aval.kind == "array" else 0

    def empty(self, text: str, *entries: Aval) -> str:
        """A list or a dict whose entries take memory of their own: Python's objects and the places for them."""
        makes, place = ("__list", LIST_PLACE) if text == "[]" else ("__dict", DICT_PLACE)
        several = TUPLE + len(entries) * LIST_PLACE if len(entries) > 1 else 0
        return f"{makes}({place + several + sum(map(_object, entries))})"

    def _node(self, node: Node, consts: dict[Value, Node]) -> None:
        prim = node.prim
        if prim is guard or prim is throw_if:  # the call goes on
            return
        loop = loop_of(node)
        if self.short and loop is not None and loop.length > STEADY and not _stacks(node):
            node = loop.shortened(STEADY)
        if prim is kernel and node.attrs.get("size"):
            self._in_blocks(node, consts)
            return
        if loop is not None and at_once(self.plan.order, loop):
            self._in_steps(node, loop, consts)
            return
        if prim is kernel and node.graphs[0][1].knows(STORAGE):
            self._in_other_language(node)
            return
        if prim is numbers:
            node = replace(node, prim=call)
        if prim is exit_if:
            node = replace(node, attrs={**node.attrs, "kind": "bool", "expected": True, "lanes": False})
        if prim in NO_MEMORY:
            for out in node.outputs:
                self.line(f"{self.assign(out)} = __nothing")
            return
        if prim in CALLS:
            self._call_bodies(node)
        if prim in RESULTS or (prim.multi and prim not in EMITTERS):
            for out in node.outputs:
                self.line(f"{self.assign(out)} = {self._block(out, node)}")
            return
        super()._node(node, consts)

    def _call_bodies(self, node: Node) -> None:
        """Write one call of each function that a solver of SciPy's calls, beside what the solver holds itself."""
        held = self.fresh("held")
        self.labels.append((node.outputs[0], node))
        self.line(f"{held} = __block({self.scratch(node)}, 0, {len(self.labels) - 1})")
        for graph in (graph for _, graph in node.graphs if graph in self.plan.bodies):
            self.line(f"{self.function(graph)}({', '.join(['__nothing'] * len(graph.inputs))})")
        self.line(f"del {held}")

    def _in_other_language(self, node: Node) -> None:
        """Write the results of a kernel, and a block of what its function takes, also for copies of operands."""
        ((_, body),) = node.graphs
        nbytes: int | None = body.once(STORAGE, lambda: None)
        if nbytes is None:
            raise Undecided
        made = self.plan.order.producer
        nbytes += sum(self.bytes_of(v) for v in node.inputs if runs_backwards(made.get(v)))
        for out in node.outputs:
            over = self.plan.into.get(out)
            self.line(f"{self.assign(out)} = {self._block(out, node) if over is None else self.name[over]}")
        self.labels.append((None, node))
        self.line(f"__block(0, {nbytes}, {len(self.labels) - 1})")

    def _in_blocks(self, node: Node, consts: dict[Value, Node]) -> None:
        """Write the results of a kernel, and the call of one block."""
        rows, others, arrays, _ = operands_and_results(node)
        for out in node.outputs:
            self.line(f"{self.assign(out)} = {self._block(out, node)}")
        n, ((_, body),) = length_of(rows), node.graphs
        most = node.attrs["size"]
        make = partial(_BlockSizes, most=largest_block(n, most), number=at_a_time(n, most))
        name = self.scope.add(self.plan.bodies[body], body.name, make).name
        slots = [self.name[v] for v in arrays]
        operands = {v: self._operand(node, i, consts) for i, v in enumerate(node.inputs)}
        self.line(
            f"{name}({', '.join([*map(operands.__getitem__, rows), *slots, *map(operands.__getitem__, others)])})"
        )

    def _in_steps(self, node: Node, loop: LoopNode, consts: dict[Value, Node]) -> None:
        """Write the arrays of all steps of a loop, and the call of those that run at a time."""
        operands = [self._operand(node, i, consts) for i in range(len(node.inputs))]
        arrays = [self.assign(v) for v in node.outputs]
        name = write_steps(self, node, arrays, partial(_StepsSizes, loop=loop))
        self.line(f"{name}(0, 2, {', '.join([*operands, *arrays])})")

    def _operand(self, node: Node, i: int, consts: dict[Value, Node]) -> str:
        """The name of an operand; in place of an operand that chooses, the path that is assumed wherever it chooses."""
        ways = node.prim.structure.chooses(node, i) if node.prim.structure is not None else 0
        if ways:
            choice = self.choices.setdefault(node.inputs[i], len(self.choices))
            return f"__way({choice}, {ways})"
        return super()._operand(node, i, consts)

    def steps(self, start: str, stop: str) -> str:
        """A range of steps that keep nothing: a few stand for all."""
        return f"range({start}, min({stop}, {start} + {STEADY}))" if self.short else super().steps(start, stop)

    def actions(self, node: Node, schedule: str) -> str:
        """The actions, without those that surely take no more memory than earlier ones."""
        plain = not ("retape" in node.attrs or node.attrs.get("disk") or _stacks(node))
        return f"__thinned({schedule})" if self.short and plain else super().actions(node, schedule)

    def opened(self, node: Node, source: str) -> str:
        """States with the sizes of the kept carries, which may be views or arguments when they are written."""
        avals = [node.outputs[k].aval for k in node.attrs["kept"]]
        return f"__states({[aval.nbytes if aval.kind == 'array' else 0 for aval in avals]})"

    def number(self, node: Node, name: str) -> str:
        """As many steps as it takes until memory grows no more."""
        return str(_enough(node))

    @contextmanager
    def loop(self, node: Node, arguments: Sequence[str]) -> Iterator[None]:
        """Run the same number of steps, whatever the condition gives."""
        with self.block(f"for {self.fresh('step')} in range({_enough(node)}):"):
            self.ask(node, arguments)
            yield

    def _expression(self, node: Node, operands: list[str]) -> str:
        prim, out = node.prim, node.out
        if out.aval.steps is not None:
            return prim.numpy.render(node, operands)
        if (storage := self.storage(out)) is not None:
            made = out not in self.work or out in self.plan.into
            self._works(node)
            return storage if made else f"{self._block(out, node)} if {storage} is None else {storage}"
        view = prim.alias is not None and out.aval.kind == "array" and out not in self.plan.copies
        if view and prim.alias is not None and out not in self.plan.apart:
            base = operands[prim.alias]
            return base if base.isidentifier() else "__block(0)"
        return self._block(out, node)

    def _write(self, node: Node, operands: list[str], consts: dict[Value, Node]) -> None:
        out = node.out
        if out in self.plan.into:
            self.name[out] = self.name[node.inputs[node.prim.writes or 0]]
            self.line(f"__block(0, {self.scratch(node)})")
        else:
            self.line(f"{self.assign(out)} = {self._block(out, node)}")

    def _ref(self, value: Value, consts: dict[Value, Node]) -> str:
        return self.name[value] if value in self.name else self._block(value, consts[value])


# Bytes that CPython takes beside the elements of arrays.
LIST_PLACE, DICT_PLACE = 9, 170  # at most, when the list or the dict has just grown; a dict has a number as the key
TUPLE, LIST, NUMBER, HEADER, AXIS = 40, 56, 24, 96, 16


def _object(aval: Aval) -> int:
    """The bytes of the object that a list keeps, without the elements of arrays."""
    if aval.steps is not None:
        return LIST
    if aval.kind == "array":
        return HEADER + AXIS * aval.ndim
    return {"b": 0, "c": NUMBER + 8}.get(aval.dtype.kind, NUMBER)


def _stacks(node: Node) -> bool:
    return any(v.aval.steps is not None for v in node.outputs)


def _enough(node: Node) -> int:
    """Steps of a loop of unknown length after which memory grows no more, since all slots for states are full.

    Raises ``Undecided`` if each step takes more memory.
    """
    match node.attrs.get("room") or node.attrs.get("way"):
        case ("online_room", int(slots)) if not node.attrs["lists"]:
            return STEADY * (slots + 1)
        case ("binomial", _, _, int(slots)) if not _stacks(node):
            return STEADY * (slots + 1)
        case None if not _stacks(node):
            return STEADY
    raise Undecided


class _BlockSizes(BlockWriter, Sizes):
    """Writes the largest blocks, of which a number run at a time."""

    def __init__(self, plan: Plan, scope: Scope, most: int, number: int) -> None:
        super().__init__(plan, scope, most)
        self.at_a_time = number

    def length(self, row: str, aval: Aval) -> str:
        """The length of all blocks that are computed at a time."""
        return str(self.at_a_time * self.most)

    def constant(self, node: Node) -> str:
        return self._block(node.out, node)

    def bytes_of(self, value: Value) -> int:
        return self.at_a_time * bytes_of(value, (self.n, self.most)) if value.aval.kind == "array" else 0

    def scratch(self, node: Node) -> int:
        return scratch_of(node, self.at_a_time, self.most)

    def into_slot(self, node: Node, operands: list[str], slot: str) -> None:
        """Write the workspace of a result that is computed into its array, and else what is copied there."""
        if node.prim.into:
            self._works(node)
        else:
            self.line(self._block(node.out, node))


class _StepsSizes(StepsWriter, Sizes):
    """Writes steps that are as many as run at a time."""

    def __init__(self, plan: Plan, scope: Scope, loop: LoopNode) -> None:
        super().__init__(plan, scope, loop)
        self.at_a_time = at_a_time(loop.length, 1)

    def bytes_of(self, value: Value) -> int:
        return self.at_a_time * super().bytes_of(value)

    def scratch(self, node: Node) -> int:
        return scratch_of(node, self.at_a_time)


class InFull(Sizes):
    """Writes blocks in place of operations, and lets each loop run all its steps."""

    short = False


class Numbered(Scope):
    """A scope that numbers the results that have blocks, and the values by which the data choose."""

    def __init__(self, emitter: type[Emitter]) -> None:
        super().__init__(emitter)
        self.labels: list[tuple[Value | None, Node]] = []  # None for gaps in a workspace
        self.choices: dict[Value, int] = {}
