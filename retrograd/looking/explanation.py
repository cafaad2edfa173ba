"""The explanation of one call of a function: inputs, operations, costs, memory, decisions, bindings, and a check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..reports.memory import MemoryReport
from .amounts import cut, in_bytes, in_seconds, in_short
from .sections import Section, page_of

ROWS = 20  # lines of a program in the text; the fields hold all


@dataclass(frozen=True)
class InputUse:
    """An input of the graph: an argument, or an array that the function found outside (``captured``).

    ``result`` says whether the result of the compiled function depends on it, ``value`` whether that of the plain one
    does, and ``differentiated`` whether derivatives are taken in it.
    """

    name: str
    type: str
    bytes: int
    captured: bool
    differentiated: bool
    value: bool
    result: bool


@dataclass(frozen=True)
class FamilyCount:
    """Operations of one family: how many stand in the function and in its derivative, and which."""

    family: str
    forward: int
    adjoint: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class LineCost:
    """The cost of one line of the user's, in the function or in its derivative.

    ``part`` is forward, adjoint, again (computed again) or later. ``predicted`` seconds follow from what this machine
    does in a second, ``measured`` ones from runs. ``open`` says that data decide how often it runs, and that the
    prediction counts once.
    """

    where: str
    code: str
    part: str
    operations: int
    flops: float
    bytes: float
    predicted: float
    measured: float
    open: bool


@dataclass(frozen=True)
class Decision:
    """A question that Python asked of a traced value, and the answer for which this path is valid."""

    where: str
    code: str
    kind: str
    answer: str


@dataclass(frozen=True)
class Remark:
    """Something that was done to the program, or was not: ``done`` says which, ``why`` gives the reason."""

    done: bool
    what: str
    why: str
    where: str = ""


@dataclass(frozen=True)
class Bindings:
    """What the cache knows of the function, and what this compilation relies on besides its arguments."""

    hits: int
    misses: int
    signatures: int
    versions: int
    paths: int
    compiled: bool
    captured: tuple[str, ...]
    watched: tuple[str, ...]
    statics: tuple[str, ...]


@dataclass(frozen=True)
class FunctionExplanation:
    """What was made of a function for one call: print it, look at it in a notebook, or read its fields.

    ``seconds`` are measured for one whole call, ``predicted`` follow from the operations. ``checked`` is True if the
    derivative agrees with differences, False if it does not, and None if that was not looked at; ``check`` says more.
    """

    name: str
    seconds: float
    predicted: float
    inputs: tuple[InputUse, ...]
    families: tuple[FamilyCount, ...]
    lines: tuple[LineCost, ...]
    memory: MemoryReport
    decisions: tuple[Decision, ...]
    remarks: tuple[Remark, ...]
    bindings: Bindings
    checked: bool | None
    check: str

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        found = [f"{self.name}: {self.headline()}"]
        for section in self.sections():
            found += ["", f"{section.title}:", *section.text()]
        return "\n".join(found)

    def _repr_html_(self) -> str:
        return page_of(self.name, self.headline(), self.sections())

    def headline(self) -> str:
        """One call in a few words."""
        total = sum(line.flops for line in self.lines)
        return (
            f"{in_seconds(self.seconds)} a call, predicted {in_seconds(self.predicted)}; "
            f"{in_short(total)} floating-point operations"
        )

    def sections(self) -> list[Section]:
        """The parts of the explanation, as tables."""
        return [
            self._inputs(),
            self._families(),
            self._lines(),
            Section("memory", ("",), [(line,) for line in str(self.memory).splitlines()], plain=True),
            self._decisions(),
            self._remarks(),
            self._cache(),
            Section("gradient check", ("",), [(self.check,)], plain=True),
        ]

    def _inputs(self) -> Section:
        rows = []
        for use in self.inputs:
            said = "does not affect this result" if use.value else "does not affect the result"
            kind = "captured" if use.captured else "differentiated" if use.differentiated else ""
            rows.append((use.name, use.type, in_bytes(use.bytes), kind, "affects the result" if use.result else said))
        return Section("inputs", ("name", "type", "size", "", ""), rows, left=frozenset({0, 1, 3, 4}))

    def _families(self) -> Section:
        rows = [(f.family, str(f.forward), str(f.adjoint), cut(", ".join(f.names))) for f in self.families]
        return Section("operations", ("family", "function", "derivative", "which"), rows, left=frozenset({0, 3}))

    def _lines(self) -> Section:
        rows = [cost_row(line) for line in sorted(self.lines, key=lambda line: -line.measured)]
        rest = "" if len(rows) <= ROWS else f"{len(rows) - ROWS} more lines, which take less time"
        head = ("line", "part", "operations", "flops", "bytes", "predicted", "measured", "code")
        return Section("cost by line", head, rows, frozenset({0, 1, 7}), most=ROWS, rest=rest)

    def _decisions(self) -> Section:
        rows = counted_rows((d.where, d.kind, d.answer, d.code) for d in self.decisions)
        paths = self.bindings.paths
        rest = f"{paths} path{'s' if paths != 1 else ''} through the function {'are' if paths != 1 else 'is'} known"
        return Section("decisions", ("line", "asked for", "answer", "code"), rows, frozenset({0, 1, 2, 3}), rest=rest)

    def _remarks(self) -> Section:
        rows = [("done" if r.done else "not done", r.what, r.why, r.where) for r in self.remarks]
        return Section("folded, fused, refused", ("", "what", "why", "line"), rows, frozenset({0, 1, 2, 3}))

    def _cache(self) -> Section:
        b = self.bindings
        rows = [
            ("calls that found code", f"{b.hits:,}"),
            ("calls that compiled", f"{b.misses:,}"),
            ("signatures kept", f"{b.signatures:,}"),
            ("versions of this signature", f"{b.versions:,}"),
            ("this path", "is compiled" if b.compiled else "is traced at each call"),
            *[("captured", name) for name in b.captured],
            *[("checked", words) for words in b.watched],
            *[("fixed", words) for words in b.statics],
        ]
        return Section("cache and bindings", ("", ""), rows, frozenset({0, 1}))


def counted_rows(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Each row once, in the order of first appearance; equal ones begin with their number, as in ``60 × a.py:3``."""
    return [(f"{count:,} × {row[0]}" if count > 1 else row[0], *row[1:]) for row, count in Counter(rows).items()]


