"""The values that a compiled function keeps in memory or computes again, and why: as text, data and pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..compiler.compilation import Compilation
from ..compiler.memory.budgets import budget_of
from ..ir.footprint import Course, Undecided
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import LoopNode, loop_of
from ..passes.checkpoint.tally import steps_of
from ..passes.inline import body_in_place
from ..passes.linearize import Linearized
from ..passes.remat.search import work
from ..where import Where
from .crossings import crossing, deferred, halves, price, repeated, sides, unplanned
from .pictures import Drawn, Note, Picture, byte_unit

SAMPLES, COLUMNS = 400, 72
ROWS = 12  # rows for values that are live at the peak, in the text
BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Saved:
    """A value that is kept for a derivative: where it is made, which operation reads it, and why it is kept.

    ``work`` is the saving of a budget that keeps it: the operations that would compute it again from other kept values.
    """

    name: str
    bytes: int
    where: str
    producer: str
    consumer: str
    reason: str
    work: int | None = None


@dataclass(frozen=True)
class Repeated:
    """A value that a budget does not keep: the operation that computes it after the turn, and the work of that."""

    name: str
    operation: str
    bytes: int
    where: str
    work: int


@dataclass(frozen=True)
class MemoryReport(Drawn):
    """The memory of one compiled signature.

    ``peak_bytes`` is the most that a call holds at once, inputs not counted, and ``over_time`` the bytes as the call
    goes on; both are None if they depend on data, as the length of a while loop does. ``advances`` are steps of loops
    that run without residuals, of which ``recomputed`` have run before. ``at_peak`` are the values that are live at the
    peak: name, bytes and line. With a ``budget`` of bytes, ``again`` are the values outside of loops that are computed
    again, ``work`` is the number of operations for these, and ``share`` its ratio to a forward pass; ``later`` are
    values that only the adjoint needs, and that are computed there.
    """

    name: str
    peak_bytes: int | None
    saved: tuple[Saved, ...]
    advances: int | None
    recomputed: int | None
    over_time: tuple[int, ...] | None
    at_peak: tuple[tuple[str, int, str], ...]
    budget: int | None = None
    again: tuple[Repeated, ...] = ()
    later: tuple[Repeated, ...] = ()
    work: int = 0
    share: float = 0.0

    def picture(self) -> Picture:
        """The bytes over time."""
        course = self.over_time or ()
        scale, unit = byte_unit(self.peak_bytes or 0)
        points = [(100 * (i + 1) / len(course), b / scale) for i, b in enumerate(course)]
        peak = max(points, key=lambda p: p[1], default=None)
        notes = [Note(*peak, f"peak {self.peak_bytes / scale:.3g} {unit}")] if peak and self.peak_bytes else []
        limit = None
        if self.budget is not None and self.peak_bytes is not None and self.budget < 2 * self.peak_bytes:
            limit = self.budget / scale, f"budget {self.budget / scale:.3g} {unit}"
        return Picture(
            f"{self.name}: memory over time",
            "course of the call / % of its allocations",
            f"memory / {unit}",
            points,
            notes=notes,
            limit=limit,
        )

    def _bars(self) -> list[str]:
        """The bytes over time as a line of bars."""
        if not self.over_time or not self.peak_bytes:
            return []
        heights = _sampled(self.over_time, COLUMNS)
        return ["over time: " + "".join(BARS[-(-b * (len(BARS) - 1) // self.peak_bytes)] for b in heights)]

    def __str__(self) -> str:
        peak = "depends on data" if self.peak_bytes is None else f"{self.peak_bytes:,} bytes"
        limit = "" if self.budget is None else f", of a budget of {self.budget:,}"
        lines = [f"{self.name}: peak {peak}{limit}", *self._bars()]
        if self.advances != 0:
            steps = "as many as the data ask for" if self.advances is None else f"{self.advances:,}"
            before = "" if self.recomputed is None else f", {self.recomputed:,} of them repeated"
            lines.append(f"advances: {steps}{before}")
        lines.append(f"saved: {_total(self.saved)}")
        kinds = _together(self.saved, lambda v: (v.name, v.producer, v.consumer, v.work is None and v.reason))
        lines += _table([row for kind in kinds for row in _saved_rows(kind)])
        if self.budget is not None or self.again:
            lines.append(f"computed again: {_total(self.again)}")
        if self.again:
            lines[-1] += f", by {self.work:,} operations, {self.share:.1%} of a forward pass"
            repeated = _together(self.again, lambda v: (v.name, v.where, v.operation))
            lines += _table([_row(kind, _by(kind)) for kind in repeated])
        if self.later:
            lines.append(f"computed later, not repeated: {_total(self.later)}")
        if self.at_peak:
            lines.append("at the peak:")
            rest = self.at_peak[ROWS:]
            more = [(f"{len(rest)} more", sum(b for _, b, _ in rest), "", "")] if rest else []
            lines += _table([*((*living, "") for living in self.at_peak[:ROWS]), *more])
        return "\n".join(lines)


Kept = TypeVar("Kept", Saved, Repeated)
Row = tuple[str, int | None, str, str]  # name, bytes, line, further text


def _table(rows: Sequence[Row]) -> list[str]:
    """The rows with their columns aligned."""
    wide, far = (max((len(row[k]) for row in rows), default=0) for k in (0, 2))  # type: ignore[arg-type]  # these are texts
    sizes = ["" if size is None else f"{size:,} B" for _, size, _, _ in rows]
    return [
        f"  {name:<{wide}}  {size:>17}  {where:<{far}}  {more}".rstrip()
        for (name, _, where, more), size in zip(rows, sizes, strict=True)
    ]


def _total(values: Sequence[Saved | Repeated]) -> str:
    some = f"{len(values):,} value{'s' if len(values) > 1 else ''}"
    return f"{some}, {sum(v.bytes for v in values):,} bytes" if values else "nothing"


def _together(values: Sequence[Kept], key: Callable[[Kept], Hashable]) -> list[list[Kept]]:
    """Group values by key, the largest group first."""
    found: dict[Hashable, list[Kept]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return sorted(found.values(), key=lambda kind: -sum(v.bytes for v in kind))


def _row(kind: Sequence[Saved | Repeated], more: str) -> Row:
    """The number of values in a group, their bytes together, and their line."""
    name = kind[0].name if len(kind) == 1 else f"{kind[0].name} ×{len(kind)}"
    return name, sum(v.bytes for v in kind), kind[0].where, more


def _saved_rows(kind: Sequence[Saved]) -> list[Row]:
    costs = sorted({v.work for v in kind if v.work is not None})
    reason = kind[0].reason if len(costs) < 2 else _by_budget(f"{costs[0]:,} to {costs[-1]:,}")
    return [_row(kind, reason), ("", None, "", f"made by {kind[0].producer}, read by {kind[0].consumer}")]


def _by(kind: Sequence[Repeated]) -> str:
    return f"by {kind[0].operation}, {sum(v.work for v in kind):,} operations"


def _by_budget(costs: str) -> str:
    return f"kept by the budget: computing it again costs {costs} operations"


def report(compilation: Compilation) -> MemoryReport:
    """The report of the code that a compilation is part of."""
    graph = compilation.executable.graph
    target = compilation.executable.target
    try:
        course = target.footprint(target.plan(target.legalise(graph))).course()
    except Undecided:
        course = None
    steps, divided = steps_of(graph.nodes), compilation.planned
    budgeted = budget_of(divided) is not None
    nodes = repeated(divided)
    cost = sum(map(work, nodes))
    forward = steps_of(halves(unplanned(compilation) if nodes else divided)[0])
    return MemoryReport(
        graph.name,
        None if course is None else course.peak,
        (*_saved(graph), *(_crossing(divided) if budgeted else _residuals(compilation.derived.lin))),
        steps and steps.advances,
        steps and steps.again,
        None if course is None else _sampled(course.over_time),
        () if course is None else tuple(_living(course)),
        budget_of(divided),
        tuple(map(_repeated, nodes)),
        tuple(map(_repeated, deferred(divided) if budgeted else ())),
        cost,
        cost / max(forward.work, 1) if forward is not None else 0.0,
    )


def _sampled(course: Sequence[int], points: int = SAMPLES) -> tuple[int, ...]:
    """At most so many points; each is the largest of the points that it stands for."""
    width = max(-(-len(course) // points), 1)
    return tuple(max(course[i : i + width]) for i in range(0, len(course), width))


def _living(course: Course) -> list[tuple[str, int, str]]:
    """The values at the peak, equal names and lines together, the largest first."""
    found: dict[tuple[str, str], int] = {}
    for size, value, node in course.at_peak:
        name = "results" if node is None else "gaps" if value is None else value.hint or node.prim.name
        key = (name, _place(node.where) if node is not None and value is not None else "")
        found[key] = found.get(key, 0) + size
    return sorted(((name, size, where) for (name, where), size in found.items()), key=lambda x: -x[1])


def _place(where: Where | None) -> str:
    return where.short if where is not None else ""


def _said(node: Node | None) -> str:
    return "the results" if node is None else f"{node.prim.name} {_place(node.where)}".strip()


def _repeated(node: Node) -> Repeated:
    name = next((v.hint for v in node.outputs if v.hint), None) or node.prim.name
    return Repeated(name, node.prim.name, sum(v.aval.nbytes for v in node.outputs), _place(node.where), work(node))


def _crossing(divided: Graph) -> Iterator[Saved]:
    """The values that the adjoint of a gradient with a budget finds kept, but for values kept in loops."""
    found = crossing(divided)
    made = {v: node for node in sides(divided)[0] for v in node.outputs}
    kept = [c.value for c in found]
    results = set(divided.outputs)
    for value, producer, reader in found:
        if _reason(producer, producer.outputs.index(value)):
            continue
        cost = None
        if value in results:
            reason = "a result of the call"
        elif producer.effect:
            reason = "random draws and host calls are never repeated"
        elif producer.graphs:
            reason = "results of loops and calls are not computed again"
        else:
            cost = price(value, made, kept)
            reason = _by_budget(f"{cost:,}")
        yield _kept(value, producer, reader, reason, cost)


def _residuals(lin: Linearized | None) -> Iterator[Saved]:
    """The values of the forward graph outside of loops that the derivative reads, without arguments and constants."""
    for value in lin.residuals if lin is not None else ():
        producer = lin.forward.producer.get(value) if lin is not None else None
        if lin is None or producer is None or value.aval.steps is not None or producer.prim.alias is not None:
            continue
        readers = lin.linear.uses.get(value, [])
        reason = "residual: the derivative of its reader needs it"
        yield _kept(value, producer, readers[0] if readers else None, reason)


def _kept(value: Value, producer: Node, reader: Node | None, reason: str, cost: int | None = None) -> Saved:
    """A kept value and its operation; for calls and regions, the operation inside."""
    while (body := body_in_place(producer)) is not None:
        inner = body.outputs[producer.outputs.index(value)]
        if inner not in body.producer:
            break
        value, producer = inner, body.producer[inner]
    name = value.hint or producer.prim.name
    return Saved(name, value.aval.nbytes, _place(producer.where), _said(producer), _said(reader), reason, cost)


def _saved(graph: Graph, within: Collection[Value] = ()) -> Iterator[Saved]:
    """Lists of residuals, kept states, and residuals of last steps, also in loops inside loops.

    Values ``within`` lists of an outer loop are counted there. Lists that share their states count them once.
    """
    for node in graph.nodes:
        loop = loop_of(node)
        stacked = _stacked(loop) if loop is not None else {}
        shared = _shared(loop, list(stacked.values())) if loop is not None else set()
        for k, value in enumerate(node.outputs):
            reason = _reason(node, k) if value not in within else ""
            if reason:
                readers = graph.uses.get(value, [])
                consumer = _said(readers[0] if readers else None)
                aval = value.aval.unstacked() if stacked.get(value) in shared else value.aval
                yield Saved(value.hint or "a value", aval.nbytes, _place(node.where), _said(node), consumer, reason)
        for _, body in node.graphs:
            yield from _saved(body, set(stacked.values()))


def _stacked(loop: LoopNode) -> dict[Value, Value]:
    """For each list of residuals, the value of its body that each step appends."""
    first = len(loop.body.outputs) - len(loop.stacks)
    return dict(zip(loop.stacks, loop.body.outputs[first:], strict=True))


def _shared(loop: LoopNode, stacked: Sequence[Value]) -> set[Value]:
    """The states whose list holds, but for one state, the same arrays as another list: the carry only moves them on."""
    layout, body = loop.layout, loop.body
    carry = body.inputs[layout.consts : layout.consts + layout.carry]
    return {before for before, after in zip(carry, body.outputs, strict=False) if {before, after} <= set(stacked)}


# Why results of planned loops are kept, by their group.
KEPT = {
    "lists": "results that must not be computed again",
    "disk": "states on disk",
    "tapes": "residuals of single steps, in the same slots",
    "last": "residual of the last step",
}


def _reason(node: Node, k: int) -> str:
    """Why the k-th result of a node is kept; empty if it is not a residual."""
    structure, aval = node.prim.structure, node.outputs[k].aval
    group = "" if structure is None else structure.group(node, k)
    if group == "kept":
        slots = aval.steps[0] if aval.steps else 0
        return f"states in {slots} slots" if slots > 0 else "states, as many as the plan keeps"
    if group == "stacks" and loop_of(node) is not None:
        return "residual of each step: the loop has no plan"
    return KEPT.get(group, "")
