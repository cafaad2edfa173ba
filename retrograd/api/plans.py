"""What a compiled function keeps in memory, why, and what less memory would cost: as text, data and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..codegen.numpy.footprint import Course, Undecided, course_of
from ..ir.graph import Graph, Node
from ..ir.types import Where
from ..passes.absorb import absorb
from ..passes.checkpoint.sweeps import limited
from ..passes.checkpoint.tally import steps_of
from ..passes.linearize import Linearized
from ..passes.place_buffers import place_buffers
from .budgets import peak_of
from .config import config
from .loop_budgets import with_plan
from .pictures import curve_svg, figure_of

SAMPLES, COLUMNS = 400, 72
BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Saved:
    """A value that is kept for a derivative: where it is made, what reads it, and why it is kept."""

    name: str
    bytes: int
    where: str
    producer: str
    consumer: str
    reason: str


@dataclass(frozen=True)
class MemoryReport:
    """The memory of one compiled signature.

    ``peak_bytes`` is the most that a call holds at once, inputs not counted, and ``over_time`` the bytes as the call
    goes on; both are None where they depend on data, as the length of a while loop does. ``advances`` are steps of
    loops that run without residuals, of which ``recomputed`` have run before. ``at_peak`` are the values that live at
    the peak: name, bytes and line.
    """

    name: str
    peak_bytes: int | None
    saved: tuple[Saved, ...]
    advances: int | None
    recomputed: int | None
    over_time: tuple[int, ...] | None
    at_peak: tuple[tuple[str, int, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)

    def to_svg(self) -> str:
        """The bytes over time as a picture."""
        points = [(float(i), float(b)) for i, b in enumerate(self.over_time or ())]
        return curve_svg(f"memory of {self.name}", "operation", "bytes", points, line=True)

    def figure(self) -> Any:
        """The bytes over time as a matplotlib figure."""
        points = [(float(i), float(b)) for i, b in enumerate(self.over_time or ())]
        return figure_of(f"memory of {self.name}", "operation", "bytes", points, line=True)

    def _bars(self) -> list[str]:
        """The bytes over time as a line of bars."""
        if not self.over_time or not self.peak_bytes:
            return []
        heights = _sampled(self.over_time, COLUMNS)
        return ["over time: " + "".join(BARS[-(-b * (len(BARS) - 1) // self.peak_bytes)] for b in heights)]

    def __str__(self) -> str:
        peak = "depends on data" if self.peak_bytes is None else f"{self.peak_bytes:,} bytes"
        steps = "as many as the data ask for" if self.advances is None else f"{self.advances:,}"
        again = "" if self.recomputed is None else f", {self.recomputed:,} of them again"
        lines = [f"{self.name}: peak {peak}", *self._bars(), f"advances: {steps}{again}"]
        lines.append("saved:" if self.saved else "saved: nothing")
        for v in self.saved:
            lines.append(f"  {v.name:<12} {v.bytes:>15,} B  {v.where:<18} {v.reason}")
            lines.append(f"  {'':<12} {'':>15}    made by {v.producer}, read by {v.consumer}")
        if self.at_peak:
            lines.append("at the peak:")
            lines += [f"  {name:<12} {size:>15,} B  {where}" for name, size, where in self.at_peak[:12]]
            rest = self.at_peak[12:]
            if rest:
                lines.append(f"  {len(rest)} more {'':<6} {sum(b for _, b, _ in rest):>13,} B")
        return "\n".join(lines)


def report(graph: Graph, lin: Linearized | None = None) -> MemoryReport:
    """The report of a finished graph, of a derivative by ``lin``."""
    try:
        course = course_of(place_buffers(absorb(graph)))
    except Undecided:
        course = None
    steps = steps_of(graph)
    saved = (*_saved(graph), *_residuals(lin))
    return MemoryReport(
        graph.name,
        None if course is None else course.peak,
        saved,
        steps and steps.advances,
        steps and steps.again,
        None if course is None else _sampled(course.over_time),
        () if course is None else tuple(_living(course)),
    )


def _sampled(course: Sequence[int], points: int = SAMPLES) -> tuple[int, ...]:
    """At most so many points, each the most of those it stands for."""
    width = max(-(-len(course) // points), 1)
    return tuple(max(course[i : i + width]) for i in range(0, len(course), width))


def _living(course: Course) -> list[tuple[str, int, str]]:
    """Equal ones together, the largest first."""
    found: dict[tuple[str, str], int] = {}
    for size, value, node in course.at_peak:
        name = "results" if value is None or node is None else value.hint or node.prim.name
        key = (name, _place(node.where) if node is not None else "")
        found[key] = found.get(key, 0) + size
    return sorted(((name, size, where) for (name, where), size in found.items()), key=lambda x: -x[1])


def _place(where: Where | None) -> str:
    return where.short if where is not None else ""


def _said(node: Node | None) -> str:
    return "the results" if node is None else f"{node.prim.name} {_place(node.where)}".strip()


def _residuals(lin: Linearized | None) -> Iterator[Saved]:
    """What the derivative reads from the forward side outside of loops, arguments and constants apart."""
    for value in lin.residuals if lin is not None else ():
        producer = lin.forward.producer.get(value) if lin is not None else None
        if lin is None or producer is None or value.aval.steps is not None or producer.prim.alias is not None:
            continue
        readers = lin.linear.uses.get(value, [])
        yield Saved(
            value.hint or producer.prim.name, value.aval.nbytes, _place(producer.where), _said(producer),
            _said(readers[0] if readers else None), "residual: the derivative of its reader needs it",
        )  # fmt: skip


def _saved(graph: Graph) -> Iterator[Saved]:
    """Lists of residuals, kept states, and residuals of last steps, in loops inside loops, too."""
    for node in graph.nodes:
        for k, value in enumerate(node.outputs):
            reason = _reason(node, k)
            if reason:
                readers = graph.uses.get(value, [])
                consumer = _said(readers[0] if readers else None)
                aval = value.aval
                yield Saved(value.hint or "a value", aval.nbytes, _place(node.where), _said(node), consumer, reason)
        for _, body in node.graphs:
            yield from _saved(body)


def _reason(node: Node, k: int) -> str:
    """Why the k-th result of a node is kept; nothing for one that is no residual."""
    a, prim = node.attrs, node.prim.name
    aval = node.outputs[k].aval
    if prim in ("sweep", "open_sweep"):
        first = a["carry"] + a.get("arrays", 0)
        if first <= k < first + a["lists"]:
            return "results that must not be computed again"
        if first + a["lists"] <= k < first + a["lists"] + len(a["kept"]):
            slots = aval.steps[0] if aval.steps else 0
            return f"states in {slots} slots" if slots > 0 else "states, as many as the plan keeps"
        special = first + a["lists"] + len(a["kept"])
        if special <= k < special + ("disk" in a) + a.get("mixed", False):
            return "states on disk" if "disk" in a else "residuals of single steps, in the same slots"
        return "residual of the last step" if k >= first + a["lists"] else ""
    if prim in ("scan", "while_loop") and aval.steps is not None:
        return "residual of each step: the loop has no plan"
    return ""


@dataclass(frozen=True)
class Point:
    """One plan for all loops of a function, its peak and its steps."""

    plan: str
    peak_bytes: int
    advances: int
    recomputed: int


@dataclass(frozen=True)
class Tradeoff:
    """The memory-time curve of one compiled signature: what each plan takes, from all memory to the least."""

    name: str
    points: tuple[Point, ...]

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain data."""
        return asdict(self)

    def to_svg(self) -> str:
        """The curve as a picture."""
        return curve_svg(f"memory and time of {self.name}", "bytes at the peak", "further steps", self._places())

    def figure(self) -> Any:
        """The curve as a matplotlib figure."""
        return figure_of(f"memory and time of {self.name}", "bytes at the peak", "further steps", self._places())

    def _places(self) -> list[tuple[float, float]]:
        return [(float(p.peak_bytes), float(p.advances)) for p in self.points]

    def __str__(self) -> str:
        head = f"{'plan':<18} {'peak bytes':>16} {'advances':>12} {'again':>12}"
        rows = [f"{p.plan:<18} {p.peak_bytes:>16,} {p.advances:>12,} {p.recomputed:>12,}" for p in self.points]
        return "\n".join([f"{self.name}:", head, *rows])