def _nowhere(operations: int) -> str:
    """What stands in place of a line: time that is no operation's is that of the code around them."""
    return "no line" if operations else "around the operations"


def cost_row(line: LineCost) -> tuple[str, ...]:
    """A line's cost, as text."""
    several = "+" if line.open else ""
    return (
        line.where or _nowhere(line.operations),
        line.part,
        f"{line.operations:,}",
        in_short(line.flops) + several,
        in_bytes(line.bytes) + several,
        in_seconds(line.predicted) + several,
        in_seconds(line.measured),
        cut(line.code),
    )


@dataclass(frozen=True)
class Profile:
    """The measured time of one call by line: function and adjoint apart.

    ``seconds`` is the least of ``runs`` whole calls. Those of the lines add up to it; what belongs to no line, such as
    copies of results, has an empty one.
    """

    name: str
    seconds: float
    runs: int
    lines: tuple[LineCost, ...]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data."""
        return asdict(self)

    def by_line(self) -> list[tuple[str, str, float, float]]:
        """For each line its text, the seconds in the function, and the seconds in the derivative; the longest first."""
        found: dict[str, list[Any]] = {}
        for line in self.lines:
            row = found.setdefault(line.where, [line.code, 0.0, 0.0])
            row[1 if line.part == "forward" else 2] += line.measured
        rows = [(where, code, forward, back) for where, (code, forward, back) in found.items()]
        return sorted(rows, key=lambda row: -row[2] - row[3])

    def section(self) -> Section:
        """The profile as a table."""
        nowhere = _nowhere(sum(line.operations for line in self.lines if not line.where))
        rows = [
            (
                where or nowhere,
                in_seconds(forward),
                in_seconds(back),
                f"{(forward + back) / (self.seconds or 1.0):.0%}",
                cut(code),
            )
            for where, code, forward, back in self.by_line()
        ]
        return Section("time by line", ("line", "function", "derivative", "share", "code"), rows, frozenset({0, 4}))

    def __str__(self) -> str:
        section = self.section()
        return "\n".join([f"{self.name}: {in_seconds(self.seconds)} a call", *section.text()])

    def _repr_html_(self) -> str:
        return page_of(self.name, f"{in_seconds(self.seconds)} a call", [self.section()])
