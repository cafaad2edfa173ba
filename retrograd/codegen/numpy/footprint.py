"""The memory that generated code takes, found by running the same statements on blocks that only have a size.

The text has the names, loops, schedules and deletions of the generated module; each operation is replaced by a block of
as many bytes as its result has. Python's own reference counts then say what lives at every moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...errors import InternalError
from ...ir.graph import Graph, Node, Value
from ...ir.plan import Plan
from ...ops.structural.host import called
from .emitter import Emitter, Function, Scope
from .layouts import copies
from .thinned import STEADY, thinned


class Undecided(Exception):  # noqa: N818 - not an error: the data decide how much memory is taken
    """The course of the program, and so its memory, depends on data."""


class _Above(Exception):  # noqa: N818 - not an error: more need not be known
    """The peak is above the limit."""


class Meter:
    """Counts the bytes that live, and the most that lived at once."""

    def __init__(self, decisions: Sequence[bool] = (True,), limit: float = float("inf")) -> None:
        self.live = self.peak = 0
        self.decisions, self.asked = decisions, 0
        self.limit = limit

    def decide(self) -> bool:
        """What is assumed where the data decide between two ways."""
        self.asked += 1
        return self.decisions[self.asked % len(self.decisions)]

    def new(self, nbytes: int, scratch: int = 0, label: int = -1) -> Block:
        """A block, made with so many bytes of workspace; the label says by which operation."""
        self.live += nbytes
        if self.live + scratch > self.peak:
            self.peak = self.live + scratch
            if self.peak > self.limit:
                raise _Above
        return Block(self, nbytes, label)

    def freed(self, block: Block) -> None:
        """Nothing refers to a block any longer."""
        self.live -= block.nbytes


class History(Meter):
    """Keeps the course over time, and what lived at the peak."""

    def __init__(self, decisions: Sequence[bool] = (True,)) -> None:
        super().__init__(decisions)
        self.course: list[int] = []
        self.blocks: dict[int, tuple[int, int]] = {}
        self.at_peak: list[tuple[int, int]] = []  # bytes and label

    def new(self, nbytes: int, scratch: int = 0, label: int = -1) -> Block:
        """A block, noted."""
        higher = self.live + nbytes + scratch > self.peak
        block = super().new(nbytes, scratch, label)
        self.course.append(self.live + scratch)
        if nbytes:
            self.blocks[id(block)] = nbytes, label
        if higher:
            self.at_peak = list(self.blocks.values())
        return block

    def freed(self, block: Block) -> None:
        """A block is forgotten."""
        super().freed(block)
        self.blocks.pop(id(block), None)


class Block:
    """An array of which only the size is known; a view of it is the block itself."""

    __slots__ = ("label", "meter", "nbytes")

    def __init__(self, meter: Meter, nbytes: int, label: int) -> None:
        self.meter, self.nbytes, self.label = meter, nbytes, label

    def __del__(self) -> None:
        self.meter.freed(self)

    def __getitem__(self, _: Any) -> Block:
        return self

    def __setitem__(self, _: Any, __: Any) -> None:
        pass

    def __add__(self, _: Any) -> Block:
        return self.meter.new(self.nbytes)

    def __bool__(self) -> bool:
        return self.meter.decide()

    def __eq__(self, _: object) -> bool:
        return self.meter.decide()

    def __ne__(self, _: object) -> bool:
        return not self.meter.decide()

    def __index__(self) -> int:
        raise Undecided

    __int__ = __len__ = __index__
    __hash__ = object.__hash__


class _Arrays:
    """Stands for NumPy where structural operations make arrays."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    def empty(self, shape: Any, dtype: Any = np.float64, *_: Any) -> Block:
        """A block for the shape."""
        return self.meter.new(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)

    zeros = ones = empty

    def asarray(self, x: Any, *_: Any) -> Any:
        """The block itself."""
        return x

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class _States:
    """Stands for states on disk: what is read takes memory again."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.sizes: dict[int, list[int]] = {}

    def __iter__(self) -> Iterator[int]:
        return iter(self.sizes)

    def write(self, i: int, *blocks: Any) -> None:
        """Note the sizes."""
        self.sizes[i] = [x.nbytes for x in blocks]

    def read(self, i: int, count: int) -> Any:
        """New blocks of these sizes."""
        found = [self.meter.new(size) for size in self.sizes[i][:count]]
        return found[0] if count == 1 else found

    def drop(self, i: int) -> None:
        """The file goes."""
        del self.sizes[i]

    def again(self) -> _States:
        """The same states."""
        copy = _States(self.meter)
        copy.sizes = dict(self.sizes)
        return copy

    def resumed(self, steps: Any) -> Any:
        """All steps: nothing is there yet."""
        return steps

    def close(self) -> None:
        """All files go."""


class _Sizes(Emitter):
    """Writes blocks in place of operations."""

    short = True  # with short loops in place of long ones that take no more memory

    def __init__(self, plan: Plan, scope: Scope) -> None:
        super().__init__(plan, scope)
        assert isinstance(scope, _Labelled)
        self.labels = scope.labels

    def _block(self, value: Value, node: Node) -> str:
        size, scratch = value.aval.nbytes if value.aval.kind == "array" else 0, _scratch(node)
        if self.short and not size and not scratch:
            return "__nothing"
        self.labels.append((value, node))
        return f"__block({size}, {scratch}, {len(self.labels) - 1})"

    def _node(self, node: Node, made: dict[Value, Node]) -> None:
        prim = node.prim
        if self.short and prim.name == "scan" and node.attrs["length"] > STEADY and not _stacks(node):
            node = Node(prim, node.inputs, {**node.attrs, "length": STEADY}, node.outputs, node.where, node.replica)
        if prim.name == "step_numbers":
            self.line(f"{self.assign(node.out)} = __nothing")
            return
        if prim.multi and prim.emit is None:
            for out in node.outputs:
                self.line(f"{self.assign(out)} = {self._block(out, node)}")
            return
        super()._node(node, made)

    def steps(self, start: str, stop: str) -> str:
        """Steps that keep nothing: some are as good as all."""
        return f"range({start}, min({stop}, {start} + {STEADY}))" if self.short else super().steps(start, stop)

    def actions(self, node: Node, schedule: str) -> str:
        """Those that take no more memory than others before are left out."""
        plain = not ("retape" in node.attrs or node.attrs.get("disk") or _stacks(node))
        return f"__thinned({schedule})" if self.short and plain else super().actions(node, schedule)

    def number(self, node: Node, name: str) -> str:
        """As many steps as it takes until memory grows no more."""
        return str(_enough(node))

    @contextmanager
    def loop(self, node: Node, arguments: Sequence[str]) -> Iterator[None]:
        """The same number of steps, whatever the condition says."""
        with self.block(f"for {self.fresh('step')} in range({_enough(node)}):"):
            self.inline(node.attrs["cond"], arguments, bound=len(arguments))
            yield

    def _expression(self, node: Node, operands: list[str]) -> str:
        prim, out = node.prim, node.out
        if out.aval.steps is not None:
            return prim.render(node, operands)
        if (storage := self.storage(out)) is not None:
            return storage
        view = prim.alias is not None and out.aval.kind == "array" and out not in self.plan.copies
        if view and prim.alias is not None and not copies(node, self.plan.order.producer):
            base = operands[prim.alias]
            return base if base.isidentifier() else "__block(0)"
        return self._block(out, node)

    def _write(self, node: Node, operands: list[str], made: dict[Value, Node]) -> None:
        out = node.out
        if out in self.plan.into:
            self.name[out] = self.name[node.inputs[node.prim.writes or 0]]
            self.line(f"__block(0, {_scratch(node)})")
        else:
            self.line(f"{self.assign(out)} = {self._block(out, node)}")

    def _ref(self, value: Value, made: dict[Value, Node]) -> str:
        return self.name[value] if value in self.name else self._block(value, made[value])


def _stacks(node: Node) -> bool:
    return any(v.aval.steps is not None for v in node.outputs)


def _enough(node: Node) -> int:
    """Steps of a loop of unknown length after which the next ones take no more memory, all slots for states being full.

    Raises ``Undecided`` where each step takes more.
    """
    match node.attrs.get("room") or node.attrs.get("way"):
        case ("online_room", int(slots)) if not node.attrs["lists"]:
            return STEADY * (slots + 1)
        case ("binomial", _, _, int(slots)) if not _stacks(node):
            return STEADY * (slots + 1)
        case None if not _stacks(node):
            return STEADY
    raise Undecided


class _InFull(_Sizes):
    """The same, in as many steps as there are."""

    short = False


class _Labelled(Scope):
    """A scope that numbers the results for which there are blocks."""

    def __init__(self, emitter: type[Emitter]) -> None:
        super().__init__(emitter)
        self.labels: list[tuple[Value, Node]] = []


def _scratch(node: Node) -> int:
    rule = node.prim.scratch
    found: int = rule(*(v.aval for v in node.inputs), **node.attrs) if rule else 0
    return found


def peak_bytes(plan: Plan, limit: float = float("inf")) -> int:
    """The most bytes of arrays that a call of the generated module holds at once, inputs not counted.

    Where the data choose between two ways, it is the largest of the peaks for some courses of such choices; beyond
    ``limit`` it is not followed. Raises ``Undecided`` where the data decide how much is kept.
    """
    return _largest(plan, partial(Meter, limit=limit), _Sizes)[0].peak


class Course(NamedTuple):
    """The memory of one call: the most bytes at once, bytes after each operation, and what lived at the peak."""

    peak: int
    over_time: list[int]
    at_peak: list[tuple[int, Value | None, Node | None]]


def course_of(plan: Plan) -> Course:
    """The course of memory through all steps, the largest one as for ``peak_bytes``. Raises ``Undecided``."""
    history, labels = _largest(plan, History, _InFull)
    known: list[tuple[int, Value | None, Node | None]]
    known = [(n, *labels[k]) if k >= 0 else (n, None, None) for n, k in history.at_peak]
    return Course(history.peak, history.course, known)


M = TypeVar("M", bound=Meter)
DECISIONS = ((True,), (False,), (True, False), (False, True))  # a way not taken may leave names that live on


def _largest(
    plan: Plan, meter: Callable[[Sequence[bool]], M], emitter: type[_Sizes]
) -> tuple[M, list[tuple[Value, Node]]]:
    most = meter(DECISIONS[0])
    labels = _run(plan, most, emitter)
    for decisions in DECISIONS[1:] if most.asked else ():
        other = meter(decisions)
        _run(plan, other, emitter)
        most = max(most, other, key=lambda m: m.peak)
    return most, labels


def _run(plan: Plan, meter: Meter, emitter: type[_Sizes]) -> list[tuple[Value, Node]]:
    scope = _Labelled(emitter)
    main = scope.add(plan, plan.order.name)
    names: dict[str, Any] = {
        "np": _Arrays(meter), "__block": meter.new, "__nothing": Block(meter, 0, -1),
        "__thinned": partial(thinned, live=lambda: meter.live), **_hosts(plan.order, meter),
    }  # fmt: skip
    for helper in scope.helpers:
        exec(helper, names)  # noqa: S102 - the source of our own declarations
    names["retrograd"] = SimpleNamespace(ir=SimpleNamespace(disk=SimpleNamespace(open_disk=lambda *_: _States(meter))))
    text = "\n\n".join(map(_source, scope.functions))
    try:
        exec(text, names)  # noqa: S102 - the source is ours
        with suppress(_Above):
            names[main.name](*(meter.new(0) for _ in main.parameters))
    except (TypeError, ValueError, KeyError, IndexError) as fault:
        raise InternalError(f"the memory of {plan.order.name} cannot be found: {fault!r}\n{text}") from fault
    return scope.labels


def _hosts(graph: Graph, meter: Meter) -> dict[str, Any]:
    def blocks(host: Any) -> Any:
        return lambda *_: tuple(meter.new(a.nbytes) for a in host.avals)

    return {name: blocks(host) for name, host in called(graph).items()}


def _source(function: Function) -> str:
    header = f"def {function.name}({', '.join(function.parameters)}):"
    lines = ["    " * line.depth + line.text for line in function.lines]
    return "\n".join([header, *lines, f"    return ({', '.join([*function.results, ''])})"])