def tradeoff(graph: Graph) -> Tradeoff:
    """The curve for a graph before the pipeline, over plans for all of its loops together.

    Points that take more memory than one with fewer steps are left out.
    """
    settled = config.settled(graph)
    points: list[Point] = []
    for slots in _grid(settled):
        plan = ("snapshots", slots) if slots else ("everything",)
        finished = config.finished(with_plan(settled, plan))
        steps = steps_of(finished)
        if steps is None:
            continue
        name = f"Snapshots({slots})" if slots else "Everything()"
        point = Point(name, peak_of(finished), steps.advances, steps.again)
        if not points or point.peak_bytes < points[-1].peak_bytes:
            points.append(point)
    return Tradeoff(graph.name, tuple(points))


def _grid(graph: Graph) -> list[int]:
    """Everything, and then ever fewer slots, by about a quarter each."""
    longest = max(_lengths(with_plan(graph, ("snapshots", 1))), default=0)
    grid, slots = [0], longest - 1
    while slots > 0:
        grid.append(slots)
        slots = min(slots - 1, int(slots * 0.75))
    return grid


def _lengths(graph: Graph) -> Iterator[int]:
    if limited(graph):
        for node in graph.nodes:
            if node.attrs.get("memory") is not None and node.prim.name == "scan":
                yield node.attrs["length"]
            for _, body in node.graphs:
                yield from _lengths(body)
